-- What people and MCP servers need beyond V0054: tokens of people at the servers behind, the clients that the gateway
-- is at their authorisation servers, and pins on what a server told of its tools.
--
-- For the proxy: what it may show and call of an integration is `mcp_capabilities.is_usable` (of a server also
-- `mcp_server_capabilities.enabled`, where a row exists). Towards the server behind it sends, as a bearer token, the
-- opened `mcp_connections.access_token` of (server, person) when the integration's `auth_type` is `oauth_auto` or
-- `oauth`, and that of `mcp_clients` (integration) when it is `oauth_client_credentials`. Each sealed column is opened at
-- the place (organisation, table, row id, name of the column). A token past its `expires_at` is not sent.

-- `pinned_hash` is what was approved; the first that a server lists is. `definition_hash` is what it lists now. While
-- they differ the capability waits for approval, whatever `enabled` says. One that vanished stays as a row that is
-- neither shown nor usable: a server that took it away and brings it back otherwise is noticed too.
ALTER TABLE mcp_capabilities
    ADD COLUMN definition_hash bytea CHECK (octet_length(definition_hash) = 32),
    ADD COLUMN vanished_at timestamptz,
    ADD COLUMN pin_state text NOT NULL DEFAULT 'approved' CHECK (pin_state IN ('approved', 'changed'));
ALTER TABLE mcp_capabilities
    ADD COLUMN is_usable boolean NOT NULL
        GENERATED ALWAYS AS (enabled AND pin_state = 'approved' AND vanished_at IS NULL) STORED;
UPDATE mcp_capabilities SET definition_hash = pinned_hash WHERE pinned_hash IS NOT NULL;

-- The gateway as a client of the authorisation server of an integration: registered there, or told by an operator.
CREATE TABLE mcp_clients (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    integration_id  uuid NOT NULL UNIQUE,
    issuer          text NOT NULL CHECK (char_length(issuer) BETWEEN 1 AND 2048),
    -- Endpoints and abilities of the authorisation server, as far as they are used.
    metadata        jsonb NOT NULL CHECK (jsonb_typeof(metadata) = 'object'),
    -- What tokens are asked for: the server behind (RFC 8707).
    resource        text NOT NULL CHECK (char_length(resource) BETWEEN 1 AND 2048),
    scope           text CHECK (char_length(scope) <= 4096),
    client_id       text NOT NULL CHECK (char_length(client_id) BETWEEN 1 AND 2048),
    client_secret   bytea,
    -- Where people are sent back to; another one needs another registration. None for client credentials.
    redirect_uri    text CHECK (char_length(redirect_uri) <= 2048),
    -- Client credentials only: the token that serves everybody.
    access_token    bytea,
    expires_at      timestamptz,
    -- When the background job is to fetch the next one; null when it need not.
    refresh_due_at  timestamptz,
    failures        integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES mcp_integrations (organisation_id, id)
);
CREATE INDEX mcp_clients_due ON mcp_clients (refresh_due_at) WHERE refresh_due_at IS NOT NULL;
SELECT track_changes('mcp_clients');

-- A person's tokens at the server behind an MCP server.
CREATE TABLE mcp_connections (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    server_id       uuid NOT NULL,
    user_id         uuid NOT NULL,
    access_token    bytea NOT NULL,
    refresh_token   bytea,
    expires_at      timestamptz,
    scope           text CHECK (char_length(scope) <= 4096),
    -- Who gave the tokens; none when the person stored them. They are refreshed there and nowhere else.
    issuer          text CHECK (char_length(issuer) BETWEEN 1 AND 2048),
    refresh_due_at  timestamptz,
    failures        integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (server_id, user_id),
    FOREIGN KEY (organisation_id, server_id) REFERENCES mcp_servers (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX mcp_connections_user ON mcp_connections (user_id);
CREATE INDEX mcp_connections_due ON mcp_connections (refresh_due_at) WHERE refresh_due_at IS NOT NULL;
SELECT track_changes('mcp_connections');

-- Somebody who was sent to an authorisation server and has not come back. Each row serves once.
CREATE TABLE mcp_oauth_states (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    server_id       uuid NOT NULL,
    user_id         uuid NOT NULL,
    state_hash      bytea NOT NULL UNIQUE CHECK (octet_length(state_hash) = 32),
    -- Of the cookie of the browser in which the person agreed; only that browser may come back. Null before.
    browser_hash    bytea CHECK (octet_length(browser_hash) = 32),
    verifier        bytea NOT NULL,
    client_row      uuid NOT NULL REFERENCES mcp_clients ON DELETE CASCADE,
    expires_at      timestamptz NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, server_id) REFERENCES mcp_servers (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX mcp_oauth_states_user ON mcp_oauth_states (user_id, created_at);
CREATE INDEX mcp_oauth_states_expiry ON mcp_oauth_states (expires_at);

-- Tokens end with what they are for, whoever ends it: a person, a server, an integration, or its address.
CREATE FUNCTION forget_mcp_tokens() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        DELETE FROM mcp_connections WHERE user_id = NEW.id;
        DELETE FROM mcp_oauth_states WHERE user_id = NEW.id;
    ELSIF TG_TABLE_NAME = 'mcp_servers' THEN
        DELETE FROM mcp_connections WHERE server_id = NEW.id;
        DELETE FROM mcp_oauth_states WHERE server_id = NEW.id;
    ELSE
        DELETE FROM mcp_connections c USING mcp_servers s WHERE s.id = c.server_id AND s.mcp_integration_id = NEW.id;
        DELETE FROM mcp_clients WHERE integration_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_mcp_tokens AFTER UPDATE OF status ON users
    FOR EACH ROW WHEN (NEW.status = 'archived' AND OLD.status <> 'archived') EXECUTE FUNCTION forget_mcp_tokens();
CREATE TRIGGER forget_mcp_tokens AFTER UPDATE OF status ON mcp_servers
    FOR EACH ROW WHEN (NEW.status = 'archived' AND OLD.status <> 'archived') EXECUTE FUNCTION forget_mcp_tokens();
CREATE TRIGGER forget_mcp_tokens AFTER UPDATE OF status, url, auth_type ON mcp_integrations
    FOR EACH ROW WHEN ((NEW.status = 'archived' AND OLD.status <> 'archived')
                       OR NEW.url <> OLD.url OR NEW.auth_type <> OLD.auth_type)
    EXECUTE FUNCTION forget_mcp_tokens();

-- Logging in to MCP servers of ours with a browser: what a person agreed to, until the MCP client fetches its token. Each
-- row serves once. Clients are not stored: their id says what they registered.
CREATE TABLE mcp_login_codes (
    code_hash       bytea PRIMARY KEY CHECK (octet_length(code_hash) = 32),
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    user_id         uuid NOT NULL,
    client_hash     bytea NOT NULL CHECK (octet_length(client_hash) = 32),
    client_name     text NOT NULL CHECK (char_length(client_name) <= 100),
    redirect_uri    text NOT NULL CHECK (char_length(redirect_uri) <= 2048),
    challenge       text NOT NULL CHECK (char_length(challenge) = 43),
    expires_at      timestamptz NOT NULL,
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX mcp_login_codes_expiry ON mcp_login_codes (expires_at);
CREATE INDEX mcp_login_codes_user ON mcp_login_codes (user_id);
