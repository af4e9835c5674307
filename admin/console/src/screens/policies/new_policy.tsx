// A new policy, put together as a sentence. It counts without refusing until somebody has seen what it would refuse.
import { useSignal } from "@preact/signals";
import { post } from "../../api/call";
import { forget } from "../../api/loaded";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { Failed } from "../../kit/states";
import { useWork } from "../../kit/work";
import { WorkspaceField, workspaceChoices } from "../../kit/workspace_field";
import { minAmount } from "../budgets/owner";
import { sentence } from "./sentence";
import { KEYS, KINDS, type Kind, type Policy } from "./types";

const UNITS = ["rpm", "rph", "rpd"] as const;
const RESETS = ["monthly", "weekly", ""];
const TYPES = { budgets: ["cost", "tokens", "requests"], rates: ["requests", "tokens"] } as const;

export function NewPolicy({ kind, done }: { kind: Kind; done: (id: string) => void }) {
  const texts = t().policies;
  const form = useSignal({
    name: "", where: workspaceChoices()[0]?.slug ?? "", type: TYPES[kind][0] as Policy["type"], most: "", unit: "rpm" as (typeof UNITS)[number], reset: "monthly",
    key: "", value: "*", group: "", dryRun: true,
  });
  const work = useWork();
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const { name, where, type, most, unit, reset, key, value, group, dryRun } = form.value;
  const amount = kind === "rates" ? { unit, value: Number(most) } : { credit_limit: Number(most), ...(reset ? { periodic_reset: reset } : {}) };
  const body = { name: name.trim(), type, ...amount, conditions: key.trim() ? [{ key: key.trim(), value: value.trim() }] : [], group_by: group.trim() ? [{ key: group.trim() }] : [], dry_run: dryRun };
  const make = async () => {
    let id = "";
    const isDone = await work.run(async () => {
      ({ id } = await post<{ id: string }>(KINDS[kind], { ...body, workspace_id: where }, { workspace: where }));
      forget();
    });
    if (isDone) done(id);
  };
  const bounds = kind === "rates" ? { min: 1, step: 1 } : { min: minAmount({ kind: "policy", type }), step: "any" };
  const fault = work.fault.value;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <p class="sentence" role="status">
        {sentence(body as unknown as Policy)}
      </p>
      <datalist id="policy-keys">
        {KEYS.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <div class="two">
        <Field label={t().state.name} wrong={fault?.about("name")}>
          {(control) => <input {...control} required maxLength={255} value={name} onInput={(event) => set({ name: event.currentTarget.value })} />}
        </Field>
        <WorkspaceField value={where} wrong={fault?.about("workspace_id")} change={(slug) => set({ where: slug })} />
        <Field label={texts.counts} wrong={fault?.about("type")}>
          {(control) => (
            <select {...control} value={type} onChange={(event) => set({ type: event.currentTarget.value as Policy["type"] })}>
              {TYPES[kind].map((one) => (
                <option key={one} value={one}>
                  {texts.types[one]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={texts.atMost} wrong={fault?.about("credit_limit") ?? fault?.about("value")}>
          {(control) => <input {...control} type="number" required {...bounds} value={most} onInput={(event) => set({ most: event.currentTarget.value })} />}
        </Field>
        <Field label={t().limits.period} wrong={fault?.about("unit") ?? fault?.about("periodic_reset")}>
          {(control) =>
            kind === "rates" ? (
              <select {...control} value={unit} onChange={(event) => set({ unit: event.currentTarget.value as (typeof UNITS)[number] })}>
                {UNITS.map((one) => (
                  <option key={one} value={one}>
                    {texts.units[one]}
                  </option>
                ))}
              </select>
            ) : (
              <select {...control} value={reset} onChange={(event) => set({ reset: event.currentTarget.value })}>
                {RESETS.map((one) => (
                  <option key={one} value={one}>
                    {t().limits.resets[one]}
                  </option>
                ))}
              </select>
            )
          }
        </Field>
        <Field label={texts.groupBy} hint={texts.groupByHint} wrong={fault?.about("group_by[0].key")}>
          {(control) => <input {...control} list="policy-keys" maxLength={140} autocomplete="off" spellcheck={false} placeholder="metadata._user" value={group} onInput={(event) => set({ group: event.currentTarget.value })} />}
        </Field>
        <Field label={texts.where} hint={texts.whereHint} wrong={fault?.about("conditions[0].key")}>
          {(control) => <input {...control} list="policy-keys" maxLength={140} autocomplete="off" spellcheck={false} placeholder="metadata.team" value={key} onInput={(event) => set({ key: event.currentTarget.value })} />}
        </Field>
        <Field label={texts.whereIs} hint={texts.whereIsHint} wrong={fault?.about("conditions[0].value")}>
          {(control) => <input {...control} maxLength={512} required={!!key.trim()} value={value} onInput={(event) => set({ value: event.currentTarget.value })} />}
        </Field>
      </div>
      <label class="row">
        <input type="checkbox" checked={dryRun} onChange={(event) => set({ dryRun: event.currentTarget.checked })} />
        {texts.beginDry}
      </label>
      {fault && <Failed fault={fault} />}
      <div>
        <button type="submit" class="button main" disabled={work.isBusy.value}>
          {texts.make}
        </button>
      </div>
    </form>
  );
}
