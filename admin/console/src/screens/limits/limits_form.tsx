// Changing the name and the limits of something: the difference is reviewed, tried without storing, and refused where somebody
// else was faster. Only what differs is sent.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { differences } from "../../kit/difference";
import { Review } from "../../kit/review";
import { notify } from "../../kit/surfaces";
import { perMinute, sentParts, withAmount, withPerMinute, type RateLimit, type UsageLimit } from "./types";

export interface Limited {
  name: string;
  rate_limits: RateLimit[] | null;
  usage_limits: UsageLimit | null;
}

interface LimitsFormProps {
  of: Limited;
  send: (body: Record<string, unknown>, isTrial: boolean) => Promise<{ warnings?: string[] } | null>;
  done: () => void;
  close: () => void;
}

/** An empty field is no limit. */
const number = (text: string) => (text.trim() === "" ? null : Number(text));
const text = (value: number | null) => (value === null ? "" : String(value));

const RESETS = ["monthly", "weekly", ""];

export function LimitsForm({ of, send, done, close }: LimitsFormProps) {
  const texts = t().limits;
  const usage = sentParts(of.usage_limits);
  const form = useSignal({ name: of.name, rate: text(perMinute(of.rate_limits)), amount: text(usage?.credit_limit ?? null), reset: usage ? (usage.periodic_reset ?? "") : "monthly" });
  const isReviewed = useSignal(false);
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const { name, rate, amount, reset } = form.value;
  const before = { name: of.name, rate_limits: withPerMinute(of.rate_limits, perMinute(of.rate_limits)), usage_limits: usage };
  const after = { name: name.trim(), rate_limits: withPerMinute(of.rate_limits, number(rate)), usage_limits: withAmount(usage, number(amount), reset) };
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
      <Field label={t().state.name}>{(control) => <input {...control} required maxLength={255} value={name} onInput={(event) => set({ name: event.currentTarget.value })} />}</Field>
      <div class="two">
        <Field label={t().keys.rate} hint={texts.none}>
          {(control) => <input {...control} type="number" min="1" step="1" value={rate} onInput={(event) => set({ rate: event.currentTarget.value })} />}
        </Field>
        <Field label={isMoney ? texts.dollars : texts.tokens} hint={texts.none}>
          {(control) => <input {...control} type="number" min={isMoney ? "0.01" : "1"} step={isMoney ? "0.01" : "1"} value={amount} onInput={(event) => set({ amount: event.currentTarget.value })} />}
        </Field>
        <Field label={texts.period}>
          {(control) => (
            <select {...control} value={reset} onChange={(event) => set({ reset: event.currentTarget.value })}>
              {RESETS.map((one) => (
                <option key={one} value={one}>
                  {texts.resets[one] ?? one}
                </option>
              ))}
              {!RESETS.includes(reset) && <option value={reset}>{reset}</option>}
            </select>
          )}
        </Field>
      </div>
      <div class="row">
        <button type="submit" class="button main" disabled={changed.length === 0}>
          {t().routing.review}
        </button>
        <button type="button" class="button" onClick={close}>
          {t().state.cancel}
        </button>
      </div>
      {isReviewed.value && (
        <Review
          title={t().review.title(of.name)} of={changed.flatMap((field) => differences(before[field], after[field], field))} send={(isTrial) => send(body(), isTrial)} close={() => (isReviewed.value = false)}
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
