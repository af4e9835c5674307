// A secret that is shown now and never again. It lives in the state of whoever asked for it, and goes when the page is left or
// its tab was hidden for a while.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t } from "../i18n";
import { Copy } from "./basics";

const HIDDEN_MS = 60_000;

/** True once a secret must no longer be seen. */
function useIsGone(): boolean {
  const isGone = useSignal(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onHidden = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => (isGone.value = true), HIDDEN_MS);
    };
    const onLeft = () => (isGone.value = true);
    document.addEventListener("visibilitychange", onHidden);
    addEventListener("pagehide", onLeft);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onHidden);
      removeEventListener("pagehide", onLeft);
    };
  }, []);
  return isGone.value;
}

/** `hint` says what it is, and whose. */
export function OneTimeSecret({ text, hint }: { text: string; hint: string }) {
  if (useIsGone()) return <p class="quiet">{t().state.secretGone}</p>;
  return (
    <div class="form" role="status">
      <p class="quiet">{hint}</p>
      <div class="secret">
        <code>{text}</code>
        <Copy text={text} />
      </div>
    </div>
  );
}
