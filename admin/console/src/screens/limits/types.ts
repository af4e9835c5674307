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
  alert_threshold?: number | null;
  periodic_reset: string | null;
  periodic_reset_days?: number | null;
  next_usage_reset_at?: string | null;
  [field: string]: unknown;
}

const SETTINGS = ["type", "credit_limit", "alert_threshold", "periodic_reset", "periodic_reset_days", "strict", "unknown_price"];

/** A budget as a file says it, without what the gateway counts and decides. */
export function budgetSettings(of: UsageLimit | null | undefined): UsageLimit | null {
  if (!of || of.credit_limit === null) return null;
  return Object.fromEntries(SETTINGS.flatMap((name) => (of[name] === undefined || of[name] === null ? [] : [[name, of[name]]]))) as UsageLimit;
}

/**
 * A budget as a change sends it. A change replaces the whole budget, so the date of the next reset goes along; without it the
 * period would begin anew. A date that has passed is refused, and the gateway is about to set the next one.
 */
export function sentParts(of: UsageLimit | null | undefined, now = new Date()): UsageLimit | null {
  const settings = budgetSettings(of);
  const resetsAt = of?.next_usage_reset_at;
  return settings && resetsAt && new Date(resetsAt) > now ? { ...settings, next_usage_reset_at: resetsAt } : settings;
}

const isPerMinute = ({ type, unit }: RateLimit) => type === "requests" && unit === "rpm";

export const perMinute = (limits: RateLimit[] | null | undefined) => limits?.find(isPerMinute)?.value ?? null;

/** Other limits stay as they are. */
export function withPerMinute(limits: RateLimit[] | null | undefined, value: number | null): RateLimit[] {
  const others = (limits ?? []).filter((one) => !isPerMinute(one)).map(({ type, unit, value: amount }) => ({ type, unit, value: amount }));
  return value === null ? others : [{ type: "requests", unit: "rpm", value }, ...others];
}

/** The two numbers of a budget. */
export interface Amounts {
  credit_limit: number | null;
  alert_threshold: number | null;
}

export const amountsOf = (of: UsageLimit | null | undefined): Amounts => ({ credit_limit: of?.credit_limit ?? null, alert_threshold: of?.alert_threshold ?? null });

/** How often a budget begins anew. */
export interface Repetition {
  reset: "monthly" | "weekly" | "days" | "";
  days: number | null;
}

export function repetitionOf(of: UsageLimit | null | undefined): Repetition {
  if (of?.periodic_reset_days) return { reset: "days", days: of.periodic_reset_days };
  return { reset: (of?.periodic_reset ?? "") as Repetition["reset"], days: null };
}

/** The same budget with other numbers; without a limit there is none. The next reset keeps its date unless the repetition changes. */
export function changedBudget(of: UsageLimit | null, { credit_limit, alert_threshold }: Amounts, { reset, days }: Repetition): UsageLimit | null {
  if (credit_limit === null) return null;
  const { credit_limit: _limit, alert_threshold: _threshold, periodic_reset: _reset, periodic_reset_days: _days, next_usage_reset_at: resetsAt, ...others } = of ?? { type: "cost" };
  const before = repetitionOf(of);
  const isSame = before.reset === reset && (reset !== "days" || before.days === days);
  return {
    ...others,
    credit_limit,
    ...(alert_threshold === null ? {} : { alert_threshold }),
    ...(reset === "days" ? { periodic_reset_days: days } : reset ? { periodic_reset: reset } : {}),
    ...(isSame && resetsAt ? { next_usage_reset_at: resetsAt } : {}),
  } as UsageLimit;
}
