-- Whoever waited for another to make the partition may still remember that there was none: being told that it exists
-- is then as good as having made it, because the other has committed.
CREATE OR REPLACE FUNCTION request_logs_day(day date) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    partition text := 'request_logs_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('request_logs_day'));
    EXECUTE format('CREATE TABLE %I (LIKE request_logs INCLUDING ALL)', partition);
    EXECUTE format('ALTER TABLE request_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', partition,
        day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
EXCEPTION WHEN duplicate_table THEN
    RETURN;
END $$;
