// A part of the console that comes as a file of its own, which is loaded when it is first opened.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Fault } from "../api/call";
import { Failed, Lines } from "../kit/states";

export type Load = () => Promise<{ default: ComponentType }>;

const loaded = new Map<Load, ComponentType>();

export function Screen({ load }: { load: Load }) {
  const component = useSignal<ComponentType | undefined>(loaded.get(load));
  const failed = useSignal(false);
  const ask = () => {
    failed.value = false;
    load().then(
      (module) => {
        loaded.set(load, module.default);
        component.value = module.default;
      },
      () => (failed.value = true),
    );
  };
  useEffect(() => {
    if (!component.value) ask();
  }, []);
  const Loaded = component.value;
  if (Loaded) return <Loaded />;
  // A newer program has other files: loading the page again brings their names.
  if (failed.value) return <Failed fault={new Fault(0, "", "", "", "", [], null)} again={() => location.reload()} />;
  return <Lines />;
}
