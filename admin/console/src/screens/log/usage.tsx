// The sum behind a cost: tokens by kind, times the price of each, as the price list had them when the call was made.
import { t } from "../../i18n";
import { cents, count, visible } from "../../kit/words";
import type { Metrics } from "../logs/types";

interface Line {
  name: string;
  tokens: number;
  /** Cents of one token; null is not known, which is not nothing. */
  price: number | null;
}

/** The names under which a log has the price of a kind: the first one that is there. */
const NAMES = {
  input: ["request_text_token", "request_token"],
  read: ["cache_read_text_input_token", "cached_text_input_token", "cache_read_input_token"],
  written: ["cache_write_input_token", "cache_write_1h", "cache_write_12h"],
  output: ["response_text_token", "response_token"],
  reasoning: ["reasoning_token"],
};

export function lines(m: Metrics): Line[] {
  const texts = t().log;
  const prices = m.unit_prices ?? {};
  const listed = (kind: keyof typeof NAMES) => NAMES[kind].map((name) => prices[name]).find((one) => one !== undefined);
  const known = (price: string | null | undefined) => (price === undefined || price === null ? null : Number(price));
  // What is read from a cache and has no price of its own costs what other input does.
  const ownPrice = listed("read");
  const readPrice = ownPrice === undefined ? listed("input") : ownPrice;
  const [read, written] = [m.cache_read_tokens ?? 0, m.cache_write_tokens ?? 0];
  // Reasoning is a part of the output, and a line of its own where it has a price of its own.
  const reasoning = "reasoning_token" in prices ? (m.reasoning_tokens ?? 0) : 0;
  return [
    { name: texts.input, tokens: Math.max(0, (m.req_units ?? 0) - read - written), price: known(listed("input")) },
    { name: texts.cacheRead, tokens: read, price: known(readPrice) },
    { name: texts.cacheWrite, tokens: written, price: known(listed("written")) },
    { name: texts.output, tokens: Math.max(0, (m.res_units ?? 0) - reasoning), price: known(listed("output")) },
    { name: texts.reasoning, tokens: reasoning, price: known(listed("reasoning")) },
  ].filter(({ tokens }, index) => tokens > 0 || index === 0 || index === 3);
}

export function Usage({ metrics }: { metrics: Metrics }) {
  const texts = t().log;
  const rows = lines(metrics);
  const sum = rows.reduce((all, { tokens, price }) => all + tokens * (price ?? 0), 0);
  // What is charged by other units than tokens, and what tiers change.
  const rest = metrics.unit_prices ? (metrics.cost ?? 0) - sum : 0;
  return (
    <>
      <div class="scroll">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{texts.kind}</th>
              <th scope="col" class="number">{texts.amount}</th>
              <th scope="col" class="number">{texts.unit}</th>
              <th scope="col" class="number">{texts.sum}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, tokens, price }) => (
              <tr key={name}>
                <td>{name}</td>
                <td class="number">{count(tokens)}</td>
                <td class="number">{price === null ? "–" : cents(price * 1e6)}</td>
                <td class="number">{price === null ? "–" : cents(price * tokens)}</td>
              </tr>
            ))}
            {Math.abs(rest) > 1e-9 && (
              <tr>
                <td>{texts.other}</td>
                <td />
                <td />
                <td class="number">{cents(rest)}</td>
              </tr>
            )}
            <tr>
              <td>
                <strong>{texts.total}</strong>
              </td>
              <td class="number">{count((metrics.req_units ?? 0) + (metrics.res_units ?? 0))}</td>
              <td />
              <td class="number">
                <strong>{cents(metrics.cost)}</strong>
              </td>
            </tr>
          </tbody>
        </table>
      </div>
      {(metrics.reasoning_tokens ?? 0) > 0 && !rows.some(({ name }) => name === texts.reasoning) && (
        <p class="quiet">
          {texts.reasoning}: {count(metrics.reasoning_tokens!)}
        </p>
      )}
      <p class="quiet">
        {metrics.usage_estimated && `${texts.estimated} `}
        {metrics.unit_prices ? texts.prices(visible(metrics.price_model ?? ""), visible(metrics.price_version ?? "")) : texts.unpriced}
      </p>
    </>
  );
}
