// What a screen shows, from asking to having: old data stays until newer is there, and an answer that a later question has
// overtaken is dropped.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Fault } from "./call";

export interface Loaded<T> {
  state: ReadonlySignal<State<T>>;
  reload: () => void;
}

export interface State<T> {
  data?: T;
  fault?: Fault;
  isLoading: boolean;
  /** When the data came. */
  at?: Date;
}

const MAX_KEPT = 40;
const kept = new Map<string, { data: unknown; at: Date }>();
/** Counts what was forgotten: an answer to a question from before is not kept. */
let epoch = 0;

/** Forgets everything, for another person or after a change. */
export function forget(): void {
  epoch += 1;
  kept.clear();
}

function keep(key: string, data: unknown, at: Date): void {
  kept.delete(key);
  kept.set(key, { data, at });
  const oldest = kept.keys().next();
  if (kept.size > MAX_KEPT && !oldest.done) kept.delete(oldest.value);
}

/** Asks when the key changes; null asks nothing. A secret must not be asked for this way: answers are kept. */
export function useLoaded<T>(key: string | null, load: () => Promise<T>): Loaded<T> {
  const before = key === null ? undefined : (kept.get(key) as { data: T; at: Date } | undefined);
  const state = useSignal<State<T>>({ data: before?.data, at: before?.at, isLoading: key !== null });
  const number = useRef(0);
  const keyOfData = useRef(before && key);
  const run = async () => {
    if (key === null) return;
    const mine = ++number.current;
    const begun = epoch;
    const old = kept.get(key) as { data: T; at: Date } | undefined;
    if (old) keyOfData.current = key;
    state.value = { data: old?.data ?? state.peek().data, at: old?.at ?? state.peek().at, isLoading: true };
    try {
      const [data, at] = [await load(), new Date()];
      if (begun === epoch) keep(key, data, at);
      if (mine !== number.current) return;
      keyOfData.current = key;
      state.value = { data, at, isLoading: false };
    } catch (error) {
      if (mine !== number.current) return;
      const fault = error instanceof Fault ? error : new Fault(-1, String(error), "", "", "", [], null);
      // What another question was answered would stand there as the answer to this one.
      const { data, at } = keyOfData.current === key ? state.peek() : {};
      state.value = { data, at, fault, isLoading: false };
    }
  };
  useEffect(() => {
    void run();
    return () => {
      number.current += 1;
    };
  }, [key]);
  return { state, reload: () => void run() };
}
