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
