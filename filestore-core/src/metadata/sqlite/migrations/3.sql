-- The store itself: its id, and what a server last worked by.

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER settings_keep_the_id BEFORE UPDATE ON settings WHEN old.name = 'store_id' BEGIN
    SELECT RAISE(ABORT, 'the id of a store never changes');
END;
