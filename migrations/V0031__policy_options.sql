-- Options of policies. `unknown_price`: what becomes of calls whose model has no price; null follows the proxy's setting.
-- `include_none`: requests that lack a grouped value are counted together in a group of their own. `trusted_metadata`:
-- only what the key and the workspace say of themselves is looked at, not what the client says.

ALTER TABLE usage_limits_policies
    ADD COLUMN unknown_price text CHECK (unknown_price IN ('allow', 'refuse')),
    ADD COLUMN include_none boolean NOT NULL DEFAULT false,
    ADD COLUMN trusted_metadata boolean NOT NULL DEFAULT false;

ALTER TABLE rate_limits_policies
    ADD COLUMN include_none boolean NOT NULL DEFAULT false,
    ADD COLUMN trusted_metadata boolean NOT NULL DEFAULT false;
