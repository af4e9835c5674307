-- The audit trail: one row per administrative action, made or refused. Written in the transaction of the action, so
-- there is no change without its row. Rows are only added: nothing here can be edited or removed, whoever asks.
--
-- A job chains the rows of each organisation within seconds: `sequence` without gaps, `hash` over the row and the hash
-- before it. These three columns are the only ones that are ever set later, and once.

CREATE TABLE audit_logs (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id      uuid NOT NULL REFERENCES organisations,
    -- No foreign keys beyond this: the trail outlives what it names.
    workspace_id         uuid,
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    user_id              uuid,
    user_type            text NOT NULL CHECK (user_type IN ('user', 'api_key', 'system')),
    api_key_id           uuid,
    method               text NOT NULL,
    uri                  text NOT NULL,
    query_params         jsonb,
    request_headers      jsonb,
    request_body         jsonb,
    request_id           uuid,
    client_ip            inet,
    country              text,
    resource_type        text NOT NULL,
    action               text NOT NULL,
    resource_id          text,
    response_status_code integer NOT NULL,
    error                text,
    before               jsonb,
    after                jsonb,
    sequence             bigint,
    previous_hash        bytea,
    hash                 bytea,
    UNIQUE (organisation_id, sequence)
);
CREATE INDEX audit_logs_listed ON audit_logs (organisation_id, created_at DESC, id DESC);
CREATE INDEX audit_logs_unchained ON audit_logs (organisation_id, created_at, id) WHERE sequence IS NULL;

CREATE FUNCTION keep_audit_logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.sequence IS NULL AND OLD.hash IS NULL
       AND to_jsonb(OLD) - '{sequence,previous_hash,hash}'::text[] = to_jsonb(NEW) - '{sequence,previous_hash,hash}'::text[] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only';
END $$;
CREATE TRIGGER keep_rows BEFORE UPDATE OR DELETE ON audit_logs FOR EACH ROW EXECUTE FUNCTION keep_audit_logs();
CREATE TRIGGER keep_table BEFORE TRUNCATE ON audit_logs FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_logs();
