-- Erasures of organizations: what began, was signed or was stored before one does not come back.
CREATE TABLE erasures (
    organization_id text   COLLATE "C" NOT NULL PRIMARY KEY,
    -- Greater than all that were stored before, and about the time in milliseconds since 1970.
    era             bigint NOT NULL
);

CREATE INDEX erasures_by_era ON erasures (era);

-- Waits for an erasure of the organization that is being committed, keeps others waiting until the end of the
-- transaction, and returns the era of the last one. Each statement of a volatile function sees what was committed
-- before it.
CREATE FUNCTION era_of(waits_for bigint, erased text) RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
    found bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(waits_for);
    SELECT era INTO found FROM erasures WHERE organization_id = erased;
    RETURN coalesce(found, 0);
END $$;

-- Servers know the last era, as they know keys and secrets.
CREATE TRIGGER erasures_told AFTER INSERT OR DELETE OR UPDATE ON erasures
    FOR EACH STATEMENT EXECUTE FUNCTION tell_servers();
