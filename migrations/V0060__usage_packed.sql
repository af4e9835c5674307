-- Figures of slots, packed: one row for all values of a slot that is divided by something, instead of one for each, and slots of a
-- week (from Monday, UTC) beside those of a minute, half an hour and a day. What is in a pack, admin knows
-- (`shared/src/db/usage_slots/pack.rs`).
DROP TABLE usage_slots;
DROP FUNCTION latency_bucket(integer);
DROP FUNCTION bucket_latency(integer);
CREATE TABLE usage_slots (
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    -- Width in minutes.
    size            smallint NOT NULL CHECK (size IN (1, 30, 1440, 10080)),
    -- Its beginning, UTC.
    slot            timestamptz NOT NULL,
    -- What its calls are divided by; all of them together under the empty name.
    dimension       text NOT NULL,
    figures         bytea NOT NULL,
    PRIMARY KEY (workspace_id, size, dimension, slot)
);
-- They are compressed already.
ALTER TABLE usage_slots ALTER COLUMN figures SET STORAGE EXTERNAL;
CREATE INDEX usage_slots_organisation ON usage_slots (organisation_id, size, dimension, slot);
CREATE INDEX usage_slots_age ON usage_slots (size, slot);

-- They begin anew with this day; `gateway-admin analytics verify` builds those of before.
UPDATE usage_slots_kept SET begins_at = date_trunc('day', now(), 'UTC'), minutes_from = date_trunc('day', now(), 'UTC');
DELETE FROM usage_stale;
INSERT INTO usage_stale (size, slot)
SELECT 1, minute FROM usage_slots_kept, generate_series(begins_at, begins_at + interval '1439 minutes', interval '1 minute') AS minute
WHERE EXISTS (SELECT FROM request_logs);

-- Nobody reads `usage_by_minute` any more: analytics have slots, limits have `usage_counters`. Proxies of an earlier version add to it
-- while they ship logs, so it stays and keeps nothing of what they add; a later version drops it.
CREATE FUNCTION usage_by_minute_ignored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER usage_by_minute_ignored BEFORE INSERT ON usage_by_minute
    FOR EACH ROW EXECUTE FUNCTION usage_by_minute_ignored();
TRUNCATE usage_by_minute;
DROP INDEX usage_by_minute_organisation;
DROP INDEX usage_by_minute_age;
