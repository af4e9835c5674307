// Policies and their groups as the interface answers them, and where each kind is.

export interface Condition {
  key: string;
  value: string | string[];
  excludes?: string | string[] | null;
}

export interface Policy {
  id: string;
  name: string | null;
  type: "cost" | "tokens" | "requests";
  /** Of a budget. */
  credit_limit?: number;
  periodic_reset?: string | null;
  periodic_reset_days?: number | null;
  /** Of a rate. */
  unit?: "rpm" | "rph" | "rpd";
  value?: number;
  alert_threshold?: number | null;
  strict?: boolean;
  unknown_price?: string | null;
  /** Calls of models, of MCP tools, or null for both. */
  target?: "llm" | "mcp_tools" | null;
  include_none?: boolean;
  trusted_metadata?: boolean;
  description?: string | null;
  conditions: Condition[];
  group_by: { key: string }[];
  dry_run: boolean;
  status: string;
  workspace_id: string;
  created_at: string;
  unmatched?: boolean;
}

export interface Group {
  id: string;
  value_key: string;
  name: string | null;
  current_usage: number;
  status: string;
}

export const KINDS = { budgets: "/policies/usage-limits", rates: "/policies/rate-limits" } as const;
export type Kind = keyof typeof KINDS;

/** Keys that conditions and groups may name, the commonest first; a name of metadata is written out. */
export const KEYS = ["metadata._user", "api_key", "model", "provider", "virtual_key", "config", "prompt", "endpoint_type", "mcp_server", "mcp_tool", "workspace_id"];
