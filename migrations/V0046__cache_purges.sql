-- Purges of kept answers. Nothing is looked for or deleted: answers that were stored before `purged_at` and carry the tag
-- count no more, in every store and on every replica that has read the row. A row that is repeated is moved, so there are
-- at most as many as there are names.

CREATE TABLE cache_purges (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    -- Null for all workspaces of the organisation.
    workspace_id    uuid,
    kind            text NOT NULL CHECK (kind IN ('all', 'namespace', 'config', 'user')),
    -- The beginning of the SHA-256 of a name, or the id of a config.
    tag             bytea NOT NULL CHECK (octet_length(tag) = CASE kind WHEN 'all' THEN 0 ELSE 16 END),
    purged_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE UNIQUE INDEX cache_purges_target
    ON cache_purges (organisation_id, coalesce(workspace_id, organisation_id), kind, tag);
CREATE INDEX cache_purges_age ON cache_purges (purged_at);
SELECT track_changes('cache_purges');
