-- Several servers on one database: who they are, what each has under way, and what they tell each other.

-- The servers that use the database. A row goes once a server is gone and what it left is ended.
CREATE TABLE servers (
    -- The name of a server's data directory, which it keeps.
    server   text        COLLATE "C" NOT NULL PRIMARY KEY,
    -- Another one for each start, and for each return of a server that was taken for dead. What an earlier epoch
    -- had under way is void.
    epoch    bigint      NOT NULL,
    -- True if its configuration says that there is no other.
    is_only  boolean     NOT NULL,
    began_at timestamptz NOT NULL,
    -- By the clock of the database, as everything here.
    seen_at  timestamptz NOT NULL
);

ALTER TABLE servers SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE SEQUENCE server_epochs AS bigint;

-- What one server alone does at a time: a request under an idempotency key or with a signed URL, a migration of an
-- organization, a check of the store.
CREATE TABLE under_way (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    owner text COLLATE "C" NOT NULL
);

CREATE INDEX under_way_by_owner ON under_way (owner);

-- The run that removes the blob, while `not_before` is the end of its lease.
ALTER TABLE blob_gc ADD COLUMN owner text COLLATE "C";

CREATE INDEX blob_gc_leased ON blob_gc (owner) WHERE owner IS NOT NULL;

-- Grows with each change of what servers hold in memory: the keys, and the secrets that sign URLs.
CREATE TABLE secrets_version (
    version bigint NOT NULL
);

INSERT INTO secrets_version (version) VALUES (1);

-- Servers listen; one that was not heard finds the version at its next look.
CREATE FUNCTION tell_servers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE secrets_version SET version = version + 1;
    PERFORM pg_notify('filestore', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

-- All columns but the last use.
CREATE TRIGGER api_keys_told AFTER INSERT OR DELETE OR UPDATE OF name, organizations, scopes, digest, former_digest,
    former_until, expires_at, rotated_at, revoked_at ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION tell_servers();
CREATE TRIGGER signing_secrets_told AFTER INSERT OR DELETE OR UPDATE ON signing_secrets
    FOR EACH STATEMENT EXECUTE FUNCTION tell_servers();
