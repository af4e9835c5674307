-- Notices of ended batches are sent workspace by workspace, so that one with many that are not taken does not delay all others.
CREATE INDEX batches_completion_of_workspace ON batches (workspace_id, completion_next_at)
    WHERE completion_next_at IS NOT NULL;
