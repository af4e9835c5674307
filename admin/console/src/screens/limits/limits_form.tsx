// Changing the name and the limits of something: the difference is reviewed, tried without storing, and refused where somebody
// else was faster. Only what differs is sent.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { differences } from "../../kit/difference";
import { Review } from "../../kit/review";
import { notify } from "../../kit/surfaces";
import { visible } from "../../kit/words";
import { changedBudget, perMinute, repetitionOf, sentParts, withPerMinute, type RateLimit, type Repetition, type UsageLimit } from "./types";

export interface Limited {
  name: string;
  rate_limits: RateLimit[] | null;
  usage_limits: UsageLimit | null;
}

interface LimitsFormProps {
  of: Limited;
  /** How long its name may be, and the lowest rate. */
  bounds: { name: number; rate: number };
  /** Of their own key people change the name alone. */
  isNameOnly?: boolean;
  send: (body: Record<string, unknown>, isTrial: boolean) => Promise<{ warnings?: string[] } | null>;
  done: () => void;
  close: () => void;
}

/** An empty field is no limit. */
const number = (text: string) => (text.trim() === "" ? null : Number(text));
const text = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));

const RESETS = ["monthly", "weekly", "days", ""] as const;

export function LimitsForm({ of, bounds, isNameOnly, send, done, close }: LimitsFormProps) {
  const texts = t().limits;
  const usage = sentParts(of.usage_limits);
  const stored: Repetition = usage ? repetitionOf(usage) : { reset: "monthly", days: null };
  const form = useSignal({
    name: of.name, rate: text(perMinute(of.rate_limits)), amount: text(usage?.credit_limit), threshold: text(usage?.alert_threshold), reset: stored.reset, days: text(stored.days),
  });
  const isReviewed = useSignal(false);
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const { name, rate, amount, threshold, reset, days } = form.value;
  const before = { name: of.name, rate_limits: withPerMinute(of.rate_limits, perMinute(of.rate_limits)), usage_limits: usage };
  const after = {
    name: name.trim(),
    rate_limits: withPerMinute(of.rate_limits, number(rate)),
    usage_limits: changedBudget(usage, { credit_limit: number(amount), alert_threshold: number(threshold) }, { reset, days: number(days) }),
  };
  const changed = (Object.keys(after) as (keyof typeof after)[]).filter((field) => differences(before[field], after[field]).length > 0);
  const body = () => Object.fromEntries(changed.map((field) => [field, after[field]]));
  const isMoney = (usage?.type ?? "cost") === "cost";
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        isReviewed.value = true;
      }}
    >
      <Field label={t().state.name}>{(control) => <input {...control} required maxLength={bounds.name} value={name} onInput={(event) => set({ name: event.currentTarget.value })} />}</Field>
      {!isNameOnly && (
        <div class="two">
          <Field label={texts.rate} hint={texts.none}>
            {(control) => <input {...control} type="number" min={bounds.rate} step="1" value={rate} onInput={(event) => set({ rate: event.currentTarget.value })} />}
          </Field>
          <Field label={isMoney ? texts.dollars : texts.tokens} hint={texts.none}>
            {(control) => <input {...control} type="number" min="1" step="any" value={amount} onInput={(event) => set({ amount: event.currentTarget.value })} />}
          </Field>
          <Field label={texts.threshold} hint={texts.noThreshold}>
            {(control) => <input {...control} type="number" min="1" step="any" value={threshold} onInput={(event) => set({ threshold: event.currentTarget.value })} />}
          </Field>
          <Field label={texts.period}>
            {(control) => (
              <select {...control} value={reset} onChange={(event) => set({ reset: event.currentTarget.value as Repetition["reset"] })}>
                {RESETS.map((one) => (
                  <option key={one} value={one}>
                    {texts.resets[one]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {reset === "days" && (
            <Field label={texts.days}>
              {(control) => <input {...control} type="number" required min="1" max="365" step="1" value={days} onInput={(event) => set({ days: event.currentTarget.value })} />}
            </Field>
          )}
        </div>
      )}
      <div class="row">
        <button type="submit" class="button main" disabled={changed.length === 0}>
          {t().review.look}
        </button>
        <button type="button" class="button" onClick={close}>
          {t().state.cancel}
        </button>
      </div>
      {isReviewed.value && (
        <Review
          title={t().review.title(visible(of.name))} of={changed.flatMap((field) => differences(before[field], after[field], field))} send={(isTrial) => send(body(), isTrial)} close={() => (isReviewed.value = false)}
          done={() => {
            notify(t().review.saved);
            done();
          }}
          again={done}
        />
      )}
    </form>
  );
}
