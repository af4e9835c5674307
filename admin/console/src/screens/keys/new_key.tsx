// A new key of a workspace: made, shown once, and tried at the proxy at once, so that nobody finds out later that it does not
// work. The secret lives in this part's state: it is in no store, no cache and no address, and goes when the tab is hidden.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, post } from "../../api/call";
import { forget } from "../../api/loaded";
import { session } from "../../api/session";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { OneTimeSecret } from "../../kit/one_time_secret";
import { Failed } from "../../kit/states";
import { duration } from "../../kit/words";
import { WorkspaceField, workspaceChoices } from "../../kit/workspace_field";
import { MAX_NAME } from "./types";

export interface MadeKey {
  id: string;
  key: string;
}

const PRESETS = {
  inference: ["completions.write", "models.list", "mcp.invoke", "prompts.render"],
  read: ["logs.list", "logs.view", "analytics.view"],
} as const;
type Preset = keyof typeof PRESETS;

const DAYS = [0, 7, 30, 90, 365];

export function NewKey({ done }: { done: (made: MadeKey) => void }) {
  const texts = t().keys;
  const form = useSignal({ name: "", kind: "service", preset: "inference" as Preset, rate: "", budget: "", days: 0, where: workspaceChoices()[0]?.slug ?? "" });
  const made = useSignal<MadeKey | null>(null);
  const isBusy = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const make = async () => {
    const { name, kind, preset, rate, budget, days, where } = form.value;
    isBusy.value = true;
    fault.value = null;
    try {
      const key = await post<MadeKey>(
        `/api-keys/workspace/${kind}`,
        {
          name,
          workspace_id: where,
          scopes: PRESETS[preset],
          ...(kind === "user" ? { user_id: session.value!.user.id } : {}),
          ...(rate ? { rate_limits: [{ type: "requests", unit: "rpm", value: Number(rate) }] } : {}),
          ...(budget ? { usage_limits: { type: "cost", credit_limit: Number(budget), periodic_reset: "monthly" } } : {}),
          ...(days ? { expires_at: new Date(Date.now() + days * 86400e3).toISOString() } : {}),
        },
        { workspace: where },
      );
      made.value = key;
      forget();
      done(key);
    } catch (error) {
      fault.value = error as Fault;
    }
    isBusy.value = false;
  };
  if (made.value) return <Secret key={made.value.key} made={made.value} isCalling={form.value.preset === "inference"} />;
  const wrong = (path: string) => fault.value?.about(path);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <Field label={t().state.name} wrong={wrong("name")}>
        {(control) => <input {...control} required maxLength={MAX_NAME} value={form.value.name} placeholder="checkout" onInput={(event) => set({ name: event.currentTarget.value })} />}
      </Field>
      <div class="two">
        <Field label={texts.purpose}>
          {(control) => (
            <select {...control} value={form.value.kind} onChange={(event) => set({ kind: event.currentTarget.value })}>
              <option value="service">{texts.forApp}</option>
              <option value="user">{texts.forMe}</option>
            </select>
          )}
        </Field>
        <WorkspaceField value={form.value.where} wrong={wrong("workspace_id")} change={(where) => set({ where })} />
        <Field label={texts.preset} wrong={wrong("scopes")}>
          {(control) => (
            <select {...control} value={form.value.preset} onChange={(event) => set({ preset: event.currentTarget.value as Preset })}>
              <option value="inference">{texts.presets.inference}</option>
              <option value="read">{texts.presets.read}</option>
            </select>
          )}
        </Field>
        <Field label={texts.until} wrong={wrong("expires_at")}>
          {(control) => (
            <select {...control} value={form.value.days} onChange={(event) => set({ days: Number(event.currentTarget.value) })}>
              {DAYS.map((days) => (
                <option key={days} value={days}>
                  {days === 0 ? t().state.never : texts.days(days)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={`${t().limits.rate} (${t().state.optional})`} wrong={wrong("rate_limits[0].value")}>
          {(control) => <input {...control} type="number" min="1" step="1" value={form.value.rate} onInput={(event) => set({ rate: event.currentTarget.value })} />}
        </Field>
        <Field label={`${texts.budget} (${t().state.optional})`} wrong={wrong("usage_limits.credit_limit")}>
          {(control) => <input {...control} type="number" min="1" step="any" value={form.value.budget} onInput={(event) => set({ budget: event.currentTarget.value })} />}
        </Field>
      </div>
      {fault.value && <Failed fault={fault.value} />}
      <div>
        <button type="submit" class="button main" disabled={isBusy.value}>
          {texts.make}
        </button>
      </div>
    </form>
  );
}

/** The secret, once, and whether the gateway takes it. */
export function Secret({ made, isCalling }: { made: MadeKey; isCalling: boolean }) {
  const texts = t().keys;
  const tried = useSignal<number | "no" | null>(null);
  useEffect(() => {
    if (!isCalling) return;
    const end = new AbortController();
    void attempt(made.key, end.signal).then((result) => (tried.value = result));
    return () => end.abort();
  }, []);
  return (
    <div class="form">
      <OneTimeSecret text={made.key} hint={texts.shown} />
      <p role="status" class={typeof tried.value === "number" ? "better" : "quiet"}>
        {!isCalling ? texts.cannotCall : tried.value === null ? texts.trying : tried.value === "no" ? texts.notTried : `✓ ${texts.tried(duration(tried.value))}`}
      </p>
    </div>
  );
}

const TRYING_MS = 30_000;

/** Asks for the models until the proxy knows the key; without the cookie, as an application would. */
async function attempt(key: string, stop: AbortSignal): Promise<number | "no"> {
  const begin = performance.now();
  while (!stop.aborted && performance.now() - begin < TRYING_MS) {
    const answer = await fetch("/v1/models", { headers: { "x-gateway-api-key": key }, credentials: "omit" }).catch(() => null);
    if (answer?.ok) return performance.now() - begin;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return "no";
}
