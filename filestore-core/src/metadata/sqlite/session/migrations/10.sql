-- The log of events: one row for each change of a file, written by the transaction of the change, and a few rows about
-- the store. Positions have no gaps and appear in their order, because this engine has one writer.
CREATE TABLE events (
    -- The newest row is never deleted, so that its position does not come again.
    position        INTEGER PRIMARY KEY,
    at              INTEGER NOT NULL,
    -- NULL once an erasure has blanked the row. Then all columns below are NULL.
    kind            TEXT,
    organization_id TEXT,
    sub_system      TEXT,
    file_id         TEXT,
    version         INTEGER,
    -- JSON.
    details         TEXT
) STRICT;

-- The position is part of each index.
CREATE INDEX events_by_organization ON events (organization_id) WHERE organization_id IS NOT NULL;

-- One row. The triggers ask `is_on`. A new log is off until a store opens it, so that copies of records tell nothing.
CREATE TABLE event_log (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    is_on     INTEGER NOT NULL CHECK (is_on IN (0, 1)),
    -- The time at which the log was switched off. NULL if it was never on.
    off_since INTEGER,
    -- The key of the ids. NULL until a store opens the log.
    id_key    BLOB CHECK (length(id_key) = 32),
    -- The newest event `log.gap`: the log begins there. NULL if there is none.
    gap_position INTEGER
) STRICT;

INSERT INTO event_log (id, is_on) VALUES (1, 0);

-- The same rules as `domain::event::of`. Times come from the row: the clock of the database is not the store's.

CREATE TRIGGER events_insert AFTER INSERT ON files WHEN (SELECT is_on FROM event_log) = 1 BEGIN
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        VALUES (new.updated_at,
        CASE WHEN new.updated_at > new.created_at THEN 'file.put_back' ELSE 'file.uploaded' END,
        new.organization_id, new.sub_system, new.file_id, new.version, '{"status":"' || new.status || '"}');
END;

CREATE TRIGGER events_update
AFTER UPDATE OF version, status, edited_at, purge_status, sync_status, storage_location, storage_provider ON files
WHEN (old.version <> new.version OR old.status <> new.status OR old.edited_at IS NOT new.edited_at
    OR old.purge_status IS NOT new.purge_status OR old.storage_location <> new.storage_location
    OR old.storage_provider <> new.storage_provider OR (old.sync_status <> new.sync_status AND new.sync_status = 'FAILED'))
    AND (SELECT is_on FROM event_log) = 1
BEGIN
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version)
        SELECT new.updated_at, 'file.replaced', new.organization_id, new.sub_system, new.file_id, new.version
        WHERE new.version <> old.version;
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version)
        SELECT new.updated_at, CASE new.status WHEN 'READY' THEN 'file.ready' ELSE 'file.thumbnail' END,
        new.organization_id, new.sub_system, new.file_id, new.version
        WHERE new.status <> old.status AND new.status <> 'TEMP';
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        SELECT new.updated_at, 'file.edited', new.organization_id, new.sub_system, new.file_id, new.version,
        '{"changed":[' || substr(
            CASE WHEN old.original_name <> new.original_name THEN ',"name"' ELSE '' END ||
            CASE WHEN old.mime_type <> new.mime_type THEN ',"type"' ELSE '' END ||
            CASE WHEN old.metadata IS NOT new.metadata THEN ',"metadata"' ELSE '' END, 2) || ']}'
        WHERE new.edited_at IS NOT old.edited_at AND new.edited_at IS NOT NULL;
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        SELECT new.updated_at, CASE new.deleted_by WHEN 'expiry' THEN 'file.expired' ELSE 'file.deleted' END,
        new.organization_id, new.sub_system, new.file_id, new.version,
        CASE WHEN new.deleted_by IS NOT 'expiry'
            THEN '{"by":"' || substr(coalesce(new.deleted_by, 'unknown'), 1,
                instr(coalesce(new.deleted_by, 'unknown') || ' ', ' ') - 1) || '"}' END
        WHERE old.purge_status IS NULL AND new.purge_status IS NOT NULL AND new.deleted_by IS NOT 'erasure';
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        SELECT new.updated_at, 'file.restored', new.organization_id, new.sub_system, new.file_id, new.version,
        '{"status":"' || new.status || '"}'
        WHERE old.purge_status IS NOT NULL AND new.purge_status IS NULL;
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        SELECT new.updated_at,
        CASE WHEN old.sync_status = 'SYNCING' AND new.sync_status = 'SYNCED' THEN 'file.synced' ELSE 'file.migrated' END,
        new.organization_id, new.sub_system, new.file_id, new.version,
        '{"from":"' || CASE old.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE old.storage_provider END || '","to":"' ||
            CASE new.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE new.storage_provider END || '"}'
        WHERE new.version = old.version
        AND CASE old.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE old.storage_provider END <>
            CASE new.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE new.storage_provider END;
    -- The end of the last attempt is in `sync_not_before`.
    INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
        SELECT max(new.updated_at, new.sync_not_before), 'file.sync_failed', new.organization_id, new.sub_system,
        new.file_id, new.version, '{"attempts":' || new.sync_attempts || '}'
        WHERE new.sync_status = 'FAILED' AND old.sync_status <> 'FAILED';
END;

CREATE TRIGGER events_purge AFTER INSERT ON purge_receipts
WHEN new.deleted_by <> 'erasure' AND (SELECT is_on FROM event_log) = 1 BEGIN
    INSERT INTO events (at, kind, organization_id, file_id)
        VALUES (new.purged_at, 'file.purged', new.organization_id, new.file_id);
END;

-- A file that had the same id before has a receipt already.
CREATE TRIGGER events_purge_again AFTER UPDATE OF purged_at ON purge_receipts
WHEN new.deleted_by <> 'erasure' AND (SELECT is_on FROM event_log) = 1 BEGIN
    INSERT INTO events (at, kind, organization_id, file_id)
        VALUES (new.purged_at, 'file.purged', new.organization_id, new.file_id);
END;
