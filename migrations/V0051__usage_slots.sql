-- What calls add up to, by slots of time: a minute, half an hour, a day. Analytics read these instead of logs. Adding, changing
-- or deleting logs only notes their minutes as stale, in the same transaction; admin builds stale slots again from the logs. So a slot is exact or known to be stale, whatever arrives late or is erased, and no writer of logs waits.

-- Numbers are within 1 % of each other in one bucket; what takes no time has a bucket of its own.
CREATE FUNCTION latency_bucket(millis integer) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN millis <= 0 THEN -1 ELSE ceil(ln(millis::double precision) / ln(1.02::double precision)) END::smallint $$;

-- The number that is nearest to all of a bucket.
CREATE FUNCTION bucket_latency(bucket integer) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN bucket < 0 THEN 0 ELSE 2 * power(1.02::double precision, bucket) / 2.02 END $$;

CREATE TABLE usage_slots (
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    -- Width in minutes: 1, 30 or 1440.
    size            smallint NOT NULL CHECK (size IN (1, 30, 1440)),
    -- Its beginning, UTC.
    slot            timestamptz NOT NULL,
    -- What the calls have in common, and its value; all calls of the slot under the empty name.
    dimension       text NOT NULL,
    value           text NOT NULL,
    requests        bigint NOT NULL,
    -- Those that name their user.
    user_requests   bigint NOT NULL,
    errors          bigint NOT NULL,
    req_units       numeric NOT NULL,
    res_units       numeric NOT NULL,
    -- US cents.
    cost            numeric NOT NULL,
    simple_hits     bigint NOT NULL,
    semantic_hits   bigint NOT NULL,
    simple_saved    numeric NOT NULL,
    semantic_saved  numeric NOT NULL,
    saved           numeric NOT NULL,
    -- Milliseconds, of all and of those that the cache answered.
    response_time   bigint NOT NULL,
    hit_time        bigint NOT NULL,
    -- Answered well after a retry, and by a later target.
    retried         bigint NOT NULL,
    fallen          bigint NOT NULL,
    first_seen      timestamptz NOT NULL,
    last_seen       timestamptz NOT NULL,
    -- Response times: numbers of buckets, and how many calls are in each.
    buckets         smallint[] NOT NULL,
    counts          integer[] NOT NULL,
    PRIMARY KEY (workspace_id, size, dimension, slot, value)
);
CREATE INDEX usage_slots_organisation ON usage_slots (organisation_id, size, dimension, slot);
CREATE INDEX usage_slots_age ON usage_slots (size, slot);

-- Slots whose figures are no longer those of their logs. Without a key: writers of logs do not wait for each other here.
CREATE TABLE usage_stale (
    size smallint NOT NULL,
    slot timestamptz NOT NULL
);
CREATE INDEX usage_stale_slot ON usage_stale (slot);

-- From when on there are slots; before that, logs are counted one by one.
CREATE TABLE usage_slots_kept (
    is_all       boolean PRIMARY KEY DEFAULT true CHECK (is_all),
    -- Half hours and days.
    begins_at    timestamptz NOT NULL,
    -- Minutes are kept for a shorter time.
    minutes_from timestamptz NOT NULL,
    -- Logs of before are gone: their slots are all that is known, and are not built again.
    sealed_until timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO usage_slots_kept (begins_at, minutes_from)
SELECT day, day FROM (SELECT date_trunc('day', now(), 'UTC') AS day) AS today;

-- Whoever changes logs, by whatever way and in whatever version: their minutes are stale.
CREATE FUNCTION usage_stale_note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO usage_stale (size, slot)
    SELECT DISTINCT 1, date_trunc('minute', created_at, 'UTC') FROM changed;
    RETURN NULL;
END $$;
CREATE TRIGGER request_logs_added AFTER INSERT ON request_logs REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION usage_stale_note();
-- The time of a log never changes.
CREATE TRIGGER request_logs_changed AFTER UPDATE ON request_logs REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION usage_stale_note();
CREATE TRIGGER request_logs_deleted AFTER DELETE ON request_logs REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION usage_stale_note();

-- There may be logs in any minute of today. Behind the triggers, which no writer passes unseen.
INSERT INTO usage_stale (size, slot)
SELECT 1, minute FROM usage_slots_kept, generate_series(begins_at, begins_at + interval '1439 minutes', interval '1 minute') AS minute
WHERE EXISTS (SELECT FROM request_logs);
