// Whose a budget is: where it is read and changed, which right that takes, and what a change of its numbers sends.
import { may } from "../../api/session";
import type { Json, Query } from "../../api/call";
import { amountsOf, changedBudget, repetitionOf, sentParts, type Amounts, type UsageLimit } from "../limits/types";
import type { Budget } from "../overview/types";

interface Owner {
  path: (id: string) => string;
  mayChange: () => boolean;
  /** The numbers now, as the object has them. */
  amounts: (object: Json) => Amounts;
  body: (object: Json, amounts: Amounts) => Record<string, unknown>;
}

const withAmounts = (usage: UsageLimit | null, amounts: Amounts) => changedBudget(sentParts(usage), amounts, repetitionOf(usage));

/** A limit that stands on the object itself. */
const limited = (path: Owner["path"], mayChange: Owner["mayChange"]): Owner => ({
  path, mayChange, amounts: (object) => amountsOf(object.usage_limits), body: (object, amounts) => ({ usage_limits: withAmounts(object.usage_limits, amounts) }),
});

const OWNERS: Record<string, Owner> = {
  api_key: limited((id) => `/api-keys/${encodeURIComponent(id)}`, () => may("workspace_service_api_keys.update", "organisation_service_api_keys.update")),
  provider: limited((id) => `/providers/${encodeURIComponent(id)}`, () => may("providers.update")),
  policy: {
    path: (id) => `/policies/usage-limits/${encodeURIComponent(id)}`, mayChange: () => may("policies.update"), amounts: amountsOf,
    body: (object, { credit_limit, alert_threshold }) => ({ credit_limit, ...(alert_threshold === amountsOf(object).alert_threshold ? {} : { alert_threshold }) }),
  },
  // Workspaces have a list of one.
  workspace: {
    path: (id) => `/workspaces/${encodeURIComponent(id)}`, mayChange: () => may("workspaces.update"), amounts: (object) => amountsOf(object.usage_limits?.[0]),
    body: (object, amounts) => ({ usage_limits: [withAmounts(object.usage_limits?.[0] ?? null, amounts)] }),
  },
};

export const ownerOf = ({ kind }: Pick<Budget, "kind">): Owner | undefined => (Object.hasOwn(OWNERS, kind) ? OWNERS[kind] : undefined);

export const mayChangeBudget = (budget: Budget) => ownerOf(budget)?.mayChange() ?? false;

/** The lowest limit that the interface takes. */
export const minAmount = ({ kind, type }: Pick<Budget, "kind" | "type">) => (kind === "policy" && type === "tokens" ? 100 : 1);

export const queryOf = ({ kind, workspace_id }: Budget): Query => (kind === "provider" || kind === "policy" ? { workspace_id } : {});
