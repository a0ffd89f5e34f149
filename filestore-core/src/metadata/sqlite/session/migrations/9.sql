-- Resumable uploads. The offset of a row may be told: the bytes before it are on the disk of its server.
CREATE TABLE resumable_uploads (
    upload_id       TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    -- Empty where one server has the store.
    server          TEXT    NOT NULL,
    blob_id         TEXT    NOT NULL UNIQUE,
    stage           TEXT    NOT NULL CHECK (stage IN ('open', 'completing', 'finished', 'failed', 'expired')),
    era             INTEGER NOT NULL,
    -- Grows when a request takes the upload away from another one.
    epoch           INTEGER NOT NULL CHECK (epoch >= 0),
    offset_bytes    INTEGER NOT NULL CHECK (offset_bytes >= 0),
    length_bytes    INTEGER CHECK (length_bytes >= offset_bytes),
    held_bytes      INTEGER NOT NULL CHECK (held_bytes >= 0),
    -- The state of the SHA-256 at the offset, and the first bytes.
    digest          BLOB    NOT NULL,
    head            BLOB    NOT NULL,
    -- JSON.
    terms           TEXT    NOT NULL,
    idempotency     TEXT,
    file_id         TEXT,
    failure_code    TEXT,
    failure_message TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    -- Live: the end of the lifetime. Ended: the instant from which the row is forgotten.
    expires_at      INTEGER NOT NULL,
    is_live         INTEGER NOT NULL CHECK (is_live = (stage IN ('open', 'completing'))),
    -- 1 while staged bytes may be there that belong to this row. Those of a finished one belong to the record.
    has_bytes       INTEGER NOT NULL CHECK (has_bytes IN (0, 1)),
    CHECK ((failure_code IS NULL) = (failure_message IS NULL)),
    CHECK ((stage = 'finished') = (file_id IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- A key has one upload, until that has failed or expired.
CREATE UNIQUE INDEX resumable_uploads_by_key ON resumable_uploads (organization_id, idempotency)
    WHERE idempotency IS NOT NULL;
CREATE INDEX resumable_uploads_by_organization ON resumable_uploads (organization_id, upload_id);
-- The bounds are sums of these.
CREATE INDEX resumable_uploads_held ON resumable_uploads (organization_id, held_bytes) WHERE is_live = 1;
CREATE INDEX resumable_uploads_live ON resumable_uploads (server, upload_id) WHERE is_live = 1;
CREATE INDEX resumable_uploads_due ON resumable_uploads (expires_at) WHERE stage = 'open';
CREATE INDEX resumable_uploads_to_clear ON resumable_uploads (server, upload_id) WHERE is_live = 0 AND has_bytes = 1;
CREATE INDEX resumable_uploads_to_forget ON resumable_uploads (expires_at) WHERE is_live = 0 AND has_bytes = 0;
