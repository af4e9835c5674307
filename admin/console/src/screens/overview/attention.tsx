// What needs somebody: providers that fail much, budgets that end before their period. Each line leads to where it is mended.
import { t } from "../../i18n";
import { Tag } from "../../kit/basics";
import { ago, percent, visible } from "../../kit/words";
import { screen } from "../../nav/query";
import type { Budget, ProviderRow } from "./types";

/** Few calls say little, and some failures belong to every provider. */
const MIN_CALLS = 5;
const MAX_FAILED = 10;

export function Attention({ providers, budgets }: { providers: ProviderRow[]; budgets: Budget[] | null }) {
  const texts = t().overview;
  const failing = providers.filter(({ provider, requests, success_rate }) => provider && requests >= MIN_CALLS && 100 - success_rate > MAX_FAILED);
  const ending = (budgets ?? []).filter(({ status, runs_out_at }) => status === "exhausted" || runs_out_at);
  return (
    <section class="panel">
      <header>
        <h2>{texts.attention}</h2>
      </header>
      {!budgets && <p class="inside quiet">{texts.noBudgets}</p>}
      {failing.length + ending.length === 0 ? (
        budgets && <p class="inside quiet">{texts.quiet}</p>
      ) : (
        <ul class="attention">
          {failing.map(({ provider, success_rate }) => (
            <li key={provider}>
              <Tag meaning={success_rate < 50 ? "bad" : "warn"}>{t().overview.provider}</Tag>
              {texts.fails(visible(provider), percent(100 - success_rate))}
              <span class="row">
                <a class="button small" href={screen("logs", { provider, status: "failed" })}>
                  {texts.see}
                </a>
              </span>
            </li>
          ))}
          {ending.map((budget) => (
            <li key={budget.id + budget.value_key}>
              <Tag meaning={budget.status === "exhausted" ? "bad" : "warn"}>{t().budgets.title}</Tag>
              {budget.status === "exhausted" ? texts.budgetUsed(visible(budget.name ?? "")) : texts.budgetEnds(visible(budget.name ?? ""), ago(new Date(budget.runs_out_at!)))}
              <span class="row">
                <a class="button small" href={screen("budgets")}>
                  {texts.seeBudget}
                </a>
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
