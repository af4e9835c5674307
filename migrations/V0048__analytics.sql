-- Named sets of filters that people look at analytics with. Of a workspace, or of the organisation for its admin keys.
CREATE TABLE saved_filters (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    workspace_id    uuid,
    name            text NOT NULL,
    -- The names and values of a query.
    filters         jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(filters) = 'object'),
    -- Id of the person or of the key.
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX saved_filters_organisation ON saved_filters (organisation_id, created_at);
