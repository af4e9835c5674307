-- The change feed: how a proxy learns what changed in the tables it holds in memory, at the cost of the change alone.
--
-- A revision number would miss rows of transactions that commit late. Each row carries instead the id of the
-- transaction that last wrote it. A reader, in one REPEATABLE READ transaction,
--   1. notes pg_snapshot_xmin(pg_current_snapshot()) as its next cursor: what is not visible yet has this id or a later one;
--   2. drops the rows of tombstones with changed_xid >= its cursor;
--   3. takes the rows with changed_xid >= its cursor. Rows after tombstones: an id may be deleted and made again.
-- Rows may be seen twice; applying them is idempotent. Everything is read anew when feed_epoch.epoch differs from the
-- one the cursor belongs to, or the cursor is not above feed_epoch.tombstones_purged_to.
--
-- A later table joins with one line in its migration:  SELECT track_changes('configs');

CREATE TABLE tombstones (
    table_name  text NOT NULL,
    row_id      uuid NOT NULL,
    changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    deleted_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tombstones_changed ON tombstones (changed_xid);
CREATE INDEX tombstones_deleted ON tombstones (deleted_at);

CREATE TABLE feed (
    only_row             boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch                uuid NOT NULL DEFAULT gen_random_uuid(),
    tombstones_purged_to xid8 NOT NULL DEFAULT '0'
);
INSERT INTO feed DEFAULT VALUES;

-- Transaction ids mean something within one history of one database. A restore brings the stored epoch back with the
-- data, so the epoch that readers see also covers what a restore does change: the cluster, its timeline (point-in-time
-- recovery, failover) and the table itself (a dump played back). Data put back by other means: SELECT renew_feed_epoch().
CREATE VIEW feed_epoch AS
SELECT md5(concat_ws('/', epoch, (SELECT system_identifier FROM pg_control_system()), tableoid,
           (SELECT oid FROM pg_database WHERE datname = current_database()),
           CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END))::uuid AS epoch,
       tombstones_purged_to
FROM feed;

CREATE FUNCTION renew_feed_epoch() RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    UPDATE feed SET epoch = gen_random_uuid();
    SELECT pg_notify('gateway_changes', '');
$$;

-- Forgets old deletes. A reader that was away longer finds its cursor behind the mark and reads everything.
CREATE FUNCTION purge_tombstones(older_than interval) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    purged bigint;
    purged_to xid8;
BEGIN
    WITH gone AS (DELETE FROM tombstones WHERE deleted_at < now() - older_than RETURNING changed_xid)
    SELECT count(*), (array_agg(changed_xid ORDER BY changed_xid DESC))[1] INTO purged, purged_to FROM gone;
    UPDATE feed SET tombstones_purged_to = purged_to WHERE tombstones_purged_to < purged_to;
    RETURN purged;
END $$;

CREATE FUNCTION mark_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.id <> OLD.id THEN
        RAISE EXCEPTION 'the id of a row in % cannot change: readers would keep the old one', TG_TABLE_NAME;
    END IF;
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$;

CREATE FUNCTION leave_tombstone() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO tombstones (table_name, row_id) VALUES (TG_TABLE_NAME, OLD.id);
    RETURN NULL;
END $$;

-- Postgres sends equal notices of one transaction once, at its commit.
CREATE FUNCTION announce_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway_changes', '');
    RETURN NULL;
END $$;

-- TRUNCATE fires no trigger for its rows: only a full reload can follow it.
CREATE FUNCTION announce_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM renew_feed_epoch();
    RETURN NULL;
END $$;

CREATE FUNCTION track_changes(tracked regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ADD COLUMN changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id()', tracked);
    EXECUTE format('CREATE INDEX ON %s (changed_xid)', tracked);
    EXECUTE format('CREATE TRIGGER mark_change BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION mark_change()', tracked);
    EXECUTE format('CREATE TRIGGER leave_tombstone AFTER DELETE ON %s FOR EACH ROW EXECUTE FUNCTION leave_tombstone()', tracked);
    EXECUTE format('CREATE TRIGGER announce_change AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION announce_change()', tracked);
    EXECUTE format('CREATE TRIGGER announce_truncate AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION announce_truncate()', tracked);
END $$;

SELECT track_changes('organisations');
SELECT track_changes('workspaces');
SELECT track_changes('api_keys');
