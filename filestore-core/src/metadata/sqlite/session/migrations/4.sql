-- Keys of the API. Of a key's text only its SHA-256 is kept.

CREATE TABLE api_keys (
    key_id        TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    -- Separated by spaces; '*' is all.
    organizations TEXT    NOT NULL,
    -- Separated by spaces.
    scopes        TEXT    NOT NULL,
    digest        BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    -- The digest before the last rotation, and the instant from which it is refused.
    former_digest BLOB             CHECK (length(former_digest) = 32),
    former_until  INTEGER,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    rotated_at    INTEGER,
    revoked_at    INTEGER,
    last_used_at  INTEGER,
    CHECK ((former_digest IS NULL) = (former_until IS NULL))
) STRICT, WITHOUT ROWID;

-- A file within an organization, in one look-up: a foreign file takes as long as one that does not exist.
CREATE INDEX files_by_owner ON files (file_id, organization_id);

-- Secrets that sign URLs. The one without `valid_until` signs; the others verify until then.
CREATE TABLE signing_secrets (
    kid         TEXT    NOT NULL PRIMARY KEY,
    secret      BLOB    NOT NULL CHECK (length(secret) >= 32),
    created_at  INTEGER NOT NULL,
    valid_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX signing_secrets_current ON signing_secrets ((valid_until IS NULL)) WHERE valid_until IS NULL;

-- Signed uploads that were made: each URL is good for one.
CREATE TABLE used_permits (
    nonce      TEXT    NOT NULL PRIMARY KEY,
    kept_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX used_permits_expiring ON used_permits (kept_until);

-- Edits: custom metadata (a JSON object, compact, with sorted keys; NULL if it is empty), and the instant of the last
-- edit of name, type or metadata, which moves at each.
ALTER TABLE files ADD COLUMN metadata TEXT;
ALTER TABLE files ADD COLUMN edited_at INTEGER;
-- The media type without its parameters, as listings ask for it.
ALTER TABLE files ADD COLUMN media_type TEXT
    GENERATED ALWAYS AS (lower(trim(substr(mime_type, 1, instr(mime_type || ';', ';') - 1)))) VIRTUAL;

-- One range of one of these is one listing by name or type of one status.
CREATE INDEX files_by_name ON files (organization_id, purge_status, status, original_name, file_id DESC);
CREATE INDEX files_by_type ON files (organization_id, purge_status, status, media_type, file_id);

-- The members of custom metadata that can be asked for: a row for each, in the order of listings. A term is a digest of
-- key and value. The columns repeat those of the file; the triggers keep them equal.
CREATE TABLE file_terms (
    of_organization TEXT    NOT NULL,
    term            BLOB    NOT NULL CHECK (length(term) = 16),
    is_deleted      INTEGER NOT NULL CHECK (is_deleted IN (0, 1)),
    in_status       TEXT    NOT NULL,
    of_file         TEXT    NOT NULL,
    PRIMARY KEY (of_organization, term, is_deleted, in_status, of_file)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_terms_by_file ON file_terms (of_file);

CREATE TRIGGER file_terms_update AFTER UPDATE OF status, purge_status ON files
WHEN new.metadata IS NOT NULL AND (old.status <> new.status OR old.purge_status IS NOT new.purge_status) BEGIN
    UPDATE file_terms SET in_status = new.status, is_deleted = new.purge_status IS NOT NULL WHERE of_file = new.file_id;
END;

CREATE TRIGGER file_terms_delete AFTER DELETE ON files WHEN old.metadata IS NOT NULL BEGIN
    DELETE FROM file_terms WHERE of_file = old.file_id;
END;
