-- Guardrails: checks of requests and answers, of the organisation or of one workspace, kept in versions that never
-- change. `json` and not `jsonb`: what people wrote comes back in their order. `content` is {checks: […], actions: {…}}.

CREATE TABLE guardrails (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    -- Null for those of the organisation, which all its workspaces see.
    workspace_id    uuid,
    slug            text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    content         json NOT NULL CHECK (json_typeof(content) = 'object'),
    version_id      uuid NOT NULL,
    owner_id        uuid,
    updated_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    UNIQUE (organisation_id, id),
    -- Archived guardrails keep their slug: logs and configs still use it.
    UNIQUE (organisation_id, slug)
);
CREATE INDEX guardrails_listed ON guardrails (organisation_id, created_at DESC, id DESC);
CREATE INDEX guardrails_workspace ON guardrails (workspace_id, created_at DESC, id DESC);
SELECT track_changes('guardrails');

-- A config may pin a version, so the proxy follows these too.
CREATE TABLE guardrail_versions (
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    guardrail_id    uuid NOT NULL,
    number          integer NOT NULL CHECK (number > 0),
    content         json NOT NULL,
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, guardrail_id) REFERENCES guardrails (organisation_id, id),
    UNIQUE (guardrail_id, number)
);
SELECT track_changes('guardrail_versions');
