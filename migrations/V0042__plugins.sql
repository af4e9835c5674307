-- Credentials of the vendors behind guardrail checks, one set for each vendor of an organisation. They are sealed; beside
-- them stand masks, which may be shown.
CREATE TABLE plugins (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    -- The vendor, as the first part of its checks' ids.
    plugin          text NOT NULL CHECK (plugin ~ '^[a-zA-Z0-9_-]{1,64}$'),
    masks           jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(masks) = 'object'),
    -- A JSON object; null when the credentials were taken away.
    sealed          bytea,
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, plugin)
);
CREATE INDEX plugins_listed ON plugins (organisation_id, created_at DESC, id DESC);
SELECT track_changes('plugins');
