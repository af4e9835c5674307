-- Lists of keys tell their total, and a workspace counts the keys of its people: both from this index alone.
CREATE INDEX api_keys_counted ON api_keys (organisation_id, workspace_id, kind) WHERE status <> 'archived';
DROP INDEX api_keys_of_people;
