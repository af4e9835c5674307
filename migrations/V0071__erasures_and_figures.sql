-- An erasure whose person is still named in figures of days without logs: whoever builds figures is not waited for, and the
-- repetition does it then.
ALTER TABLE log_erasures ADD COLUMN figures_due boolean NOT NULL DEFAULT false;

-- Runs of a job that began and neither succeeded nor failed: their admin was killed. A job that gets its admin killed waits ever
-- longer before it is begun again.
ALTER TABLE jobs ADD COLUMN unfinished_runs integer NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN begun_at timestamptz;
