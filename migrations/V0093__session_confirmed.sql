-- When the newest token of a session was first used. Null: it was handed out and not used yet, perhaps because the answer
-- that carried it was lost, so the token before it still counts. Programs of before leave it as it is.
ALTER TABLE sessions ADD COLUMN confirmed_at timestamptz DEFAULT now();
