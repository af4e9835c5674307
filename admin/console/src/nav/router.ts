// The address decides what is seen. Links are ordinary links: a click on one below `/console` is a step in the history and
// no load of a page.
import { signal } from "@preact/signals";

export const ROOT = "/console";

/** Path below the root without slashes around it, and the query. */
export const place = signal(read());

function read() {
  return {
    path: location.pathname.slice(ROOT.length).replace(/^\/+|\/+$/g, ""),
    query: new URLSearchParams(location.search),
  };
}

export function go(href: string, { replace = false } = {}): void {
  if (href === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  place.value = read();
}

/** Clicks with a key held, other buttons and other targets are the browser's. */
function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
  if (link.pathname !== ROOT && !link.pathname.startsWith(`${ROOT}/`)) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

export function listen(): void {
  addEventListener("popstate", () => {
    place.value = read();
  });
  document.addEventListener("click", onClick);
}
