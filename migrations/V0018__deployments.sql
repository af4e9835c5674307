-- Gateway deployments: the proxies that an organisation runs, and for which of its workspaces. Of the token by which a
-- proxy proves which one it is, only the hash is kept.
--
-- Proxies follow this table, so what changes all the time stands apart: when a deployment was last seen.

CREATE TABLE deployments (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id      uuid NOT NULL REFERENCES organisations,
    name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    slug                 text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    type                 text NOT NULL CHECK (type IN ('production', 'non-production')),
    url                  text CHECK (char_length(url) <= 2048),
    deployment_config    jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(deployment_config) = 'object'),
    allow_all_workspaces boolean NOT NULL DEFAULT true,
    -- Counts only while not all are allowed. Workspaces are archived and never deleted, so no row dangles.
    workspace_ids        uuid[] NOT NULL DEFAULT '{}',
    is_default           boolean NOT NULL DEFAULT false,
    token_hash           bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    status               text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_by           uuid,
    created_at           timestamptz NOT NULL DEFAULT now(),
    last_updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX deployments_slug ON deployments (organisation_id, slug) WHERE status = 'active';
CREATE UNIQUE INDEX deployments_default ON deployments (organisation_id) WHERE is_default AND status = 'active';
CREATE INDEX deployments_listed ON deployments (organisation_id, created_at DESC, id DESC);
SELECT track_changes('deployments');

CREATE TABLE deployment_syncs (
    deployment_id uuid PRIMARY KEY REFERENCES deployments ON DELETE CASCADE,
    last_sync_at  timestamptz NOT NULL
);

-- As it is shown: a deployment that gave no sign of life for ten minutes is inactive.
CREATE FUNCTION deployment_status(deployment deployments) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT CASE WHEN deployment.status = 'active' AND NOT EXISTS (
        SELECT FROM deployment_syncs s
        WHERE s.deployment_id = deployment.id AND s.last_sync_at > now() - interval '10 minutes')
    THEN 'inactive' ELSE deployment.status END
$$;
