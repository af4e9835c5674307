// Limits of keys, providers, workspaces and policies, and which parts of them a change sends. What was counted is none of them.

export interface RateLimit {
  type: string;
  unit: string;
  value: number;
}

export interface UsageLimit {
  /** As it was sent; null counts money. */
  type: string | null;
  credit_limit: number | null;
  periodic_reset: string | null;
  [field: string]: unknown;
}

const SENT = ["type", "credit_limit", "alert_threshold", "periodic_reset", "periodic_reset_days", "strict", "unknown_price"];

/** A budget as it would be sent, without what the gateway counts and decides. */
export function sentParts(of: UsageLimit | null | undefined): UsageLimit | null {
  if (!of || of.credit_limit === null) return null;
  return Object.fromEntries(SENT.flatMap((name) => (of[name] === undefined || of[name] === null ? [] : [[name, of[name]]]))) as UsageLimit;
}

const isPerMinute = ({ type, unit }: RateLimit) => type === "requests" && unit === "rpm";

export const perMinute = (limits: RateLimit[] | null | undefined) => limits?.find(isPerMinute)?.value ?? null;

/** Other limits stay as they are. */
export function withPerMinute(limits: RateLimit[] | null | undefined, value: number | null): RateLimit[] {
  const others = (limits ?? []).filter((one) => !isPerMinute(one)).map(({ type, unit, value: amount }) => ({ type, unit, value: amount }));
  return value === null ? others : [{ type: "requests", unit: "rpm", value }, ...others];
}

/** The same budget with another amount; null takes it away. */
export function withAmount(of: UsageLimit | null, amount: number | null, reset: string): UsageLimit | null {
  if (amount === null) return null;
  const { periodic_reset: _, ...others } = of ?? { type: "cost", credit_limit: null, periodic_reset: null };
  return { ...others, credit_limit: amount, ...(reset ? { periodic_reset: reset } : {}) } as UsageLimit;
}
