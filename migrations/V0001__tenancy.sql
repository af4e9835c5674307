-- Tenants: an organisation holds workspaces, users, and the API keys that act for them.
--
-- Foreign keys inside a tenant are made of (organisation_id, id), so that no row can point across organisations,
-- whatever a query forgot to check. Nothing here is deleted in normal work: rows are archived, and logs still name them.

CREATE TABLE organisations (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name              text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    settings          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
    security_settings jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(security_settings) = 'object'),
    metadata_schemas  jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata_schemas) = 'object'),
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_updated_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    email           text NOT NULL CHECK (char_length(email) BETWEEN 3 AND 320 AND email LIKE '%_@_%' AND email !~ '\s'),
    first_name      text CHECK (char_length(first_name) <= 255),
    last_name       text CHECK (char_length(last_name) <= 255),
    role            text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id)
);
-- An address that left may be invited again.
CREATE UNIQUE INDEX users_email ON users (organisation_id, lower(email)) WHERE status = 'active';
CREATE INDEX users_listed ON users (organisation_id, created_at DESC, id DESC);

CREATE TABLE workspaces (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id   uuid NOT NULL REFERENCES organisations,
    slug              text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name              text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    icon              text CHECK (char_length(icon) <= 32),
    description       text CHECK (char_length(description) <= 1000),
    is_default        boolean NOT NULL DEFAULT false,
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    defaults          jsonb CHECK (jsonb_typeof(defaults) = 'object'),
    usage_limits      jsonb CHECK (jsonb_typeof(usage_limits) = 'array'),
    rate_limits       jsonb CHECK (jsonb_typeof(rate_limits) = 'array'),
    security_settings jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(security_settings) = 'object'),
    settings          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
    last_reset_at     timestamptz,
    created_by        uuid,
    creation_source   text NOT NULL DEFAULT 'api' CHECK (creation_source IN ('api', 'ui', 'default', 'scim')),
    scim_source_id    text,
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_updated_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    -- Archived workspaces keep their slug: logs and saved filters still use it.
    UNIQUE (organisation_id, slug),
    CHECK (NOT is_default OR status = 'active')
);
CREATE UNIQUE INDEX workspaces_name ON workspaces (organisation_id, name) WHERE status = 'active';
CREATE UNIQUE INDEX workspaces_default ON workspaces (organisation_id) WHERE is_default;
CREATE INDEX workspaces_listed ON workspaces (organisation_id, created_at DESC, id DESC);

-- Owners and admins of the organisation act in every workspace without a row here.
CREATE TABLE workspace_members (
    workspace_id    uuid NOT NULL,
    user_id         uuid NOT NULL,
    organisation_id uuid NOT NULL,
    role            text NOT NULL CHECK (role IN ('admin', 'manager', 'member')),
    settings        jsonb CHECK (jsonb_typeof(settings) = 'object'),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, user_id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX workspace_members_user ON workspace_members (user_id);

CREATE TABLE api_keys (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid,
    user_id         uuid,
    kind            text NOT NULL,
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
    description     text CHECK (char_length(description) <= 200),
    -- SHA-256 of the key. The key itself is shown once and stored nowhere.
    hash            bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    mask            text NOT NULL,
    scopes          text[] NOT NULL,
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'exhausted', 'expired', 'archived')),
    creation_mode   text NOT NULL DEFAULT 'api' CHECK (creation_mode IN ('ui', 'api', 'auto')),
    rate_limits     jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(rate_limits) = 'array'),
    usage_limits    jsonb CHECK (jsonb_typeof(usage_limits) = 'object'),
    defaults        jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(defaults) = 'object'),
    alert_emails    text[] CHECK (cardinality(alert_emails) <= 20),
    expires_at      timestamptz,
    expiry_enforced boolean NOT NULL DEFAULT false,
    last_reset_at   timestamptz,
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id),
    CONSTRAINT api_keys_kind CHECK (
        CASE kind
            WHEN 'organisation-service' THEN workspace_id IS NULL AND user_id IS NULL
            WHEN 'workspace-service' THEN workspace_id IS NOT NULL AND user_id IS NULL
            WHEN 'workspace-user' THEN workspace_id IS NOT NULL AND user_id IS NOT NULL
            ELSE false
        END)
);
CREATE INDEX api_keys_listed ON api_keys (organisation_id, created_at DESC, id DESC);
CREATE INDEX api_keys_workspace ON api_keys (workspace_id, created_at DESC, id DESC);
CREATE INDEX api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX api_keys_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL AND status IN ('active', 'exhausted');
