-- Invitations to join an organisation. The token in the link is stored as its hash alone. An invitation that is
-- `pending` beyond its end counts as expired, whether or not somebody wrote that down.

CREATE TABLE user_invites (
    id                        uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id           uuid NOT NULL REFERENCES organisations,
    email                     text NOT NULL CHECK (char_length(email) BETWEEN 3 AND 320 AND email LIKE '%_@_%' AND email !~ '\s'),
    first_name                text CHECK (char_length(first_name) <= 255),
    last_name                 text CHECK (char_length(last_name) <= 255),
    role                      text NOT NULL CHECK (role IN ('admin', 'member')),
    status                    text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'accepted', 'cancelled', 'expired')),
    -- [{id: as the inviter wrote it, workspace_id, role}]
    workspaces                jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(workspaces) = 'array'),
    -- The keys that acceptance makes in these workspaces.
    workspace_api_key_details jsonb CHECK (jsonb_typeof(workspace_api_key_details) = 'object'),
    token_hash                bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    -- A person or a key, so no foreign key.
    invited_by                uuid NOT NULL,
    user_id                   uuid,
    expires_at                timestamptz NOT NULL,
    accepted_at               timestamptz,
    created_at                timestamptz NOT NULL DEFAULT now(),
    last_updated_at           timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id),
    CHECK ((status = 'accepted') = (accepted_at IS NOT NULL))
);
CREATE UNIQUE INDEX user_invites_pending ON user_invites (organisation_id, lower(email)) WHERE status = 'pending';
CREATE INDEX user_invites_listed ON user_invites (organisation_id, created_at DESC, id DESC);
