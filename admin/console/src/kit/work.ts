// Something that somebody asked for and waits for: whether it is under way, and what the interface said against it.
import { useSignal, type Signal } from "@preact/signals";
import { Fault } from "../api/call";

export interface Work {
  isBusy: Signal<boolean>;
  fault: Signal<Fault | null>;
  /** True when it was done. */
  run: (work: () => Promise<void>) => Promise<boolean>;
}

export const faultFrom = (error: unknown) => (error instanceof Fault ? error : new Fault(-1, String(error), "", "", "", [], null));

export function useWork(): Work {
  const isBusy = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  const run = async (work: () => Promise<void>) => {
    isBusy.value = true;
    fault.value = null;
    try {
      await work();
    } catch (error) {
      fault.value = faultFrom(error);
    }
    isBusy.value = false;
    return fault.value === null;
  };
  return { isBusy, fault, run };
}
