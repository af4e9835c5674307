-- Proxies run prompts from memory, so they follow prompts, partials and labels, and of the versions those that can be asked
-- for without naming one: a prompt's default and its labelled ones, a partial's default and those that templates pin.
-- These are marked `is_served` here, by triggers, whoever changes what; the rest is fetched when somebody names it.
-- A workspace's share of every proxy's memory is bounded: versions beyond it are not marked, and are fetched as well.

SELECT track_changes('labels');
SELECT track_changes('prompts');
SELECT track_changes('prompt_partials');

-- What is followed has an id.
ALTER TABLE prompt_version_labels ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();
CREATE UNIQUE INDEX prompt_version_labels_id ON prompt_version_labels (id);
SELECT track_changes('prompt_version_labels');

ALTER TABLE prompt_versions ADD COLUMN is_served boolean NOT NULL DEFAULT false;
ALTER TABLE partial_versions ADD COLUMN is_served boolean NOT NULL DEFAULT false;
SELECT track_changes('prompt_versions');
SELECT track_changes('partial_versions');
-- Who pins a version of a partial.
CREATE INDEX prompt_versions_partials ON prompt_versions USING gin (partials);
CREATE INDEX partial_versions_partials ON partial_versions USING gin (partials);

-- What the proxies read. A version that is no longer served leaves a tombstone under these names.
CREATE VIEW served_prompt_versions AS
SELECT id, organisation_id, prompt_id, number, template, parameters, model, virtual_key, functions, tools, tool_choice,
       is_raw, changed_xid
FROM prompt_versions WHERE is_served;
CREATE VIEW served_partial_versions AS
SELECT id, organisation_id, partial_id, number, template, changed_xid FROM partial_versions WHERE is_served;

CREATE FUNCTION leave_served_tombstone() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO tombstones (table_name, row_id) VALUES ('served_' || TG_TABLE_NAME, OLD.id);
    RETURN NULL;
END $$;
CREATE TRIGGER leave_served AFTER UPDATE ON prompt_versions FOR EACH ROW
    WHEN (OLD.is_served AND NOT NEW.is_served) EXECUTE FUNCTION leave_served_tombstone();
CREATE TRIGGER leave_served AFTER UPDATE ON partial_versions FOR EACH ROW
    WHEN (OLD.is_served AND NOT NEW.is_served) EXECUTE FUNCTION leave_served_tombstone();
CREATE TRIGGER leave_served_deleted AFTER DELETE ON prompt_versions FOR EACH ROW
    WHEN (OLD.is_served) EXECUTE FUNCTION leave_served_tombstone();
CREATE TRIGGER leave_served_deleted AFTER DELETE ON partial_versions FOR EACH ROW
    WHEN (OLD.is_served) EXECUTE FUNCTION leave_served_tombstone();

-- Bytes of all that is served to a workspace.
CREATE TABLE served_prompt_bytes (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
    bytes        bigint NOT NULL
);

-- What a template takes in a proxy: its text, and a node for each tag.
CREATE FUNCTION template_weight(template text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT octet_length(template) + 64::bigint * (length(template) - length(replace(template, '{{', '')));
$$;

-- Whoever changes what is served to a workspace waits here for whoever does so already, and then looks again.
CREATE FUNCTION lock_served_bytes(workspace uuid) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO served_prompt_bytes (workspace_id, bytes) VALUES (workspace, 0) ON CONFLICT DO NOTHING;
    PERFORM FROM served_prompt_bytes WHERE workspace_id = workspace FOR UPDATE;
END $$;

-- Takes room for a version, or gives it back; false where there is none left.
CREATE FUNCTION take_served_bytes(workspace uuid, more bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    most CONSTANT bigint := 32 * 1024 * 1024;
BEGIN
    INSERT INTO served_prompt_bytes AS s (workspace_id, bytes) VALUES (workspace, greatest(more, 0))
    ON CONFLICT (workspace_id) DO UPDATE SET bytes = greatest(s.bytes + more, 0)
        WHERE more < 0 OR s.bytes + more <= most;
    RETURN FOUND;
END $$;

CREATE FUNCTION serve_prompt_version(version uuid) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    known record;
    workspace uuid := (SELECT p.workspace_id FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id WHERE v.id = version);
BEGIN
    -- A version may be made before its prompt.
    IF workspace IS NULL THEN
        RETURN;
    END IF;
    PERFORM lock_served_bytes(workspace);
    SELECT v.is_served, p.workspace_id,
           p.status = 'active' AND (p.version_id = v.id
               OR EXISTS (SELECT FROM prompt_version_labels a WHERE a.version_id = v.id)) AS is_wanted,
           template_weight(v.template) + octet_length(v.parameters::text) + coalesce(octet_length(v.functions::text), 0)
               + coalesce(octet_length(v.tools::text), 0) + coalesce(octet_length(v.tool_choice::text), 0) AS bytes
    INTO known FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id WHERE v.id = version;
    IF NOT FOUND OR known.is_wanted = known.is_served THEN
        RETURN;
    END IF;
    IF take_served_bytes(known.workspace_id, CASE WHEN known.is_wanted THEN known.bytes ELSE -known.bytes END) THEN
        UPDATE prompt_versions SET is_served = known.is_wanted WHERE id = version;
    END IF;
END $$;

CREATE FUNCTION serve_partial_version(version uuid) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
        known.is_active := EXISTS (SELECT FROM prompt_versions x
                WHERE x.partials && known.names AND x.organisation_id = known.organisation_id)
            OR EXISTS (SELECT FROM partial_versions x
                WHERE x.partials && known.names AND x.organisation_id = known.organisation_id);
    END IF;
    IF known.is_active = known.is_served THEN
        RETURN;
    END IF;
    IF take_served_bytes(known.workspace_id, CASE WHEN known.is_active THEN known.bytes ELSE -known.bytes END) THEN
        UPDATE partial_versions SET is_served = known.is_active WHERE id = version;
    END IF;
END $$;

-- `slug@3` and `slug@latest` among the names that a template has for partials.
CREATE FUNCTION serve_pinned_partials(organisation uuid, names text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_partial_version(v.id)
    FROM unnest(names) AS asked
    JOIN prompt_partials p ON p.organisation_id = organisation AND p.slug = split_part(asked, '@', 1)
    JOIN partial_versions v ON v.partial_id = p.id AND (v.number::text = split_part(asked, '@', 2)
        OR (split_part(asked, '@', 2) = 'latest' AND v.id = p.latest_version_id))
    WHERE strpos(asked, '@') > 0;
END $$;

CREATE FUNCTION serve_new_version() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_TABLE_NAME = 'prompt_versions' THEN
        PERFORM serve_prompt_version(NEW.id);
    ELSE
        PERFORM serve_partial_version(NEW.id);
    END IF;
    IF cardinality(NEW.partials) > 0 THEN
        PERFORM serve_pinned_partials(NEW.organisation_id, NEW.partials);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER serve_version AFTER INSERT ON prompt_versions FOR EACH ROW EXECUTE FUNCTION serve_new_version();
CREATE TRIGGER serve_version AFTER INSERT ON partial_versions FOR EACH ROW EXECUTE FUNCTION serve_new_version();

-- Published, archived or restored: what was served and what may be now.
CREATE FUNCTION serve_versions_of_prompt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_prompt_version(v.id) FROM prompt_versions v
    WHERE v.prompt_id = NEW.id AND (v.is_served OR v.id = NEW.version_id
        OR EXISTS (SELECT FROM prompt_version_labels a WHERE a.version_id = v.id));
    RETURN NULL;
END $$;
CREATE TRIGGER serve_versions AFTER INSERT OR UPDATE OF version_id, status ON prompts FOR EACH ROW
    EXECUTE FUNCTION serve_versions_of_prompt();

CREATE FUNCTION serve_versions_of_partial() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    -- Versions that are pinned are served when the pin is written.
    PERFORM serve_partial_version(v.id) FROM partial_versions v
    WHERE v.partial_id = NEW.id AND (v.is_served OR v.id IN (NEW.version_id, NEW.latest_version_id)
        OR (TG_OP = 'UPDATE' AND (NEW.status <> OLD.status OR v.id IN (OLD.version_id, OLD.latest_version_id))));
    RETURN NULL;
END $$;
CREATE TRIGGER serve_versions AFTER INSERT OR UPDATE OF version_id, latest_version_id, status ON prompt_partials
    FOR EACH ROW EXECUTE FUNCTION serve_versions_of_partial();

CREATE FUNCTION serve_labelled_versions() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM serve_prompt_version(OLD.version_id);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM serve_prompt_version(NEW.version_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER serve_labelled AFTER INSERT OR UPDATE OR DELETE ON prompt_version_labels FOR EACH ROW
    EXECUTE FUNCTION serve_labelled_versions();

-- What is there already.
SELECT serve_prompt_version(v.id) FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id
WHERE p.version_id = v.id OR EXISTS (SELECT FROM prompt_version_labels a WHERE a.version_id = v.id);
SELECT serve_partial_version(v.id) FROM partial_versions v;
