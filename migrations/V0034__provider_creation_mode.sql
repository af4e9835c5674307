-- Which providers nobody made: they came with access to an integration, and do not stop a workspace from being deleted.
ALTER TABLE providers ADD COLUMN creation_mode text NOT NULL DEFAULT 'manual' CHECK (creation_mode IN ('manual', 'auto'));
UPDATE providers SET creation_mode = 'auto' WHERE note = 'Added when the workspace got access to the integration';

CREATE OR REPLACE FUNCTION grant_integrations() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO integration_workspaces (organisation_id, integration_id, workspace_id, enabled, usage_limits, rate_limits)
    SELECT i.organisation_id, i.id, NEW.id, true, nullif(i.global_workspace_access -> 'usage_limits', 'null'),
           nullif(i.global_workspace_access -> 'rate_limits', 'null')
    FROM integrations i
    WHERE i.organisation_id = NEW.organisation_id AND i.workspace_id IS NULL AND i.status = 'active'
      AND (i.global_workspace_access ->> 'enabled')::boolean
    FOR SHARE;
    INSERT INTO providers (organisation_id, workspace_id, integration_id, slug, name, note, creation_mode)
    SELECT i.organisation_id, NEW.id, i.id, coalesce(i.global_workspace_access ->> 'default_provider_slug', i.slug), i.name,
           'Added when the workspace got access to the integration', 'auto'
    FROM integration_workspaces g JOIN integrations i ON i.id = g.integration_id
    WHERE g.workspace_id = NEW.id AND coalesce((i.global_workspace_access ->> 'create_default_provider')::boolean, true)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
