//! Inserts all records in one statement. Each column is one parameter.

use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::status::PurgeStatus;
use crate::domain::time::clock::Timestamp;

use super::row::{self, columns, id, sides};
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;

const INSERT: &str = concat!(
    "INSERT INTO files (",
    columns!(),
    ") SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
     $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bytea[],
     $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
     $22::bigint[], $23::text[], $24::bigint[], $25::bytea[], $26::bigint[], $27::bigint[],
     $28::integer[], $29::text[])"
);

/// The columns of records to insert.
#[derive(Default)]
pub(super) struct InsertedRows<'r> {
    ids: Vec<String>,
    organizations: Vec<&'r str>,
    sub_systems: Vec<&'r str>,
    names: Vec<&'r str>,
    mime_types: Vec<&'r str>,
    exts: Vec<&'r str>,
    statuses: Vec<&'static str>,
    syncs: Vec<&'static str>,
    purges: Vec<Option<&'static str>>,
    locations: Vec<&'static str>,
    providers: Vec<&'r str>,
    keys: Vec<&'r str>,
    sizes: Vec<i64>,
    digests: Vec<&'r [u8]>,
    sniffed_types: Vec<Option<&'r str>>,
    widths: Vec<Option<i64>>,
    heights: Vec<Option<i64>>,
    stored_at: Vec<i64>,
    versions: Vec<i64>,
    created_at: Vec<i64>,
    updated_at: Vec<i64>,
    expires_at: Vec<Option<i64>>,
    metadata: Vec<Option<&'r str>>,
    edited_at: Vec<Option<i64>>,
    thumbhashes: Vec<Option<&'r [u8]>>,
    marked_at: Vec<Option<i64>>,
    deleted_at: Vec<Option<i64>>,
    sync_attempts: Vec<i32>,
    sync_errors: Vec<Option<&'r str>>,
}

impl<'r> InsertedRows<'r> {
    pub(in crate::metadata::postgres) fn of(records: &'r [FileRecord]) -> Result<Self, Fault> {
        let mut rows = Self::default();
        for record in records {
            rows.push_names(record);
            rows.push_blob(record)?;
            rows.push_times(record)?;
        }
        Ok(rows)
    }

    fn push_names(&mut self, record: &'r FileRecord) {
        let state = record.state;
        self.ids.push(id(record.file_id));
        self.organizations.push(record.organization_id.as_str());
        self.sub_systems.push(record.sub_system.as_str());
        self.names.push(&record.original_name);
        self.mime_types.push(&record.mime_type);
        self.exts.push(&record.ext);
        self.statuses.push(state.status().as_str());
        self.syncs.push(state.sync().as_str());
        self.purges.push(state.purge().map(PurgeStatus::as_str));
        self.locations.push(state.location().as_str());
        self.metadata.push((!record.metadata.is_empty()).then(|| record.metadata.as_json()));
        self.sync_attempts.push(i32::try_from(record.sync_attempts).unwrap_or(i32::MAX));
        self.sync_errors.push(record.sync_error.as_deref());
    }

    fn push_blob(&mut self, record: &'r FileRecord) -> Result<(), Fault> {
        let blob = &record.blob;
        let (width, height) = sides(record);
        self.providers.push(blob.provider.as_str());
        self.keys.push(blob.key.as_str());
        self.sizes.push(row::integer(blob.size_bytes)?);
        self.digests.push(&blob.sha256.0);
        self.sniffed_types.push(blob.sniffed_type.as_deref());
        self.widths.push(width);
        self.heights.push(height);
        self.stored_at.push(blob.stored_at.as_millis());
        self.thumbhashes.push(blob.thumbhash.as_ref().map(Thumbhash::as_bytes));
        Ok(())
    }

    fn push_times(&mut self, record: &FileRecord) -> Result<(), Fault> {
        self.versions.push(row::integer(record.version)?);
        self.created_at.push(record.created_at.as_millis());
        self.updated_at.push(record.updated_at.as_millis());
        self.expires_at.push(record.expires_at.map(Timestamp::as_millis));
        self.edited_at.push(record.edited_at.map(Timestamp::as_millis));
        let deletion = record.deletion;
        self.marked_at.push(deletion.map(|deletion| deletion.marked_at.as_millis()));
        self.deleted_at.push(deletion.map(|deletion| deletion.deleted_at.as_millis()));
        Ok(())
    }

    pub(in crate::metadata::postgres) async fn insert(&self, sql: &Sql) -> Result<(), Fault> {
        sql.execute(
            INSERT,
            &[
                &self.ids,
                &self.organizations,
                &self.sub_systems,
                &self.names,
                &self.mime_types,
                &self.exts,
                &self.statuses,
                &self.syncs,
                &self.purges,
                &self.locations,
                &self.providers,
                &self.keys,
                &self.sizes,
                &self.digests,
                &self.sniffed_types,
                &self.widths,
                &self.heights,
                &self.stored_at,
                &self.versions,
                &self.created_at,
                &self.updated_at,
                &self.expires_at,
                &self.metadata,
                &self.edited_at,
                &self.thumbhashes,
                &self.marked_at,
                &self.deleted_at,
                &self.sync_attempts,
                &self.sync_errors,
            ],
        )
        .await
        .map(drop)
    }
}
