// Ctrl K: a screen by its name, or anything by its id. What is pasted is never sent anywhere but to where it leads.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { may } from "../api/session";
import { t } from "../i18n";
import { isPaletteOpen } from "./palette_open";
import { historyOf, screen } from "./query";
import { go } from "./router";
import { KEY_SCOPES, MENU } from "./screens";

interface Choice {
  text: string;
  href: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Keys and tokens are no ids: pasted by mistake, one must not end in an address, which is kept and logged. */
export const isLikeSecret = (text: string) => /^(sk-|pk[-_]|gsk_|xai-|AIza|eyJ|bearer\b)/i.test(text);

function choices(text: string): Choice[] {
  const wanted = text.trim();
  const screens = MENU.flat()
    .filter(({ scopes }) => scopes.length === 0 || may(...scopes))
    .map((entry) => ({ text: t().menu[entry.text], href: screen(entry.path) }));
  const named = screens.filter((one) => one.text.toLowerCase().includes(wanted.toLowerCase()));
  if (!wanted || isLikeSecret(wanted)) return named;
  return [...(UUID.test(wanted) || named.length === 0 ? objects(wanted) : []), ...named];
}

/** What an id may be of. Only logs and traces have ids that are no UUIDs. */
function objects(id: string): Choice[] {
  const texts = t().palette;
  const isUuid = UUID.test(id);
  const isId = isUuid || (id.length >= 4 && !/\s/.test(id));
  const kinds: [boolean, string, string][] = [
    [isUuid && may("logs.list"), texts.openLog, screen(`logs/${id}`)],
    [isId && may("logs.list"), texts.openTrace, screen(`traces/${encodeURIComponent(id)}`)],
    [isUuid && may(...KEY_SCOPES), texts.openKey, screen("keys", { key: id })],
    [isUuid && may("configs.read"), texts.openConfig, screen(`routing/${id}`)],
    [isUuid && may("audit_logs.list"), texts.history, historyOf(id)],
  ];
  return kinds.flatMap(([isOffered, text, href]) => (isOffered ? [{ text: `${text} ${id}`, href }] : []));
}

export function Palette() {
  const text = useSignal("");
  const at = useSignal(0);
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key comes: who presses Ctrl K goes on typing at once.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const found = choices(text.value);
  const open = (choice: Choice | undefined) => {
    if (!choice) return;
    dialog.current?.close();
    go(choice.href);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") at.value = Math.min(found.length - 1, at.value + 1);
    else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
    else if (event.key === "Enter") open(found[at.value]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={t().palette.title} onClose={() => (isPaletteOpen.value = false)}>
      <input
        type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={found.length > 0 ? `palette-${at.value}` : undefined}
        aria-label={t().palette.hint} placeholder={t().palette.hint} autocomplete="off" spellcheck={false}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={onKey}
      />
      <ul id="palette-list" role="listbox" aria-label={t().palette.title}>
        {found.map((choice, index) => (
          <li key={choice.href} id={`palette-${index}`} role="option" aria-selected={index === at.value} onClick={() => open(choice)}>
            {choice.text}
          </li>
        ))}
        {found.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true" class="quiet">
            {t().palette.nothing}
          </li>
        )}
      </ul>
    </dialog>
  );
}
