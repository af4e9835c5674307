// Whose a budget is: where it is read and changed, which right that takes, and what a change of its amount sends.
import { may } from "../../api/session";
import type { Json, Query } from "../../api/call";
import { sentParts, type UsageLimit } from "../limits/types";
import type { Budget } from "../overview/types";

interface Owner {
  path: (id: string) => string;
  mayChange: () => boolean;
  /** The amount now, as the object has it. */
  amount: (object: Json) => number | null;
  body: (object: Json, amount: number) => Record<string, unknown>;
}

const withAmount = (usage: UsageLimit | null, amount: number) => ({ ...sentParts(usage), credit_limit: amount });

/** A limit that stands on the object itself. */
const limited = (path: Owner["path"], mayChange: Owner["mayChange"]): Owner => ({
  path, mayChange, amount: (object) => object.usage_limits?.credit_limit ?? null, body: (object, amount) => ({ usage_limits: withAmount(object.usage_limits, amount) }),
});

const OWNERS: Record<string, Owner> = {
  api_key: limited((id) => `/api-keys/${encodeURIComponent(id)}`, () => may("workspace_service_api_keys.update", "organisation_service_api_keys.update")),
  provider: limited((id) => `/providers/${encodeURIComponent(id)}`, () => may("providers.update")),
  policy: {
    path: (id) => `/policies/usage-limits/${encodeURIComponent(id)}`, mayChange: () => may("policies.update"), amount: (object) => object.credit_limit ?? null, body: (_, amount) => ({ credit_limit: amount }),
  },
  // Workspaces have a list of one.
  workspace: {
    path: (id) => `/workspaces/${encodeURIComponent(id)}`, mayChange: () => may("workspaces.update"), amount: (object) => object.usage_limits?.[0]?.credit_limit ?? null,
    body: (object, amount) => ({ usage_limits: [withAmount(object.usage_limits?.[0] ?? null, amount)] }),
  },
};

export const ownerOf = ({ kind }: Pick<Budget, "kind">): Owner | undefined => (Object.hasOwn(OWNERS, kind) ? OWNERS[kind] : undefined);

export const mayChangeBudget = (budget: Budget) => ownerOf(budget)?.mayChange() ?? false;

export const queryOf = ({ kind, workspace_id }: Budget): Query => (kind === "provider" || kind === "policy" ? { workspace_id } : {});
