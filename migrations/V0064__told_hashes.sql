-- The proxy judges what a server tells of its tools as a list passes. Servers leave fields of later revisions out towards
-- clients of older ones (`title`, `outputSchema`), so it needs the hash of what is left then, too. It belongs to
-- `definition_hash`; rows that have none get it with their next sync.
ALTER TABLE mcp_capabilities ADD COLUMN plain_hash bytea CHECK (octet_length(plain_hash) = 32);
