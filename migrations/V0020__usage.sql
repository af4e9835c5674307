-- What was used, added up while log rows are stored and in their transaction: each row counts once, however often its
-- journal is sent.

-- By minute and by everything that analytics group by. Absent values are empty texts, so that they are one group.
CREATE TABLE usage_by_minute (
    organisation_id      uuid NOT NULL,
    workspace_id         uuid NOT NULL,
    -- Beginning of the minute, UTC.
    minute               timestamptz NOT NULL,
    api_key_id           uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    ai_org               text NOT NULL DEFAULT '',
    ai_model             text NOT NULL DEFAULT '',
    virtual_key          text NOT NULL DEFAULT '',
    config               text NOT NULL DEFAULT '',
    prompt_slug          text NOT NULL DEFAULT '',
    response_status_code integer NOT NULL,
    cache_status         text NOT NULL DEFAULT 'DISABLED',
    requests             bigint NOT NULL,
    req_units            bigint NOT NULL,
    res_units            bigint NOT NULL,
    -- US cents; rows without a known price add nothing.
    cost                 numeric NOT NULL,
    -- Sum and maximum of `response_time`, in milliseconds.
    response_time        bigint NOT NULL,
    response_time_max    integer NOT NULL,
    -- Answered well after a retry, and by a later target.
    rescued_by_retry     bigint NOT NULL DEFAULT 0,
    rescued_by_fallback  bigint NOT NULL DEFAULT 0,
    first_seen           timestamptz NOT NULL,
    last_seen            timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, minute, api_key_id, ai_org, ai_model, virtual_key, config, prompt_slug,
                 response_status_code, cache_status)
);
CREATE INDEX usage_by_minute_organisation ON usage_by_minute (organisation_id, minute);
CREATE INDEX usage_by_minute_age ON usage_by_minute USING brin (minute);

-- Running totals that limits and budgets are measured by. A counter is one unit of one thing in one window; windows
-- are aligned to UTC. `value` only grows, so a reset is a note of what it was.
CREATE TABLE usage_counters (
    organisation_id uuid NOT NULL,
    -- What is counted for: `organisation`, `workspace`, `api_key`, `provider` (of a workspace), `policy`.
    scope           text NOT NULL,
    -- Its id; of a provider `<workspace id>/<slug>`, of a policy `<policy id>/<values of its group>`.
    scope_id        text NOT NULL,
    -- `requests`, `tokens` or `cost` (US cents).
    unit            text NOT NULL CHECK (unit IN ('requests', 'tokens', 'cost')),
    -- `day` or `total`; weeks and months are sums of days.
    period          text NOT NULL CHECK (period IN ('minute', 'hour', 'day', 'week', 'month', 'total')),
    -- Beginning of the window; `-infinity` of `total`.
    starts_at       timestamptz NOT NULL,
    value           numeric NOT NULL,
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, scope, scope_id, unit, period, starts_at)
);
CREATE INDEX usage_counters_age ON usage_counters (starts_at) WHERE period <> 'total';
