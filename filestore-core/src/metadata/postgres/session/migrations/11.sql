-- Webhooks: URLs that get events.
CREATE TABLE webhooks (
    webhook_id      text    COLLATE "C" NOT NULL PRIMARY KEY,
    url             text    COLLATE "C" NOT NULL,
    name            text    COLLATE "C" NOT NULL,
    -- NULL for events of all organizations and of the store.
    organization_id text    COLLATE "C",
    -- Kinds of events, separated by spaces. Empty for all.
    kinds           text    COLLATE "C" NOT NULL,
    secret          bytea   NOT NULL,
    former_secret   bytea,
    former_until    bigint,
    created_at      bigint  NOT NULL,
    changed_at      bigint  NOT NULL,
    disabled_reason text    COLLATE "C",
    disabled_at     bigint,
    CONSTRAINT webhooks_secret CHECK (length(secret) = 32 AND length(former_secret) = 32),
    CONSTRAINT webhooks_former CHECK ((former_secret IS NULL) = (former_until IS NULL)),
    CONSTRAINT webhooks_disabled CHECK ((disabled_reason IS NULL) = (disabled_at IS NULL))
);

-- The progress of the deliveries to a webhook.
CREATE TABLE webhook_lanes (
    webhook_id      text    COLLATE "C" NOT NULL PRIMARY KEY,
    owner           text    COLLATE "C",
    leased_until    bigint  NOT NULL,
    -- The last event before which all are done. NULL for the start of the log.
    place           bytea,
    -- The events behind the place that are done, 16 bytes each.
    ahead           bytea   NOT NULL,
    failing_since   bigint,
    paused_until    bigint,
    pauses          bigint  NOT NULL,
    last_status     bigint,
    last_fault      text    COLLATE "C",
    last_attempt_at bigint,
    last_success_at bigint,
    gaps            bigint  NOT NULL,
    CONSTRAINT webhook_lanes_place CHECK (length(place) = 16 AND length(ahead) % 16 = 0)
);

ALTER TABLE webhook_lanes SET (fillfactor = 50);

CREATE INDEX webhook_lanes_owned ON webhook_lanes (owner) WHERE owner IS NOT NULL;

-- Events that an endpoint did not accept at once.
CREATE TABLE webhook_failures (
    row_id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id      text    COLLATE "C" NOT NULL,
    event_id        bytea   NOT NULL,
    kind            text    COLLATE "C" NOT NULL,
    organization_id text    COLLATE "C",
    file_id         text    COLLATE "C",
    body            text    COLLATE "C" NOT NULL,
    state           text    COLLATE "C" NOT NULL,
    -- True if the event is sent again by request. It delays no later event of its file.
    is_repeat       boolean NOT NULL,
    attempts        bigint  NOT NULL,
    -- Waiting: the next attempt. Failed: the last one.
    due_at          bigint  NOT NULL,
    last_status     bigint,
    CONSTRAINT webhook_failures_event UNIQUE (webhook_id, event_id),
    CONSTRAINT webhook_failures_state CHECK (state IN ('waiting', 'held', 'failed')),
    CONSTRAINT webhook_failures_numbers CHECK (length(event_id) = 16 AND attempts >= 0)
);

CREATE INDEX webhook_failures_due ON webhook_failures (webhook_id, due_at) WHERE state = 'waiting';
CREATE INDEX webhook_failures_by_webhook ON webhook_failures (webhook_id, row_id);
CREATE INDEX webhook_failures_live ON webhook_failures (webhook_id, file_id, row_id) WHERE state <> 'failed';
CREATE INDEX webhook_failures_over ON webhook_failures (due_at) WHERE state = 'failed';
CREATE INDEX webhook_failures_by_organization ON webhook_failures (organization_id)
    WHERE organization_id IS NOT NULL;
