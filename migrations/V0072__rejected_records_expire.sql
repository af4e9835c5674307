-- Whose a record is that could not be stored, so that it can be erased with the logs of its person or trace, and expires with them.
-- Null where it cannot be read at all, and for those that were set aside before.
ALTER TABLE rejected_records ADD COLUMN organisation_id uuid;
ALTER TABLE rejected_records ADD COLUMN trace_id text;
ALTER TABLE rejected_records ADD COLUMN user_name text;
CREATE INDEX rejected_records_age ON rejected_records (rejected_at);
CREATE INDEX rejected_records_organisation ON rejected_records (organisation_id);
