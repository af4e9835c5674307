-- Exports of several workspaces, or of all of an organisation. Programs of before know exports of one workspace alone: under the
-- old name they find those and no others, so they neither list, nor run, nor hand out what they would take for something else.
ALTER TABLE log_exports RENAME TO exports;
ALTER TABLE exports
    -- Null: of `workspace_ids`, or, where that is null too, of all workspaces that the organisation has when it is made.
    ALTER COLUMN workspace_id DROP NOT NULL,
    ADD COLUMN workspace_ids uuid[],
    ADD CONSTRAINT exports_of_one_or_several CHECK (workspace_ids IS NULL OR (workspace_id IS NULL AND cardinality(workspace_ids) > 0));

CREATE VIEW log_exports AS
    SELECT id, organisation_id, workspace_id, created_by, filters, requested_data, format, description, status, own_data_of,
           shows_metadata, total_records, total_is_capped, run, started_at, exported_records, parts, last_created_at, last_id,
           next_step_at, failures, error, created_at, last_updated_at
    FROM exports WHERE workspace_id IS NOT NULL
    WITH LOCAL CHECK OPTION;

-- A program of before that erases logs empties the exports that it knows. What it cannot know is emptied here, whatever was
-- erased; programs that know all exports say so, and choose for themselves.
CREATE FUNCTION empty_exports_of_several() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('gateway.knows_exports_of_several', true) IS NOT DISTINCT FROM 'on' THEN
        RETURN NULL;
    END IF;
    WITH emptied AS (
        UPDATE exports SET status = 'stopped', error = 'some of its logs were erased: start it again', last_updated_at = now()
        WHERE organisation_id = NEW.organisation_id AND workspace_id IS NULL AND status IN ('success', 'in_progress')
        RETURNING id, organisation_id, run),
    forgotten AS (DELETE FROM log_export_parts WHERE export_id IN (SELECT id FROM emptied)),
    closed AS (DELETE FROM log_export_links WHERE export_id IN (SELECT id FROM emptied))
    INSERT INTO object_deletions (folder)
        SELECT format('exports/%s/%s/%s', organisation_id, id, run) FROM emptied ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- Asking is what counts; that an erasure was repeated or is due later changes other columns.
CREATE TRIGGER log_erasures_empty_exports AFTER INSERT OR UPDATE OF asked_at ON log_erasures
    FOR EACH ROW EXECUTE FUNCTION empty_exports_of_several();
