// Every budget with a limit, those that end first on top: how much is used, how fast, and when it ends at this pace.
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { forget, useLoaded } from "../api/loaded";
import { workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Bar, Tag } from "../kit/basics";
import { Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { clock, count, dateAndTime, dollars, percent, short, visible } from "../kit/words";
import { param, setParams, withParams } from "../nav/query";
import { ChangeBudget } from "./budgets/change";
import { mayChangeBudget } from "./budgets/owner";
import type { Budget } from "./overview/types";

/** In the address; a policy has a budget for each of its groups, which share one limit. */
const idOf = ({ kind, id }: Budget) => `${kind}.${id}`;

export default function Budgets() {
  const texts = t().budgets;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const budgets = useLoaded<{ data: Budget[]; total: number; total_is_capped: boolean }>(`budgets ${workspace.value}`, () => get("/analytics/budgets", { page_size: 100 }));
  const state = budgets.state.value;
  const chosen = state.data?.data.find((one) => idOf(one) === param("budget"));
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <AsText path="/analytics/budgets" query={{ page_size: 100 }} />
        {state.at && <span class="quiet">{t().state.asOf(clock(state.at))}</span>}
      </div>
      <section class="panel">
        <Part state={state} again={budgets.reload}>
          {(found) => (found.data.length === 0 ? <Empty title={texts.empty}>{texts.emptyWhy}</Empty> : <Table found={found} />)}
        </Part>
      </section>
      {chosen && mayChangeBudget(chosen) && (
        <Side title={t().limits.raiseOf(visible(chosen.name ?? ""))} close={() => setParams({ budget: null })}>
          <ChangeBudget
            key={idOf(chosen)} of={chosen}
            done={() => {
              setParams({ budget: null });
              forget();
              budgets.reload();
            }}
          />
        </Side>
      )}
    </>
  );
}

function Table({ found }: { found: { data: Budget[]; total: number; total_is_capped: boolean } }) {
  const texts = t().budgets;
  return (
    <>
      <div class="scroll">
        <table class="table cards">
          <thead>
            <tr>
              <th scope="col">{texts.of}</th>
              <th scope="col">{t().menu.workspace}</th>
              <th scope="col">{texts.used}</th>
              <th scope="col" class="number">{texts.pace}</th>
              <th scope="col">{texts.ends}</th>
              <th scope="col">{texts.period}</th>
              <th scope="col">
                <span class="hidden-visually">{t().state.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.data.map((budget) => (
              <Row key={budget.kind + budget.id + budget.value_key} budget={budget} />
            ))}
          </tbody>
        </table>
      </div>
      {found.total > found.data.length && (
        <p class="inside quiet">{t().state.ofMany(count(found.data.length), count(found.total), found.total_is_capped)}</p>
      )}
    </>
  );
}

function Row({ budget }: { budget: Budget }) {
  const texts = t().budgets;
  const amount = (value: number) => (budget.type === "cost" ? dollars(value) : (budget.type === "requests" ? texts.requests : texts.tokens)(short(value)));
  const share = budget.credit_limit > 0 ? budget.current_usage / budget.credit_limit : 1;
  return (
    <tr>
      <td>
        <span class="row">
          <strong>{visible(budget.name ?? budget.id.slice(0, 8))}</strong>
          {budget.value_key && <code>{visible(budget.value_key)}</code>}
          <Tag>{texts.kinds[budget.kind] ?? budget.kind}</Tag>
        </span>
      </td>
      <td>{visible(workspaceName(budget.workspace_id))}</td>
      <td>
        <span class="row">
          <span class="nowrap">
            {amount(budget.current_usage)} / {amount(budget.credit_limit)}
          </span>
          <Bar share={share} meaning={share >= 1 ? "bad" : share > 0.8 ? "warn" : ""} />
          <span class="quiet">{percent(share * 100)}</span>
        </span>
      </td>
      <td class="number nowrap">{amount(budget.pace ?? 0)}</td>
      <td>{budget.runs_out_at ? <Tag meaning="warn">{dateAndTime(new Date(budget.runs_out_at))}</Tag> : <span class="quiet">{texts.notBefore}</span>}</td>
      <td class="nowrap">{budget.next_usage_reset_at ? dateAndTime(new Date(budget.next_usage_reset_at)) : t().state.never}</td>
      <td>
        {mayChangeBudget(budget) && (
          <a class="button small" href={withParams({ budget: idOf(budget) })} aria-label={t().limits.raiseOf(visible(budget.name ?? budget.id.slice(0, 8)))}>
            {t().limits.change}
          </a>
        )}
      </td>
    </tr>
  );
}
