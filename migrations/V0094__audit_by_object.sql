-- Who did what to one object: the newest rows first.
CREATE INDEX audit_logs_object ON audit_logs (organisation_id, resource_id, created_at DESC, id DESC);
