-- Parts of resumable uploads: objects with the bytes of a live upload, from which every server continues it. A part has
-- a write intent until it has a row here, and the row until the upload ends.
CREATE TABLE upload_parts (
    upload_id        text   COLLATE "C" NOT NULL,
    offset_bytes     bigint NOT NULL,
    size_bytes       bigint NOT NULL,
    storage_provider text   COLLATE "C" NOT NULL,
    blob_key         text   COLLATE "C" NOT NULL UNIQUE,
    -- The instant until which a late write of the object can arrive.
    late_until       bigint NOT NULL,
    PRIMARY KEY (upload_id, offset_bytes),
    CONSTRAINT upload_parts_numbers CHECK (offset_bytes >= 0 AND size_bytes > 0)
);

-- Hands the parts of an upload from an offset on to blob_gc: no object is without a row. A part belongs to no file, so
-- it gets an id that no file has.
CREATE FUNCTION drop_upload_parts(upload text, from_offset bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    present bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
    WITH gone AS (
        DELETE FROM upload_parts WHERE upload_id = upload AND offset_bytes >= from_offset
        RETURNING storage_provider, blob_key, late_until)
    INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
        SELECT right(blob_key, 26), storage_provider, blob_key, present, greatest(present, late_until) FROM gone;
END $$;

-- However an upload ends, also by a server that knows no parts.
CREATE FUNCTION end_upload_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM drop_upload_parts(OLD.upload_id, 0);
    RETURN NULL;
END $$;

CREATE TRIGGER resumable_uploads_ended AFTER UPDATE OF is_live ON resumable_uploads
    FOR EACH ROW WHEN (OLD.is_live AND NOT NEW.is_live) EXECUTE FUNCTION end_upload_parts();
CREATE TRIGGER resumable_uploads_forgotten AFTER DELETE ON resumable_uploads
    FOR EACH ROW WHEN (OLD.is_live) EXECUTE FUNCTION end_upload_parts();

-- For servers that look for uploads which a server that is gone was storing.
CREATE INDEX resumable_uploads_completing ON resumable_uploads (upload_id) WHERE stage = 'completing';
