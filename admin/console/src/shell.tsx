// What stands around every screen: the bar with workspace and search, the menu by what the person may do, and the content.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, isSignedOut } from "./api/call";
import { actsForAll, loadSession, lookAgain, may, session, workspace } from "./api/session";
import { forget } from "./api/loaded";
import { Account } from "./account";
import { t } from "./i18n";
import { Boundary } from "./kit/boundary";
import { Denied, Empty, Failed, Lines } from "./kit/states";
import { Mark } from "./kit/mark";
import { Notices } from "./kit/surfaces";
import { Palette } from "./nav/palette";
import { isPaletteOpen } from "./nav/palette_open";
import { param, screen } from "./nav/query";
import { go, place } from "./nav/router";
import { MENU, OTHERS } from "./nav/screens";
import { listenToKeys } from "./nav/keys";
import { listenToTouch } from "./nav/presence";

export default function Shell() {
  const fault = useSignal<Fault | null>(null);
  const loadedFor = useSignal<string | null>(null);
  const isMenuOpen = useSignal(false);
  const where = param("ws");
  const load = () => {
    fault.value = null;
    loadSession().then(
      (isLatest) => isLatest && (loadedFor.value = where),
      (error: unknown) => (fault.value = error instanceof Fault ? error : new Fault(-1, String(error), "", "", "", [], null)),
    );
  };
  // Rights differ by workspace, and what was kept for one is not shown for another.
  useEffect(() => {
    forget();
    load();
  }, [where]);
  useEffect(() => {
    const look = () => !document.hidden && void lookAgain().catch(() => undefined);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  useEffect(() => listenToKeys(), []);
  useEffect(() => listenToTouch(), []);
  useEffect(() => {
    isMenuOpen.value = false;
  }, [place.value.path]);
  if (fault.value && fault.value.status !== 401) return <Alone fault={fault.value} again={load} />;
  if (!session.value || isSignedOut.value) return <Lines />;
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skip}>
        {t().menu.skip}
      </a>
      <header class="top">
        <button type="button" class="button bare menu-button" aria-expanded={isMenuOpen.value} aria-controls="menu" onClick={() => (isMenuOpen.value = !isMenuOpen.value)}>
          <span aria-hidden="true">☰</span>
          <span class="hidden-visually">{t().menu.open}</span>
        </button>
        <a class="brand" href={screen("")} aria-label="Portcullis">
          <Mark />
          <span>Portcullis</span>
        </a>
        <WorkspaceChoice />
        <button type="button" class="button find" onClick={() => (isPaletteOpen.value = true)}>
          <i aria-hidden="true">⌕</i>
          <span>{t().menu.palette}</span>
          <kbd aria-hidden="true">Ctrl K</kbd>
        </button>
        <Account />
      </header>
      <Menu isOpen={isMenuOpen.value} />
      <main id="content" class="content" tabIndex={-1}>
        {loadedFor.value === where ? (
          <Boundary key={place.value.path}>
            <Content />
          </Boundary>
        ) : (
          <Lines />
        )}
      </main>
      {isPaletteOpen.value && <Palette />}
      <Notices />
    </div>
  );
}

/** The focus moves and the address stays, which has only what is seen. */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

const Alone = ({ fault, again }: { fault: Fault; again: () => void }) => (
  <div class="alone">
    <main>
      <h1 class="brand">
        <Mark /> Portcullis
      </h1>
      <Failed fault={fault} again={again} />
      {param("ws") && <a href="/console">{t().menu.overview}</a>}
    </main>
  </div>
);

/** The same screen there. Objects that are open here, their filters and pages are of this workspace. */
function inWorkspace(ws: string): string {
  const first = place.value.path.split("/")[0]!;
  return screen(MENU.flat().some(({ path }) => path === first) ? first : "", { ws });
}

function WorkspaceChoice() {
  const all = session.value!.workspaces;
  return (
    <select class="plain" aria-label={t().menu.workspace} value={workspace.value} onChange={(event) => go(inWorkspace(event.currentTarget.value))}>
      {actsForAll.value && <option value="*">{t().menu.all}</option>}
      {all.map(({ slug, name }) => (
        <option key={slug} value={slug}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Menu({ isOpen }: { isOpen: boolean }) {
  const first = place.value.path.split("/")[0];
  const groups = MENU.map((group) => group.filter(({ scopes }) => scopes.length === 0 || may(...scopes))).filter((group) => group.length > 0);
  return (
    <nav id="menu" class={`menu ${isOpen ? "is-open" : ""}`} aria-label={t().menu.label}>
      {groups.map((group) => (
        <ul key={group[0]!.path}>
          {group.map(({ path, text, icon }) => (
            <li key={path}>
              <a href={screen(path)} aria-current={first === path ? "page" : undefined}>
                <svg viewBox="0 0 16 16" aria-hidden="true">
                  <path d={icon} stroke-linecap="round" stroke-linejoin="round" />
                </svg>
                <span>{t().menu[text]}</span>
              </a>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}

function Content() {
  const first = place.value.path.split("/")[0]!;
  const Found = MENU.flat().find(({ path }) => path === first)?.screen ?? OTHERS[first];
  // No such workspace, or none of theirs.
  if (!session.value!.acting) {
    return (
      <>
        <h1>{t().state.notFound}</h1>
        <Denied />
      </>
    );
  }
  if (Found) return <Found key={first} />;
  return (
    <>
      <div class="head">
        <h1>{t().state.notFound}</h1>
      </div>
      <Empty title={t().state.notFound}>{t().state.notFoundWhy}</Empty>
    </>
  );
}
