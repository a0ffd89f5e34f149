//! The index of custom metadata: a row for each member that a listing can ask for.
//!
//! A *term* stands for one key with one value. It is a digest, so that a row is small whatever the
//! members are; a listing compares the members themselves afterwards. Triggers keep the rows equal to
//! their file in status and deletion, and remove them with it.

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::domain::record::FileRecord;

use super::fault::Fault;
use super::row::{self, id};

pub(super) const PUT: &str =
    "INSERT INTO file_terms (of_organization, term, is_deleted, in_status, of_file)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const FORGET: &str = "DELETE FROM file_terms WHERE of_file = ?1";

/// The digest of one member.
pub(super) type Term = [u8; 16];

/// Computes the term of a member. The length of the key keeps two members from running together.
pub(super) fn term(key: &str, value: &str) -> Term {
    let digest = Sha256::new()
        .chain_update((key.len() as u64).to_le_bytes())
        .chain_update(key)
        .chain_update(value)
        .finalize();
    *digest.first_chunk().expect("a SHA-256 has 32 bytes")
}

/// Notes the terms of a file that has none yet.
pub(super) fn put(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
    let (file, organization) = (id(record.file_id), record.organization_id.as_str());
    let (is_deleted, status) = (record.state.is_deleted(), record.state.status().as_str());
    for (key, value) in record.metadata.terms() {
        row::execute(
            sql,
            PUT,
            params![organization, term(&key, &value), is_deleted, status, file],
        )?;
    }
    Ok(())
}

/// Notes the terms of a file in the place of those that it had.
pub(super) fn replace(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
    row::execute(sql, FORGET, [id(record.file_id)])?;
    put(sql, record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_have_two_terms() {
        assert_eq!(term("a", "b"), term("a", "b"));
        for (key, value) in [("", "ab"), ("ab", ""), ("b", "a"), ("a", "B"), ("a", "b ")] {
            assert_ne!(term(key, value), term("a", "b"), "{key}={value}");
        }
    }
}
