-- Files and bytes of each sub-system, for lists of organizations and of their sub-systems. DELETED: files that are
-- deleted; TEMP: TEMP files that are not; LIVE: all others. A row without files goes.

CREATE TABLE sub_system_usage (
    organization_id TEXT    NOT NULL,
    sub_system      TEXT    NOT NULL,
    standing        TEXT    NOT NULL CHECK (standing IN ('LIVE', 'TEMP', 'DELETED')),
    files           INTEGER NOT NULL CHECK (files >= 0),
    bytes           INTEGER NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (organization_id, sub_system, standing)
) STRICT, WITHOUT ROWID;

INSERT INTO sub_system_usage
    SELECT organization_id, sub_system,
        CASE WHEN purge_status IS NOT NULL THEN 'DELETED' WHEN status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END AS standing,
        count(*), sum(size_bytes)
    FROM files GROUP BY organization_id, sub_system, standing;

CREATE TRIGGER sub_system_usage_insert AFTER INSERT ON files BEGIN
    INSERT INTO sub_system_usage VALUES (new.organization_id, new.sub_system,
        CASE WHEN new.purge_status IS NOT NULL THEN 'DELETED' WHEN new.status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END,
        1, new.size_bytes)
        ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER sub_system_usage_delete AFTER DELETE ON files BEGIN
    UPDATE sub_system_usage SET files = files - 1, bytes = bytes - old.size_bytes
        WHERE organization_id = old.organization_id AND sub_system = old.sub_system AND standing =
        CASE WHEN old.purge_status IS NOT NULL THEN 'DELETED' WHEN old.status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END;
    DELETE FROM sub_system_usage
        WHERE organization_id = old.organization_id AND sub_system = old.sub_system AND files = 0 AND bytes = 0;
END;

CREATE TRIGGER sub_system_usage_update
AFTER UPDATE OF organization_id, sub_system, size_bytes, status, purge_status ON files
WHEN old.organization_id <> new.organization_id OR old.sub_system <> new.sub_system OR old.size_bytes <> new.size_bytes OR old.status <> new.status OR old.purge_status IS NOT new.purge_status BEGIN
    UPDATE sub_system_usage SET files = files - 1, bytes = bytes - old.size_bytes
        WHERE organization_id = old.organization_id AND sub_system = old.sub_system AND standing =
        CASE WHEN old.purge_status IS NOT NULL THEN 'DELETED' WHEN old.status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END;
    INSERT INTO sub_system_usage VALUES (new.organization_id, new.sub_system,
        CASE WHEN new.purge_status IS NOT NULL THEN 'DELETED' WHEN new.status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END,
        1, new.size_bytes)
        ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
    DELETE FROM sub_system_usage
        WHERE organization_id = old.organization_id AND sub_system = old.sub_system AND files = 0 AND bytes = 0;
END;

-- The reason of the last failed try with the current blob.
ALTER TABLE files ADD COLUMN sync_error TEXT;

-- Listings by sync status. NONE and SYNCED have no index: most files are one of these.
CREATE INDEX files_by_sync ON files (organization_id, sync_status, file_id)
    WHERE sync_status IN ('PENDING', 'SYNCING', 'FAILED') AND purge_status IS NULL;
CREATE INDEX files_by_sync_of_all ON files (sync_status, file_id)
    WHERE sync_status IN ('PENDING', 'SYNCING', 'FAILED') AND purge_status IS NULL;

-- Active bindings in the order of organization ids, which are text elsewhere.
CREATE INDEX bindings_by_name ON bindings (CAST(organization_id AS TEXT)) WHERE is_active = 1;
