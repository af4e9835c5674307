// Lines over time, for what does not add up. A slot without a value is a gap.
import { BOTTOM, ChartFrame, WIDTH, type ChartProps, type Slot } from "./chart_frame";

const HEIGHT = 190;

/** Stretches of slots that have a value, as points of a drawing. */
export function stretches(slots: Slot[], part: number, pointOf: (index: number, value: number) => string): string[][] {
  const found: string[][] = [[]];
  slots.forEach(({ values }, index) => {
    const value = values[part];
    if (value === null || value === undefined) found.push([]);
    else found.at(-1)!.push(pointOf(index, value));
  });
  return found.filter((points) => points.length > 0);
}

export function LineChart(chart: Omit<ChartProps, "height" | "before">) {
  const { slots, series, format } = chart;
  if (slots.length === 0) return null;
  const values = slots.flatMap((slot) => slot.values).filter((value) => value !== null);
  const most = Math.max(0, ...values) || 1;
  const inner = HEIGHT - BOTTOM;
  const step = WIDTH / slots.length;
  const point = (index: number, value: number) => `${(index + 0.5) * step},${inner - (value / most) * inner}`;
  return (
    <ChartFrame {...chart} height={HEIGHT} most={most} sentence={() => `max ${format(most)}.`}>
      {(hovered) => (
        <>
          {hovered !== null && <line class="grid" x1={(hovered + 0.5) * step} x2={(hovered + 0.5) * step} y1="0" y2={inner} vector-effect="non-scaling-stroke" />}
          {series.map(({ name, colour }, part) =>
            // One slot alone would be no line, so each stretch ends with a step of no length.
            stretches(slots, part, point).map((points) => (
              <polyline key={name + points[0]} points={[...points, points.at(-1)].join(" ")} fill="none" stroke={colour} stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round" vector-effect="non-scaling-stroke" />
            )),
          )}
        </>
      )}
    </ChartFrame>
  );
}
