//! Damaged rows that are set right.

use super::*;
use crate::domain::file::record::FileRecord;
use crate::domain::provider::ProviderCode;
use crate::metadata::contract::damage::Vandal;
use crate::metadata::contract::{at, get, lease, put, put_deleted, ready};
use crate::metadata::prelude::*;
use crate::metadata::{DueFiles, MendedRow, WalkedFile};

/// Lets the schema take what it forbids.
const NO_CONSTRAINTS: &str = "DO $$ DECLARE name text; BEGIN
     FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'files'::regclass AND contype = 'c' LOOP
     EXECUTE 'ALTER TABLE files DROP CONSTRAINT ' || quote_ident(name); END LOOP; END $$";

impl Vandal for Schema {
    fn run(&self, statement: &str) {
        Self::run(self, NO_CONSTRAINTS);
        Self::run(self, statement);
    }

    fn count(&self, rows: &str) -> i64 {
        Self::count(self, rows)
    }
}

fn damage(schema: &Schema, record: &FileRecord, change: &str) {
    let id = record.file_id;
    Vandal::run(schema, &format!("UPDATE files SET {change} WHERE file_id = '{id}'"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn what_follows_from_the_rest_of_a_row_is_set_right() {
    let (metadata, schema) = fresh();
    let ways = ["blob_key = 'x/' || right(blob_key, 26)", "sync_status = 'SYNCED'", "width = 1"];
    for way in ways {
        let record = put(&metadata, ready("acme")).await;
        damage(&schema, &record, way);
        let page = metadata.inspection().walk_files("", 9).await.unwrap();
        assert!(page.files.iter().any(|file| matches!(file, WalkedFile::Damaged { .. })), "{way}");

        let mended = metadata.inspection().mend_file(&record.file_id.to_string()).await.unwrap();
        assert!(matches!(mended, MendedRow::SetRight(_)), "{way}: {mended:?}");
        assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record), "{way}");
    }

    let hopeless = put_deleted(&metadata, ready("acme"), at(1)).await;
    damage(&schema, &hopeless, "status = 'ODD'");
    let id = hopeless.file_id.to_string();
    assert_eq!(metadata.inspection().mend_file(&id).await.unwrap(), MendedRow::SetAside);
    let lease = lease("run", at(9), at(30));
    let claims = metadata
        .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(9)), 9)
        .await
        .unwrap();
    assert_eq!(claims, []);
}
