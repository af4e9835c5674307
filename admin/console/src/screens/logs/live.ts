// New logs as they arrive. While somebody reads further down, they are held and only counted, so that nothing moves.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Fault, type Query } from "../../api/call";
import { follow, type Event } from "../../api/events";
import { isIdle } from "../../nav/presence";
import { setParams } from "../../nav/query";
import type { LogRow } from "./types";

const MAX_ROWS = 200;
const LOOK_MS = 10_000;
const PAUSE_S = 2;

/** What another try may mend: the network, the gateway, or too much at once. */
const isPassing = (fault: Fault) => fault.status === 0 || fault.status === 429 || fault.status >= 500;

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
    const end = new AbortController();
    const stop = end.signal;
    let lastId = "";
    // Nobody watches any more: the address says that nothing is followed, and the effect of it ends the stream.
    const timer = setInterval(() => isIdle() && setParams({ live: null }, { replace: true }), LOOK_MS);
    const onOpen = () => (fault.value = null);
    const onEvent = ({ id, type, data }: Event) => {
      lastId = id || lastId;
      if (type === "gap") hasGap.value = true;
      if (type !== "log") return;
      const row = JSON.parse(data) as LogRow;
      if (scrollY > 120) {
        waiting.value = [row, ...waiting.value].slice(0, MAX_ROWS);
        held.value += 1;
      } else rows.value = [row, ...rows.value].slice(0, MAX_ROWS);
    };
    const run = async () => {
      while (!stop.aborted) {
        let pause = PAUSE_S;
        try {
          await follow("/logs/tail", filters, { lastId, stop, onOpen, onEvent });
        } catch (error) {
          if (stop.aborted) return;
          if (error instanceof Fault) {
            fault.value = error;
            if (!isPassing(error)) return;
            pause = error.retryAfter ?? PAUSE_S;
          }
        }
        await new Promise((resolve) => setTimeout(resolve, pause * 1000));
      }
    };
    void run();
    return () => {
      end.abort();
      clearInterval(timer);
    };
  }, [isOn, key]);
  return { rows, held, hasGap, fault, release };
}
