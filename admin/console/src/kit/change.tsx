// A figure against the time before, by a shape, a colour and a number.
import { t } from "../i18n";
import { percent, short } from "./words";

interface ChangeProps {
  now: number;
  before?: number;
  /** Unset: neither direction is the better one. */
  isLessBetter?: boolean;
  /** A difference of percents is given in points. */
  isPoints?: boolean;
  /** Without words, for a column that says them in its head. */
  isShort?: boolean;
}

export function Change({ now, before, isLessBetter, isPoints, isShort }: ChangeProps) {
  const texts = t().overview;
  if (!before) return <span class="quiet">{isShort ? "–" : texts.noBefore}</span>;
  const change = isPoints ? now - before : ((now - before) / before) * 100;
  if (Math.abs(change) < 0.05) return <span class="quiet">= {isShort ? "" : texts.before}</span>;
  const meaning = isLessBetter === undefined ? "" : change > 0 === isLessBetter ? "worse" : "better";
  const size = isPoints ? short(Math.abs(change)) : percent(Math.abs(change));
  return (
    <>
      <span class={meaning}>
        {change > 0 ? "▲" : "▼"} {size}
      </span>
      {!isShort && <span class="quiet"> {texts.before}</span>}
    </>
  );
}
