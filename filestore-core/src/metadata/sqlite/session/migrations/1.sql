-- Instants are milliseconds since the Unix epoch, sizes are bytes.

CREATE TABLE files (
    file_id          TEXT    NOT NULL UNIQUE,
    organization_id  TEXT    NOT NULL,
    sub_system       TEXT    NOT NULL,
    original_name    TEXT    NOT NULL,
    mime_type        TEXT    NOT NULL,
    ext              TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN ('TEMP', 'THUMBNAIL', 'READY')),
    sync_status      TEXT    NOT NULL CHECK (sync_status IN ('NONE', 'PENDING', 'SYNCING', 'SYNCED', 'FAILED')),
    purge_status     TEXT             CHECK (purge_status IS NULL OR purge_status = 'SYSTEM_PURGE'),
    storage_location TEXT    NOT NULL CHECK (storage_location IN ('LOCAL', 'CLOUD')),
    storage_provider TEXT    NOT NULL,
    blob_key         TEXT    NOT NULL,
    -- The last part of the key, 26 characters.
    blob_id          TEXT    NOT NULL GENERATED ALWAYS AS (substr(blob_key, -26)) VIRTUAL,
    size_bytes       INTEGER NOT NULL CHECK (size_bytes >= 0),
    sha256           BLOB    NOT NULL CHECK (length(sha256) = 32),
    sniffed_type     TEXT,
    width            INTEGER          CHECK (width >= 0),
    height           INTEGER          CHECK (height >= 0),
    stored_at        INTEGER NOT NULL,
    version          INTEGER NOT NULL CHECK (version >= 1),
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    -- When the file was deleted.
    purge_marked_at  INTEGER,
    -- 1 once a purge run has taken it: from then on it cannot be restored.
    purge_claimed    INTEGER NOT NULL DEFAULT 0 CHECK (purge_claimed IN (0, 1)),
    -- The run that holds the lease, if one does.
    purge_owner      TEXT,
    -- The end of the lease, or of the wait after a failure.
    purge_not_before INTEGER NOT NULL DEFAULT 0,
    purge_attempts   INTEGER NOT NULL DEFAULT 0,
    -- What domain::lifecycle calls consistent.
    CHECK (status = 'READY' OR (storage_location = 'LOCAL' AND sync_status = 'NONE')),
    CHECK (sync_status <> 'SYNCED' OR storage_location = 'CLOUD'),
    CHECK (status = 'TEMP' OR expires_at IS NULL),
    CHECK ((width IS NULL) = (height IS NULL)),
    CHECK ((purge_status IS NULL) = (purge_marked_at IS NULL)),
    CHECK (purge_status IS NOT NULL OR (purge_claimed = 0 AND purge_owner IS NULL))
) STRICT;

-- A blob belongs to one record: a second reference would be purged away under its reader.
CREATE UNIQUE INDEX files_by_blob ON files (blob_id);

-- One range of one of these is one listing of one status, newest last, whatever the mix of statuses.
CREATE INDEX files_by_status ON files (purge_status, status, file_id);
CREATE INDEX files_by_organization ON files (organization_id, purge_status, status, file_id);
CREATE INDEX files_by_sub_system ON files (sub_system, purge_status, status, file_id);
CREATE INDEX files_by_both ON files (organization_id, sub_system, purge_status, status, file_id);

CREATE INDEX files_expiring ON files (expires_at) WHERE status = 'TEMP' AND purge_status IS NULL;
CREATE INDEX files_pending ON files (organization_id, storage_provider, file_id)
    WHERE sync_status = 'PENDING' AND purge_status IS NULL;

-- Two indexes, so that a run does not wade through rows that are leased or wait for a retry.
CREATE INDEX files_unclaimed ON files (purge_marked_at, size_bytes)
    WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0;
CREATE INDEX files_claimed ON files (purge_not_before, purge_marked_at, size_bytes)
    WHERE purge_claimed = 1;

-- Blobs no record refers to any more.
CREATE TABLE blob_gc (
    id               INTEGER PRIMARY KEY,
    file_id          TEXT    NOT NULL,
    storage_provider TEXT    NOT NULL,
    blob_key         TEXT    NOT NULL,
    not_before       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX blob_gc_due ON blob_gc (not_before);
CREATE INDEX blob_gc_by_file ON blob_gc (file_id);

CREATE TABLE bindings (
    -- AUTOINCREMENT: ids tell the newest, so none is used twice.
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id   INTEGER NOT NULL CHECK (organization_id BETWEEN 1 AND 9007199254740991),
    organization_name TEXT    NOT NULL,
    storage_provider  TEXT    NOT NULL,
    sync_enabled      INTEGER NOT NULL CHECK (sync_enabled IN (0, 1)),
    is_active         INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    effective_from    INTEGER NOT NULL,
    effective_to      INTEGER,
    CHECK ((is_active = 1) = (effective_to IS NULL))
) STRICT;

CREATE UNIQUE INDEX bindings_active ON bindings (organization_id) WHERE is_active = 1;
CREATE INDEX bindings_by_organization ON bindings (organization_id, id);

-- Remembered replies.
CREATE TABLE idempotency (
    organization_id TEXT    NOT NULL,
    key             TEXT    NOT NULL,
    fingerprint     BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    -- Separated by spaces.
    file_ids        TEXT    NOT NULL,
    reply           BLOB    NOT NULL,
    expires_at      INTEGER NOT NULL,
    UNIQUE (organization_id, key)
) STRICT;

CREATE INDEX idempotency_expiring ON idempotency (expires_at);

-- Totals, kept by triggers: no statement can forget them.
CREATE TABLE organization_usage (
    organization_id  TEXT    NOT NULL,
    storage_location TEXT    NOT NULL,
    files            INTEGER NOT NULL CHECK (files >= 0),
    bytes            INTEGER NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (organization_id, storage_location)
) STRICT, WITHOUT ROWID;

-- Files that are not deleted.
CREATE TABLE sync_totals (
    sync_status TEXT    NOT NULL PRIMARY KEY,
    files       INTEGER NOT NULL CHECK (files >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO sync_totals VALUES ('NONE', 0), ('PENDING', 0), ('SYNCING', 0), ('SYNCED', 0), ('FAILED', 0);

CREATE TRIGGER usage_insert AFTER INSERT ON files BEGIN
    INSERT INTO organization_usage VALUES (new.organization_id, new.storage_location, 1, new.size_bytes)
        ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER usage_delete AFTER DELETE ON files BEGIN
    UPDATE organization_usage SET files = files - 1, bytes = bytes - old.size_bytes
        WHERE organization_id = old.organization_id AND storage_location = old.storage_location;
END;

CREATE TRIGGER usage_update AFTER UPDATE OF size_bytes, storage_location ON files
WHEN old.size_bytes <> new.size_bytes OR old.storage_location <> new.storage_location BEGIN
    UPDATE organization_usage SET files = files - 1, bytes = bytes - old.size_bytes
        WHERE organization_id = old.organization_id AND storage_location = old.storage_location;
    INSERT INTO organization_usage VALUES (new.organization_id, new.storage_location, 1, new.size_bytes)
        ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER sync_totals_insert AFTER INSERT ON files WHEN new.purge_status IS NULL BEGIN
    UPDATE sync_totals SET files = files + 1 WHERE sync_status = new.sync_status;
END;

CREATE TRIGGER sync_totals_delete AFTER DELETE ON files WHEN old.purge_status IS NULL BEGIN
    UPDATE sync_totals SET files = files - 1 WHERE sync_status = old.sync_status;
END;

CREATE TRIGGER sync_totals_update AFTER UPDATE OF sync_status, purge_status ON files
WHEN old.sync_status <> new.sync_status OR old.purge_status IS NOT new.purge_status BEGIN
    UPDATE sync_totals SET files = files - 1 WHERE sync_status = old.sync_status AND old.purge_status IS NULL;
    UPDATE sync_totals SET files = files + 1 WHERE sync_status = new.sync_status AND new.purge_status IS NULL;
END;
