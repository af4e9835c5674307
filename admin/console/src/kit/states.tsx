// What a part shows when it has nothing to show: loading, empty, failed, not allowed. Each says what to do next.
import type { ComponentChildren } from "preact";
import type { Fault } from "../api/call";
import type { State } from "../api/loaded";
import { t } from "../i18n";
import { Copy } from "./basics";

/** Grey lines in place; they come late, so that a quick answer does not flicker. */
export function Lines({ number = 6 }: { number?: number }) {
  return (
    <div class="lines" role="status" aria-label={t().state.loading}>
      {Array.from({ length: number }, (_, index) => (
        <span key={index} style={{ inlineSize: `${92 - ((index * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

export function Empty({ title, children, action }: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

/** The page behind it is not theirs here; the interface was not even asked. */
export const Denied = () => <Empty title={t().state.denied}>{t().state.deniedWhy}</Empty>;

/** What failed, in the interface's own words, with the id by which the operator finds it. */
export function Failed({ fault, again }: { fault: Fault; again?: () => void }) {
  const texts = t().state;
  const words = explain(fault);
  return (
    <div class={`fault ${fault.status === 403 || fault.status === 404 ? "note" : ""}`} role="alert">
      <h2>{words.title}</h2>
      {words.text && <p class="quiet">{words.text}</p>}
      {fault.message && <p lang="en">{fault.message}</p>}
      <div class="row">
        {again && fault.status !== 403 && fault.type !== "reauthenticate" && (
          <button type="button" class="button small" onClick={again}>
            {texts.again}
          </button>
        )}
        {fault.type === "reauthenticate" && (
          <a class="button small" href={`/console/login?again=1&to=${encodeURIComponent(location.pathname + location.search)}`}>
            {texts.signInAgain}
          </a>
        )}
        {fault.requestId && (
          <span class="quiet">
            {texts.request} <code>{fault.requestId}</code> <Copy text={fault.requestId} />
          </span>
        )}
      </div>
    </div>
  );
}

function explain(fault: Fault): { title: string; text?: string } {
  const texts = t().state;
  if (fault.type === "reauthenticate") return { title: texts.reauthenticate };
  if (fault.status === 0) return { title: texts.failed, text: texts.unreachable };
  if (fault.status === 403) return { title: texts.denied, text: texts.deniedWhy };
  if (fault.status === 404) return { title: texts.notFound, text: texts.notFoundWhy };
  if (fault.status === 429) return { title: texts.failed, text: texts.busy(fault.retryAfter ?? 5) };
  // The interface names the setting that bounds a search; any other reason is told in its own words.
  if (fault.message.includes("DATABASE_STATEMENT_TIMEOUT_MS")) return { title: texts.failed, text: texts.tooMuch };
  if (fault.status >= 500) return { title: texts.failed, text: texts.unavailable };
  return { title: texts.failed };
}

/** A part with data: old data stays while newer is asked for, and a failure stands above it. */
export function Part<T>({ state, again, lines, children }: { state: State<T>; again?: () => void; lines?: number; children: (data: T) => ComponentChildren }) {
  if (state.data === undefined && state.fault) return <Failed fault={state.fault} again={again} />;
  if (state.data === undefined) return <Lines number={lines} />;
  return (
    <>
      {state.fault && <Failed fault={state.fault} again={again} />}
      {children(state.data)}
    </>
  );
}
