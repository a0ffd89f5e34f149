-- Instants are milliseconds since the Unix epoch, sizes are bytes: bigint, as the service computes with them.
-- Ids are text of 26 characters, not uuid or bytea: an operator finds a file by the id that a client shows, and a row
-- whose id is damaged can still be named. Digests are bytea.
-- Text is compared byte by byte (COLLATE "C"), whatever the locale of the database: the order of ids is the order of
-- listings, and an upgrade of the C library must not change it.

CREATE TABLE files (
    file_id          text    COLLATE "C" NOT NULL,
    organization_id  text    COLLATE "C" NOT NULL,
    sub_system       text    COLLATE "C" NOT NULL,
    original_name    text    COLLATE "C" NOT NULL,
    mime_type        text    COLLATE "C" NOT NULL,
    ext              text    COLLATE "C" NOT NULL,
    status           text    COLLATE "C" NOT NULL,
    sync_status      text    COLLATE "C" NOT NULL,
    purge_status     text    COLLATE "C",
    storage_location text    COLLATE "C" NOT NULL,
    storage_provider text    COLLATE "C" NOT NULL,
    blob_key         text    COLLATE "C" NOT NULL,
    -- The last part of the key, 26 characters.
    blob_id          text    COLLATE "C" NOT NULL GENERATED ALWAYS AS (right(blob_key, 26)) STORED,
    size_bytes       bigint  NOT NULL,
    sha256           bytea   NOT NULL,
    sniffed_type     text    COLLATE "C",
    width            bigint,
    height           bigint,
    stored_at        bigint  NOT NULL,
    version          bigint  NOT NULL,
    created_at       bigint  NOT NULL,
    updated_at       bigint  NOT NULL,
    expires_at       bigint,
    -- A JSON object, compact, with sorted keys; NULL if it is empty. Not jsonb, which writes numbers anew.
    metadata         text    COLLATE "C",
    -- The last edit of name, type or metadata.
    edited_at        bigint,
    thumbhash        bytea,
    -- The media type without its parameters, as listings ask for it.
    media_type       text    COLLATE "C" NOT NULL
                             GENERATED ALWAYS AS (lower(btrim(split_part(mime_type, ';', 1)))) STORED,
    -- A column of its own: of `purge_status IS NULL` the planner does not know that it orders an index.
    is_deleted       boolean NOT NULL GENERATED ALWAYS AS (purge_status IS NOT NULL) STORED,
    -- The instant at which the file was deleted.
    purge_marked_at  bigint,
    -- As `purge_marked_at`, but nothing hastens it; with the one who deleted the file.
    deleted_at       bigint,
    deleted_by       text    COLLATE "C",
    -- True once a purge run has taken the file: from then on it cannot be restored.
    purge_claimed    boolean NOT NULL DEFAULT false,
    -- The run that holds the lease, if one does.
    purge_owner      text    COLLATE "C",
    -- The end of the lease, or of the wait after a failure.
    purge_not_before bigint  NOT NULL DEFAULT 0,
    purge_attempts   integer NOT NULL DEFAULT 0,
    -- The run that copies the file, while it is SYNCING.
    sync_owner       text    COLLATE "C",
    -- PENDING: not to be tried before. SYNCING: the end of the lease.
    sync_not_before  bigint  NOT NULL DEFAULT 0,
    -- Failed tries with the current blob.
    sync_attempts    integer NOT NULL DEFAULT 0,
    -- Grows with each insert: the rows of a snapshot are those up to its largest one.
    row_id           bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,

    -- The organization within the one index that finds a file by its id: a foreign file takes as long as one that does
    -- not exist. That two organizations get the same id is left to chance: 80 bits within a millisecond.
    PRIMARY KEY (file_id, organization_id),

    CONSTRAINT files_status CHECK (status IN ('TEMP', 'THUMBNAIL', 'READY')),
    CONSTRAINT files_sync_status CHECK (sync_status IN ('NONE', 'PENDING', 'SYNCING', 'SYNCED', 'FAILED')),
    CONSTRAINT files_purge_status CHECK (purge_status = 'SYSTEM_PURGE'),
    CONSTRAINT files_location CHECK (storage_location IN ('LOCAL', 'CLOUD')),
    CONSTRAINT files_size CHECK (size_bytes >= 0),
    CONSTRAINT files_sha256 CHECK (length(sha256) = 32),
    CONSTRAINT files_version CHECK (version >= 1),
    -- What domain::lifecycle calls consistent.
    CONSTRAINT files_ready CHECK (status = 'READY' OR (storage_location = 'LOCAL' AND sync_status = 'NONE')),
    CONSTRAINT files_synced CHECK (sync_status <> 'SYNCED' OR storage_location = 'CLOUD'),
    CONSTRAINT files_expiry CHECK (status = 'TEMP' OR expires_at IS NULL),
    CONSTRAINT files_dimensions CHECK ((width IS NULL) = (height IS NULL)),
    CONSTRAINT files_mark CHECK ((purge_status IS NULL) = (purge_marked_at IS NULL)),
    CONSTRAINT files_claim CHECK (purge_status IS NOT NULL OR (NOT purge_claimed AND purge_owner IS NULL)),
    CONSTRAINT files_sync_owner CHECK (sync_status = 'SYNCING' OR sync_owner IS NULL)
);

-- Updates that change no indexed column stay on their page.
ALTER TABLE files SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- A blob belongs to one record: a second reference would be purged away under its reader.
CREATE UNIQUE INDEX files_by_blob ON files (blob_id);

-- One range of one of these is one listing of one status, newest last, whatever the mix of statuses.
CREATE INDEX files_by_status ON files (is_deleted, status, file_id);
CREATE INDEX files_by_organization ON files (organization_id, is_deleted, status, file_id);
CREATE INDEX files_by_sub_system ON files (sub_system, is_deleted, status, file_id);
CREATE INDEX files_by_both ON files (organization_id, sub_system, is_deleted, status, file_id);
CREATE INDEX files_by_name ON files (organization_id, is_deleted, status, original_name, file_id DESC);
CREATE INDEX files_by_type ON files (organization_id, is_deleted, status, media_type, file_id);

CREATE INDEX files_expiring ON files (expires_at) WHERE status = 'TEMP' AND purge_status IS NULL;

-- Work by the provider that has it to do, so that each has a queue of its own. Two indexes of deleted files, so that a
-- run does not wade through those that are leased or wait for a retry.
CREATE INDEX files_unclaimed ON files (storage_provider, purge_marked_at, size_bytes)
    WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed;
-- While a hold lasts, claims begin behind its last row: the rows before may be many.
CREATE INDEX files_unclaimed_rows ON files (storage_provider, row_id)
    WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed;
CREATE INDEX files_claimed ON files (storage_provider, purge_not_before, purge_marked_at, size_bytes)
    WHERE purge_claimed;
CREATE INDEX files_purge_leased ON files (purge_owner) WHERE purge_owner IS NOT NULL;

CREATE INDEX files_pending ON files (organization_id, storage_provider, sync_not_before, file_id, stored_at)
    WHERE sync_status = 'PENDING' AND purge_status IS NULL;
CREATE INDEX files_syncing ON files (sync_not_before) WHERE sync_status = 'SYNCING';
CREATE INDEX files_sync_leased ON files (sync_owner) WHERE sync_owner IS NOT NULL;
CREATE INDEX files_failed ON files (organization_id, file_id) WHERE sync_status = 'FAILED' AND purge_status IS NULL;

-- The members of custom metadata that can be asked for: a row for each, in the order of listings. A term is a digest of
-- key and value. The columns repeat those of the file; the triggers keep them equal.
CREATE TABLE file_terms (
    of_organization text    COLLATE "C" NOT NULL,
    term            bytea   NOT NULL,
    is_deleted      boolean NOT NULL,
    in_status       text    COLLATE "C" NOT NULL,
    of_file         text    COLLATE "C" NOT NULL,
    PRIMARY KEY (of_organization, term, is_deleted, in_status, of_file),
    CONSTRAINT file_terms_term CHECK (length(term) = 16)
);

CREATE INDEX file_terms_by_file ON file_terms (of_file);

-- Blobs no record refers to any more.
CREATE TABLE blob_gc (
    id               bigint  NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_id          text    COLLATE "C" NOT NULL,
    storage_provider text    COLLATE "C" NOT NULL,
    blob_key         text    COLLATE "C" NOT NULL,
    not_before       bigint  NOT NULL,
    attempts         integer NOT NULL DEFAULT 0,
    -- The end of the grace period. The row stays until then, also when the bytes are gone before: a write that was
    -- delayed may still land. (`not_before` moves with each attempt.)
    kept_until       bigint  NOT NULL,
    -- True once the bytes were found absent, while the row is kept.
    is_absent        boolean NOT NULL DEFAULT false,
    -- The content; NULL where it is not known, as that of a write that broke off.
    sha256           bytea,
    size_bytes       bigint
);

CREATE INDEX blob_gc_due ON blob_gc (storage_provider, not_before);
CREATE INDEX blob_gc_failed ON blob_gc (storage_provider, not_before) WHERE attempts > 0;
CREATE INDEX blob_gc_by_provider ON blob_gc (storage_provider, kept_until);
CREATE INDEX blob_gc_by_file ON blob_gc (file_id);
CREATE INDEX blob_gc_by_key ON blob_gc (blob_key);

CREATE TABLE bindings (
    -- A later binding has a larger id.
    id                bigint  NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id   bigint  NOT NULL,
    organization_name text    COLLATE "C" NOT NULL,
    storage_provider  text    COLLATE "C" NOT NULL,
    sync_enabled      boolean NOT NULL,
    is_active         boolean NOT NULL,
    effective_from    bigint  NOT NULL,
    effective_to      bigint,
    CONSTRAINT bindings_organization CHECK (organization_id BETWEEN 1 AND 9007199254740991),
    CONSTRAINT bindings_end CHECK (is_active = (effective_to IS NULL))
);

CREATE UNIQUE INDEX bindings_active ON bindings (organization_id) WHERE is_active;
CREATE INDEX bindings_by_organization ON bindings (organization_id, id);

-- Remembered replies.
CREATE TABLE idempotency (
    organization_id text   COLLATE "C" NOT NULL,
    key             text   COLLATE "C" NOT NULL,
    fingerprint     bytea  NOT NULL,
    -- Separated by spaces.
    file_ids        text   COLLATE "C" NOT NULL,
    reply           bytea  NOT NULL,
    expires_at      bigint NOT NULL,
    PRIMARY KEY (organization_id, key),
    CONSTRAINT idempotency_fingerprint CHECK (length(fingerprint) = 32)
);

CREATE INDEX idempotency_expiring ON idempotency (expires_at);

-- Objects that are being written to a provider and that no record refers to yet. A row goes in the
-- transaction that refers to its object, or that hands it to blob_gc.
CREATE TABLE write_intents (
    blob_key         text   COLLATE "C" NOT NULL PRIMARY KEY,
    storage_provider text   COLLATE "C" NOT NULL,
    file_id          text   COLLATE "C" NOT NULL,
    begun_at         bigint NOT NULL,
    -- The run that writes the object and renews `begun_at` meanwhile; NULL for a request, which takes minutes at most.
    owner            text   COLLATE "C"
);

CREATE INDEX write_intents_by_age ON write_intents (begun_at);
-- A receipt asks for the writes that may still be under way.
CREATE INDEX write_intents_by_file ON write_intents (file_id);
CREATE INDEX write_intents_by_owner ON write_intents (owner) WHERE owner IS NOT NULL;

-- Files that were purged.
CREATE TABLE purge_receipts (
    file_id         text   COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id text   COLLATE "C" NOT NULL,
    created_at      bigint NOT NULL,
    deleted_at      bigint NOT NULL,
    deleted_by      text   COLLATE "C" NOT NULL,
    purged_at       bigint NOT NULL
);

CREATE INDEX purge_receipts_by_age ON purge_receipts (purged_at);

-- Blobs that were found absent, those of files that are still there included.
CREATE TABLE removed_blobs (
    file_id          text   COLLATE "C" NOT NULL,
    storage_provider text   COLLATE "C" NOT NULL,
    blob_key         text   COLLATE "C" NOT NULL,
    sha256           bytea,
    size_bytes       bigint,
    -- The first and the last time.
    absent_at        bigint NOT NULL,
    checked_at       bigint NOT NULL,
    -- The later of `checked_at` and the end of the file's purge: rows are forgotten by it.
    noted_at         bigint NOT NULL,
    PRIMARY KEY (file_id, storage_provider, blob_key)
);

CREATE INDEX removed_blobs_by_age ON removed_blobs (noted_at);

-- Keys of the API. Of a key's text only its SHA-256 is kept.
CREATE TABLE api_keys (
    key_id        text   COLLATE "C" NOT NULL PRIMARY KEY,
    name          text   COLLATE "C" NOT NULL,
    -- Separated by spaces; '*' is all.
    organizations text   COLLATE "C" NOT NULL,
    -- Separated by spaces.
    scopes        text   COLLATE "C" NOT NULL,
    digest        bytea  NOT NULL UNIQUE,
    -- The digest before the last rotation, and the instant from which it is refused.
    former_digest bytea,
    former_until  bigint,
    created_at    bigint NOT NULL,
    expires_at    bigint,
    rotated_at    bigint,
    revoked_at    bigint,
    last_used_at  bigint,
    CONSTRAINT api_keys_digest CHECK (length(digest) = 32 AND length(former_digest) = 32),
    CONSTRAINT api_keys_former CHECK ((former_digest IS NULL) = (former_until IS NULL))
);

-- Secrets that sign URLs. The one without `valid_until` signs; the others verify until then.
CREATE TABLE signing_secrets (
    kid         text   COLLATE "C" NOT NULL PRIMARY KEY,
    secret      bytea  NOT NULL,
    created_at  bigint NOT NULL,
    valid_until bigint,
    CONSTRAINT signing_secrets_length CHECK (length(secret) >= 32)
);

CREATE UNIQUE INDEX signing_secrets_current ON signing_secrets ((valid_until IS NULL)) WHERE valid_until IS NULL;

-- Signed uploads that were made: each URL is good for one.
CREATE TABLE used_permits (
    nonce      text   COLLATE "C" NOT NULL PRIMARY KEY,
    kept_until bigint NOT NULL
);

CREATE INDEX used_permits_expiring ON used_permits (kept_until);

-- Holds of snapshots under way: while one lasts, nobody removes what its snapshot names.
CREATE TABLE holds (
    hold_id     text   COLLATE "C" NOT NULL PRIMARY KEY,
    -- The largest row_id of `files` that the snapshot may name.
    last_row    bigint NOT NULL,
    -- The end of the lease: a hold that is not renewed ends by itself.
    lasts_until bigint NOT NULL
);

-- Checks of the store: the one that was asked for last, and the scrub of the background. A row says how far it has come,
-- so that it goes on from there after a stop.
CREATE TABLE check_runs (
    name       text    COLLATE "C" NOT NULL PRIMARY KEY,
    is_deep    boolean NOT NULL,
    repairs    boolean NOT NULL,
    -- The one holder that is looked at, or NULL for all.
    provider   text    COLLATE "C",
    started_at bigint  NOT NULL,
    ended_at   bigint,
    part       text    COLLATE "C" NOT NULL,
    cursor     text    COLLATE "C" NOT NULL,
    files      bigint  NOT NULL,
    bytes      bigint  NOT NULL,
    names      bigint  NOT NULL,
    found      bigint  NOT NULL,
    repaired   bigint  NOT NULL,
    -- A line for each holder that could not be looked at: its code, a space, the reason.
    postponed  text    COLLATE "C" NOT NULL,
    CONSTRAINT check_runs_name CHECK (name IN ('asked', 'scrub'))
);

CREATE TABLE check_findings (
    run     text   COLLATE "C" NOT NULL,
    -- The position of the kind, the gravest first.
    rank    bigint NOT NULL,
    kind    text   COLLATE "C" NOT NULL,
    place   text   COLLATE "C" NOT NULL,
    name    text   COLLATE "C" NOT NULL,
    file_id text   COLLATE "C",
    detail  text   COLLATE "C" NOT NULL,
    outcome text   COLLATE "C" NOT NULL,
    action  text   COLLATE "C" NOT NULL,
    PRIMARY KEY (run, rank, place, name)
);

-- The store itself: its id, and what a server last worked by.
CREATE TABLE settings (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

CREATE FUNCTION settings_keep_the_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the id of a store never changes';
END $$;

CREATE TRIGGER settings_keep_the_id BEFORE UPDATE ON settings FOR EACH ROW WHEN (old.name = 'store_id')
    EXECUTE FUNCTION settings_keep_the_id();

-- The last write of each server in each of its slots, committed with what it wrote: where the answer to a COMMIT was
-- lost, the row says whether it was done.
CREATE TABLE commit_marks (
    server    text        COLLATE "C" NOT NULL,
    slot      integer     NOT NULL,
    number    bigint      NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server, slot)
);

ALTER TABLE commit_marks SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Totals, kept by triggers: no statement can forget them. Each total is the sum of several rows, its slots, and a
-- connection adds to one of them: changes of one organization, or of all of them, do not wait for each other's commits.
-- A slot may be negative, as a file leaves by another connection than it came by; the sum never is.
CREATE TABLE organization_usage (
    organization_id  text   COLLATE "C" NOT NULL,
    storage_location text   COLLATE "C" NOT NULL,
    slot             integer NOT NULL,
    files            bigint NOT NULL,
    bytes            bigint NOT NULL,
    PRIMARY KEY (organization_id, storage_location, slot)
);

-- Files that are not deleted.
CREATE TABLE sync_totals (
    sync_status text    COLLATE "C" NOT NULL,
    slot        integer NOT NULL,
    files       bigint  NOT NULL,
    PRIMARY KEY (sync_status, slot)
);

ALTER TABLE organization_usage SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE sync_totals SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Adds to the totals what a statement has changed: the rows in `minus` went, those in `plus` came. In one order, so that
-- two statements with several organizations do not wait for each other in a ring.
CREATE FUNCTION count_inserted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO organization_usage AS t (organization_id, storage_location, slot, files, bytes)
        SELECT organization_id, storage_location, pg_backend_pid() % 8, count(*), sum(size_bytes)
        FROM plus GROUP BY organization_id, storage_location ORDER BY organization_id, storage_location
        ON CONFLICT (organization_id, storage_location, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    INSERT INTO sync_totals AS t (sync_status, slot, files)
        SELECT sync_status, pg_backend_pid() % 64, count(*)
        FROM plus WHERE purge_status IS NULL GROUP BY sync_status ORDER BY sync_status
        ON CONFLICT (sync_status, slot) DO UPDATE SET files = t.files + excluded.files;
    RETURN NULL;
END $$;

CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO organization_usage AS t (organization_id, storage_location, slot, files, bytes)
        SELECT organization_id, storage_location, pg_backend_pid() % 8, -count(*), -sum(size_bytes)
        FROM minus GROUP BY organization_id, storage_location ORDER BY organization_id, storage_location
        ON CONFLICT (organization_id, storage_location, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    INSERT INTO sync_totals AS t (sync_status, slot, files)
        SELECT sync_status, pg_backend_pid() % 64, -count(*)
        FROM minus WHERE purge_status IS NULL GROUP BY sync_status ORDER BY sync_status
        ON CONFLICT (sync_status, slot) DO UPDATE SET files = t.files + excluded.files;
    RETURN NULL;
END $$;

CREATE FUNCTION count_updated() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO organization_usage AS t (organization_id, storage_location, slot, files, bytes)
        SELECT organization_id, storage_location, pg_backend_pid() % 8, sum(files), sum(bytes) FROM (
            SELECT organization_id, storage_location, -1 AS files, -size_bytes AS bytes FROM minus
            UNION ALL SELECT organization_id, storage_location, 1, size_bytes FROM plus
        ) AS changed
        GROUP BY organization_id, storage_location HAVING sum(files) <> 0 OR sum(bytes) <> 0
        ORDER BY organization_id, storage_location
        ON CONFLICT (organization_id, storage_location, slot)
        DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes;
    INSERT INTO sync_totals AS t (sync_status, slot, files)
        SELECT sync_status, pg_backend_pid() % 64, sum(files) FROM (
            SELECT sync_status, -1 AS files FROM minus WHERE purge_status IS NULL
            UNION ALL SELECT sync_status, 1 FROM plus WHERE purge_status IS NULL
        ) AS changed
        GROUP BY sync_status HAVING sum(files) <> 0 ORDER BY sync_status
        ON CONFLICT (sync_status, slot) DO UPDATE SET files = t.files + excluded.files;
    RETURN NULL;
END $$;

CREATE TRIGGER files_inserted AFTER INSERT ON files REFERENCING NEW TABLE AS plus
    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted();
CREATE TRIGGER files_deleted AFTER DELETE ON files REFERENCING OLD TABLE AS minus
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted();
CREATE TRIGGER files_updated AFTER UPDATE ON files REFERENCING OLD TABLE AS minus NEW TABLE AS plus
    FOR EACH STATEMENT EXECUTE FUNCTION count_updated();

CREATE FUNCTION move_terms() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE file_terms SET in_status = new.status, is_deleted = new.purge_status IS NOT NULL WHERE of_file = new.file_id;
    RETURN NULL;
END $$;

CREATE FUNCTION forget_terms() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM file_terms WHERE of_file = old.file_id;
    RETURN NULL;
END $$;

CREATE TRIGGER file_terms_update AFTER UPDATE OF status, purge_status ON files FOR EACH ROW
    WHEN (new.metadata IS NOT NULL AND (old.status <> new.status OR old.purge_status IS DISTINCT FROM new.purge_status))
    EXECUTE FUNCTION move_terms();
CREATE TRIGGER file_terms_delete AFTER DELETE ON files FOR EACH ROW WHEN (old.metadata IS NOT NULL)
    EXECUTE FUNCTION forget_terms();
