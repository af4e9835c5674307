// The audit trail: who did what to which object, and what it was before and after. Filters by object, person, kind and time
// stand in the address, so that every object can link to its own history.
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import { may, workspace } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Status } from "../kit/basics";
import { pageNumber, Pages } from "../kit/pages";
import { PeriodChoice } from "../kit/period";
import { openRow } from "../kit/rows";
import { Denied, Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { clock, dateAndTime, visible } from "../kit/words";
import { period, periodKey } from "../nav/period";
import { param, screen, setParams, withParams } from "../nav/query";
import { EntryView } from "./audit/entry";
import { AuditFilters, FILTERS, filterQuery } from "./audit/filters";
import { actorOf, objectOf, type Entry, type EntryPage } from "./audit/types";

const PAGE = 50;

export default function Audit() {
  const texts = t().audit;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const open = param("entry");
  const query = () => {
    const { from, to } = period();
    return { start_time: from.toISOString(), end_time: to.toISOString(), ...filterQuery(), page_size: PAGE, current_page: pageNumber() - 1 };
  };
  const chosen = JSON.stringify(filterQuery());
  const list = useLoaded<EntryPage>(may("audit_logs.list") ? `audit ${workspace.value} ${periodKey()} ${chosen} ${pageNumber()}` : null, () => get("/audit-logs", query()));
  const state = list.state.value;
  const found = state.data?.records.find(({ id }) => id === open);
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <PeriodChoice />
        <AsText path="/audit-logs" query={query()} />
        {state.at && <span class="quiet">{t().state.asOf(clock(state.at))}</span>}
      </div>
      {may("audit_logs.list") ? (
        <>
          <AuditFilters />
          <section class="panel">
            <Part state={state} again={list.reload} lines={10}>
              {(page) =>
                page.total === 0 ? (
                  <Nothing isFiltered={chosen !== "{}"} />
                ) : (
                  <>
                    <Table entries={page.records} open={open} />
                    <Pages size={PAGE} number={page.records.length} total={page.total} />
                  </>
                )
              }
            </Part>
          </section>
        </>
      ) : (
        <Denied />
      )}
      {open && state.data && (
        <Side title={texts.entry} close={() => setParams({ entry: null })} actions={found && <a class="button small" href={linkTo(found)} aria-label={texts.link}>↗</a>}>
          {found ? <EntryView key={found.id} of={found} /> : <Empty title={t().state.notFound}>{texts.elsewhere}</Empty>}
        </Side>
      )}
    </>
  );
}

/** The entry alone: lists go on, and a period that is relative leaves it behind. */
function linkTo({ id, timestamp, resource_id }: Entry): string {
  const [from, to] = [-1, 1].map((seconds) => new Date(new Date(timestamp).getTime() + seconds * 1000).toISOString());
  return screen("audit", { entry: id, object: resource_id, from, to });
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  const texts = t().audit;
  const drop = Object.fromEntries([...FILTERS, "page"].map((name) => [name, null]));
  return (
    <Empty
      title={texts.nothing}
      action={
        <span class="row">
          {isFiltered && (
            <button type="button" class="button" onClick={() => setParams(drop)}>
              {texts.dropFilters}
            </button>
          )}
          <button type="button" class="button" onClick={() => setParams({ from: "-30d", to: null, page: null })}>
            {t().logs.longer}
          </button>
        </span>
      }
    >
      {texts.nothingWhy}
    </Empty>
  );
}

function Table({ entries, open }: { entries: Entry[]; open: string }) {
  const texts = t().audit;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{texts.time}</th>
            <th scope="col">{texts.who}</th>
            <th scope="col">{texts.action}</th>
            <th scope="col">{texts.type}</th>
            <th scope="col">{texts.object}</th>
            <th scope="col">{t().menu.workspace}</th>
            <th scope="col">{t().logs.status}</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id} class={`can-open ${entry.id === open ? "is-open" : ""}`} onClick={openRow}>
              <td class="nowrap">
                <a class="row-link" href={withParams({ entry: entry.id })} title={entry.timestamp}>
                  {dateAndTime(new Date(entry.timestamp))}
                </a>
              </td>
              <td>
                <span class="one-line" title={entry.user_id ?? ""}>
                  {visible(actorOf(entry))}
                </span>
              </td>
              <td>{texts.actions[entry.action] ?? entry.action}</td>
              <td>{texts.types[entry.resource_type] ?? entry.resource_type}</td>
              <td>
                <span class="one-line" title={entry.resource_id ?? ""}>
                  {visible(objectOf(entry))}
                </span>
              </td>
              <td>{visible(entry.workspace_name ?? "")}</td>
              <td>
                <Status status={entry.response_status_code} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
