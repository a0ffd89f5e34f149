-- Receipts of purges: who deleted a file, and which blobs were found absent.

-- The instant of the deletion, which nothing hastens, and the one who deleted; NULL for files deleted before.
ALTER TABLE files ADD COLUMN deleted_at INTEGER;
ALTER TABLE files ADD COLUMN deleted_by TEXT;

-- The content of a dropped blob; NULL where it is not known, as that of a write that broke off.
ALTER TABLE blob_gc ADD COLUMN sha256 BLOB;
ALTER TABLE blob_gc ADD COLUMN size_bytes INTEGER;

-- A receipt asks for the writes that may still be under way.
CREATE INDEX write_intents_by_file ON write_intents (file_id);

-- Files that were purged.
CREATE TABLE purge_receipts (
    file_id         TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    deleted_at      INTEGER NOT NULL,
    deleted_by      TEXT    NOT NULL,
    purged_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX purge_receipts_by_age ON purge_receipts (purged_at);

-- Blobs that were found absent, those of files that are still there included.
CREATE TABLE removed_blobs (
    file_id          TEXT    NOT NULL,
    storage_provider TEXT    NOT NULL,
    blob_key         TEXT    NOT NULL,
    sha256           BLOB,
    size_bytes       INTEGER,
    -- The first and the last time.
    absent_at        INTEGER NOT NULL,
    checked_at       INTEGER NOT NULL,
    -- The later of `checked_at` and the end of the file's purge: rows are forgotten by it.
    noted_at         INTEGER NOT NULL,
    PRIMARY KEY (file_id, storage_provider, blob_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_blobs_by_age ON removed_blobs (noted_at);

-- What files dropped before now is not on record: receipts of these files say so.
INSERT INTO settings (name, value)
    SELECT 'receipts_from', CAST(max(created_at) + 1 AS TEXT) FROM files HAVING count(*) > 0;
