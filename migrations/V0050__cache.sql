-- What answers from the cache would have cost, in US cents: beside the cost of their rows, which is 0. Null where it is not
-- known, and for calls that a provider answered.
ALTER TABLE request_logs ADD COLUMN cache_saved_cost numeric(24, 10);
ALTER TABLE usage_by_minute ADD COLUMN cache_saved_cost numeric NOT NULL DEFAULT 0;
