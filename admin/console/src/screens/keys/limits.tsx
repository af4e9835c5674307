// What a key may use, and how much of it is used.
import { t } from "../../i18n";
import { Bar } from "../../kit/basics";
import { dollars, short } from "../../kit/words";
import type { Key } from "./types";

export function Limits({ of }: { of: Pick<Key, "rate_limits" | "usage_limits"> }) {
  const texts = t().keys;
  const { rate_limits, usage_limits: budget } = of;
  const [limit, used] = [budget?.credit_limit ?? null, budget?.current_usage ?? 0];
  const share = limit ? used / limit : 0;
  const amount = (value: number) => (budget?.type === "tokens" ? short(value) : dollars(value));
  return (
    <span class="row">
      {rate_limits.map(({ type, unit, value }) => (
        <span key={type + unit} class="nowrap">
          {short(value)} {unit}
        </span>
      ))}
      {limit !== null && (
        <>
          <span class="nowrap">{texts.used(amount(used), amount(limit))}</span>
          <Bar share={share} meaning={share >= 1 ? "bad" : share > 0.8 ? "warn" : ""} />
        </>
      )}
      {rate_limits.length === 0 && limit === null && <span class="quiet">{t().state.none}</span>}
    </span>
  );
}
