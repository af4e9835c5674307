// A key as the interface lists it: never with its secret.
import type { RateLimit, UsageLimit } from "../limits/types";

/** How long the name of a key may be. */
export const MAX_NAME = 100;

export interface Key {
  id: string;
  name: string;
  description: string | null;
  key: string;
  type: string;
  user_id: string | null;
  workspace_id: string | null;
  status: string;
  scopes: string[];
  rate_limits: RateLimit[];
  usage_limits: (UsageLimit & { current_usage: number; status: string }) | null;
  expires_at: string | null;
  created_at: string;
}
