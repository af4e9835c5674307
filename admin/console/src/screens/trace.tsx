// All calls of a trace on one axis of time, nested as their spans say.
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import { workspace } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Status } from "../kit/basics";
import { openRow } from "../kit/rows";
import { Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { cents, clock, count, duration, visible } from "../kit/words";
import { param, setParams, withParams } from "../nav/query";
import { place } from "../nav/router";
import { LogView } from "./log";
import { shortPath } from "./logs/table";
import type { LogRow } from "./logs/types";

interface Page {
  data: LogRow[];
  total: number;
  total_is_capped: boolean;
}

export default function Trace() {
  const id = decoded(place.value.path.split("/")[1] ?? "");
  const open = param("log");
  useEffect(() => {
    document.title = `${t().trace.title} · Portcullis`;
  }, []);
  const calls = useLoaded<Page>(`trace ${id} ${workspace.value}`, () => get<Page>("/logs", { trace_id: id, page_size: 100 }));
  return (
    <>
      <div class="head">
        <h1>
          {t().trace.title} <span class="quiet">{visible(id)}</span>
        </h1>
        <AsText path="/logs" query={{ trace_id: id, page_size: 100 }} />
      </div>
      <section class="panel">
        <Part state={calls.state.value} again={calls.reload}>
          {(page) => (page.data.length === 0 ? <Empty title={t().trace.empty} /> : <Calls page={page} open={open} />)}
        </Part>
      </section>
      {open && (
        <Side title={t().log.title} close={() => setParams({ log: null })}>
          <LogView key={open} id={open} />
        </Side>
      )}
    </>
  );
}

/** People type addresses too: what is no encoding stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** How deep each call lies below the span that began the trace. */
export function depths(rows: Pick<LogRow, "span_id" | "parent_span_id">[]): number[] {
  const bySpan = new Map(rows.map((row) => [row.span_id, row]));
  return rows.map((row) => {
    let depth = 0;
    let above = row.parent_span_id ? bySpan.get(row.parent_span_id) : undefined;
    // Spans are named by clients, who may name them in a circle.
    while (above && depth < 12) {
      depth += 1;
      above = above.parent_span_id ? bySpan.get(above.parent_span_id) : undefined;
    }
    return depth;
  });
}

function Calls({ page, open }: { page: Page; open: string }) {
  const texts = t().logs;
  const rows = [...page.data].sort((a, b) => a.created_at.localeCompare(b.created_at));
  const depth = depths(rows);
  const begins = rows.map((row) => new Date(row.created_at).getTime());
  const [first, last] = [Math.min(...begins), Math.max(...rows.map((row, index) => begins[index]! + (row.response_time ?? 0)))];
  const whole = Math.max(1, last - first);
  const sum = rows.reduce((all, { cost }) => all + (cost ?? 0), 0);
  const tokens = rows.reduce((all, { req_units, res_units }) => all + (req_units ?? 0) + (res_units ?? 0), 0);
  return (
    <>
      <header>
        <span>{t().trace.calls(page.total)}{page.total > rows.length && ` · ${t().state.ofMany(count(rows.length), count(page.total), page.total_is_capped)}`}</span>
        <span class="quiet">
          {duration(last - first)} · {count(tokens)} {t().trace.tokens} · {cents(sum)}
        </span>
      </header>
      <div class="scroll">
        <table class="table cards">
          <thead>
            <tr>
              <th scope="col">{texts.time}</th>
              <th scope="col">{texts.status}</th>
              <th scope="col">{texts.model}</th>
              <th scope="col">{texts.path}</th>
              <th scope="col">{texts.took}</th>
              <th scope="col" class="number">{texts.cost}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={row.id} class={`can-open ${row.id === open ? "is-open" : ""}`} onClick={openRow}>
                <td class="nowrap" style={{ paddingInlineStart: `${10 + depth[index]! * 16}px` }}>
                  <a class="row-link" href={withParams({ log: row.id })}>
                    {clock(new Date(row.created_at), { millis: true })}
                  </a>
                </td>
                <td>
                  <Status status={row.response_status_code} />
                </td>
                <td>
                  <span class="one-line">{visible(row.ai_model || "–")}</span>
                </td>
                <td class="quiet">
                  <span class="one-line">{visible(shortPath(row.request_url))}</span>
                </td>
                <td>
                  <span class="trace-bar">
                    <i class={row.is_success ? "" : "bad"} style={{ insetInlineStart: `${((begins[index]! - first) / whole) * 98}%`, inlineSize: `${((row.response_time ?? 0) / whole) * 98}%` }} />
                  </span>
                  <span class="hidden-visually">{duration(row.response_time)}</span>
                </td>
                <td class="number">{cents(row.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
