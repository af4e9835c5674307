-- What the token (JWT) said with which a batch was made: subject, scopes, limits and defaults, as its rows are run. The token
-- itself is stored nowhere. Null: `api_key_id` is a key. To programs of before it is a key that they do not know, so they hold
-- such a batch up, and leave it to others.
ALTER TABLE batches ADD COLUMN token jsonb CHECK (octet_length(token::text) <= 65536);
