// Keys: who may call and how much. Making one shows it once; suspending, rotating and deleting say what goes with it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import { may, workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Bar, Tag } from "../kit/basics";
import { Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { count, day, dollars, short, visible } from "../kit/words";
import { param, setParams, withParams } from "../nav/query";
import { KeyView } from "./keys/key";
import { NewKey } from "./keys/new_key";
import { openRow } from "./logs/table";

export interface Key {
  id: string;
  name: string;
  description: string | null;
  key: string;
  type: string;
  workspace_id: string | null;
  status: string;
  scopes: string[];
  rate_limits: { type: string; unit: string; value: number }[];
  usage_limits: { type: string | null; credit_limit: number | null; current_usage: number; periodic_reset: string | null; status: string } | null;
  expires_at: string | null;
  created_at: string;
}

interface Page {
  data: Key[];
  total: number;
}

const PAGE = 50;
const KINDS = ["workspace-service", "workspace-user", "organisation-service"];

export const mayMake = () => may("workspace_service_api_keys.create", "workspace_user_api_keys.create", "organisation_service_api_keys.create");

export default function Keys() {
  const texts = t().keys;
  const [kind, page, open] = [param("kind"), Number(param("page") || 1), param("key")];
  const isNew = param("new") === "1";
  const isMade = useSignal(false);
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const keys = useLoaded<Page>(`keys ${workspace.value} ${kind} ${page}`, () => get<Page>("/api-keys", { type: kind, page_size: PAGE, current_page: page - 1 }));
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <select class="plain" aria-label={texts.kind} value={kind} onChange={(event) => setParams({ kind: event.currentTarget.value, page: null })}>
          <option value="">{texts.all}</option>
          {KINDS.map((one) => (
            <option key={one} value={one}>
              {texts.kinds[one]}
            </option>
          ))}
        </select>
        <AsText path="/api-keys" query={{ type: kind, page_size: PAGE }} />
        {mayMake() && (
          <a class="button main" href={withParams({ new: "1", key: null })}>
            {texts.create}
          </a>
        )}
      </div>
      <section class="panel">
        <Part state={keys.state.value} again={keys.reload} lines={8}>
          {(found) =>
            found.data.length === 0 ? (
              <Empty title={texts.empty} action={mayMake() && <a class="button" href={withParams({ new: "1" })}>{texts.create}</a>}>
                {texts.emptyWhy}
              </Empty>
            ) : (
              <>
                <Table keys={found.data} open={open} />
                <div class="row wide" style={{ padding: "8px 12px" }}>
                  <span class="quiet">{t().state.ofMany(count(found.data.length), count(found.total), false)}</span>
                  <span class="row">
                    {page > 1 && <a class="button small" href={withParams({ page: page > 2 ? String(page - 1) : null })}>‹</a>}
                    {page * PAGE < found.total && <a class="button small" href={withParams({ page: String(page + 1) })}>›</a>}
                  </span>
                </div>
              </>
            )
          }
        </Part>
      </section>
      {isNew && (
        <Side
          title={texts.create}
          close={() => {
            setParams({ new: null });
            if (isMade.value) keys.reload();
          }}
        >
          <NewKey
            done={() => {
              isMade.value = true;
              keys.reload();
            }}
          />
        </Side>
      )}
      {open && !isNew && (
        <Side title={texts.key} close={() => setParams({ key: null })}>
          <KeyView key={open} id={open} changed={keys.reload} />
        </Side>
      )}
    </>
  );
}

function Table({ keys, open }: { keys: Key[]; open: string }) {
  const texts = t().keys;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.status}</th>
            <th scope="col">{texts.kind}</th>
            <th scope="col">{texts.workspace}</th>
            <th scope="col">{texts.key}</th>
            <th scope="col">{texts.limits}</th>
            <th scope="col">{texts.expires}</th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id} class={`can-open ${key.id === open ? "is-open" : ""}`} onClick={openRow}>
              <td>
                <a class="row-link" href={withParams({ key: key.id, new: null })}>
                  {visible(key.name)}
                </a>
              </td>
              <td>
                <KeyStatus status={key.status} />
              </td>
              <td>{texts.kinds[key.type] ?? key.type}</td>
              <td>{visible(workspaceName(key.workspace_id))}</td>
              <td>
                <code>{key.key}</code>
              </td>
              <td>
                <Limits of={key} />
              </td>
              <td class="nowrap">{key.expires_at ? day(new Date(key.expires_at)) : <span class="quiet">{texts.never}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function KeyStatus({ status }: { status: string }) {
  return <Tag meaning={status === "active" ? "ok" : status === "suspended" ? "warn" : "bad"}>{t().keys.statuses[status] ?? status}</Tag>;
}

export function Limits({ of }: { of: Pick<Key, "rate_limits" | "usage_limits"> }) {
  const texts = t().keys;
  const { rate_limits, usage_limits: budget } = of;
  const [limit, used] = [budget?.credit_limit ?? null, budget?.current_usage ?? 0];
  const share = limit ? used / limit : 0;
  const shown = (value: number) => (budget?.type !== "tokens" ? dollars(value) : short(value));
  return (
    <span class="row">
      {rate_limits.map(({ type, unit, value }) => (
        <span key={type + unit} class="nowrap">
          {short(value)} {unit}
        </span>
      ))}
      {limit !== null && (
        <>
          <span class="nowrap">{texts.used(shown(used), shown(limit))}</span>
          <Bar share={share} meaning={share >= 1 ? "bad" : share > 0.8 ? "warn" : ""} />
        </>
      )}
      {rate_limits.length === 0 && limit === null && <span class="quiet">{t().state.none}</span>}
    </span>
  );
}
