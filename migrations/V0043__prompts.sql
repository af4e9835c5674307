-- Prompts and partials in versions that never change, in collections; labels point to versions of prompts. A prompt's row
-- names its default version, which is served, and its latest, which the next change starts from. `json` and not `jsonb`:
-- what people wrote comes back in their order.

CREATE TABLE collections (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id      uuid NOT NULL REFERENCES organisations,
    workspace_id         uuid NOT NULL,
    parent_collection_id uuid,
    slug                 text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    -- Where prompts go that name no collection.
    is_default           boolean NOT NULL DEFAULT false,
    status               text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at           timestamptz NOT NULL DEFAULT now(),
    last_updated_at      timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    UNIQUE (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_collection_id) REFERENCES collections (workspace_id, id),
    UNIQUE (organisation_id, slug)
);
CREATE UNIQUE INDEX collections_default ON collections (workspace_id) WHERE is_default;
CREATE INDEX collections_listed ON collections (organisation_id, created_at DESC, id DESC);
CREATE INDEX collections_parent ON collections (parent_collection_id) WHERE parent_collection_id IS NOT NULL;

CREATE FUNCTION add_default_collection() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO collections (organisation_id, workspace_id, slug, name, is_default)
    VALUES (NEW.organisation_id, NEW.id, 'default-' || replace(NEW.id::text, '-', ''), 'Default', true);
    RETURN NULL;
END $$;
CREATE TRIGGER add_default_collection AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION add_default_collection();

INSERT INTO collections (organisation_id, workspace_id, slug, name, is_default, status)
SELECT organisation_id, id, 'default-' || replace(id::text, '-', ''), 'Default', true, status FROM workspaces;

CREATE TABLE prompts (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id   uuid NOT NULL REFERENCES organisations,
    workspace_id      uuid NOT NULL,
    collection_id     uuid NOT NULL,
    slug              text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name              text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    version_id        uuid NOT NULL,
    latest_version_id uuid NOT NULL,
    latest_version    integer NOT NULL DEFAULT 1 CHECK (latest_version > 0),
    created_by        uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_updated_at   timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (workspace_id, collection_id) REFERENCES collections (workspace_id, id),
    UNIQUE (organisation_id, id),
    -- Archived prompts keep their slug: logs still use it.
    UNIQUE (organisation_id, slug)
);
CREATE INDEX prompts_listed ON prompts (organisation_id, created_at DESC, id DESC);
CREATE INDEX prompts_workspace ON prompts (workspace_id, created_at DESC, id DESC);
CREATE INDEX prompts_collection ON prompts (collection_id);

CREATE TABLE prompt_versions (
    id                uuid PRIMARY KEY,
    organisation_id   uuid NOT NULL,
    prompt_id         uuid NOT NULL,
    number            integer NOT NULL CHECK (number > 0),
    template          text NOT NULL,
    parameters        json NOT NULL CHECK (json_typeof(parameters) = 'object'),
    model             text CHECK (char_length(model) <= 255),
    -- The slug of a provider, which is looked up when the prompt is run.
    virtual_key       text NOT NULL CHECK (char_length(virtual_key) BETWEEN 1 AND 255),
    functions         json,
    tools             json,
    tool_choice       json,
    template_metadata json NOT NULL DEFAULT '{}' CHECK (json_typeof(template_metadata) = 'object'),
    is_raw            boolean NOT NULL DEFAULT false,
    description       text CHECK (char_length(description) <= 1000),
    -- The partials that its template names, as written: `slug` or `slug@3`.
    partials          text[] NOT NULL DEFAULT '{}',
    created_by        uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    -- A prompt and its first version are made together.
    FOREIGN KEY (organisation_id, prompt_id) REFERENCES prompts (organisation_id, id) DEFERRABLE INITIALLY DEFERRED,
    UNIQUE (prompt_id, number),
    UNIQUE (prompt_id, id)
);

CREATE TABLE prompt_version_labels (
    organisation_id uuid NOT NULL REFERENCES organisations,
    prompt_id       uuid NOT NULL,
    version_id      uuid NOT NULL,
    label_id        uuid NOT NULL REFERENCES labels,
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- A label points to one version of a prompt; a version may have several.
    PRIMARY KEY (prompt_id, label_id),
    FOREIGN KEY (prompt_id, version_id) REFERENCES prompt_versions (prompt_id, id)
);
CREATE INDEX prompt_version_labels_version ON prompt_version_labels (version_id);
CREATE INDEX prompt_version_labels_label ON prompt_version_labels (label_id);

-- A label that is gone points nowhere, whoever archived it.
CREATE FUNCTION detach_label() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM prompt_version_labels WHERE label_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER detach_label AFTER UPDATE OF status ON labels FOR EACH ROW WHEN (NEW.status = 'archived')
    EXECUTE FUNCTION detach_label();

CREATE TABLE prompt_partials (
    id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id   uuid NOT NULL REFERENCES organisations,
    workspace_id      uuid NOT NULL,
    collection_id     uuid NOT NULL,
    slug              text NOT NULL CHECK (slug ~ '^[a-zA-Z0-9_-]{1,255}$'),
    name              text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    version_id        uuid NOT NULL,
    latest_version_id uuid NOT NULL,
    latest_version    integer NOT NULL DEFAULT 1 CHECK (latest_version > 0),
    created_by        uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_updated_at   timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id),
    FOREIGN KEY (workspace_id, collection_id) REFERENCES collections (workspace_id, id),
    UNIQUE (organisation_id, id),
    UNIQUE (organisation_id, slug)
);
CREATE INDEX prompt_partials_listed ON prompt_partials (organisation_id, created_at DESC, id DESC);
CREATE INDEX prompt_partials_workspace ON prompt_partials (workspace_id, created_at DESC, id DESC);
CREATE INDEX prompt_partials_collection ON prompt_partials (collection_id);

CREATE TABLE partial_versions (
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    partial_id      uuid NOT NULL,
    number          integer NOT NULL CHECK (number > 0),
    template        text NOT NULL,
    description     text CHECK (char_length(description) <= 1000),
    partials        text[] NOT NULL DEFAULT '{}',
    created_by      uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, partial_id) REFERENCES prompt_partials (organisation_id, id) DEFERRABLE INITIALLY DEFERRED,
    UNIQUE (partial_id, number)
);
