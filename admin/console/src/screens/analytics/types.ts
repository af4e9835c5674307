// Answers of the query operation that this screen asks for.

export interface Point {
  timestamp: string;
  total?: number;
  p50?: number;
  p90?: number;
  p99?: number;
}

type Summary = Omit<Point, "timestamp">;

export interface Graph {
  summary: Summary;
  data_points: Point[];
  previous?: { summary: Summary; data_points: Point[] };
  groups?: { value: string | null; name?: string | null; is_rest: boolean; data_points: Point[] }[];
}

export interface Row {
  requests: number;
  cost?: number;
  total_tokens?: number;
  p95_latency?: number;
  error_count?: number;
  name?: string | null;
  [field: string]: unknown;
}

export interface Groups {
  data: Row[];
  total: number;
  total_is_capped: boolean;
  totals?: Row;
  previous?: { data: Row[]; total: number };
}
