// A figure against the same length of time before.
import { t } from "../../i18n";
import { Spark } from "../../kit/chart";
import { percent, short } from "../../kit/words";

interface TileProps {
  title: string;
  value: string;
  now: number;
  before?: number;
  points: number[];
  href?: string;
  isLessBetter?: boolean;
  /** A difference of percents is told in points. */
  isPoints?: boolean;
}

export function Tile({ title, value, now, before, points, href, isLessBetter, isPoints }: TileProps) {
  return (
    <section class="panel tile">
      <h2 class="quiet">{href ? <a href={href}>{title}</a> : title}</h2>
      <p class="figure">{value}</p>
      <p class="change">
        <Change now={now} before={before} isLessBetter={isLessBetter} isPoints={isPoints} />
      </p>
      <Spark values={points} />
    </section>
  );
}

function Change({ now, before, isLessBetter, isPoints }: Pick<TileProps, "now" | "before" | "isLessBetter" | "isPoints">) {
  const texts = t().overview;
  if (!before) return <span class="quiet">{texts.noBefore}</span>;
  const change = isPoints ? now - before : ((now - before) / before) * 100;
  if (Math.abs(change) < 0.05) return <span class="quiet">= {texts.before}</span>;
  const meaning = isLessBetter === undefined ? "" : change > 0 === isLessBetter ? "worse" : "better";
  const size = isPoints ? short(Math.abs(change)) : percent(Math.abs(change));
  return (
    <>
      <span class={meaning}>
        {change > 0 ? "▲" : "▼"} {size}
      </span>{" "}
      <span class="quiet">{texts.before}</span>
    </>
  );
}
