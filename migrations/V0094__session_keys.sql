-- Keys that a session has for a quarter of an hour, for calls of models from a page. They end with it, however it ends.
ALTER TABLE api_keys
    ADD COLUMN session_id uuid REFERENCES sessions ON DELETE CASCADE,
    ADD CONSTRAINT api_keys_of_session CHECK (session_id IS NULL OR kind = 'workspace-user');
CREATE INDEX api_keys_session ON api_keys (session_id) WHERE session_id IS NOT NULL;
