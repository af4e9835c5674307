-- A label may point to several versions of a prompt by weight, and a version may declare its variables.

-- Both null, or both of a split: `version_id` is then the first of the versions, so that code which knows no splits
-- serves that one.
ALTER TABLE prompt_version_labels
    ADD COLUMN split_versions uuid[],
    ADD COLUMN split_weights integer[],
    ADD CONSTRAINT prompt_version_labels_split CHECK (
        (split_versions IS NULL AND split_weights IS NULL)
        OR (split_versions[1] = version_id AND cardinality(split_versions) BETWEEN 2 AND 20
            AND cardinality(split_weights) = cardinality(split_versions) AND 0 <= ALL (split_weights)));

-- Code that knows no splits and moves a label ends its split.
CREATE FUNCTION end_split() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.split_versions[1] <> NEW.version_id THEN
        NEW.split_versions := NULL;
        NEW.split_weights := NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER end_split BEFORE UPDATE ON prompt_version_labels FOR EACH ROW EXECUTE FUNCTION end_split();

-- `[{name, type, required}]`; null for versions whose variables are not checked.
ALTER TABLE prompt_versions
    ADD COLUMN declared_variables json CHECK (json_typeof(declared_variables) = 'array');

-- What proxies follow: every version of a split, and what it declares.
CREATE OR REPLACE VIEW served_prompt_versions AS
SELECT id, organisation_id, prompt_id, number, template, parameters, model, virtual_key, functions, tools, tool_choice,
       is_raw, changed_xid, declared_variables
FROM prompt_versions WHERE is_served;

CREATE FUNCTION is_labelled(prompt uuid, version uuid) RETURNS boolean LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT EXISTS (SELECT FROM prompt_version_labels a
        WHERE a.prompt_id = prompt AND (a.version_id = version OR version = ANY (a.split_versions)));
$$;

CREATE OR REPLACE FUNCTION serve_prompt_version(version uuid) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
           p.status = 'active' AND (p.version_id = v.id OR is_labelled(p.id, v.id)) AS is_wanted,
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

CREATE OR REPLACE FUNCTION serve_versions_of_prompt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_prompt_version(v.id) FROM prompt_versions v
    WHERE v.prompt_id = NEW.id AND (v.is_served OR v.id = NEW.version_id OR is_labelled(NEW.id, v.id));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION serve_labelled_versions() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM serve_prompt_version(named) FROM unnest(OLD.version_id || OLD.split_versions) AS named;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM serve_prompt_version(named) FROM unnest(NEW.version_id || NEW.split_versions) AS named;
    END IF;
    RETURN NULL;
END $$;
