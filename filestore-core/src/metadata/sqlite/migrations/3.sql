-- The store itself: its id, and what a server last worked by.

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER settings_keep_the_id BEFORE UPDATE ON settings WHEN old.name = 'store_id' BEGIN
    SELECT RAISE(ABORT, 'the id of a store never changes');
END;

-- Work by the provider that has it to do, so that each has a queue of its own.

CREATE INDEX files_purging ON files (storage_provider, purge_marked_at) WHERE purge_status = 'SYSTEM_PURGE';

DROP INDEX files_pending;
CREATE INDEX files_pending ON files (organization_id, storage_provider, sync_not_before, file_id, stored_at)
    WHERE sync_status = 'PENDING' AND purge_status IS NULL;

-- The end of the grace period. The row stays until then, also when the bytes are gone before: a write that was
-- delayed may still land. (`not_before` moves with each attempt.)
ALTER TABLE blob_gc ADD COLUMN kept_until INTEGER NOT NULL DEFAULT 0;
UPDATE blob_gc SET kept_until = not_before;

CREATE INDEX blob_gc_by_provider ON blob_gc (storage_provider, kept_until);
