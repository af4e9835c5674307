-- Nobody reads `usage_by_minute` any more: analytics have `usage_slots`, limits have `usage_counters`. Proxies of an earlier version
-- add to it while they ship logs, so it stays and keeps nothing of what they add; a later version drops it.
CREATE FUNCTION usage_by_minute_ignored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER usage_by_minute_ignored BEFORE INSERT ON usage_by_minute
    FOR EACH ROW EXECUTE FUNCTION usage_by_minute_ignored();
TRUNCATE usage_by_minute;
DROP INDEX usage_by_minute_organisation;
DROP INDEX usage_by_minute_age;
