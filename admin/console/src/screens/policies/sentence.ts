// A policy as a sentence: which requests, counted by what, and how much of what they may use.
import { t } from "../../i18n";
import { count, dollars, visible } from "../../kit/words";
import type { Condition, Policy } from "./types";

const list = (value: string | string[]) => (Array.isArray(value) ? value : [value]).map(visible).join(", ");

function condition({ key, value, excludes }: Condition): string {
  const texts = t().policies;
  const base = list(value) === "*" ? texts.has(visible(key)) : texts.is(visible(key), list(value));
  return excludes ? `${base} ${texts.except(list(excludes))}` : base;
}

/** `$10`, `600 requests`. */
export function amount({ type }: Pick<Policy, "type">, value: number): string {
  if (type === "cost") return dollars(value);
  return type === "requests" ? t().budgets.requests(count(value)) : t().budgets.tokens(count(value));
}

function limit(policy: Policy): string {
  const texts = t().policies;
  if (policy.unit) return texts.most(amount(policy, policy.value ?? 0), texts.units[policy.unit] ?? policy.unit);
  const days = policy.periodic_reset_days;
  const period = policy.periodic_reset ? (t().limits.resets[policy.periodic_reset] ?? policy.periodic_reset) : days ? t().limits.everyDays(days) : t().limits.resets[""]!;
  return texts.most(amount(policy, policy.credit_limit ?? 0), period);
}

/** Which requests: of models, of tools, or of both. */
function which({ target, conditions }: Policy): string {
  const texts = t().policies;
  const what = texts.calls[target ?? "both"];
  return conditions.length > 0 ? texts.forThose(what, conditions.map(condition).join(` ${texts.and} `)) : texts.forAll(what);
}

export function sentence(policy: Policy): string {
  const texts = t().policies;
  const groups = policy.group_by.map(({ key }) => visible(key));
  const per = groups.length > 0 ? ` ${texts.per(groups.join(", "))}${policy.include_none ? ` ${texts.withoutToo}` : ""}` : "";
  const details = [policy.strict && texts.strict, policy.trusted_metadata && texts.trusted].filter(Boolean);
  return [`${which(policy)}${per}: ${limit(policy)}`, ...details].join("; ");
}
