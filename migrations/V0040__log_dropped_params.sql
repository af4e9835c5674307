-- The parameters that a target was not told, because its format cannot say them or its row leaves them out: a list of names
-- in the caller's words. Null where there were none, and in what older proxies wrote.
ALTER TABLE request_logs ADD COLUMN dropped_params jsonb;
