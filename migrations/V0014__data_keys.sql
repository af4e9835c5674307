-- Data keys: what an organisation's secrets are sealed with, each wrapped by a master key that is not in this database.
--
-- One is active and seals; retired ones still open what they sealed, until a rotation has sealed all of that anew and
-- deletes them. Whoever seals holds the active row FOR SHARE to the end of its transaction, so a key cannot be retired
-- while something is being sealed with it.

CREATE TABLE data_keys (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    wrapped         bytea NOT NULL,
    -- Also inside `wrapped`; here for questions about progress.
    master_key_id   text NOT NULL CHECK (master_key_id ~ '^[a-zA-Z0-9._-]{1,64}$'),
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'retired')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX data_keys_active ON data_keys (organisation_id) WHERE status = 'active';
CREATE INDEX data_keys_organisation ON data_keys (organisation_id);
SELECT track_changes('data_keys');
