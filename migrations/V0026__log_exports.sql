-- Exports of logs. A run is made in small steps, each of which stores one part in the log store and notes here how far it
-- has got, in one transaction: whoever takes over after a crash goes on from there, and no log is missing or twice.

CREATE TABLE log_exports (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id  uuid NOT NULL REFERENCES organisations,
    workspace_id     uuid NOT NULL REFERENCES workspaces,
    -- The person, or the key that acts for nobody.
    created_by       uuid NOT NULL,
    -- As sent.
    filters          jsonb NOT NULL CHECK (jsonb_typeof(filters) = 'object'),
    requested_data   text[] NOT NULL,
    format           text NOT NULL DEFAULT 'jsonl' CHECK (format IN ('jsonl', 'csv')),
    description      text,
    status           text NOT NULL DEFAULT 'draft'
                     CHECK (status IN ('draft', 'in_progress', 'success', 'failed', 'stopped')),
    -- What its owner may see: only calls of this person's keys, unless null; and metadata, or not.
    own_data_of      uuid,
    shows_metadata   boolean NOT NULL DEFAULT true,
    -- Logs that match; counted up to a limit until the export is complete.
    total_records    bigint NOT NULL DEFAULT 0,
    total_is_capped  boolean NOT NULL DEFAULT false,
    -- Which start this is; the files of each have a folder of their own.
    run              integer NOT NULL DEFAULT 0,
    started_at       timestamptz,
    exported_records bigint NOT NULL DEFAULT 0,
    parts            integer NOT NULL DEFAULT 0,
    -- The last log that was exported; the newest come first.
    last_created_at  timestamptz,
    last_id          uuid,
    next_step_at     timestamptz NOT NULL DEFAULT now(),
    -- Steps that failed one after the other, and why the last did.
    failures         smallint NOT NULL DEFAULT 0,
    error            text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    last_updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX log_exports_workspace ON log_exports (workspace_id, created_at DESC, id DESC);
CREATE INDEX log_exports_organisation ON log_exports (organisation_id, created_at DESC, id DESC);
CREATE INDEX log_exports_running ON log_exports (next_step_at) WHERE status = 'in_progress';
CREATE INDEX log_exports_age ON log_exports (last_updated_at);

-- The objects that a file consists of, in the order of `part`.
CREATE TABLE log_export_parts (
    export_id uuid NOT NULL REFERENCES log_exports ON DELETE CASCADE,
    file      integer NOT NULL,
    part      integer NOT NULL,
    records   integer NOT NULL,
    bytes     bigint NOT NULL,
    PRIMARY KEY (export_id, part)
);

-- Links that were given out. Who has one needs no key, so they live for an hour, and only the hash is kept.
CREATE TABLE log_export_links (
    token_hash bytea PRIMARY KEY,
    export_id  uuid NOT NULL REFERENCES log_exports ON DELETE CASCADE,
    run        integer NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX log_export_links_age ON log_export_links (expires_at);
CREATE INDEX log_export_links_export ON log_export_links (export_id);
