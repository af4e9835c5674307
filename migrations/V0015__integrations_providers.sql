-- Integrations hold the credentials of a provider account, for the organisation or for one workspace; providers are a
-- workspace's handles on them (`@slug` in requests). What is secret stands in `sealed`, as one JSON object; `masks` has
-- the same names with what may be shown of them.

CREATE TABLE integrations (
    id                      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id         uuid NOT NULL REFERENCES organisations,
    -- None: the organisation's.
    workspace_id            uuid,
    slug                    text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name                    text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    description             text CHECK (char_length(description) <= 1024),
    ai_provider_id          text NOT NULL CHECK (char_length(ai_provider_id) BETWEEN 1 AND 255),
    configurations          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(configurations) = 'object'),
    -- {key?, configurations?: {…}}
    sealed                  bytea,
    masks                   jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(masks) = 'object'),
    secret_mappings         jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(secret_mappings) = 'array'),
    pricing_adjustments     jsonb CHECK (jsonb_typeof(pricing_adjustments) = 'object'),
    tags                    jsonb CHECK (jsonb_typeof(tags) = 'object'),
    allow_all_models        boolean NOT NULL DEFAULT true,
    -- What workspaces made later get: {enabled, usage_limits, rate_limits, create_default_provider, default_provider_slug}.
    global_workspace_access jsonb NOT NULL DEFAULT '{"enabled": false}' CHECK (jsonb_typeof(global_workspace_access) = 'object'),
    -- Made for a virtual key, and seen through it alone.
    is_hidden               boolean NOT NULL DEFAULT false,
    status                  text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_by              uuid,
    created_at              timestamptz NOT NULL DEFAULT now(),
    last_updated_at         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
-- The slug of an archived integration is free again.
CREATE UNIQUE INDEX integrations_slug ON integrations (organisation_id, slug) WHERE status = 'active';
CREATE INDEX integrations_listed ON integrations (organisation_id, created_at DESC, id DESC);
CREATE INDEX integrations_workspace ON integrations (workspace_id) WHERE workspace_id IS NOT NULL;
SELECT track_changes('integrations');

-- What differs from the provider's own list of models.
CREATE TABLE integration_models (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    integration_id  uuid NOT NULL,
    slug            text NOT NULL CHECK (char_length(slug) BETWEEN 1 AND 255),
    enabled         boolean NOT NULL,
    is_custom       boolean NOT NULL DEFAULT false,
    is_finetune     boolean NOT NULL DEFAULT false,
    base_model_slug text CHECK (char_length(base_model_slug) <= 255),
    pricing_config  jsonb CHECK (jsonb_typeof(pricing_config) = 'object'),
    configurations  jsonb CHECK (jsonb_typeof(configurations) = 'object'),
    -- {configurations: {custom_headers}}
    sealed          bytea,
    masks           jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(masks) = 'object'),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (integration_id, slug),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES integrations (organisation_id, id)
);
SELECT track_changes('integration_models');

-- Which workspaces may use an integration of the organisation, and how much. A workspace's own needs no row.
CREATE TABLE integration_workspaces (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    integration_id  uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    enabled         boolean NOT NULL,
    usage_limits    jsonb CHECK (jsonb_typeof(usage_limits) = 'object'),
    rate_limits     jsonb CHECK (jsonb_typeof(rate_limits) = 'array'),
    last_reset_at   timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (integration_id, workspace_id),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES integrations (organisation_id, id),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX integration_workspaces_workspace ON integration_workspaces (workspace_id);
SELECT track_changes('integration_workspaces');

CREATE TABLE providers (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    integration_id  uuid NOT NULL,
    slug            text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    note            text CHECK (char_length(note) <= 1024),
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'exhausted', 'expired', 'archived')),
    rate_limits     jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(rate_limits) = 'array'),
    usage_limits    jsonb CHECK (jsonb_typeof(usage_limits) = 'object'),
    reset_usage     smallint,
    expires_at      timestamptz,
    last_reset_at   timestamptz,
    tags            jsonb CHECK (jsonb_typeof(tags) = 'object'),
    model_config    jsonb CHECK (jsonb_typeof(model_config) = 'object'),
    -- {model_config: {…}}
    sealed          bytea,
    masks           jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(masks) = 'object'),
    -- {max_in_flight, max_wait_ms}
    concurrency     jsonb CHECK (jsonb_typeof(concurrency) = 'object'),
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (organisation_id, integration_id) REFERENCES integrations (organisation_id, id)
);
CREATE UNIQUE INDEX providers_slug ON providers (workspace_id, slug) WHERE status <> 'archived';
CREATE INDEX providers_listed ON providers (organisation_id, workspace_id, created_at DESC, id DESC);
CREATE INDEX providers_integration ON providers (integration_id);
SELECT track_changes('providers');

-- A new workspace gets what the organisation's integrations grant to all. Here, because no way to make one may forget it.
CREATE FUNCTION grant_integrations() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO integration_workspaces (organisation_id, integration_id, workspace_id, enabled, usage_limits, rate_limits)
    SELECT i.organisation_id, i.id, NEW.id, true, nullif(i.global_workspace_access -> 'usage_limits', 'null'),
           nullif(i.global_workspace_access -> 'rate_limits', 'null')
    FROM integrations i
    WHERE i.organisation_id = NEW.organisation_id AND i.workspace_id IS NULL AND i.status = 'active'
      AND (i.global_workspace_access ->> 'enabled')::boolean
    FOR SHARE;
    INSERT INTO providers (organisation_id, workspace_id, integration_id, slug, name, note)
    SELECT i.organisation_id, NEW.id, i.id, coalesce(i.global_workspace_access ->> 'default_provider_slug', i.slug), i.name,
           'Added when the workspace got access to the integration'
    FROM integration_workspaces g JOIN integrations i ON i.id = g.integration_id
    WHERE g.workspace_id = NEW.id AND coalesce((i.global_workspace_access ->> 'create_default_provider')::boolean, true)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER grant_integrations AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION grant_integrations();

-- The secrets of auth settings, sealed as one JSON object: {"oidc.client_secret": …}.
ALTER TABLE organisations ADD COLUMN auth_secrets bytea;
