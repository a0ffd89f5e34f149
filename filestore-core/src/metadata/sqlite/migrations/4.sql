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
