-- Labels: names by which versions of prompts are found. Without a workspace they belong to the organisation and are
-- seen by all its workspaces. Three exist in every organisation from its first moment.

CREATE TABLE labels (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid,
    name            text NOT NULL CHECK (name ~ '^[a-zA-Z0-9_-]{1,255}$'),
    description     text CHECK (char_length(description) <= 1000),
    color_code      text CHECK (char_length(color_code) <= 32),
    is_universal    boolean NOT NULL DEFAULT false,
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    CHECK (NOT is_universal OR (workspace_id IS NULL AND status = 'active'))
);
CREATE UNIQUE INDEX labels_name ON labels (organisation_id, workspace_id, name) NULLS NOT DISTINCT WHERE status = 'active';
CREATE INDEX labels_listed ON labels (organisation_id, created_at DESC, id DESC);

CREATE FUNCTION add_universal_labels() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO labels (organisation_id, name, is_universal)
    SELECT NEW.id, label, true FROM unnest(ARRAY['production', 'staging', 'development']) AS label;
    RETURN NULL;
END $$;
CREATE TRIGGER add_universal_labels AFTER INSERT ON organisations FOR EACH ROW EXECUTE FUNCTION add_universal_labels();

INSERT INTO labels (organisation_id, name, is_universal)
SELECT o.id, label, true FROM organisations o, unnest(ARRAY['production', 'staging', 'development']) AS label;
