// A provider: the name by which a workspace uses an account.
import type { RateLimit, UsageLimit } from "../limits/types";

export interface Provider {
  id: string;
  slug: string;
  name: string;
  status: string;
  ai_provider_name: string;
  provider: string;
  integration_id: string | null;
  workspace_id: string;
  workspace_name: string | null;
  created_at: string;
  rate_limits: RateLimit[] | null;
  usage_limits: UsageLimit | null;
}
