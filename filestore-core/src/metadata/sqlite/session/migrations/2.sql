-- Providers that hold bytes elsewhere: copies under way, and what they may leave behind.

-- The run that copies the file, while it is SYNCING.
ALTER TABLE files ADD COLUMN sync_owner TEXT CHECK (sync_status = 'SYNCING' OR sync_owner IS NULL);
-- PENDING: not to be tried before. SYNCING: the end of the lease.
ALTER TABLE files ADD COLUMN sync_not_before INTEGER NOT NULL DEFAULT 0;
-- Failed tries with the current blob.
ALTER TABLE files ADD COLUMN sync_attempts INTEGER NOT NULL DEFAULT 0;

DROP INDEX files_pending;
CREATE INDEX files_pending ON files (organization_id, storage_provider, sync_not_before, file_id)
    WHERE sync_status = 'PENDING' AND purge_status IS NULL;
CREATE INDEX files_syncing ON files (sync_not_before) WHERE sync_status = 'SYNCING';
CREATE INDEX files_failed ON files (organization_id, file_id) WHERE sync_status = 'FAILED' AND purge_status IS NULL;

-- Objects that are being written to a provider and that no record refers to yet. A row goes in the
-- transaction that refers to its object, or that hands it to blob_gc.
CREATE TABLE write_intents (
    blob_key         TEXT    NOT NULL PRIMARY KEY,
    storage_provider TEXT    NOT NULL,
    file_id          TEXT    NOT NULL,
    begun_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX write_intents_by_age ON write_intents (begun_at);
