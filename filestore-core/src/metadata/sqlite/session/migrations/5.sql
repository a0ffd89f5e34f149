-- Holds of snapshots under way: while one lasts, nobody removes what its snapshot names.

CREATE TABLE holds (
    hold_id     TEXT    NOT NULL PRIMARY KEY,
    -- The largest rowid of `files` that the snapshot may name.
    last_row    INTEGER NOT NULL,
    -- The end of the lease: a hold that is not renewed ends by itself.
    lasts_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- While a hold lasts, claims begin behind its last row: the rows before may be many.
CREATE INDEX files_unclaimed_rows ON files (storage_provider)
    WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0;

-- The placeholder of a picture (a ThumbHash), noted once one was made; NULL for others. It belongs to the blob: other
-- bytes have none.
ALTER TABLE files ADD COLUMN thumbhash BLOB;

-- Checks of the store: the one that was asked for last, and the scrub of the background. A row says how far it has come,
-- so that it goes on from there after a stop.

CREATE TABLE check_runs (
    name       TEXT    NOT NULL PRIMARY KEY CHECK (name IN ('asked', 'scrub')),
    is_deep    INTEGER NOT NULL CHECK (is_deep IN (0, 1)),
    repairs    INTEGER NOT NULL CHECK (repairs IN (0, 1)),
    -- The one holder that is looked at, or NULL for all.
    provider   TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    part       TEXT    NOT NULL,
    cursor     TEXT    NOT NULL,
    files      INTEGER NOT NULL CHECK (files >= 0),
    bytes      INTEGER NOT NULL CHECK (bytes >= 0),
    names      INTEGER NOT NULL CHECK (names >= 0),
    found      INTEGER NOT NULL CHECK (found >= 0),
    repaired   INTEGER NOT NULL CHECK (repaired >= 0),
    -- A line for each holder that could not be looked at: its code, a space, the reason.
    postponed  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE check_findings (
    run     TEXT    NOT NULL,
    -- The position of the kind, the gravest first.
    rank    INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    place   TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    file_id TEXT,
    detail  TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    PRIMARY KEY (run, rank, place, name)
) STRICT, WITHOUT ROWID;

-- A check asks of each key that it meets whether the blob is a dropped one.
CREATE INDEX blob_gc_by_key ON blob_gc (blob_key);
