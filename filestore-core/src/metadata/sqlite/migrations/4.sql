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
