-- SCIM: what an identity provider tells of people and groups, and which groups stand for which workspaces.

-- Tokens of identity providers. Two may be valid at once, so that one can be replaced without a gap.
CREATE TABLE scim_tokens (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    hash            bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    -- Null for the present one.
    expires_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX scim_tokens_present ON scim_tokens (organisation_id) WHERE expires_at IS NULL;
CREATE INDEX scim_tokens_organisation ON scim_tokens (organisation_id);
INSERT INTO scim_tokens (organisation_id, hash)
SELECT id, scim_token_hash FROM organisations WHERE scim_token_hash IS NOT NULL;

-- A person who was deactivated is archived, and still shown to the identity provider, who may bring them back.
ALTER TABLE users
    ADD COLUMN scim_user_name text CHECK (char_length(scim_user_name) BETWEEN 1 AND 320),
    ADD COLUMN scim_external_id text CHECK (char_length(scim_external_id) BETWEEN 1 AND 255),
    ADD COLUMN scim_attributes jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(scim_attributes) = 'object'),
    ADD COLUMN is_deactivated boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX users_scim_user_name ON users (organisation_id, lower(coalesce(scim_user_name, email)))
    WHERE status = 'active' OR is_deactivated;
CREATE INDEX users_scim_external_id ON users (organisation_id, scim_external_id) WHERE scim_external_id IS NOT NULL;
CREATE INDEX users_scim_listed ON users (organisation_id, created_at, id) WHERE status = 'active' OR is_deactivated;

CREATE TABLE scim_groups (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    display_name    text NOT NULL CHECK (char_length(display_name) BETWEEN 1 AND 512),
    external_id     text CHECK (char_length(external_id) BETWEEN 1 AND 255),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, id)
);
CREATE UNIQUE INDEX scim_groups_name ON scim_groups (organisation_id, lower(display_name));
CREATE INDEX scim_groups_listed ON scim_groups (organisation_id, created_at, id);

CREATE TABLE scim_group_members (
    group_id        uuid NOT NULL,
    user_id         uuid NOT NULL,
    organisation_id uuid NOT NULL,
    PRIMARY KEY (group_id, user_id),
    FOREIGN KEY (organisation_id, group_id) REFERENCES scim_groups (organisation_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX scim_group_members_user ON scim_group_members (user_id);

CREATE TABLE scim_workspace_mappings (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL,
    -- No foreign key: an archived mapping outlives its group.
    group_id        uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    role            text NOT NULL CHECK (role IN ('admin', 'manager', 'member')),
    -- By the name of the group, instead of by an administrator.
    is_automatic    boolean NOT NULL DEFAULT false,
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE UNIQUE INDEX scim_workspace_mappings_once ON scim_workspace_mappings (group_id, workspace_id)
    WHERE status = 'active';
CREATE INDEX scim_workspace_mappings_listed ON scim_workspace_mappings (organisation_id, created_at, id);
CREATE INDEX scim_workspace_mappings_workspace ON scim_workspace_mappings (workspace_id);

-- Who is a member through a group leaves with it; who was added by hand stays.
ALTER TABLE workspace_members ADD COLUMN is_from_scim boolean NOT NULL DEFAULT false;
