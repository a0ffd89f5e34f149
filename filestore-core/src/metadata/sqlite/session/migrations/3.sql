-- The store itself: its id, and what a server last worked by.

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER settings_keep_the_id BEFORE UPDATE ON settings WHEN old.name = 'store_id' BEGIN
    SELECT RAISE(ABORT, 'the id of a store never changes');
END;

-- Work by the provider that has it to do, so that each has a queue of its own.

DROP INDEX files_unclaimed;
CREATE INDEX files_unclaimed ON files (storage_provider, purge_marked_at, size_bytes)
    WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0;
DROP INDEX files_claimed;
CREATE INDEX files_claimed ON files (storage_provider, purge_not_before, purge_marked_at, size_bytes)
    WHERE purge_claimed = 1;
CREATE INDEX files_purge_leased ON files (purge_owner) WHERE purge_owner IS NOT NULL;

DROP INDEX files_pending;
CREATE INDEX files_pending ON files (organization_id, storage_provider, sync_not_before, file_id, stored_at)
    WHERE sync_status = 'PENDING' AND purge_status IS NULL;

-- The end of the grace period. The row stays until then, also when the bytes are gone before: a write that was
-- delayed may still land. (`not_before` moves with each attempt.)
ALTER TABLE blob_gc ADD COLUMN kept_until INTEGER NOT NULL DEFAULT 0;
UPDATE blob_gc SET kept_until = not_before;
-- 1 once the bytes were found absent, while the row is kept.
ALTER TABLE blob_gc ADD COLUMN is_absent INTEGER NOT NULL DEFAULT 0 CHECK (is_absent IN (0, 1));

DROP INDEX blob_gc_due;
CREATE INDEX blob_gc_due ON blob_gc (storage_provider, not_before);
CREATE INDEX blob_gc_failed ON blob_gc (storage_provider, not_before) WHERE attempts > 0;

CREATE INDEX blob_gc_by_provider ON blob_gc (storage_provider, kept_until);

-- The run that writes the object and renews `begun_at` meanwhile; NULL for a request, which takes minutes at most.
ALTER TABLE write_intents ADD COLUMN owner TEXT;
CREATE INDEX write_intents_by_owner ON write_intents (owner) WHERE owner IS NOT NULL;
