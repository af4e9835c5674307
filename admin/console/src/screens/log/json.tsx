// JSON as text, cut where it is long: a page of a megabyte would hold the browser up.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Copy } from "../../kit/basics";
import { short, visible } from "../../kit/words";

const LONG = 40_000;

export function Json({ value }: { value: unknown }) {
  const isWhole = useSignal(false);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const isCut = text.length > LONG && !isWhole.value;
  return (
    <div>
      <pre class="block" tabIndex={0} role="group" aria-label="JSON">
        {visible(isCut ? text.slice(0, LONG) : text)}
      </pre>
      <div class="row" style={{ marginBlockStart: "6px" }}>
        <Copy text={text} />
        {isCut && (
          <button type="button" class="button small" onClick={() => (isWhole.value = true)}>
            {t().log.longText(short(text.length))}
          </button>
        )}
      </div>
    </div>
  );
}
