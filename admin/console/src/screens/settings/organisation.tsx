// The organisation: its name, what holds for keys of people, applications and administration, and for every call.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { count } from "../../kit/words";
import { mayChangeSettings, Save, type FormProps, type Values } from "./save";

const SWITCHES = ["debug_log", "block_inline_config", "cost_in_answers", "user_api_key_auto_create", "scim_only_user_management"] as const;
/** Lives of keys: seconds in the interface, days here. */
const LIVES = ["user_api_key_ttl", "user_api_key_max_ttl", "service_api_key_ttl", "service_api_key_max_ttl", "admin_api_key_ttl", "admin_api_key_max_ttl"] as const;

const DAY = 86_400;

export function Organisation(props: FormProps) {
  const texts = t().settings;
  const { name, settings, log_retention_display: logs, metrics_retention_display: metrics } = props.of;
  const before: Values = {
    name, ...Object.fromEntries(SWITCHES.map((one) => [one, !!settings[one]])), ...Object.fromEntries(LIVES.map((one) => [one, settings[one] as number])),
  };
  const values = useSignal(before);
  const set = (change: Values) => (values.value = { ...values.value, ...change });
  const isFixed = !mayChangeSettings();
  const body = ({ name: changedName, ...others }: Values) => ({ ...(changedName === undefined ? {} : { name: changedName }), ...(Object.keys(others).length > 0 ? { settings: others } : {}) });
  return (
    <div class="form">
      <Field label={t().state.name}>
        {(control) => <input {...control} required maxLength={255} disabled={isFixed} value={String(values.value.name)} onInput={(event) => set({ name: event.currentTarget.value })} />}
      </Field>
      <fieldset class="form">
        <legend>{texts.calls}</legend>
        {SWITCHES.map((one) => (
          <label key={one} class="row">
            <input type="checkbox" checked={values.value[one] === true} disabled={isFixed} onChange={(event) => set({ [one]: event.currentTarget.checked })} />
            {texts.switches[one]}
          </label>
        ))}
      </fieldset>
      <fieldset class="form">
        <legend>{texts.lives}</legend>
        <p class="quiet">{texts.livesWhy}</p>
        <div class="two">
          {LIVES.map((one) => (
            <Field key={one} label={texts.lifeNames[one]}>
              {(control) => (
                <input {...control} type="number" min="0" step="any" disabled={isFixed} value={String(Number(values.value[one]) / DAY)} onInput={(event) => set({ [one]: Math.round(Number(event.currentTarget.value) * DAY) })} />
              )}
            </Field>
          ))}
        </div>
      </fieldset>
      <p class="quiet">{texts.retention(count(logs), count(metrics))}</p>
      <Save {...props} before={before} after={values.value} body={body} />
    </div>
  );
}
