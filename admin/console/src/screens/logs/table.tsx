// Rows of logs, in the list and wherever else calls are listed.
import { useKeyNames } from "../../api/names";
import { t } from "../../i18n";
import { Status } from "../../kit/basics";
import { openRow } from "../../kit/rows";
import { cents, clock, count, day, duration, visible } from "../../kit/words";
import { withParams } from "../../nav/query";
import type { LogRow } from "./types";

const today = () => new Date().toDateString();

/** `/v1/chat/completions` → `chat/completions`. */
export const shortPath = (path: string | null) => (path ?? "").replace(/^\/v1\//, "");

export function LogTable({ rows, open }: { rows: LogRow[]; open: string }) {
  const texts = t().logs;
  const nameOf = useKeyNames();
  const now = today();
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{texts.time}</th>
            <th scope="col">{texts.status}</th>
            <th scope="col">{texts.model}</th>
            <th scope="col">{texts.provider}</th>
            <th scope="col" class="if-wide">{texts.path}</th>
            <th scope="col">{texts.key}</th>
            <th scope="col">{texts.person}</th>
            <th scope="col" class="number">{texts.tokens}</th>
            <th scope="col" class="number">{texts.cost}</th>
            <th scope="col" class="number">{texts.took}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const at = new Date(row.created_at);
            return (
              <tr key={row.id} class={`can-open ${row.id === open ? "is-open" : ""}`} onClick={openRow}>
                <td class="nowrap number" style={{ textAlign: "start" }}>
                  <a class="row-link" href={withParams({ log: row.id })} title={at.toISOString()}>
                    {at.toDateString() === now ? "" : `${day(at)} `}
                    {clock(at, { millis: true })}
                  </a>
                </td>
                <td class="nowrap">
                  <Status status={row.response_status_code} /> {row.error_code && <span class="quiet one-line" title={row.error_code}>{visible(row.error_code)}</span>}
                </td>
                <td>
                  <span class="one-line" title={row.ai_model ?? ""}>{visible(row.ai_model || row.requested_model || "–")}</span>
                </td>
                <td>
                  <span class="one-line">{visible(row.virtual_key ?? row.ai_org ?? "–")}</span>
                </td>
                <td class="if-wide">
                  <span class="one-line quiet">{visible(shortPath(row.request_url))}</span>
                </td>
                <td>
                  <span class="one-line">{visible(nameOf(row.api_key_id))}</span>
                </td>
                <td>
                  <span class="one-line">{visible(row.metadata?._user ?? "")}</span>
                </td>
                <td class="number nowrap">
                  {count(row.req_units ?? 0)} <span class="quiet">/ {count(row.res_units ?? 0)}</span>
                </td>
                <td class="number">{cents(row.cost)}</td>
                <td class="number nowrap">{duration(row.response_time)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
