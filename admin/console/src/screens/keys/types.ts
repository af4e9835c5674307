// A key as the interface lists it: never with its secret.
export interface Key {
  id: string;
  name: string;
  description: string | null;
  key: string;
  type: string;
  workspace_id: string | null;
  status: string;
  scopes: string[];
  rate_limits: { type: string; unit: string; value: number }[];
  usage_limits: { type: string; credit_limit: number | null; current_usage: number; periodic_reset: string | null; status: string } | null;
  expires_at: string | null;
  created_at: string;
}
