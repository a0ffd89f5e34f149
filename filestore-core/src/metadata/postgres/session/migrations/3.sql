-- What clients have used of their limits of requests, as servers tell each other. Nothing of it matters after a minute,
-- nor after a crash of the database: so no log is written.

CREATE UNLOGGED TABLE rate_uses (
    -- A server with its epoch, and how many times it has told.
    server   text        COLLATE "C" NOT NULL,
    number   bigint      NOT NULL,
    told_at  timestamptz NOT NULL,
    clients  text[]      COLLATE "C" NOT NULL,
    -- The requests of each since the time before.
    uses     bigint[]    NOT NULL,
    PRIMARY KEY (server, number)
);

ALTER TABLE rate_uses SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
