//! The tables of a store, in the form in which one engine passes them to another: row by row, as stored.
//!
//! # Not copied
//! Totals, because triggers compute them. Holds, because they end with their process. Commit marks, servers,
//! and the running work of servers. Resumable uploads, because a copy ends them.
//! The log of events, because positions mean nothing elsewhere: the new database begins a new log with `log.gap`.
//! Webhooks count the gap, and begin there.

/// A value in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Null,
    /// A number. For a truth value, 0 or 1.
    Integer(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    fn size_bytes(&self) -> usize {
        let content = match self {
            Self::Null | Self::Integer(_) => 0,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        };
        size_of::<Self>() + content
    }
}

/// A row, in the order of its table's columns.
pub type Cells = Vec<Cell>;

/// The size limits of a row page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The maximum number of rows.
    pub rows: usize,
    /// The size, in bytes, at which a page ends. The row that reaches this size is included.
    pub bytes: usize,
}

/// Returns the approximate memory size of a row, in bytes.
pub fn size_of_row(row: &Cells) -> usize {
    row.iter().map(Cell::size_bytes).sum()
}

/// The database to copy the records from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySource {
    /// The current database of the data directory.
    Current,
    /// A database under its former name. An earlier copy of its records reached that step, and only this copy
    /// can continue. A copy to another place would restore old data.
    Former,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// A number of 64 bits.
    Integer,
    /// A 32-bit number, if the engine has this type.
    Small,
    /// A truth value, if the engine has this type.
    Boolean,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
}

/// A table. The key columns come first, and all engines sort the rows by them in the same way.
#[derive(Debug)]
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// The number of key columns, counted from the first.
    pub key: usize,
    /// The stored columns, without computed columns.
    pub columns: &'static [Column],
}

impl Table {
    /// Returns the names of the columns, and of the key.
    pub fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let all: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        let key = all[..self.key].to_vec();
        (all, key)
    }
}

macro_rules! tables {
    ($($name:literal by $key:literal { $($column:ident $kind:ident,)+ })+) => {
        /// All tables to copy.
        pub const TABLES: &[Table] = &[$(Table {
            name: $name,
            key: $key,
            columns: &[$(Column { name: stringify!($column), kind: Kind::$kind }),+],
        }),+];
    };
}

tables! {
    "files" by 1 {
        file_id Text,
        row_id Integer,
        organization_id Text,
        sub_system Text,
        original_name Text,
        mime_type Text,
        ext Text,
        status Text,
        sync_status Text,
        purge_status Text,
        storage_location Text,
        storage_provider Text,
        blob_key Text,
        size_bytes Integer,
        sha256 Bytes,
        sniffed_type Text,
        width Integer,
        height Integer,
        stored_at Integer,
        version Integer,
        created_at Integer,
        updated_at Integer,
        expires_at Integer,
        metadata Text,
        edited_at Integer,
        thumbhash Bytes,
        purge_marked_at Integer,
        deleted_at Integer,
        deleted_by Text,
        purge_claimed Boolean,
        purge_owner Text,
        purge_not_before Integer,
        purge_attempts Small,
        sync_owner Text,
        sync_not_before Integer,
        sync_attempts Small,
        sync_error Text,
    }
    "file_terms" by 5 {
        of_organization Text,
        term Bytes,
        is_deleted Boolean,
        in_status Text,
        of_file Text,
    }
    "blob_gc" by 1 {
        id Integer,
        file_id Text,
        storage_provider Text,
        blob_key Text,
        not_before Integer,
        attempts Small,
        kept_until Integer,
        is_absent Boolean,
        sha256 Bytes,
        size_bytes Integer,
    }
    "bindings" by 1 {
        id Integer,
        organization_id Integer,
        organization_name Text,
        storage_provider Text,
        sync_enabled Boolean,
        is_active Boolean,
        effective_from Integer,
        effective_to Integer,
    }
    "idempotency" by 2 {
        organization_id Text,
        key Text,
        fingerprint Bytes,
        file_ids Text,
        reply Bytes,
        expires_at Integer,
    }
    "write_intents" by 1 {
        blob_key Text,
        storage_provider Text,
        file_id Text,
        begun_at Integer,
        owner Text,
    }
    "purge_receipts" by 1 {
        file_id Text,
        organization_id Text,
        created_at Integer,
        deleted_at Integer,
        deleted_by Text,
        purged_at Integer,
    }
    "removed_blobs" by 3 {
        file_id Text,
        storage_provider Text,
        blob_key Text,
        sha256 Bytes,
        size_bytes Integer,
        absent_at Integer,
        checked_at Integer,
        noted_at Integer,
    }
    "api_keys" by 1 {
        key_id Text,
        name Text,
        organizations Text,
        scopes Text,
        digest Bytes,
        former_digest Bytes,
        former_until Integer,
        created_at Integer,
        expires_at Integer,
        rotated_at Integer,
        revoked_at Integer,
        last_used_at Integer,
    }
    "signing_secrets" by 1 {
        kid Text,
        secret Bytes,
        created_at Integer,
        valid_until Integer,
    }
    "used_permits" by 1 {
        nonce Text,
        kept_until Integer,
    }
    "webhooks" by 1 {
        webhook_id Text,
        url Text,
        name Text,
        organization_id Text,
        kinds Text,
        secret Bytes,
        former_secret Bytes,
        former_until Integer,
        created_at Integer,
        changed_at Integer,
        disabled_reason Text,
        disabled_at Integer,
    }
    "webhook_lanes" by 1 {
        webhook_id Text,
        leased_until Integer,
        ahead Bytes,
        failing_since Integer,
        paused_until Integer,
        pauses Integer,
        last_status Integer,
        last_fault Text,
        last_attempt_at Integer,
        last_success_at Integer,
        gaps Integer,
    }
    "webhook_failures" by 1 {
        row_id Integer,
        webhook_id Text,
        event_id Bytes,
        kind Text,
        organization_id Text,
        file_id Text,
        body Text,
        state Text,
        is_repeat Boolean,
        attempts Integer,
        due_at Integer,
        last_status Integer,
    }
    "erasures" by 1 {
        organization_id Text,
        era Integer,
    }
    "check_runs" by 1 {
        name Text,
        is_deep Boolean,
        repairs Boolean,
        provider Text,
        started_at Integer,
        ended_at Integer,
        part Text,
        cursor Text,
        files Integer,
        bytes Integer,
        names Integer,
        found Integer,
        repaired Integer,
        postponed Text,
    }
    "check_findings" by 4 {
        run Text,
        rank Integer,
        place Text,
        name Text,
        kind Text,
        file_id Text,
        detail Text,
        outcome Text,
        action Text,
    }
    "settings" by 1 {
        name Text,
        value Text,
    }
}
