-- Files that the gateway keeps itself (`gwf-…`). Their bytes lie in the log store, cut into parts of `part_bytes`, under
-- `files/<organisation>/<workspace>/<id>`. An upload has a row before it has a byte, so that one that dies is found and swept.
CREATE TABLE managed_files (
    -- By time (UUIDv7): lists are in its order.
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations,
    workspace_id    uuid NOT NULL,
    -- The key that uploaded it; it may be gone since.
    created_by      uuid,
    status          text NOT NULL DEFAULT 'uploading' CHECK (status IN ('uploading', 'processed')),
    filename        text NOT NULL DEFAULT '' CHECK (char_length(filename) <= 255),
    purpose         text NOT NULL DEFAULT '' CHECK (char_length(purpose) <= 64),
    bytes           bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    part_bytes      bigint NOT NULL CHECK (part_bytes > 0),
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX managed_files_list ON managed_files (workspace_id, id);
CREATE INDEX managed_files_expiry ON managed_files (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX managed_files_uploading ON managed_files (created_at) WHERE status = 'uploading';
