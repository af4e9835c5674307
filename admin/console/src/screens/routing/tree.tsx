// What a config says, as a tree: which targets there are, in which order or with which share.
import { t } from "../../i18n";
import { percent, visible } from "../../kit/words";

interface Node {
  text: string;
  targets: Node[];
}

const MAX_TARGETS = 200;

const record = (value: unknown): Record<string, any> => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, any>) : {});
const word = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

/** Of any JSON: what is no config has an empty tree. */
export function tree(value: unknown, share = "", depth = 0): Node {
  const { strategy, targets, provider, virtual_key, model, override_params, retry, request_timeout, name } = record(value);
  const mode = word(record(strategy).mode);
  const list = Array.isArray(targets) && depth < 20 ? targets.slice(0, MAX_TARGETS) : [];
  const weights = list.map((one) => Number(record(one).weight ?? 1)).map((weight) => (Number.isFinite(weight) && weight > 0 ? weight : 0));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const shareOf = (index: number) => (mode === "loadbalance" && sum > 0 ? percent((weights[index]! / sum) * 100) : mode === "fallback" ? `${index + 1}.` : "");
  const attempts = Number(record(retry).attempts);
  const parts = [
    share, mode, word(name), word(provider) || word(virtual_key), word(model) || word(record(override_params).model),
    attempts > 0 ? t().routing.retries(attempts) : "", word(request_timeout) && `${word(request_timeout)} ms`,
  ];
  return { text: parts.filter(Boolean).join(" · "), targets: list.map((one, index) => tree(one, shareOf(index), depth + 1)) };
}

export const Tree = ({ of }: { of: Node }) => (
  <ul class="config-tree">
    <Branch of={of} />
  </ul>
);

const Branch = ({ of }: { of: Node }) => (
  <li>
    <span>{visible(of.text) || "·"}</span>
    {of.targets.length > 0 && (
      <ul>
        {of.targets.map((one, index) => (
          <Branch key={index} of={one} />
        ))}
      </ul>
    )}
  </li>
);
