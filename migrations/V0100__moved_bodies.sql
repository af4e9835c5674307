-- Each call's body is moved into a pack some seconds after its log was stored, which changes where it lies (`body_key`) and no
-- figure, but made every minute be built twice. Who moves bodies says so for its transaction; everybody else's changes are
-- taken for changes of figures, as before.
CREATE OR REPLACE FUNCTION usage_stale_note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('gateway.moves_bodies', true) = 'on' THEN
        RETURN NULL;
    END IF;
    INSERT INTO usage_stale (size, slot)
    SELECT DISTINCT 1, date_trunc('minute', created_at, 'UTC') FROM changed;
    RETURN NULL;
END $$;
