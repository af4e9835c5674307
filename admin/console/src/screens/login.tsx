// Signing in: the mail domain says how. No password is asked for anywhere, and the answer is the same whoever asks.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, get, isSignedOut, post } from "../api/call";
import { dropDrafts } from "../api/drafts";
import { session, type Session } from "../api/session";
import { t } from "../i18n";
import { Field } from "../kit/basics";
import { Failed } from "../kit/states";
import { param } from "../nav/query";
import { go, ROOT } from "../nav/router";
import { Mark } from "../kit/mark";

interface Methods {
  methods: string[];
  public_url: string;
}

/** Only below the console: a link to the sign-in must not lead anywhere else. */
export function target(to: string): string {
  return to === ROOT || to.startsWith(`${ROOT}/`) || to.startsWith(`${ROOT}?`) ? to : ROOT;
}

/** Who is signed in already goes on. Whoever was here before as the same person finds what they were writing. */
async function goOn(): Promise<void> {
  const found = await get<Session>("/auth/session", undefined, { workspace: "" });
  const to = target(param("to"));
  if (found.user.id === session.value?.user.id) {
    isSignedOut.value = false;
    go(to, { replace: true });
  } else {
    dropDrafts();
    location.replace(to);
  }
}

export default function Login() {
  const texts = t().login;
  const email = useSignal("");
  const methods = useSignal<Methods | null>(null);
  const isSent = useSignal(false);
  const isBusy = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
    // Who was told to sign in again is signed in, and stays here all the same.
    if (param("again")) return;
    const look = () => void goOn().catch(() => undefined);
    look();
    // Somebody may have signed in in another tab.
    const onVisible = () => document.hidden || look();
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, []);
  const run = async (work: () => Promise<void>) => {
    isBusy.value = true;
    fault.value = null;
    try {
      await work();
    } catch (error) {
      fault.value = error instanceof Fault ? error : new Fault(-1, String(error), "", "", "", [], null);
    }
    isBusy.value = false;
    isSignedOut.value = false;
  };
  const ask = () => run(async () => void (methods.value = await get<Methods>("/auth/methods", { email: email.value }, { workspace: "" })));
  const send = () => run(async () => {
    await post("/auth/link", { email: email.value }, { workspace: "" });
    isSent.value = true;
  });
  const found = methods.value;
  const isElsewhere = found && new URL(found.public_url).origin !== location.origin;
  const back = `${ROOT}/login?to=${encodeURIComponent(target(param("to")))}`;
  const error = param("error");
  return (
    <div class="alone">
      <main>
        <div class="brand">
          <Mark /> Portcullis
        </div>
        <h1>{texts.title}</h1>
        {param("over") && !error && <p class="fault note">{texts.over}</p>}
        {error && (
          <p class="fault" role="alert">
            {texts.errors[error] ?? texts.errors.sign_in_refused}
          </p>
        )}
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void ask();
          }}
        >
          <Field label={texts.email} wrong={fault.value?.about("email")}>
            {(control) => (
              <input
                {...control} type="email" name="email" required autocomplete="username" placeholder="ada@example.com" value={email.value}
                onInput={(event) => {
                  email.value = event.currentTarget.value;
                  methods.value = null;
                  isSent.value = false;
                }}
              />
            )}
          </Field>
          {!found && (
            <button type="submit" class="button main" disabled={isBusy.value}>
              {texts.go}
            </button>
          )}
        </form>
        {fault.value && !fault.value.about("email") && <Failed fault={fault.value} />}
        <div class="form" role="status">
          {isElsewhere && <p class="fault note">{texts.origin(found.public_url)}</p>}
          {found?.methods.some((one) => one !== "link") && (
            <a class="button main" href={`/v1/auth/login?email=${encodeURIComponent(email.value)}&return_to=${encodeURIComponent(back)}`}>
              {texts.provider}
            </a>
          )}
          {found?.methods.includes("link") && !isSent.value && (
            <button type="button" class="button main" disabled={isBusy.value} onClick={() => void send()}>
              {texts.link}
            </button>
          )}
          {isSent.value && <p>{texts.sent}</p>}
          {found?.methods.length === 0 && (
            <>
              <p>{texts.none}</p>
              <pre class="block">gateway-admin login-link --email {email.value}</pre>
            </>
          )}
        </div>
        {!found && (
          <p class="quiet">
            {texts.first}
            <br />
            <code>gateway-admin login-link --email …</code>
          </p>
        )}
      </main>
    </div>
  );
}
