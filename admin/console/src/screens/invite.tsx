// Accepting an invitation. The token stands behind the `#` of the address, which browsers send to nobody; it is taken out of
// the address at once and posted once.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, post } from "../api/call";
import { t } from "../i18n";
import { Copy, Field } from "../kit/basics";
import { Failed } from "../kit/states";
import { Mark } from "../kit/mark";

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname);

interface Accepted {
  api_keys?: { id: string; key?: string }[];
}

export default function Invite() {
  const texts = t().invite;
  const names = useSignal({ first_name: "", last_name: "" });
  const accepted = useSignal<Accepted | null>(null);
  const fault = useSignal<Fault | null>(null);
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const accept = async () => {
    fault.value = null;
    const given = Object.fromEntries(Object.entries(names.value).filter(([, value]) => value.trim()));
    try {
      accepted.value = await post<Accepted>("/admin/users/invites/accept", { token, ...given }, { workspace: "" });
    } catch (error) {
      fault.value = error as Fault;
    }
  };
  const keys = accepted.value?.api_keys?.filter(({ key }) => key) ?? [];
  return (
    <div class="alone">
      <main>
        <div class="brand">
          <Mark /> Portcullis
        </div>
        <h1>{texts.title}</h1>
        {!token && <p class="fault note">{texts.missing}</p>}
        {token && !accepted.value && (
          <form
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              void accept();
            }}
          >
            <p>{texts.about}</p>
            <Field label={texts.first}>
              {(control) => <input {...control} autocomplete="given-name" maxLength={255} onInput={(event) => (names.value = { ...names.value, first_name: event.currentTarget.value })} />}
            </Field>
            <Field label={texts.last}>
              {(control) => <input {...control} autocomplete="family-name" maxLength={255} onInput={(event) => (names.value = { ...names.value, last_name: event.currentTarget.value })} />}
            </Field>
            {fault.value && <Failed fault={fault.value} />}
            <button type="submit" class="button main">
              {texts.accept}
            </button>
          </form>
        )}
        {accepted.value && (
          <div class="form" role="status">
            <p>{texts.welcome}</p>
            {keys.length > 0 && <p>{texts.keys}</p>}
            {keys.map(({ id, key }) => (
              <div key={id} class="secret">
                <code>{key}</code>
                <Copy text={key!} />
              </div>
            ))}
            <a class="button main" href="/console/login">
              {texts.signIn}
            </a>
          </div>
        )}
      </main>
    </div>
  );
}
