-- Keys that a session has for a quarter of an hour, for calls of models from a page. They end with it, however it ends.
ALTER TABLE api_keys
    ADD COLUMN session_id uuid REFERENCES sessions ON DELETE CASCADE,
    ADD CONSTRAINT api_keys_of_session CHECK (session_id IS NULL OR kind = 'workspace-user');
CREATE INDEX api_keys_session ON api_keys (session_id) WHERE session_id IS NOT NULL;

-- They were given for what the person might do then.
CREATE FUNCTION end_session_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM api_keys WHERE user_id = NEW.id AND session_id IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER users_end_session_keys AFTER UPDATE OF role ON users
    FOR EACH ROW WHEN (OLD.role IS DISTINCT FROM NEW.role) EXECUTE FUNCTION end_session_keys();
