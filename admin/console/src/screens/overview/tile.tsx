// A figure against the same length of time before.
import { Change } from "../../kit/change";
import { Spark } from "../../kit/chart";

interface TileProps {
  title: string;
  value: string;
  now: number;
  before?: number;
  points: number[];
  href?: string;
  isLessBetter?: boolean;
  /** A difference of percents is given in points. */
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
