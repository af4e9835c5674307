-- What a server tells models about itself (`instructions` of `initialize`) is pinned like what it tells of its tools: it is a
-- capability of a type of its own, of which an integration has at most one. The wider rules hold for every row that obeyed
-- the narrower ones, so nothing is read to validate them.
ALTER TABLE mcp_capabilities
    DROP CONSTRAINT mcp_capabilities_type_check,
    ADD CONSTRAINT mcp_capabilities_type_check
        CHECK (type IN ('tool', 'prompt', 'resource', 'resource_template', 'instructions')) NOT VALID;
ALTER TABLE mcp_server_capabilities
    DROP CONSTRAINT mcp_server_capabilities_type_check,
    ADD CONSTRAINT mcp_server_capabilities_type_check
        CHECK (type IN ('tool', 'prompt', 'resource', 'resource_template', 'instructions')) NOT VALID;
