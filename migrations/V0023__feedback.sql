-- What people thought of an answer, by trace. It may come before the log of the call it speaks of, and it may speak of a
-- call that was never logged, so nothing binds it to one.
CREATE TABLE feedback (
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    trace_id        text NOT NULL,
    value           integer NOT NULL CHECK (value BETWEEN -10 AND 10),
    weight          numeric(7, 6) NOT NULL DEFAULT 1 CHECK (weight BETWEEN 0 AND 1),
    -- What filters and analytics go by.
    weighted        numeric(9, 6) NOT NULL GENERATED ALWAYS AS (value * weight) STORED,
    metadata        jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    -- Who sent it.
    api_key_id      uuid,
    user_id         uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX feedback_trace ON feedback (workspace_id, trace_id);
CREATE INDEX feedback_time ON feedback (workspace_id, created_at);
CREATE INDEX feedback_metadata ON feedback USING gin (metadata jsonb_path_ops);
