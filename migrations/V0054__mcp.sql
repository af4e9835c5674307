-- MCP integrations register servers of the Model Context Protocol, for the organisation or for one workspace; MCP
-- servers are a workspace's instances of them. What is secret of `configurations` stands in `sealed`, as in
-- `integrations`. The proxy will follow all of these tables, so their changes are tracked from the first row on.

CREATE TABLE mcp_integrations (
    id                      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id         uuid NOT NULL REFERENCES organisations,
    -- None: the organisation's.
    workspace_id            uuid,
    slug                    text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name                    text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    description             text CHECK (char_length(description) <= 1024),
    url                     text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2048),
    auth_type               text NOT NULL CHECK (auth_type IN
                                ('none', 'headers', 'oauth_auto', 'oauth', 'oauth_client_credentials', 'external')),
    transport               text NOT NULL CHECK (transport IN ('http', 'sse')),
    configurations          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(configurations) = 'object'),
    -- {configurations?: {…}}
    sealed                  bytea,
    masks                   jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(masks) = 'object'),
    -- Whether workspaces made later get access.
    is_for_all              boolean NOT NULL DEFAULT false,
    -- What the server said about itself when it was last asked.
    metadata                jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    sync_status             text NOT NULL DEFAULT 'pending' CHECK (sync_status IN ('pending', 'syncing', 'synced', 'failed')),
    sync_error              text CHECK (char_length(sync_error) <= 1024),
    last_synced_at          timestamptz,
    -- When the background job is to ask it; null when it need not.
    sync_due_at             timestamptz DEFAULT now(),
    status                  text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_by              uuid,
    created_at              timestamptz NOT NULL DEFAULT now(),
    last_updated_at         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE UNIQUE INDEX mcp_integrations_slug ON mcp_integrations (organisation_id, slug) WHERE status = 'active';
CREATE INDEX mcp_integrations_listed ON mcp_integrations (organisation_id, created_at DESC, id DESC);
CREATE INDEX mcp_integrations_workspace ON mcp_integrations (workspace_id) WHERE workspace_id IS NOT NULL;
CREATE INDEX mcp_integrations_due ON mcp_integrations (sync_due_at) WHERE sync_due_at IS NOT NULL AND status = 'active';
SELECT track_changes('mcp_integrations');

-- Which workspaces may use an integration of the organisation. A workspace's own needs no row.
CREATE TABLE mcp_integration_workspaces (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    integration_id  uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    enabled         boolean NOT NULL,
    -- The workspace was named by its slug when this was last written, and is shown so.
    is_by_slug      boolean NOT NULL DEFAULT false,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (integration_id, workspace_id),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES mcp_integrations (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX mcp_integration_workspaces_workspace ON mcp_integration_workspaces (workspace_id);
SELECT track_changes('mcp_integration_workspaces');

-- Tools, prompts, resources and templates. A row may precede the first sync: it then only says whether it is enabled.
CREATE TABLE mcp_capabilities (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    integration_id  uuid NOT NULL,
    type            text NOT NULL CHECK (type IN ('tool', 'prompt', 'resource', 'resource_template')),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 512),
    enabled         boolean NOT NULL DEFAULT true,
    -- As the server lists it; null when it was not listed yet.
    definition      jsonb CHECK (jsonb_typeof(definition) = 'object'),
    -- SHA-256 of what a model is told of it, for noticing that it changed.
    pinned_hash     bytea CHECK (octet_length(pinned_hash) = 32),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (integration_id, type, name),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES mcp_integrations (organisation_id, id)
);
SELECT track_changes('mcp_capabilities');

CREATE TABLE mcp_servers (
    id                  uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id     uuid NOT NULL REFERENCES organisations,
    workspace_id        uuid NOT NULL,
    mcp_integration_id  uuid NOT NULL,
    slug                text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name                text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    description         text CHECK (char_length(description) <= 500),
    -- What holds for people without a row in mcp_user_access.
    default_user_access text NOT NULL DEFAULT 'allow' CHECK (default_user_access IN ('allow', 'deny')),
    status              text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_by          uuid,
    created_at          timestamptz NOT NULL DEFAULT now(),
    last_updated_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, mcp_integration_id) REFERENCES mcp_integrations (organisation_id, id)
);
-- The address of a server has its slug and no workspace, so slugs are the organisation's.
CREATE UNIQUE INDEX mcp_servers_slug ON mcp_servers (organisation_id, slug) WHERE status = 'active';
CREATE INDEX mcp_servers_listed ON mcp_servers (organisation_id, workspace_id, created_at DESC, id DESC);
CREATE INDEX mcp_servers_integration ON mcp_servers (mcp_integration_id);
SELECT track_changes('mcp_servers');

-- What a server switches off (or on again) of its integration's capabilities.
CREATE TABLE mcp_server_capabilities (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    server_id       uuid NOT NULL,
    type            text NOT NULL CHECK (type IN ('tool', 'prompt', 'resource', 'resource_template')),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 512),
    enabled         boolean NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (server_id, type, name),
    FOREIGN KEY (organisation_id, server_id) REFERENCES mcp_servers (organisation_id, id)
);
SELECT track_changes('mcp_server_capabilities');

CREATE TABLE mcp_user_access (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    server_id       uuid NOT NULL,
    user_id         uuid NOT NULL,
    enabled         boolean NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (server_id, user_id),
    FOREIGN KEY (organisation_id, server_id) REFERENCES mcp_servers (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX mcp_user_access_user ON mcp_user_access (user_id);
SELECT track_changes('mcp_user_access');

-- A new workspace gets what the organisation's MCP integrations grant to all.
CREATE FUNCTION grant_mcp_integrations() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO mcp_integration_workspaces (organisation_id, integration_id, workspace_id, enabled)
    SELECT i.organisation_id, i.id, NEW.id, true FROM mcp_integrations i
    WHERE i.organisation_id = NEW.organisation_id AND i.workspace_id IS NULL AND i.status = 'active' AND i.is_for_all;
    RETURN NULL;
END $$;
CREATE TRIGGER grant_mcp_integrations AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION grant_mcp_integrations();
