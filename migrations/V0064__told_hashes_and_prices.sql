-- The proxy judges what a server tells of its tools as a list passes. Servers leave fields of later revisions out towards
-- clients of older ones (`title`, `outputSchema`), so it needs the hash of what is left then, too. It belongs to
-- `definition_hash`; rows that have none get it with their next sync.
--
-- A tool or prompt may have a price: US cents for each call that is answered without an error.
ALTER TABLE mcp_capabilities
    ADD COLUMN plain_hash bytea CHECK (octet_length(plain_hash) = 32),
    ADD COLUMN price numeric(16, 9) CHECK (price >= 0);

-- Headers that an outside secret manager holds, as `integrations.secret_mappings`. Only the proxy asks managers, so admin
-- cannot ask such a server what it offers.
ALTER TABLE mcp_integrations
    ADD COLUMN secret_mappings jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(secret_mappings) = 'array');
