-- Parts of limits that proxies hold. What a limit has left is its cap less what was used (`usage_counters`) less these.
-- A call takes from its proxy's lease; storing its log adds to the counter and takes the same from the lease, in one
-- transaction. So a lease of a budget stands for what was spent and not stored yet, whatever becomes of the proxy.

CREATE TABLE limit_leases (
    id              uuid PRIMARY KEY,
    -- The process that holds it; its journal bears the same id.
    boot            uuid NOT NULL,
    -- The counter it is a part of.
    organisation_id uuid NOT NULL,
    scope           text NOT NULL,
    scope_id        text NOT NULL,
    unit            text NOT NULL CHECK (unit IN ('requests', 'tokens', 'cost')),
    period          text NOT NULL,
    starts_at       timestamptz NOT NULL,
    -- End of a rate's window, when the lease is worth nothing any more. Null for budgets: those end with the journal of
    -- their holder.
    ends_at         timestamptz,
    -- What is left of it, in the unit of the counter.
    amount          numeric NOT NULL CHECK (amount >= 0),
    granted_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX limit_leases_counter ON limit_leases (organisation_id, scope, scope_id, unit, period, starts_at);
CREATE INDEX limit_leases_boot ON limit_leases (boot);
CREATE INDEX limit_leases_age ON limit_leases (ends_at) WHERE ends_at IS NOT NULL;

-- Processes that hold leases. One that was not seen for a while has lost its rates to the others.
CREATE TABLE limit_holders (
    boot    uuid PRIMARY KEY,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
