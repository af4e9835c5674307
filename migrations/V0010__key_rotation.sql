-- Rotation of API keys: after it, the secret before opens the key too until its transition ends, so that no
-- application has to change its secret at one moment. A key has at most two live secrets.
ALTER TABLE api_keys
    ADD COLUMN previous_hash bytea CHECK (octet_length(previous_hash) = 32),
    ADD COLUMN previous_expires_at timestamptz,
    ADD COLUMN rotation_policy jsonb CHECK (jsonb_typeof(rotation_policy) = 'object'),
    ADD COLUMN last_rotated_at timestamptz,
    -- Whether the last update that spoke of it asked for usage to start over.
    ADD COLUMN reset_usage smallint,
    ADD CONSTRAINT api_keys_previous CHECK ((previous_hash IS NULL) = (previous_expires_at IS NULL));
CREATE UNIQUE INDEX api_keys_previous_hash ON api_keys (previous_hash) WHERE previous_hash IS NOT NULL;
-- How many keys people have in a workspace is counted whenever one is made.
CREATE INDEX api_keys_of_people ON api_keys (workspace_id) WHERE kind = 'workspace-user' AND status <> 'archived';
