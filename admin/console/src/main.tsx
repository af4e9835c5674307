// The start: signing in and accepting an invitation stand alone and are small; everything else comes with the shell.
import { effect } from "@preact/signals";
import { render } from "preact";
import { isSignedOut } from "./api/call";
import { choose, preferred } from "./i18n";
import { go, listen, place, ROOT } from "./nav/router";
import { Screen } from "./nav/screen";

const shell = () => import("./shell");
const ALONE = { login: () => import("./screens/login"), invite: () => import("./screens/invite") };

function App() {
  const alone = ALONE[place.value.path as keyof typeof ALONE];
  return alone ? <Screen key={place.value.path} load={alone} /> : <Screen key="shell" load={shell} />;
}

listen();
// Nothing is shown in one language first and then in another.
await choose(preferred());
// Whoever is signed out elsewhere comes back to the same place.
effect(() => {
  if (!isSignedOut.value || place.value.path in ALONE) return;
  const to = location.pathname + location.search;
  go(`${ROOT}/login?over=1&to=${encodeURIComponent(to)}`, { replace: true });
});
// A page that the browser kept whole would show what it had, to whoever goes back to it.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
render(<App />, document.getElementById("app")!);
