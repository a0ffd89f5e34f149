-- Fills a store with files whose ids are known: number 7 is 01M7ZDTTF30000000000000007. For tests of plans, and for
-- tests/load/postgres. Of ten files one is deleted, one waits for a copy, one is temporary. Of 100 organizations four
-- have half of all files, so that each of those four has more than a page of any kind in a table of 10,000 too. For
-- each tenth deleted file there is a blob that one of its versions dropped. LOCAL is at a backend, `house`, as several
-- servers have it.

CREATE OR REPLACE FUNCTION numbered(prefix text, number bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT prefix || lpad(number::text, 16, '0') $$;

-- Ten files in a row belong to one organization.
CREATE OR REPLACE FUNCTION organization_of(number bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT 'org' || number / 20 % CASE WHEN number / 10 % 2 = 0 THEN 4 ELSE 100 END $$;

CREATE OR REPLACE FUNCTION fill(first bigint, last bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO files (file_id, organization_id, sub_system, original_name, mime_type, ext, status, sync_status,
        purge_status, storage_location, storage_provider, blob_key, size_bytes, sha256, stored_at, version, created_at,
        updated_at, expires_at, purge_marked_at, deleted_at, deleted_by)
    SELECT numbered('01M7ZDTTF3', n), organization_of(n), 'docs', 'file ' || n || '.bin', 'application/octet-stream', 'bin',
        CASE WHEN n % 10 = 2 THEN 'TEMP' ELSE 'READY' END, CASE WHEN n % 10 = 1 THEN 'PENDING' ELSE 'NONE' END,
        CASE WHEN n % 10 = 0 THEN 'SYSTEM_PURGE' END, 'LOCAL', 'house',
        organization_of(n) || '/docs/2026/11/24/' || numbered('01M7ZDTTF4', n), 10000,
        decode(md5(n::text) || md5(n::text), 'hex'), 1795250000000 + n, 1, 1795250000000 + n, 1795250000000 + n,
        CASE WHEN n % 10 = 2 THEN 1990000000000 + n END, CASE WHEN n % 10 = 0 THEN 1795250000000 + n END,
        CASE WHEN n % 10 = 0 THEN 1795250000000 + n END, CASE WHEN n % 10 = 0 THEN 'key filled' END
    FROM generate_series(first, last) AS n;
    INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until, sha256, size_bytes)
    SELECT numbered('01M7ZDTTF3', n), 'house', organization_of(n) || '/docs/2026/11/24/' || numbered('01M7ZDTTF5', n),
        1795250000000 + n, 1795250000000 + n, decode(md5(n::text) || md5(n::text), 'hex'), 10000
    FROM generate_series(first, last) AS n WHERE n % 100 = 0;
$$;

-- The indexes that a bulk load is faster without, and the statements that make them again.
CREATE TABLE IF NOT EXISTS dropped_indexes (definition text);

CREATE OR REPLACE FUNCTION drop_indexes() RETURNS void LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
    FOR one IN SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()
        AND tablename IN ('files', 'blob_gc') AND indexname NOT LIKE '%_pkey'
    LOOP
        INSERT INTO dropped_indexes VALUES (one.indexdef);
        EXECUTE 'DROP INDEX ' || quote_ident(one.indexname);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION make_indexes() RETURNS void LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
    FOR one IN DELETE FROM dropped_indexes RETURNING definition LOOP
        EXECUTE one.definition;
    END LOOP;
END $$;

-- Not a plain ANALYZE, which takes other schemas along: those of tests that end meanwhile.
CREATE OR REPLACE FUNCTION analyze_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        EXECUTE 'ANALYZE ' || quote_ident(one.tablename);
    END LOOP;
END $$;
