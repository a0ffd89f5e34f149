-- Files and bytes of each sub-system, for lists of organizations and of their sub-systems. DELETED: files that are
-- deleted; TEMP: TEMP files that are not; LIVE: all others. In slots, as `organization_usage` has them.

CREATE TABLE sub_system_usage (
    organization_id text    COLLATE "C" NOT NULL,
    sub_system      text    COLLATE "C" NOT NULL,
    standing        text    COLLATE "C" NOT NULL,
    slot            integer NOT NULL,
    files           bigint  NOT NULL,
    bytes           bigint  NOT NULL,
    PRIMARY KEY (organization_id, sub_system, standing, slot),
    CONSTRAINT sub_system_usage_standing CHECK (standing IN ('LIVE', 'TEMP', 'DELETED'))
);
ALTER TABLE sub_system_usage SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION standing_of(purge_status text, status text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN purge_status IS NOT NULL THEN 'DELETED' WHEN status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END
$$;

CREATE FUNCTION count_inserted_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO sub_system_usage AS t (organization_id, sub_system, standing, slot, files, bytes)
        SELECT organization_id, sub_system, standing_of(purge_status, status), pg_backend_pid() % 8, count(*), sum(size_bytes)
        FROM plus GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (organization_id, sub_system, standing, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    RETURN NULL;
END $$;

CREATE FUNCTION count_deleted_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO sub_system_usage AS t (organization_id, sub_system, standing, slot, files, bytes)
        SELECT organization_id, sub_system, standing_of(purge_status, status), pg_backend_pid() % 8, -count(*), -sum(size_bytes)
        FROM minus GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (organization_id, sub_system, standing, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    RETURN NULL;
END $$;

CREATE FUNCTION count_updated_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO sub_system_usage AS t (organization_id, sub_system, standing, slot, files, bytes)
        SELECT organization_id, sub_system, standing, pg_backend_pid() % 8, sum(files), sum(bytes) FROM (
            SELECT organization_id, sub_system, standing_of(purge_status, status) AS standing,
                -1 AS files, -size_bytes AS bytes FROM minus
            UNION ALL SELECT organization_id, sub_system, standing_of(purge_status, status), 1, size_bytes FROM plus
        ) AS changed
        GROUP BY 1, 2, 3 HAVING sum(files) <> 0 OR sum(bytes) <> 0 ORDER BY 1, 2, 3
        ON CONFLICT (organization_id, sub_system, standing, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    RETURN NULL;
END $$;

-- Triggers fire in the order of their names: those of `organization_usage` first, so that all statements take the
-- rows of the totals in one order.
CREATE TRIGGER files_inserted_parts AFTER INSERT ON files REFERENCING NEW TABLE AS plus
    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_parts();
CREATE TRIGGER files_deleted_parts AFTER DELETE ON files REFERENCING OLD TABLE AS minus
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_parts();
CREATE TRIGGER files_updated_parts AFTER UPDATE ON files REFERENCING OLD TABLE AS minus NEW TABLE AS plus
    FOR EACH STATEMENT EXECUTE FUNCTION count_updated_parts();

-- After the triggers: their lock has waited for every change that they did not see.
INSERT INTO sub_system_usage
    SELECT organization_id, sub_system, standing_of(purge_status, status), 0, count(*), sum(size_bytes)
    FROM files GROUP BY 1, 2, 3;

-- Listings by sync status. NONE and SYNCED have no index: most files are one of these.
CREATE INDEX files_by_sync ON files (organization_id, sync_status, file_id)
    WHERE sync_status IN ('PENDING', 'SYNCING', 'FAILED') AND NOT is_deleted;
CREATE INDEX files_by_sync_of_all ON files (sync_status, file_id)
    WHERE sync_status IN ('PENDING', 'SYNCING', 'FAILED') AND NOT is_deleted;

-- Active bindings in the order of organization ids, which are text elsewhere.
CREATE INDEX bindings_by_name ON bindings ((organization_id::text COLLATE "C")) WHERE is_active;
