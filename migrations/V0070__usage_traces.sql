-- Days have filters of the traces of their calls beside their slots (dimension `trace`), which tell where the calls of a trace are not.
-- Days whose logs are there are built again from their half hours, and have them then.
INSERT INTO usage_stale (size, slot)
SELECT 1440, day FROM usage_slots_kept,
    generate_series(date_trunc('day', greatest(begins_at, sealed_until), 'UTC'), now(), interval '24 hours') AS day
WHERE EXISTS (SELECT FROM request_logs);
