// Figures as the interface answers them: graphs, providers, budgets.
export interface Graph<P> {
  summary: P;
  data_points: (P & { timestamp: string })[];
  previous?: { summary: P };
  groups?: { value: string; name?: string; is_rest: boolean; data_points: (P & { timestamp: string })[] }[];
}

export interface ProviderRow {
  provider: string;
  requests: number;
  cost: number;
  p95_latency: number;
  success_rate: number;
}

export interface Budget {
  id: string;
  kind: string;
  name: string | null;
  value_key: string | null;
  type: string;
  credit_limit: number;
  current_usage: number;
  pace: number | null;
  runs_out_at: string | null;
  next_usage_reset_at: string | null;
  workspace_id: string | null;
  status: string;
  dry_run: boolean;
  unit: string;
}
