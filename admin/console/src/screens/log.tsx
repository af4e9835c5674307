// One log: why it went as it did on top, then what was said, what it cost, and everything as it came. The log and its
// explanation are asked at the same time.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/call";
import { useLoaded } from "../api/loaded";
import { useKeyNames } from "../api/names";
import { workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Boundary } from "../kit/boundary";
import { Copy, Status, Tag } from "../kit/basics";
import { Failed, Lines, Part } from "../kit/states";
import { cents, dateAndTime, duration, visible } from "../kit/words";
import { screen } from "../nav/query";
import { Conversation } from "./log/conversation";
import { Json } from "./log/json";
import { Usage } from "./log/usage";
import { Why, type Explanation } from "./log/why";
import { shortPath } from "./logs/table";
import type { Log } from "./logs/types";

/** Logs arrive within seconds; a page that was opened by an id looks again for a while. */
const LOOKS = 5;

export function LogPage({ id }: { id: string }) {
  return (
    <>
      <div class="head">
        <h1>{t().log.title}</h1>
        <AsText path={`/logs/${encodeURIComponent(id)}`} />
        <a class="button" href={screen("logs")}>
          {t().menu.logs}
        </a>
      </div>
      <LogView key={id} id={id} />
    </>
  );
}

export const LogView = ({ id }: { id: string }) => (
  <Boundary>
    <Whole id={id} />
  </Boundary>
);

function Whole({ id }: { id: string }) {
  const looks = useSignal(0);
  const path = encodeURIComponent(id);
  const log = useLoaded<Log>(`log ${id} ${workspace.value}`, () => get<Log>(`/logs/${path}`));
  const why = useLoaded<Explanation>(`why ${id} ${workspace.value}`, () => post<Explanation>("/explain", { request_id: id }));
  const state = log.state.value;
  const isAwaited = state.fault?.status === 404 && looks.value < LOOKS;
  useEffect(() => {
    if (!isAwaited || state.isLoading) return;
    const timer = setTimeout(() => {
      looks.value += 1;
      log.reload();
      why.reload();
    }, 2000);
    return () => clearTimeout(timer);
  }, [isAwaited, state.isLoading]);
  if (isAwaited) {
    return (
      <>
        <p class="quiet">{t().log.notYet}</p>
        <Lines />
      </>
    );
  }
  return (
    <div class="log">
      <Part state={state} again={log.reload}>
        {(found) => (
          <>
            <TopLine log={found} />
            <section class="panel">
              <header>
                <h2>{t().log.why}</h2>
              </header>
              <div class="inside">
                {why.state.value.fault && why.state.value.fault.status !== 404 ? (
                  <Failed fault={why.state.value.fault} again={why.reload} />
                ) : why.state.value.data ? (
                  <Why explanation={why.state.value.data} log={found} />
                ) : why.state.value.isLoading ? (
                  <Lines number={3} />
                ) : (
                  <p class="quiet">{t().log.noWhy}</p>
                )}
              </div>
            </section>
            <Details log={found} />
          </>
        )}
      </Part>
    </div>
  );
}

function TopLine({ log }: { log: Log }) {
  const { metrics } = log;
  return (
    <div class="top-line">
      <Status status={log.response.status} />
      {metrics.error_code && <strong>{visible(metrics.error_code)}</strong>}
      <span title={log.created_at}>{dateAndTime(new Date(log.created_at))}</span>
      <span class="number">{duration(metrics.response_time)}</span>
      <span class="number">{cents(metrics.cost)}</span>
      <span>
        <code>{log.id}</code> <Copy text={log.id} />
      </span>
    </div>
  );
}

const TABS = ["conversation", "usage", "facts", "raw"] as const;

function Details({ log }: { log: Log }) {
  const tab = useSignal<(typeof TABS)[number]>("conversation");
  const texts = t().log;
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    tab.value = TABS[(TABS.indexOf(tab.value) + step + TABS.length) % TABS.length]!;
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`#tab-${tab.value}`)?.focus();
  };
  return (
    <section>
      <div class="tabs" role="tablist" aria-label={texts.title} onKeyDown={move}>
        {TABS.map((one) => (
          <button key={one} id={`tab-${one}`} type="button" role="tab" aria-selected={tab.value === one} aria-controls="tab-panel" tabIndex={tab.value === one ? 0 : -1} onClick={() => (tab.value = one)}>
            {texts[one]}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} style={{ paddingBlockStart: "12px" }}>
        {tab.value === "conversation" && <Conversation log={log} />}
        {tab.value === "usage" && <Usage metrics={log.metrics} />}
        {tab.value === "facts" && <Facts log={log} />}
        {tab.value === "raw" && <Json value={log} />}
      </div>
    </section>
  );
}

function Facts({ log }: { log: Log }) {
  const texts = t().log;
  const nameOf = useKeyNames();
  const m = log.metrics;
  const rows: [string, string | null | undefined][] = [
    [texts.path, `${log.request.method} ${shortPath(log.request.url)}`],
    [texts.model, m.requested_model && m.requested_model !== m.ai_model ? `${m.ai_model} (${m.requested_model})` : m.ai_model],
    [texts.provider, [m.virtual_key, m.ai_org].filter(Boolean).join(" · ")],
    [texts.key, nameOf(m.api_key_id)],
    [texts.workspace, workspaceName(m.workspace_id)],
    [texts.config, m.config],
    [texts.took, duration(m.response_time)],
    [texts.firstToken, m.time_to_first_token === null ? null : duration(m.time_to_first_token)],
    [texts.gateway, duration(m.gateway_processing_time)],
    [texts.cache, m.cache_status?.toLowerCase()],
    [texts.source, m.source],
  ];
  return (
    <dl class="facts">
      {rows.filter(([, value]) => value).map(([name, value]) => [
        <dt key={name}>{name}</dt>,
        <dd key={`${name}:`}>{visible(value!)}</dd>,
      ])}
      {Object.keys(m.metadata ?? {}).length > 0 && [
        <dt key="metadata">{texts.metadata}</dt>,
        <dd key="metadata:" class="row">
          {Object.entries(m.metadata ?? {}).map(([name, value]) => (
            <Tag key={name}>
              {visible(name)}: {visible(String(value))}
            </Tag>
          ))}
        </dd>,
      ]}
    </dl>
  );
}
