// A part of a name; what is searched stands in the address as `search`.
import { useSignal } from "@preact/signals";
import { param, setParams } from "../nav/query";

export function SearchField({ label }: { label: string }) {
  const text = useSignal(param("search"));
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        setParams({ search: text.value.trim(), page: null });
      }}
    >
      <input type="search" aria-label={label} placeholder={label} autocomplete="off" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
    </form>
  );
}
