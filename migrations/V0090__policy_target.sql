-- Which requests a policy is for: calls of models (`llm`), calls of MCP tools (`mcp_tools`), or both (null), as all were.

ALTER TABLE rate_limits_policies ADD COLUMN target text CHECK (target IN ('llm', 'mcp_tools'));
ALTER TABLE usage_limits_policies ADD COLUMN target text CHECK (target IN ('llm', 'mcp_tools'));
