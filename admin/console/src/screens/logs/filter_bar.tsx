// Filters as text: those that hold, each with a button that removes it, and a field for more.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { visible } from "../../kit/words";
import { asText, FILTERS, isValid, parse, withFilters, withoutFilter, type Filter } from "../../nav/filters";
import { addressOf } from "../../nav/query";
import { go, place } from "../../nav/router";

/** Goes to the same screen without a filter. */
export function remove(filter: Filter): void {
  const query = withoutFilter(place.value.query, filter);
  query.delete("after");
  go(addressOf(query));
}

export function FilterBar({ filters }: { filters: Filter[] }) {
  const texts = t().logs;
  const text = useSignal("");
  const unknown = useSignal<string | null>(null);
  const add = () => {
    const read = parse(text.value);
    unknown.value = read.unknown;
    if (read.unknown || read.filters.length === 0) return;
    go(addressOf(withFilters(place.value.query, read.filters)));
    text.value = "";
  };
  return (
    <div class="filter-bar">
      {filters.length > 0 && (
        <div class="chips" role="list" aria-label={texts.filters}>
          {filters.map((filter) => (
            <span key={asText(filter)} class="chip" role="listitem">
              {!isValid(filter) && <span aria-hidden="true">▲</span>}
              {visible(asText(filter))}
              <button type="button" class="button bare small" aria-label={texts.remove(asText(filter))} onClick={() => remove(filter)}>
                ✕
              </button>
            </span>
          ))}
        </div>
      )}
      {filters.filter((filter) => !isValid(filter)).map((filter) => (
        <p key={asText(filter)} class="field">
          <span class="wrong" role="alert">{texts.invalid(visible(asText(filter)))}</span>
        </p>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <input
          type="text" aria-label={texts.search} placeholder={texts.searchHint} autocomplete="off" spellcheck={false} value={text.value}
          aria-invalid={unknown.value ? true : undefined} aria-describedby={unknown.value ? "filter-unknown" : undefined}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            unknown.value = null;
          }}
        />
        {unknown.value && (
          <p id="filter-unknown" class="field">
            <span class="wrong" role="alert">{texts.unknown(unknown.value, Object.keys(FILTERS).join(", "))}</span>
          </p>
        )}
      </form>
    </div>
  );
}
