// Keys: who may call and how much. Making one shows it once; suspending, rotating and deleting say what goes with it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import type { Page } from "../api/page";
import { workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { pageNumber, Pages } from "../kit/pages";
import { openRow } from "../kit/rows";
import { Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { day, visible } from "../kit/words";
import { param, setParams, withParams } from "../nav/query";
import { KeyView } from "./keys/key";
import { NewKey } from "./keys/new_key";
import { Limits } from "./keys/limits";
import { mayMakeKeys } from "./keys/rights";
import { KeyStatus } from "./keys/status";
import type { Key } from "./keys/types";

const PAGE = 50;
const KINDS = ["workspace-service", "workspace-user", "organisation-service"];

export default function Keys() {
  const texts = t().keys;
  const [kind, page, open] = [param("kind"), pageNumber(), param("key")];
  const isNew = param("new") === "1";
  const isMade = useSignal(false);
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const keys = useLoaded<Page<Key>>(`keys ${workspace.value} ${kind} ${page}`, () => get<Page<Key>>("/api-keys", { type: kind, page_size: PAGE, current_page: page - 1 }));
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
        {mayMakeKeys() && (
          <a class="button main" href={withParams({ new: "1", key: null })}>
            {texts.create}
          </a>
        )}
      </div>
      <section class="panel">
        <Part state={keys.state.value} again={keys.reload} lines={8}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={texts.empty} action={mayMakeKeys() && <a class="button" href={withParams({ new: "1" })}>{texts.create}</a>}>
                {texts.emptyWhy}
              </Empty>
            ) : (
              <>
                <Table keys={found.data} open={open} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
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
            <th scope="col">{t().state.status}</th>
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
              <td class="nowrap">{key.expires_at ? day(new Date(key.expires_at)) : <span class="quiet">{t().state.never}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
