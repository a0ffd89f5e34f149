-- Listings of deleted files, latest deletion first.
CREATE INDEX files_by_deletion ON files (organization_id, purge_marked_at, file_id) WHERE is_deleted;
CREATE INDEX files_by_deletion_of_all ON files (purge_marked_at, file_id) WHERE is_deleted;
