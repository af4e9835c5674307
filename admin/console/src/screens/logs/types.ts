// A log as the interface answers it: a row of a list, and one log with its texts and the sum behind its cost.
export interface LogRow {
  id: string;
  created_at: string;
  response_status_code: number | null;
  is_success: boolean;
  error_code: string | null;
  ai_model: string | null;
  requested_model: string | null;
  ai_org: string | null;
  virtual_key: string | null;
  request_url: string | null;
  api_key_id: string | null;
  req_units: number | null;
  res_units: number | null;
  cost: number | null;
  response_time: number | null;
  retry_success_count: number | null;
  last_used_option_index: string | null;
  metadata: Record<string, string> | null;
  trace_id: string | null;
  span_id: string | null;
  parent_span_id: string | null;
}

export interface Metrics extends LogRow {
  workspace_id: string;
  config: string | null;
  price_model: string | null;
  price_version: string | null;
  unit_prices: Record<string, string | null> | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  reasoning_tokens: number | null;
  usage_estimated: boolean;
  time_to_first_token: number | null;
  gateway_processing_time: number | null;
  cache_status: string | null;
  source: string | null;
}

export interface Log {
  id: string;
  created_at: string;
  request: { url: string; method: string; headers?: unknown; body?: any };
  response: { status: number; headers?: unknown; body?: any };
  metrics: Metrics;
}
