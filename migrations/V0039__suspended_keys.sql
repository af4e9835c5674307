-- Keys that are switched off for a while. A column of its own: what a key is otherwise (its end, its budget) goes on
-- meanwhile, and is what it comes back as.
ALTER TABLE api_keys ADD COLUMN suspended_at timestamptz;
