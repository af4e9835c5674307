-- Slots are divided by the names and values of metadata too. Those whose logs are there are built again: minutes, and half hours of
-- before there are minutes.
INSERT INTO usage_stale (size, slot)
SELECT 1, minute FROM usage_slots_kept,
    generate_series(greatest(minutes_from, begins_at, sealed_until), now(), interval '1 minute') AS minute
WHERE EXISTS (SELECT FROM request_logs)
UNION ALL
SELECT 30, half_hour FROM usage_slots_kept,
    generate_series(greatest(begins_at, sealed_until), minutes_from - interval '30 minutes', interval '30 minutes') AS half_hour
WHERE EXISTS (SELECT FROM request_logs);
