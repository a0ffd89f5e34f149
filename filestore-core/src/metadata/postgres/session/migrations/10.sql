-- The log of events: one row for each change of a file, written by the transaction of the change, and a few rows about
-- the store. Positions are drawn before the commit, so a later one can be visible first: readers stop at a fence.
CREATE TABLE events (
    -- The newest row is never deleted.
    position        bigint NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              bigint NOT NULL,
    -- NULL once an erasure has blanked the row. Then all columns below are NULL.
    kind            text   COLLATE "C",
    organization_id text   COLLATE "C",
    sub_system      text   COLLATE "C",
    file_id         text   COLLATE "C",
    version         bigint,
    -- JSON.
    details         text   COLLATE "C"
);

ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX events_by_organization ON events (organization_id, position) WHERE organization_id IS NOT NULL;

-- One row. The triggers ask `is_on`. A new log is off until a store opens it, so that copies of records tell nothing.
CREATE TABLE event_log (
    id        integer NOT NULL PRIMARY KEY,
    is_on     boolean NOT NULL,
    -- The time at which the log was switched off. NULL if it was never on.
    off_since bigint,
    -- The key of the ids. NULL until a store opens the log.
    id_key    bytea,
    CONSTRAINT event_log_one CHECK (id = 1),
    CONSTRAINT event_log_key CHECK (length(id_key) = 32)
);

INSERT INTO event_log (id, is_on) VALUES (1, false);

-- The same rules as `domain::event::of`. Times come from the row: the clock of the database is not the store's.
-- These are triggers of rows, so that a position is drawn while the file's row is locked: the events of a file have the
-- order of its changes.

CREATE FUNCTION events_of_insert() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (SELECT is_on FROM event_log) THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (new.updated_at,
            CASE WHEN new.updated_at > new.created_at THEN 'file.put_back' ELSE 'file.uploaded' END,
            new.organization_id, new.sub_system, new.file_id, new.version, '{"status":"' || new.status || '"}');
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION events_of_update() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    was_at  text COLLATE "C" := CASE old.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE old.storage_provider END;
    is_at   text COLLATE "C" := CASE new.storage_location WHEN 'LOCAL' THEN 'LOCAL' ELSE new.storage_provider END;
    deleter text COLLATE "C" := split_part(coalesce(new.deleted_by, 'unknown'), ' ', 1);
BEGIN
    IF NOT (SELECT is_on FROM event_log) THEN
        RETURN NULL;
    END IF;
    IF new.version <> old.version THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version)
            VALUES (new.updated_at, 'file.replaced', new.organization_id, new.sub_system, new.file_id, new.version);
    END IF;
    IF new.status <> old.status AND new.status <> 'TEMP' THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version)
            VALUES (new.updated_at, CASE new.status WHEN 'READY' THEN 'file.ready' ELSE 'file.thumbnail' END,
            new.organization_id, new.sub_system, new.file_id, new.version);
    END IF;
    IF new.edited_at IS DISTINCT FROM old.edited_at AND new.edited_at IS NOT NULL THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (new.updated_at, 'file.edited', new.organization_id, new.sub_system, new.file_id, new.version,
            '{"changed":[' || substr(
                CASE WHEN old.original_name <> new.original_name THEN ',"name"' ELSE '' END ||
                CASE WHEN old.mime_type <> new.mime_type THEN ',"type"' ELSE '' END ||
                CASE WHEN old.metadata IS DISTINCT FROM new.metadata THEN ',"metadata"' ELSE '' END, 2) || ']}');
    END IF;
    IF old.purge_status IS NULL AND new.purge_status IS NOT NULL AND deleter <> 'erasure' THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (new.updated_at, CASE deleter WHEN 'expiry' THEN 'file.expired' ELSE 'file.deleted' END,
            new.organization_id, new.sub_system, new.file_id, new.version,
            CASE WHEN deleter <> 'expiry' THEN '{"by":"' || deleter || '"}' END);
    END IF;
    IF old.purge_status IS NOT NULL AND new.purge_status IS NULL THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (new.updated_at, 'file.restored', new.organization_id, new.sub_system, new.file_id, new.version,
            '{"status":"' || new.status || '"}');
    END IF;
    IF new.version = old.version AND was_at <> is_at THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (new.updated_at, CASE WHEN old.sync_status = 'SYNCING' AND new.sync_status = 'SYNCED'
                THEN 'file.synced' ELSE 'file.migrated' END,
            new.organization_id, new.sub_system, new.file_id, new.version,
            '{"from":"' || was_at || '","to":"' || is_at || '"}');
    END IF;
    -- The end of the last attempt is in `sync_not_before`.
    IF new.sync_status = 'FAILED' AND old.sync_status <> 'FAILED' THEN
        INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
            VALUES (greatest(new.updated_at, new.sync_not_before), 'file.sync_failed', new.organization_id,
            new.sub_system, new.file_id, new.version, '{"attempts":' || new.sync_attempts || '}');
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION events_of_purge() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (SELECT is_on FROM event_log) THEN
        INSERT INTO events (at, kind, organization_id, file_id)
            VALUES (new.purged_at, 'file.purged', new.organization_id, new.file_id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER events_insert AFTER INSERT ON files FOR EACH ROW EXECUTE FUNCTION events_of_insert();
CREATE TRIGGER events_update AFTER UPDATE ON files FOR EACH ROW
    WHEN (old.version <> new.version OR old.status <> new.status OR old.edited_at IS DISTINCT FROM new.edited_at
    OR old.purge_status IS DISTINCT FROM new.purge_status OR old.storage_location <> new.storage_location
    OR old.storage_provider <> new.storage_provider OR (old.sync_status <> new.sync_status AND new.sync_status = 'FAILED'))
    EXECUTE FUNCTION events_of_update();
-- A file that had the same id before has a receipt already, which the new one replaces.
CREATE TRIGGER events_purge AFTER INSERT OR UPDATE ON purge_receipts FOR EACH ROW
    WHEN (new.deleted_by <> 'erasure') EXECUTE FUNCTION events_of_purge();
