-- Resumable uploads. The offset of a row may be told: the bytes before it are on the disk of its server.
CREATE TABLE resumable_uploads (
    upload_id       text    COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id text    COLLATE "C" NOT NULL,
    -- Empty where one server has the store.
    server          text    COLLATE "C" NOT NULL,
    blob_id         text    COLLATE "C" NOT NULL UNIQUE,
    stage           text    COLLATE "C" NOT NULL,
    era             bigint  NOT NULL,
    -- Grows when a request takes the upload away from another one.
    epoch           bigint  NOT NULL,
    offset_bytes    bigint  NOT NULL,
    length_bytes    bigint,
    held_bytes      bigint  NOT NULL,
    -- The state of the SHA-256 at the offset, and the first bytes.
    digest          bytea   NOT NULL,
    head            bytea   NOT NULL,
    -- JSON.
    terms           text    COLLATE "C" NOT NULL,
    idempotency     text    COLLATE "C",
    file_id         text    COLLATE "C",
    failure_code    text    COLLATE "C",
    failure_message text    COLLATE "C",
    created_at      bigint  NOT NULL,
    updated_at      bigint  NOT NULL,
    -- Live: the end of the lifetime. Ended: the instant from which the row is forgotten.
    expires_at      bigint  NOT NULL,
    is_live         boolean NOT NULL,
    -- True while staged bytes may be there that belong to this row. Those of a finished one belong to the record.
    has_bytes       boolean NOT NULL,
    CONSTRAINT resumable_uploads_stage CHECK (stage IN ('open', 'completing', 'finished', 'failed', 'expired')),
    CONSTRAINT resumable_uploads_numbers CHECK (epoch >= 0 AND offset_bytes >= 0 AND held_bytes >= 0),
    CONSTRAINT resumable_uploads_length CHECK (length_bytes >= offset_bytes),
    CONSTRAINT resumable_uploads_live CHECK (is_live = (stage IN ('open', 'completing'))),
    CONSTRAINT resumable_uploads_failure CHECK ((failure_code IS NULL) = (failure_message IS NULL)),
    CONSTRAINT resumable_uploads_file CHECK ((stage = 'finished') = (file_id IS NOT NULL))
);

ALTER TABLE resumable_uploads SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);

-- A key has one upload, until that has failed or expired.
CREATE UNIQUE INDEX resumable_uploads_by_key ON resumable_uploads (organization_id, idempotency)
    WHERE idempotency IS NOT NULL;
CREATE INDEX resumable_uploads_by_organization ON resumable_uploads (organization_id, upload_id);
-- The bounds are sums of these.
CREATE INDEX resumable_uploads_held ON resumable_uploads (organization_id, held_bytes) WHERE is_live;
CREATE INDEX resumable_uploads_of_server ON resumable_uploads (server, upload_id) WHERE is_live;
CREATE INDEX resumable_uploads_due ON resumable_uploads (expires_at) WHERE stage = 'open';
CREATE INDEX resumable_uploads_to_clear ON resumable_uploads (server, upload_id) WHERE NOT is_live AND has_bytes;
CREATE INDEX resumable_uploads_to_forget ON resumable_uploads (expires_at) WHERE NOT is_live AND NOT has_bytes;
