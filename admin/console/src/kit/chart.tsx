// Bars over time, stacked, and the small line of a tile. Drawn as SVG: a library for charts would weigh more than all screens
// together. Sums begin at zero; every chart says its content in a sentence and can be read as a table.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { t } from "../i18n";
import { clock, dateAndTime, day, short } from "./words";

export interface Slot {
  at: Date;
  /** One number for each series. */
  values: number[];
}

interface BarsProps {
  label: string;
  slots: Slot[];
  series: { name: string; colour: string }[];
  height?: number;
  /** Called with the times between which somebody dragged or clicked. */
  choose?: (from: Date, to: Date) => void;
}

const WIDTH = 1000;
const BOTTOM = 16;

export function Bars({ label, slots, series, height = 150, choose }: BarsProps) {
  const hovered = useSignal<number | null>(null);
  const dragged = useSignal<number | null>(null);
  const box = useRef<SVGSVGElement>(null);
  if (slots.length === 0) return null;
  const sums = slots.map((slot) => slot.values.reduce((sum, value) => sum + value, 0));
  const most = Math.max(1, ...sums);
  const step = WIDTH / slots.length;
  const inner = height - BOTTOM;
  const length = slots.length > 1 ? slots[1]!.at.getTime() - slots[0]!.at.getTime() : 60_000;
  const slotAt = (event: PointerEvent) => {
    const frame = box.current!.getBoundingClientRect();
    return Math.min(slots.length - 1, Math.max(0, Math.floor(((event.clientX - frame.left) / frame.width) * slots.length)));
  };
  const finish = (event: PointerEvent) => {
    const [first, second] = [dragged.value, slotAt(event)];
    dragged.value = null;
    if (first === null || !choose) return;
    const [from, to] = [Math.min(first, second), Math.max(first, second)];
    choose(slots[from]!.at, new Date(slots[to]!.at.getTime() + length));
  };
  const peak = sums.indexOf(Math.max(...sums));
  // A clock alone names a moment of one day.
  const isLong = length * slots.length > 86400e3;
  const named = length >= 86400e3 ? day : isLong ? dateAndTime : (at: Date) => clock(at, { seconds: false });
  const sentence = `${label}: ${short(sums.reduce((a, b) => a + b, 0))}. Max ${short(sums[peak]!)}, ${named(slots[peak]!.at)}.`;
  const marks = [0, 0.25, 0.5, 0.75].map((part) => Math.floor(part * slots.length));
  const slot = hovered.value === null ? null : slots[hovered.value]!;
  return (
    <figure>
      <svg
        ref={box} class="chart" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" style={{ blockSize: `${height}px`, cursor: choose ? "crosshair" : undefined }}
        role="img" aria-label={sentence}
        onPointerMove={(event) => (hovered.value = slotAt(event))}
        onPointerLeave={() => (hovered.value = dragged.value = null)}
        onPointerDown={(event) => (dragged.value = slotAt(event))}
        onPointerUp={finish}
      >
        {[0, 0.5, 1].map((part) => (
          <line key={part} class="grid" x1="0" x2={WIDTH} y1={inner * part + 0.5} y2={inner * part + 0.5} vector-effect="non-scaling-stroke" />
        ))}
        {dragged.value !== null && hovered.value !== null && (
          <rect x={Math.min(dragged.value, hovered.value) * step} width={(Math.abs(dragged.value - hovered.value) + 1) * step} y="0" height={inner} fill="var(--chosen)" />
        )}
        {slots.map((slot, index) => {
          let top = inner;
          return slot.values.map((value, part) => {
            const size = (value / most) * inner;
            top -= size;
            return size > 0 && <rect key={`${index}/${part}`} x={index * step + step * 0.08} width={step * 0.84} y={top} height={Math.max(size, 1)} fill={series[part]!.colour} opacity={hovered.value === null || hovered.value === index ? 1 : 0.65} />;
          });
        })}
      </svg>
      <div class="row wide quiet number" style={{ fontSize: "11px" }} aria-hidden="true">
        {slot ? (
          <span>
            {named(slot.at)} · {series.map((one, part) => `${one.name} ${short(slot.values[part] ?? 0)}`).filter((_, part) => slot.values[part]! > 0 || series.length === 1).join(" · ")}
          </span>
        ) : (
          marks.map((index) => <span key={index}>{named(slots[index]!.at)}</span>)
        )}
        <span>max {short(most)}</span>
      </div>
      <AsTable slots={slots} series={series} named={named} />
    </figure>
  );
}

/** The same in numbers, made when somebody opens it. */
function AsTable({ slots, series, named }: Pick<BarsProps, "slots" | "series"> & { named: (at: Date) => string }) {
  const isOpen = useSignal(false);
  return (
    <details class="quiet" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{t().state.asTable}</summary>
      {isOpen.value && (
        <div class="scroll">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{t().logs.time}</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" class="number">{name}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {slots.map(({ at, values }) => (
                <tr key={at.getTime()}>
                  <th scope="row">{named(at)}</th>
                  {values.map((value, part) => (
                    <td key={part} class="number">{short(value)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
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
