// Bars over time, stacked, and the small line of a tile. Drawn as SVG: a library for charts would weigh more than all screens
// together. Sums begin at zero.
import { BOTTOM, ChartFrame, WIDTH, type ChartProps } from "./chart_frame";
import { short } from "./words";

type BarsProps = Omit<ChartProps, "format"> & { format?: ChartProps["format"] };

export function Bars({ height = 150, format = short, ...chart }: BarsProps) {
  const { slots, series, before = [] } = chart;
  if (slots.length === 0) return null;
  const sums = slots.map((slot) => slot.values.reduce<number>((sum, value) => sum + (value ?? 0), 0));
  const peak = sums.indexOf(Math.max(...sums));
  const most = Math.max(...sums, ...before) || 1;
  const step = WIDTH / slots.length;
  const inner = height - BOTTOM;
  const sentence = (named: (at: Date) => string) => `${format(sums.reduce((a, b) => a + b, 0))}. Max ${format(sums[peak]!)}, ${named(slots[peak]!.at)}.`;
  return (
    <ChartFrame {...chart} height={height} format={format} most={most} sentence={sentence}>
      {(hovered) =>
        slots.map((slot, index) => {
          let top = inner;
          return slot.values.map((value, part) => {
            const size = ((value ?? 0) / most) * inner;
            top -= size;
            return size > 0 && <rect key={`${index}/${part}`} x={index * step + step * 0.08} width={step * 0.84} y={top} height={Math.max(size, 1)} fill={series[part]!.colour} opacity={hovered === null || hovered === index ? 1 : 0.65} />;
          });
        })
      }
    </ChartFrame>
  );
}

/** A line of a tile, without axes; the tile says its number. */
export function Spark({ values }: { values: number[] }) {
  if (values.length < 2) return null;
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, index) => `${(index / (values.length - 1)) * 100},${29 - (value / most) * 27}`);
  return (
    <svg class="chart" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,29 ${points.join(" ")} 100,29`} fill="var(--accent)" opacity="0.14" />
      <polyline points={points.join(" ")} fill="none" stroke="var(--accent)" stroke-width="1.4" vector-effect="non-scaling-stroke" stroke-linejoin="round" />
    </svg>
  );
}
