-- When the newest token of a session was first used. Null: it was handed out and not used yet, perhaps because the answer
-- that carried it was lost, so the token before it still counts, for a few replacements more. The one that was replaced
-- unused says, if it comes back, that two people have tokens. Programs of before leave all of this as it is.
ALTER TABLE sessions
    ADD COLUMN confirmed_at timestamptz DEFAULT now(),
    ADD COLUMN superseded_hash bytea,
    ADD COLUMN lost_rotations smallint NOT NULL DEFAULT 0;
CREATE INDEX sessions_superseded ON sessions (superseded_hash) WHERE superseded_hash IS NOT NULL;
