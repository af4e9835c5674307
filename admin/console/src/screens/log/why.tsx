// Why a call went as it did: one sentence, then each target with what was decided and what came of it. All reasons are the
// interface's own; nothing is worked out here but which sentence fits.
import { t } from "../../i18n";
import { Status, Tag } from "../../kit/basics";
import { duration, visible } from "../../kit/words";
import { screen } from "../../nav/query";
import type { Log } from "../logs/types";

interface Outcome {
  log_id: string;
  status: number | null;
  is_success: boolean;
  error_code: string | null;
  retries: number;
  response_time: number | null;
}

interface Step {
  option: string;
  is_reached: boolean;
  share: number | null;
  why: string[];
  target: { provider: string | null; virtual_key: string | null; model: string | null; refusal: string | null } | null;
  outcome: Outcome | null;
}

interface Limit {
  whose: string;
  message: string | null;
  verdict: string;
}

export interface Explanation {
  plan: Step[] | null;
  config: { slug: string | null; version: number | null; source: string } | null;
  limits: Limit[] | null;
  refusal?: { message?: string } | null;
  outcome: { is_success: boolean; answered_by: string | null } | null;
}

const nameOf = ({ target, option }: Step) => target?.virtual_key ?? target?.provider ?? option;

function sentence(explanation: Explanation, log: Log): string {
  const texts = t().log;
  const tried = (explanation.plan ?? []).filter(({ outcome }) => outcome);
  const good = tried.find(({ outcome }) => outcome!.is_success);
  if (log.metrics.cache_status?.includes("HIT")) return texts.cached;
  if (tried.length === 0) return log.metrics.is_success ? texts.firstTry : texts.refused;
  if (!good) return texts.allFailed(tried.length);
  if (tried.indexOf(good) === 0) return `${texts.firstTry} ${texts.answered(nameOf(good))}`;
  const failed = tried.slice(0, tried.indexOf(good)).map(nameOf).join(", ");
  return `${texts.rescued(failed)} ${texts.answered(nameOf(good))}`;
}

/** The provider's or the gateway's own words for a failure, as the answer has them. */
function told(log: Log): string | null {
  const body = log.response.body;
  const message = body?.error?.message ?? body?.message ?? (typeof body?.error === "string" ? body.error : null);
  return !log.metrics.is_success && typeof message === "string" ? message : null;
}

export function Why({ explanation, log }: { explanation: Explanation; log: Log }) {
  const texts = t().log;
  const plan = explanation.plan ?? [];
  const { config } = explanation;
  const words = told(log) ?? explanation.refusal?.message ?? null;
  const m = log.metrics;
  const like = { ...(m.error_code ? { error: m.error_code } : { status: String(log.response.status) }), ...(m.virtual_key ? { provider: m.virtual_key } : {}) };
  return (
    <>
      <p class="sentence">{visible(sentence(explanation, log))}</p>
      {words && (
        <p lang="en" class="quiet">
          “{visible(words)}”
        </p>
      )}
      {(explanation.limits ?? []).filter(({ message }) => message).map(({ message, whose }) => (
        <p key={whose + message} lang="en">
          {visible(message!)}
        </p>
      ))}
      <Steps plan={plan} />
      <div class="row" style={{ marginBlockStart: "12px" }}>
        {config?.slug && (
          <Tag>
            {texts.config} {visible(config.slug)}
            {config.version !== null && ` · ${texts.version(config.version)}`}
          </Tag>
        )}
        <a class="button small" href={screen("logs", like)}>
          {texts.like}
        </a>
        {m.trace_id && (
          <a class="button small" href={screen(`traces/${encodeURIComponent(m.trace_id)}`)}>
            {texts.trace}
          </a>
        )}
      </div>
    </>
  );
}

function Steps({ plan }: { plan: Step[] }) {
  const texts = t().log;
  if (plan.length === 0) return null;
  // Times of a request's tries count from its begin, so each begins where the one before ended.
  const ends = plan.map(({ outcome }) => outcome?.response_time ?? 0);
  const whole = Math.max(1, ...ends);
  const begins = ends.map((_, index) => Math.min(ends[index]!, Math.max(0, ...ends.slice(0, index))));
  return (
    <ol class="steps">
      {plan.map((step, index) => {
        const { outcome, target } = step;
        return (
          <li key={step.option}>
            <span class="when">{outcome ? duration(ends[index]) : ""}</span>
            <span class="track" aria-hidden="true">
              {outcome && (
                <i
                  class={outcome.is_success ? "" : "bad"}
                  style={{ insetInlineStart: `${(begins[index]! / whole) * 96}%`, inlineSize: `${((ends[index]! - begins[index]!) / whole) * 96}%` }}
                />
              )}
            </span>
            <span class="what">
              <strong>{visible(nameOf(step))}</strong>
              {target?.model && <span>{visible(target.model)}</span>}
              {outcome ? <Status status={outcome.status} /> : <Tag>{texts.notReached}</Tag>}
              {outcome && outcome.retries > 0 && <span class="quiet">{texts.retries(outcome.retries)}</span>}
              {outcome?.error_code && <span>{visible(outcome.error_code)}</span>}
              <span class="reasons" lang="en">
                {visible([...step.why, target?.refusal].filter(Boolean).join(" · "))}
              </span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}
