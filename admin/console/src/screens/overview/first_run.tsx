// From nothing to the first logged answer: a provider, a key, a call that is waited for. Each step ticks itself; the secret of
// the key lives in this part alone and goes with it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { may, workspace } from "../../api/session";
import { t } from "../../i18n";
import { Copy } from "../../kit/basics";
import { isWatched } from "../../nav/presence";
import { screen } from "../../nav/query";
import { NewKey, type MadeKey } from "../keys/new_key";
import { NewProvider } from "../providers/new_provider";
import type { ComponentChildren } from "preact";

const LOOK_MS = 1000;

export function FirstRun({ leave }: { leave: () => void }) {
  const texts = t().first;
  const added = useSignal<string | null>(null);
  const key = useSignal<MadeKey | null>(null);
  const first = useSignal<string | null>(null);
  const providers = useLoaded(may("providers.list") ? `first providers ${workspace.value}` : null, () => get<{ data: { slug: string }[] }>("/providers", { page_size: 1 }));
  const slug = added.value ?? providers.state.value.data?.data[0]?.slug ?? null;
  useEffect(() => {
    if (!slug) return;
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    // Looked for while somebody watches, a while after each answer; the first log ends it.
    const look = async () => {
      if (isWatched()) {
        const logs = await get<{ data: { id: string }[] }>("/logs", { page_size: 1 }).catch(() => null);
        if (isOver) return;
        first.value = logs?.data[0]?.id ?? null;
      }
      if (!first.value) timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [slug]);
  return (
    <section class="panel">
      <header>
        <h2>{texts.title}</h2>
      </header>
      <ol class="first">
        <Step number={1} isDone={!!slug} title={texts.provider} why={texts.providerWhy}>
          {!slug && <NewProvider done={(made) => (added.value = made)} />}
          {slug && <code>@{slug}</code>}
        </Step>
        <Step number={2} isDone={!!key.value} title={texts.key} why={texts.keyWhy}>
          <NewKey done={(made) => (key.value = made)} />
        </Step>
        <Step number={3} isDone={!!first.value} title={texts.call} why={texts.callWhy}>
          {slug && key.value ? (
            <>
              <pre class="block">{curl("$GATEWAY_KEY", slug)}</pre>
              <Copy text={curl(key.value.key, slug)} label={texts.copy} />
            </>
          ) : (
            <p class="quiet">{texts.need}</p>
          )}
          <p role="status">{first.value ? texts.done : slug && key.value ? texts.waiting : ""}</p>
          {first.value && (
            <div class="row">
              <a class="button main" href={screen(`logs/${first.value}`)}>
                {texts.look}
              </a>
              <button type="button" class="button" onClick={leave}>
                {t().menu.overview}
              </button>
            </div>
          )}
        </Step>
      </ol>
    </section>
  );
}

function Step({ number, isDone, title, why, children }: { number: number; isDone: boolean; title: string; why: string; children: ComponentChildren }) {
  return (
    <li>
      <span class={`mark ${isDone ? "done" : ""}`} aria-hidden="true">
        {isDone ? "✓" : number}
      </span>
      <div class="form">
        <div>
          <h3>{title}</h3>
          <p class="quiet">{why}</p>
        </div>
        {children}
      </div>
    </li>
  );
}

const curl = (key: string, slug: string) => `curl ${location.origin}/v1/chat/completions \\
  -H "x-gateway-api-key: ${key}" -H 'content-type: application/json' \\
  -d '{"model":"@${slug}/gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'`;
