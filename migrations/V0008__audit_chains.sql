-- Where the hash chain of each organisation's audit trail ends. Without it, records cut off at the end would leave a
-- chain that looks whole. Written together with the last record it names; it only ever moves forward.

CREATE TABLE audit_chains (
    organisation_id uuid PRIMARY KEY REFERENCES organisations,
    sequence        bigint NOT NULL CHECK (sequence > 0),
    hash            bytea NOT NULL CHECK (octet_length(hash) = 32),
    last_updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION keep_audit_chains() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.organisation_id = OLD.organisation_id AND NEW.sequence > OLD.sequence THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only';
END $$;
CREATE TRIGGER keep_rows BEFORE UPDATE OR DELETE ON audit_chains FOR EACH ROW EXECUTE FUNCTION keep_audit_chains();
CREATE TRIGGER keep_table BEFORE TRUNCATE ON audit_chains FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_chains();

-- What the trail is searched by; everything else is a filter within a time range.
CREATE INDEX audit_logs_request ON audit_logs (request_id);
CREATE INDEX audit_logs_user ON audit_logs (organisation_id, user_id, created_at DESC, id DESC);
CREATE INDEX audit_logs_workspace ON audit_logs (organisation_id, workspace_id, created_at DESC, id DESC);
CREATE INDEX audit_logs_resource ON audit_logs (organisation_id, resource_type, created_at DESC, id DESC);
