-- A migration of its own, because it alone waits for reads: in one transaction with the next one, it would wait for
-- writers that wait for the triggers.

-- The reason of the last failed try with the current blob.
ALTER TABLE files ADD COLUMN sync_error text COLLATE "C";
