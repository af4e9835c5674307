-- Logs in the order in which they arrive, for whoever follows them (`GET /v1/logs/tail`): a call's log carries the time of the
-- call, and a proxy that was cut off ships it later. Only while somebody watches an organisation are its arrivals noted, and only
-- for minutes: neither table is worth a crash's recovery.
CREATE UNLOGGED TABLE log_watchers (
    id              uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    -- The person, else the key.
    watcher_id      uuid NOT NULL,
    -- Leases: of the place among those who watch, and of the noting of arrivals, which goes on for who comes back.
    expires_at      timestamptz NOT NULL,
    noted_until     timestamptz NOT NULL,
    -- From when on every arrival of the organisation is noted.
    noted_since     timestamptz NOT NULL
);
CREATE INDEX log_watchers_organisation ON log_watchers (organisation_id);

-- Logged, so that numbers never begin again.
CREATE SEQUENCE log_arrivals_number;
CREATE UNLOGGED TABLE log_arrivals (
    organisation_id uuid NOT NULL,
    -- Tells what is settled from what may still be committed behind it.
    xid             xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number          bigint NOT NULL DEFAULT nextval('log_arrivals_number'),
    created_at      timestamptz NOT NULL,
    id              uuid NOT NULL,
    arrived_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, xid, number)
);
CREATE INDEX log_arrivals_age ON log_arrivals (arrived_at);

-- Whoever brings logs, by whatever way and in whatever version. While nobody watches it looks into an empty table.
CREATE FUNCTION log_arrivals_note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM log_watchers WHERE noted_until > clock_timestamp()) THEN
        INSERT INTO log_arrivals (organisation_id, created_at, id)
        SELECT organisation_id, created_at, id FROM added
        WHERE organisation_id IN (SELECT organisation_id FROM log_watchers WHERE noted_until > clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER request_logs_arrived AFTER INSERT ON request_logs REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION log_arrivals_note();
