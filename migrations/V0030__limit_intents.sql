-- What calls under strict budgets were promised, noted before they leave. The log of a call takes its intent away again.
-- While the proxy lives its leases stand for what it promised; when one is found dead, whatever is left here of it may have
-- been spent at the provider: it is charged to its counters then, and stays here, unconfirmed, until somebody reconciles it.

CREATE TABLE limit_intents (
    -- The request, and which of its targets.
    request_id      uuid NOT NULL,
    attempt         smallint NOT NULL,
    -- The process that made the promise.
    boot            uuid NOT NULL,
    -- Of the request; its last log bears the same time and id.
    created_at      timestamptz NOT NULL,
    -- The counter it was promised of.
    organisation_id uuid NOT NULL,
    scope           text NOT NULL,
    scope_id        text NOT NULL,
    unit            text NOT NULL CHECK (unit IN ('requests', 'tokens', 'cost')),
    period          text NOT NULL,
    starts_at       timestamptz NOT NULL,
    -- In the unit of the counter.
    amount          numeric NOT NULL CHECK (amount >= 0),
    -- Since then it is part of the counter.
    charged_at      timestamptz,
    PRIMARY KEY (request_id, attempt, scope, scope_id, unit, period)
);
CREATE INDEX limit_intents_boot ON limit_intents (boot);
CREATE INDEX limit_intents_unconfirmed ON limit_intents (organisation_id, scope, scope_id) WHERE charged_at IS NOT NULL;

-- What of a budget's present period is charged and not confirmed: dollars, or tokens.
CREATE FUNCTION budget_unconfirmed(organisation uuid, counted_for text, counted_id text, budget jsonb)
RETURNS double precision LANGUAGE sql STABLE STRICT SET search_path FROM CURRENT AS $$
    SELECT (sum(i.amount) * CASE budget ->> 'type' WHEN 'cost' THEN 0.01 ELSE 1 END)::double precision FROM limit_intents i
    WHERE i.organisation_id = organisation AND i.scope = counted_for AND i.scope_id = counted_id AND i.charged_at IS NOT NULL
      AND i.unit = budget ->> 'type' AND i.period = 'total' AND i.starts_at = (budget ->> 'last_reset_at')::timestamptz
$$;
