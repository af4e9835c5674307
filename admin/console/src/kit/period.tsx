// The choice of a period; what is chosen stands in the address.
import { t } from "../i18n";
import { DEFAULT_PERIOD, PERIODS, period } from "../nav/period";
import { param, setParams } from "../nav/query";
import { dateAndTime } from "./words";

export function PeriodChoice() {
  const texts = t().period;
  const from = param("from") || DEFAULT_PERIOD;
  const isCustom = !!param("to") || !PERIODS.some((one) => one === from);
  const { from: begin, to: end } = period();
  return (
    <select
      class="plain" aria-label={texts.label} value={isCustom ? "" : from}
      onChange={(event) => setParams({ from: event.currentTarget.value === DEFAULT_PERIOD ? null : event.currentTarget.value, to: null, after: null, page: null, entry: null })}
    >
      {isCustom && <option value="">{texts.custom(dateAndTime(begin), dateAndTime(end))}</option>}
      {PERIODS.map((one) => (
        <option key={one} value={one}>
          {texts[one]}
        </option>
      ))}
    </select>
  );
}
