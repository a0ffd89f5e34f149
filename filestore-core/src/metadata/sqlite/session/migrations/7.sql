-- Erasures of organizations: what began, was signed or was stored before one does not come back.
CREATE TABLE erasures (
    organization_id TEXT    NOT NULL PRIMARY KEY,
    -- Greater than all that were stored before, and about the time in milliseconds since 1970.
    era             INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX erasures_by_era ON erasures (era);
