// New logs as they arrive. While somebody reads further down, they are held and only counted, so that nothing moves.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, type Query } from "../../api/call";
import { follow } from "../../api/events";
import type { LogRow } from "./table";

const MAX_ROWS = 200;
/** Without a hand on the page nobody watches, and a stream would keep the session alive for ever. */
const IDLE_MS = 10 * 60_000;

interface Live {
  rows: Signal<LogRow[]>;
  held: Signal<number>;
  hasGap: Signal<boolean>;
  fault: Signal<Fault | null>;
  release: () => void;
}

export function useLive(isOn: boolean, key: string, filters: Query): Live {
  const rows = useSignal<LogRow[]>([]);
  const waiting = useSignal<LogRow[]>([]);
  const held = useSignal(0);
  const hasGap = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  const release = () => {
    rows.value = [...waiting.value, ...rows.value].slice(0, MAX_ROWS);
    waiting.value = [];
    held.value = 0;
    scrollTo({ top: 0 });
  };
  useEffect(() => {
    rows.value = waiting.value = [];
    held.value = 0;
    hasGap.value = false;
    fault.value = null;
    if (!isOn) return;
    let isStopped = false;
    let lastTouch = Date.now();
    const touch = () => (lastTouch = Date.now());
    addEventListener("pointermove", touch);
    addEventListener("keydown", touch);
    const isDone = () => isStopped || Date.now() - lastTouch > IDLE_MS;
    const onEvent = ({ type, data }: { type: string; data: string }) => {
      if (type === "gap") hasGap.value = true;
      if (type !== "log") return;
      const row = JSON.parse(data) as LogRow;
      if (scrollY > 120) {
        waiting.value = [row, ...waiting.value].slice(0, MAX_ROWS);
        held.value += 1;
      } else rows.value = [row, ...rows.value].slice(0, MAX_ROWS);
    };
    const run = async () => {
      while (!isDone()) {
        try {
          await follow("/logs/tail", filters, onEvent, isDone);
        } catch (error) {
          if (error instanceof Fault && error.status !== 0) {
            fault.value = error;
            return;
          }
        }
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    };
    void run();
    return () => {
      isStopped = true;
      removeEventListener("pointermove", touch);
      removeEventListener("keydown", touch);
    };
  }, [isOn, key]);
  return { rows, held, hasGap, fault, release };
}
