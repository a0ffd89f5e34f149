-- Holds of snapshots under way: while one lasts, nobody removes what its snapshot names.

CREATE TABLE holds (
    hold_id     TEXT    NOT NULL PRIMARY KEY,
    -- The largest rowid of `files` that the snapshot may name.
    last_row    INTEGER NOT NULL,
    -- The end of the lease: a hold that is not renewed ends by itself.
    lasts_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The placeholder of a picture (a ThumbHash), noted once one was made; NULL for others. It belongs to the blob: other
-- bytes have none.
ALTER TABLE files ADD COLUMN thumbhash BLOB;
