-- Proxies hold every version that a label is split between, and what versions declare of their variables.

CREATE OR REPLACE VIEW served_prompt_versions AS
SELECT id, organisation_id, prompt_id, number, template, parameters, model, virtual_key, functions, tools, tool_choice,
       is_raw, changed_xid, declared_variables
FROM prompt_versions WHERE is_served;

-- Whether a version can be asked for by a label.
CREATE FUNCTION is_labelled(prompt uuid, version uuid) RETURNS boolean LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT EXISTS (SELECT FROM prompt_version_labels a
                   WHERE a.prompt_id = prompt AND (a.version_id = version OR version = ANY (a.split_versions)));
$$;

CREATE OR REPLACE FUNCTION serve_prompt_version(version uuid) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    known record;
BEGIN
    SELECT v.is_served, p.workspace_id,
           p.status = 'active' AND (p.version_id = v.id OR is_labelled(p.id, v.id)) AS is_wanted,
           octet_length(v.template) + octet_length(v.parameters::text) + coalesce(octet_length(v.functions::text), 0)
               + coalesce(octet_length(v.tools::text), 0) AS bytes
    INTO known FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id WHERE v.id = version;
    -- A version may be made before its prompt.
    IF NOT FOUND OR known.is_wanted = known.is_served THEN
        RETURN;
    END IF;
    IF take_served_bytes(known.workspace_id, CASE WHEN known.is_wanted THEN known.bytes ELSE -known.bytes END) THEN
        UPDATE prompt_versions SET is_served = known.is_wanted WHERE id = version;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION serve_versions_of_prompt() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM serve_prompt_version(v.id) FROM prompt_versions v
    WHERE v.prompt_id = NEW.id AND (v.is_served OR v.id = NEW.version_id OR is_labelled(NEW.id, v.id));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION serve_labelled_versions() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM serve_prompt_version(version) FROM unnest(OLD.split_versions || OLD.version_id) AS version;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM serve_prompt_version(version) FROM unnest(NEW.split_versions || NEW.version_id) AS version;
    END IF;
    RETURN NULL;
END $$;

-- Splits that are there already.
SELECT serve_prompt_version(version) FROM prompt_version_labels a, unnest(a.split_versions) AS version;
