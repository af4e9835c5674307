// The person at the top right: theme, language, signing out.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { post } from "./api/call";
import { nameOf, session } from "./api/session";
import { choose, language, LANGUAGES, t, type Language } from "./i18n";
import { notify } from "./kit/surfaces";
import { screen } from "./nav/query";

const THEMES = ["system", "light", "dark"] as const;

export function Looks() {
  const theme = useSignal(document.documentElement.dataset.theme ?? "system");
  const chooseTheme = (next: string) => {
    theme.value = next;
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Chosen for this page alone.
    }
  };
  return (
    <>
      <label class="field">
        <span class="label">{t().menu.theme}</span>
        <select value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value)}>
          {THEMES.map((one) => (
            <option key={one} value={one}>
              {t().menu[one]}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="label">{t().menu.language}</span>
        <select value={language.value} onChange={(event) => void choose(event.currentTarget.value as Language)}>
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code} lang={code}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

/** Ends our session, and the identity provider's where it has one of its own. */
export async function signOut(): Promise<void> {
  try {
    const { logout_url } = await post<{ logout_url: string | null }>("/auth/logout");
    location.assign(logout_url ?? "/console/login");
  } catch {
    notify(t().menu.notSignedOut);
  }
}

export function Account() {
  const isOpen = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const leave = (event: Event) => {
      const isKey = event instanceof KeyboardEvent;
      if (isKey ? event.key === "Escape" : !box.current?.contains(event.target as Node)) isOpen.value = false;
    };
    addEventListener("pointerdown", leave);
    addEventListener("keydown", leave);
    return () => {
      removeEventListener("pointerdown", leave);
      removeEventListener("keydown", leave);
    };
  }, []);
  const user = session.value!.user;
  return (
    <div class="account" ref={box}>
      <button type="button" class="button bare" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <span class="one-line">{nameOf(user)}</span>
        <span aria-hidden="true">▾</span>
      </button>
      {isOpen.value && (
        <div class="list" role="group" aria-label={t().menu.account}>
          <a href={screen("me")} onClick={() => (isOpen.value = false)}>
            {user.email}
          </a>
          <Looks />
          <button type="button" class="button" onClick={() => void signOut()}>
            {t().menu.signOut}
          </button>
        </div>
      )}
    </div>
  );
}
