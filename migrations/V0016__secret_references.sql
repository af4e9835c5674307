-- References to secrets that live in an outside manager, and what opens the manager. The credentials are sealed; beside
-- them stands what may be shown, with masks in place of secrets.
CREATE TABLE secret_references (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id      uuid NOT NULL REFERENCES organisations,
    slug                 text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    description          text CHECK (char_length(description) <= 1024),
    manager_type         text NOT NULL CHECK (manager_type IN ('aws_sm', 'azure_kv', 'hashicorp_vault')),
    auth_config          jsonb NOT NULL CHECK (jsonb_typeof(auth_config) = 'object'),
    sealed_auth_config   bytea NOT NULL,
    secret_path          text NOT NULL CHECK (char_length(secret_path) BETWEEN 1 AND 1024),
    secret_key           text CHECK (char_length(secret_key) BETWEEN 1 AND 255),
    allow_all_workspaces boolean NOT NULL DEFAULT true,
    allowed_workspaces   uuid[] NOT NULL DEFAULT '{}',
    tags                 jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(tags) = 'object'),
    created_by           uuid,
    created_at           timestamptz NOT NULL DEFAULT now(),
    last_updated_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    UNIQUE (organisation_id, slug),
    CHECK (allow_all_workspaces = (allowed_workspaces = '{}'))
);
CREATE INDEX secret_references_listed ON secret_references (organisation_id, created_at DESC, id DESC);
SELECT track_changes('secret_references');
