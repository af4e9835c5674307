-- Configs: how requests are routed, kept in versions that never change. The proxy follows `configs` alone, so the
-- content of the current version stands there too. `json` and not `jsonb`: what people wrote comes back in their order.

CREATE TABLE configs (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    slug            text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    -- What requests of the workspace use when they name no config; it counts while the row is active.
    is_default      boolean NOT NULL DEFAULT false,
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    config          json NOT NULL CHECK (json_typeof(config) = 'object'),
    version_id      uuid NOT NULL,
    owner_id        uuid,
    updated_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    UNIQUE (organisation_id, id),
    -- Archived configs keep their slug: logs still use it.
    UNIQUE (organisation_id, slug)
);
CREATE UNIQUE INDEX configs_default ON configs (workspace_id) WHERE is_default AND status = 'active';
CREATE INDEX configs_listed ON configs (organisation_id, created_at DESC, id DESC);
CREATE INDEX configs_workspace ON configs (workspace_id, created_at DESC, id DESC);
SELECT track_changes('configs');

CREATE TABLE config_versions (
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    config_id       uuid NOT NULL,
    number          integer NOT NULL CHECK (number > 0),
    content         json NOT NULL,
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, config_id) REFERENCES configs (organisation_id, id),
    UNIQUE (config_id, number)
);
