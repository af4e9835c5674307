-- Policies: limits for whatever requests match their conditions, counted apart for each combination of the values that
-- they are grouped by. The proxy follows them, and `policy_entities`, in its snapshot.

CREATE TABLE rate_limits_policies (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    name            text CHECK (char_length(name) BETWEEN 1 AND 255),
    description     text CHECK (char_length(description) <= 500),
    -- [{key, value, excludes?}], all of which must hold.
    conditions      jsonb NOT NULL CHECK (jsonb_typeof(conditions) = 'array'),
    -- [{key}]
    group_by        jsonb NOT NULL CHECK (jsonb_typeof(group_by) = 'array'),
    type            text NOT NULL CHECK (type IN ('requests', 'tokens')),
    unit            text NOT NULL CHECK (unit IN ('rpm', 'rph', 'rpd')),
    value           double precision NOT NULL CHECK (value >= 1),
    -- Counts and reports, and never refuses.
    dry_run         boolean NOT NULL DEFAULT false,
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    -- Counters began anew at this moment: it is part of their names.
    counters_since  timestamptz NOT NULL DEFAULT date_trunc('milliseconds', now()),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX rate_limits_policies_listed ON rate_limits_policies (organisation_id, created_at DESC, id DESC);
CREATE INDEX rate_limits_policies_workspace ON rate_limits_policies (workspace_id, created_at DESC, id DESC);
SELECT track_changes('rate_limits_policies');

CREATE TABLE usage_limits_policies (
    id                  uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id     uuid NOT NULL REFERENCES organisations,
    workspace_id        uuid NOT NULL,
    name                text CHECK (char_length(name) BETWEEN 1 AND 255),
    description         text CHECK (char_length(description) <= 500),
    conditions          jsonb NOT NULL CHECK (jsonb_typeof(conditions) = 'array'),
    group_by            jsonb NOT NULL CHECK (jsonb_typeof(group_by) = 'array'),
    type                text NOT NULL CHECK (type IN ('cost', 'tokens', 'requests')),
    -- US dollars, tokens or requests. Counters of `cost` are cents.
    credit_limit        double precision NOT NULL CHECK (credit_limit >= 1),
    alert_threshold     double precision CHECK (alert_threshold >= 1),
    periodic_reset      text CHECK (periodic_reset IN ('weekly', 'monthly')),
    periodic_reset_days smallint CHECK (periodic_reset_days BETWEEN 1 AND 365),
    next_usage_reset_at timestamptz,
    -- When the present period began: `starts_at` of its counters, so that a reset is a new value here and nothing else.
    last_reset_at       timestamptz NOT NULL DEFAULT date_trunc('milliseconds', now()),
    strict              boolean NOT NULL DEFAULT false,
    dry_run             boolean NOT NULL DEFAULT false,
    status              text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at          timestamptz NOT NULL DEFAULT now(),
    last_updated_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    CHECK (periodic_reset IS NULL OR periodic_reset_days IS NULL)
);
CREATE INDEX usage_limits_policies_listed ON usage_limits_policies (organisation_id, created_at DESC, id DESC);
CREATE INDEX usage_limits_policies_workspace ON usage_limits_policies (workspace_id, created_at DESC, id DESC);
CREATE INDEX usage_limits_policies_due ON usage_limits_policies (next_usage_reset_at) WHERE next_usage_reset_at IS NOT NULL;
SELECT track_changes('usage_limits_policies');

-- What is to be remembered of one group of a usage-limits policy: that it was reset alone, that its alerts were sent.
-- Groups of which there is nothing to remember have no row; a reset of the policy deletes them all.
CREATE TABLE policy_entities (
    -- md5 of `<policy id>/<value key>`, so that a group has an id before it has a row.
    id                       uuid PRIMARY KEY,
    organisation_id          uuid NOT NULL,
    policy_id                uuid NOT NULL,
    value_key                text NOT NULL,
    -- None while the policy's own counts.
    last_reset_at            timestamptz,
    is_threshold_alerts_sent boolean NOT NULL DEFAULT false,
    is_exhausted_alerts_sent boolean NOT NULL DEFAULT false,
    status                   text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'exhausted')),
    UNIQUE (policy_id, value_key),
    FOREIGN KEY (organisation_id, policy_id) REFERENCES usage_limits_policies (organisation_id, id)
);
SELECT track_changes('policy_entities');

-- The counters of one policy; the names of policies' counters begin with the policy's id.
CREATE INDEX usage_counters_policy ON usage_counters (left(scope_id, 36), period, starts_at) WHERE scope = 'policy';

-- Budgets on things remember inside the limit when their period began, for whoever counts. What was used stands in the
-- counters and is not repeated.
CREATE FUNCTION budget_since(budget jsonb, since timestamptz) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN budget ? 'last_reset_at' THEN budget ELSE (budget - '{current_usage,status}'::text[]) || jsonb_build_object(
        'last_reset_at', to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) END
$$;
UPDATE api_keys SET usage_limits = budget_since(usage_limits, coalesce(last_reset_at, created_at))
WHERE usage_limits IS NOT NULL;
UPDATE providers SET usage_limits = budget_since(usage_limits, coalesce(last_reset_at, created_at))
WHERE usage_limits IS NOT NULL;
UPDATE integration_workspaces SET usage_limits = budget_since(usage_limits, coalesce(last_reset_at, created_at))
WHERE usage_limits IS NOT NULL;
UPDATE workspaces SET usage_limits = jsonb_build_array(budget_since(usage_limits -> 0, coalesce(last_reset_at, created_at)))
WHERE jsonb_array_length(usage_limits) > 0;
DROP FUNCTION budget_since(jsonb, timestamptz);

-- What was used of a budget in its present period: dollars, or tokens. None when nothing was.
CREATE FUNCTION budget_used(organisation uuid, counted_for text, counted_id text, budget jsonb) RETURNS double precision
LANGUAGE sql STABLE STRICT SET search_path FROM CURRENT AS $$
    SELECT (c.value * CASE c.unit WHEN 'cost' THEN 0.01 ELSE 1 END)::double precision FROM usage_counters c
    WHERE c.organisation_id = organisation AND c.scope = counted_for AND c.scope_id = counted_id
      AND c.unit = budget ->> 'type' AND c.period = 'total' AND c.starts_at = (budget ->> 'last_reset_at')::timestamptz
$$;

-- Those that have a budget are looked at often.
CREATE INDEX api_keys_budgets ON api_keys (id) WHERE usage_limits IS NOT NULL;
CREATE INDEX providers_budgets ON providers (id) WHERE usage_limits IS NOT NULL;
CREATE INDEX integration_workspaces_budgets ON integration_workspaces (id) WHERE usage_limits IS NOT NULL;
CREATE INDEX workspaces_budgets ON workspaces (id) WHERE usage_limits IS NOT NULL;
