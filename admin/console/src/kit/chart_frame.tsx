// What every chart over time has around its drawing: the times below it, the values under the pointer, a stretch that is
// dragged, and the same in numbers as a table.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { t } from "../i18n";
import { clock, dateAndTime, day } from "./words";

export interface Slot {
  at: Date;
  /** One number for each series; null where there is none. */
  values: (number | null)[];
}

export interface Series {
  name: string;
  colour: string;
}

export interface ChartProps {
  label: string;
  slots: Slot[];
  series: Series[];
  /** The time before, slot by slot. */
  before?: number[];
  height?: number;
  format: (value: number) => string;
  /** Called with the times between which somebody dragged or clicked. */
  choose?: (from: Date, to: Date) => void;
}

interface FrameProps extends ChartProps {
  /** The highest value, and the sentence that says the content. */
  most: number;
  sentence: (named: (at: Date) => string) => string;
  height: number;
  children: (hovered: number | null) => ComponentChildren;
}

export const WIDTH = 1000;
/** Below the drawing, for the last line of the grid. */
export const BOTTOM = 16;

const slotLength = (slots: Slot[]) => (slots.length > 1 ? slots[1]!.at.getTime() - slots[0]!.at.getTime() : 60_000);

/** A clock alone names a moment of one day. */
function namesOf(slots: Slot[]): (at: Date) => string {
  const length = slotLength(slots);
  if (length >= 86400e3) return day;
  return length * slots.length > 86400e3 ? dateAndTime : (at) => clock(at, { seconds: false });
}

export function ChartFrame({ label, slots, series, before, height, most, format, sentence, choose, children }: FrameProps) {
  const hovered = useSignal<number | null>(null);
  const dragged = useSignal<number | null>(null);
  const box = useRef<SVGSVGElement>(null);
  const step = WIDTH / slots.length;
  const inner = height - BOTTOM;
  const named = namesOf(slots);
  const slotAt = (event: PointerEvent) => {
    const frame = box.current!.getBoundingClientRect();
    return Math.min(slots.length - 1, Math.max(0, Math.floor(((event.clientX - frame.left) / frame.width) * slots.length)));
  };
  const finish = (event: PointerEvent) => {
    const [first, second] = [dragged.value, slotAt(event)];
    dragged.value = null;
    if (first === null || !choose) return;
    const [from, to] = [Math.min(first, second), Math.max(first, second)];
    choose(slots[from]!.at, new Date(slots[to]!.at.getTime() + slotLength(slots)));
  };
  const slot = hovered.value === null ? null : slots[hovered.value]!;
  const marks = [0, 0.25, 0.5, 0.75].map((part) => Math.floor(part * slots.length));
  const values = (of: Slot) => series.flatMap(({ name }, part) => (of.values[part] || series.length === 1 ? [`${name} ${format(of.values[part] ?? 0)}`] : []));
  return (
    <figure>
      <svg
        ref={box} class="chart" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" style={{ blockSize: `${height}px`, cursor: choose ? "crosshair" : undefined }}
        role="img" aria-label={`${label}: ${sentence(named)}`}
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
        {children(hovered.value)}
        {before && <Before values={before} number={slots.length} inner={inner} most={most} />}
      </svg>
      <div class="row wide quiet number" style={{ fontSize: "11px" }} aria-hidden="true">
        {slot ? (
          <span>{[named(slot.at), ...values(slot), ...(before ? [`${t().state.previous} ${format(before[hovered.value!] ?? 0)}`] : [])].join(" · ")}</span>
        ) : (
          marks.map((index) => <span key={index}>{named(slots[index]!.at)}</span>)
        )}
        <span>max {format(most)}</span>
      </div>
      <AsTable slots={slots} series={series} before={before} format={format} named={named} />
    </figure>
  );
}

/** The time before as a dashed line through the middles of the slots. */
function Before({ values, number, inner, most }: { values: number[]; number: number; inner: number; most: number }) {
  const points = values.slice(0, number).map((value, index) => `${((index + 0.5) * WIDTH) / number},${inner - (value / most) * inner}`);
  return <polyline points={points.join(" ")} fill="none" stroke="var(--soft)" stroke-width="1.2" stroke-dasharray="4 3" vector-effect="non-scaling-stroke" />;
}

type TableProps = Pick<ChartProps, "slots" | "series" | "before" | "format"> & { named: (at: Date) => string };

/** Made when somebody opens it. */
function AsTable({ slots, series, before, format, named }: TableProps) {
  const isOpen = useSignal(false);
  const amount = (value: number | null | undefined) => (value === null || value === undefined ? "–" : format(value));
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
                {before && <th scope="col" class="number">{t().state.previous}</th>}
              </tr>
            </thead>
            <tbody>
              {slots.map(({ at, values }, index) => (
                <tr key={at.getTime()}>
                  <th scope="row">{named(at)}</th>
                  {series.map((_, part) => (
                    <td key={part} class="number">{amount(values[part])}</td>
                  ))}
                  {before && <td class="number">{amount(before[index])}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
