-- A template can only name partials of its own workspace, so only templates of its workspace keep a version of a partial in
-- the memory of proxies. Before, those of other workspaces of the organisation did too, and used up its share.

CREATE OR REPLACE FUNCTION serve_partial_version(version uuid) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    known record;
    workspace uuid := (SELECT p.workspace_id FROM partial_versions v JOIN prompt_partials p ON p.id = v.partial_id
                       WHERE v.id = version);
BEGIN
    IF workspace IS NULL THEN
        RETURN;
    END IF;
    PERFORM lock_served_bytes(workspace);
    SELECT v.is_served, p.workspace_id, p.organisation_id, p.status = 'active' AS is_active,
           p.version_id = v.id AS is_default, template_weight(v.template) AS bytes,
           ARRAY[p.slug || '@' || v.number] || CASE WHEN p.latest_version_id = v.id THEN p.slug || '@latest' END AS names
    INTO known FROM partial_versions v JOIN prompt_partials p ON p.id = v.partial_id WHERE v.id = version;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF known.is_active AND NOT known.is_default THEN
        known.is_active := EXISTS (SELECT FROM prompt_versions x JOIN prompts p ON p.id = x.prompt_id
                WHERE x.partials && known.names AND x.organisation_id = known.organisation_id
                    AND p.workspace_id = known.workspace_id)
            OR EXISTS (SELECT FROM partial_versions x JOIN prompt_partials p ON p.id = x.partial_id
                WHERE x.partials && known.names AND x.organisation_id = known.organisation_id
                    AND p.workspace_id = known.workspace_id);
    END IF;
    IF known.is_active = known.is_served THEN
        RETURN;
    END IF;
    IF take_served_bytes(known.workspace_id, CASE WHEN known.is_active THEN known.bytes ELSE -known.bytes END) THEN
        UPDATE partial_versions SET is_served = known.is_active WHERE id = version;
    END IF;
END $$;

-- `slug@3` and `slug@latest` among the names that a template of a workspace has for partials.
CREATE FUNCTION serve_pins(workspace uuid, names text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_partial_version(v.id)
    FROM unnest(names) AS asked
    JOIN prompt_partials p ON p.workspace_id = workspace AND p.slug = split_part(asked, '@', 1)
    JOIN partial_versions v ON v.partial_id = p.id AND (v.number::text = split_part(asked, '@', 2)
        OR (split_part(asked, '@', 2) = 'latest' AND v.id = p.latest_version_id))
    WHERE strpos(asked, '@') > 0;
END $$;

-- A version may be made before its prompt or its partial: then their insertion serves what it pins.
CREATE OR REPLACE FUNCTION serve_new_version() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    workspace uuid;
BEGIN
    IF TG_TABLE_NAME = 'prompt_versions' THEN
        PERFORM serve_prompt_version(NEW.id);
        workspace := (SELECT p.workspace_id FROM prompts p WHERE p.id = NEW.prompt_id);
    ELSE
        PERFORM serve_partial_version(NEW.id);
        workspace := (SELECT p.workspace_id FROM prompt_partials p WHERE p.id = NEW.partial_id);
    END IF;
    IF workspace IS NOT NULL AND cardinality(NEW.partials) > 0 THEN
        PERFORM serve_pins(workspace, NEW.partials);
    END IF;
    RETURN NULL;
END $$;
DROP FUNCTION serve_pinned_partials(uuid, text[]);

CREATE OR REPLACE FUNCTION serve_versions_of_prompt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_prompt_version(v.id) FROM prompt_versions v
    WHERE v.prompt_id = NEW.id AND (v.is_served OR v.id = NEW.version_id OR is_labelled(NEW.id, v.id));
    IF TG_OP = 'INSERT' THEN
        PERFORM serve_pins(NEW.workspace_id, v.partials) FROM prompt_versions v WHERE v.prompt_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION serve_versions_of_partial() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    -- Versions that are pinned are served when the pin is written.
    PERFORM serve_partial_version(v.id) FROM partial_versions v
    WHERE v.partial_id = NEW.id AND (v.is_served OR v.id IN (NEW.version_id, NEW.latest_version_id)
        OR (TG_OP = 'UPDATE' AND (NEW.status <> OLD.status OR v.id IN (OLD.version_id, OLD.latest_version_id))));
    IF TG_OP = 'INSERT' THEN
        PERFORM serve_pins(NEW.workspace_id, v.partials) FROM partial_versions v WHERE v.partial_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;

-- Those that only other workspaces pinned are let go.
SELECT serve_partial_version(v.id) FROM partial_versions v WHERE v.is_served;
