// Whether somebody is here: a hand on the page within ten minutes. Without one nothing is asked by itself, because an open tab
// would keep the session alive for ever.
const IDLE_MS = 10 * 60_000;

let lastTouch = Date.now();
const touch = () => (lastTouch = Date.now());

export const isIdle = () => Date.now() - lastTouch > IDLE_MS;

/** A hidden tab asks nothing by itself either. */
export const isWatched = () => !document.hidden && !isIdle();

export function listenToTouch(): () => void {
  touch();
  addEventListener("pointermove", touch);
  addEventListener("keydown", touch);
  return () => {
    removeEventListener("pointermove", touch);
    removeEventListener("keydown", touch);
  };
}
