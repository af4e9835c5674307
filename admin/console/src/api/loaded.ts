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

const MAX_ANSWERS = 40;
const answers = new Map<string, { data: unknown; at: Date }>();
/** Counts what was forgotten: an answer to a question from before is not remembered. */
let epoch = 0;

/** Forgets everything, for another person or after a change. */
export function forget(): void {
  epoch += 1;
  answers.clear();
}

function remember(key: string, data: unknown, at: Date): void {
  answers.delete(key);
  answers.set(key, { data, at });
  const oldest = answers.keys().next();
  if (answers.size > MAX_ANSWERS && !oldest.done) answers.delete(oldest.value);
}

/** Asks when the key changes; null asks nothing. A secret must not be asked for this way: answers are remembered. */
export function useLoaded<T>(key: string | null, load: () => Promise<T>): Loaded<T> {
  const before = key === null ? undefined : (answers.get(key) as { data: T; at: Date } | undefined);
  const state = useSignal<State<T>>({ data: before?.data, at: before?.at, isLoading: key !== null });
  const number = useRef(0);
  const keyOfData = useRef(before && key);
  const run = async () => {
    if (key === null) return;
    const mine = ++number.current;
    const begun = epoch;
    const old = answers.get(key) as { data: T; at: Date } | undefined;
    if (old) keyOfData.current = key;
    state.value = { data: old?.data ?? state.peek().data, at: old?.at ?? state.peek().at, isLoading: true };
    try {
      const [data, at] = [await load(), new Date()];
      if (begun === epoch) remember(key, data, at);
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
