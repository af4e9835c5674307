-- Batches that the gateway keeps itself (`gwb-…`): what was asked for, how far it is, and one row for each line of the input.
-- Any proxy may do the next step of a batch or run some of its rows: it leases them, and what a dead one had leased is free
-- again when the lease is over.
CREATE TABLE batches (
    -- By time (UUIDv7): lists are in its order.
    id                     uuid PRIMARY KEY,
    organisation_id        uuid NOT NULL REFERENCES organisations,
    workspace_id           uuid NOT NULL,
    -- The key that made it, and whose limits its rows use; it may be gone since, and then nothing runs any more.
    api_key_id             uuid NOT NULL,
    -- Who runs the rows: the gateway, or a provider within a day.
    mode                   text NOT NULL CHECK (mode IN ('immediate', '24h')),
    endpoint               text NOT NULL CHECK (char_length(endpoint) <= 64),
    completion_window      text NOT NULL CHECK (char_length(completion_window) <= 16),
    -- Files may be deleted while their batch is remembered.
    input_file_id          uuid NOT NULL,
    model                  text CHECK (char_length(model) <= 512),
    -- Headers that it is run with. What is secret of them is masked here, and stands in `sealed`, with the secret that signs
    -- the notice of its end, as one JSON object: {"headers": {…}, "completion_secret": "…"}.
    gateway_options        jsonb NOT NULL DEFAULT '{}',
    sealed                 bytea,
    provider_options       jsonb NOT NULL DEFAULT '{}',
    metadata               jsonb,
    status                 text NOT NULL DEFAULT 'validating' CHECK (status IN ('validating', 'failed', 'in_progress',
                               'finalizing', 'completed', 'expired', 'cancelling', 'cancelled')),
    -- A list of {code, message, param, line}.
    errors                 jsonb,
    total                  integer NOT NULL DEFAULT 0,
    completed              integer NOT NULL DEFAULT 0,
    failed                 integer NOT NULL DEFAULT 0,
    cost                   numeric NOT NULL DEFAULT 0,
    output_file_id         uuid,
    error_file_id          uuid,
    -- What the provider last told of its own batch, and where it is.
    provider_batch         jsonb,
    provider_batch_id      text,
    provider_input_file_id text,
    created_at             timestamptz NOT NULL DEFAULT now(),
    in_progress_at         timestamptz,
    finalizing_at          timestamptz,
    completed_at           timestamptz,
    failed_at              timestamptz,
    expired_at             timestamptz,
    cancelling_at          timestamptz,
    cancelled_at           timestamptz,
    expires_at             timestamptz NOT NULL,
    -- When it is looked at again, and by whom it is being looked at.
    next_step_at           timestamptz NOT NULL DEFAULT now(),
    lease_owner            uuid,
    lease_until            timestamptz,
    -- The notice of its end.
    completion_url         text CHECK (char_length(completion_url) <= 2048),
    completion_tries       integer NOT NULL DEFAULT 0,
    completion_next_at     timestamptz,
    completed_hook_at      timestamptz,
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX batches_list ON batches (workspace_id, id);
CREATE INDEX batches_next_step ON batches (next_step_at)
    WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling');
CREATE INDEX batches_completion ON batches (completion_next_at) WHERE completion_next_at IS NOT NULL;

CREATE TABLE batch_rows (
    batch_id        uuid NOT NULL REFERENCES batches ON DELETE CASCADE,
    -- In the order of the input, from 1.
    row_no          integer NOT NULL CHECK (row_no > 0),
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    custom_id       text NOT NULL CHECK (char_length(custom_id) <= 512),
    -- Where its line stands in the input file.
    at              bigint NOT NULL CHECK (at >= 0),
    bytes           integer NOT NULL CHECK (bytes > 0),
    -- 0 waiting, 1 leased, 2 answered, 3 failed.
    state           smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    -- How often it was asked: one that was in flight when its proxy died is asked again, and says so.
    asked           smallint NOT NULL DEFAULT 0,
    lease_owner     uuid,
    lease_until     timestamptz,
    not_before      timestamptz,
    -- Its line of the output, compressed, until the output is written.
    result          bytea,
    cost            numeric,
    PRIMARY KEY (batch_id, row_no)
);
CREATE UNIQUE INDEX batch_rows_custom_id ON batch_rows (batch_id, custom_id);
CREATE INDEX batch_rows_open ON batch_rows (batch_id, row_no) WHERE state IN (0, 1);
