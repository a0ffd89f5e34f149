-- Webhooks: URLs that get events.
CREATE TABLE webhooks (
    webhook_id      TEXT    NOT NULL PRIMARY KEY,
    url             TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    -- NULL for events of all organizations and of the store.
    organization_id TEXT,
    -- Kinds of events, separated by spaces. Empty for all.
    kinds           TEXT    NOT NULL,
    secret          BLOB    NOT NULL CHECK (length(secret) = 32),
    former_secret   BLOB    CHECK (length(former_secret) = 32),
    former_until    INTEGER,
    created_at      INTEGER NOT NULL,
    changed_at      INTEGER NOT NULL,
    disabled_reason TEXT,
    disabled_at     INTEGER,
    CHECK ((former_secret IS NULL) = (former_until IS NULL)),
    CHECK ((disabled_reason IS NULL) = (disabled_at IS NULL))
) STRICT, WITHOUT ROWID;

-- The progress of the deliveries to a webhook.
CREATE TABLE webhook_lanes (
    webhook_id      TEXT    NOT NULL PRIMARY KEY,
    owner           TEXT,
    leased_until    INTEGER NOT NULL,
    -- The last event before which all are done. NULL for the start of the log.
    place           BLOB    CHECK (length(place) = 16),
    -- The events behind the place that are done, 16 bytes each.
    ahead           BLOB    NOT NULL CHECK (length(ahead) % 16 = 0),
    failing_since   INTEGER,
    paused_until    INTEGER,
    pauses          INTEGER NOT NULL,
    last_status     INTEGER,
    last_fault      TEXT,
    last_attempt_at INTEGER,
    last_success_at INTEGER,
    gaps            INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Events that an endpoint did not accept at once.
CREATE TABLE webhook_failures (
    row_id          INTEGER PRIMARY KEY,
    webhook_id      TEXT    NOT NULL,
    event_id        BLOB    NOT NULL CHECK (length(event_id) = 16),
    kind            TEXT    NOT NULL,
    organization_id TEXT,
    file_id         TEXT,
    body            TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('waiting', 'held', 'failed')),
    -- 1 if the event is sent again by request. It delays no later event of its file.
    is_repeat       INTEGER NOT NULL CHECK (is_repeat IN (0, 1)),
    attempts        INTEGER NOT NULL CHECK (attempts >= 0),
    -- Waiting: the next attempt. Failed: the last one.
    due_at          INTEGER NOT NULL,
    last_status     INTEGER,
    UNIQUE (webhook_id, event_id)
) STRICT;

CREATE INDEX webhook_failures_due ON webhook_failures (webhook_id, due_at) WHERE state = 'waiting';
CREATE INDEX webhook_failures_by_webhook ON webhook_failures (webhook_id, row_id);
CREATE INDEX webhook_failures_live ON webhook_failures (webhook_id, file_id, row_id) WHERE state <> 'failed';
CREATE INDEX webhook_failures_over ON webhook_failures (due_at) WHERE state = 'failed';
CREATE INDEX webhook_failures_by_organization ON webhook_failures (organization_id)
    WHERE organization_id IS NOT NULL;
