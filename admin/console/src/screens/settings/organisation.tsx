// The organisation: its name, what holds for keys of people, applications and administration, and for every call.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { count } from "../../kit/words";
import { mayChangeSettings, SettingsForm, type FormProps, type Values } from "./save";

const SWITCHES = ["debug_log", "block_inline_config", "cost_in_answers", "user_api_key_auto_create", "scim_only_user_management"] as const;
/** Lives of keys: seconds in the interface, days here. */
const LIVES = ["user_api_key_ttl", "user_api_key_max_ttl", "service_api_key_ttl", "service_api_key_max_ttl", "admin_api_key_ttl", "admin_api_key_max_ttl"] as const;

const DAY = 86_400;

/** The body of a change: the name stands beside the settings. */
export function bodyOf({ name, ...settings }: Values): Values {
  const sent = Object.entries(settings).map(([one, value]) => [one, LIVES.some((life) => life === one) ? Math.round(Number(value) * DAY) : value]);
  return { ...(name === undefined ? {} : { name }), ...(sent.length > 0 ? { settings: Object.fromEntries(sent) } : {}) };
}

export function Organisation(props: FormProps) {
  const texts = t().settings;
  const { name, settings, log_retention_display: logs, metrics_retention_display: metrics } = props.of;
  // Days stay the text that was entered: an empty field is not the 0 that lifts a bound.
  const before: Values = {
    name, ...Object.fromEntries(SWITCHES.map((one) => [one, !!settings[one]])), ...Object.fromEntries(LIVES.map((one) => [one, String(Number(settings[one] ?? 0) / DAY)])),
  };
  const values = useSignal(before);
  const set = (change: Values) => (values.value = { ...values.value, ...change });
  const isFixed = !mayChangeSettings();
  return (
    <SettingsForm {...props} before={before} after={values.value} body={bodyOf}>
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
                <input {...control} type="number" required min="0" step="any" disabled={isFixed} value={String(values.value[one])} onInput={(event) => set({ [one]: event.currentTarget.value })} />
              )}
            </Field>
          ))}
        </div>
      </fieldset>
      <p class="quiet">{texts.retention(count(logs), count(metrics))}</p>
    </SettingsForm>
  );
}
