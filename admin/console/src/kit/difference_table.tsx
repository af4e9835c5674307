// Differences as rows: what was, what is to be, each marked by a sign and a colour.
import { t } from "../i18n";
import { MAX_DIFFERENCES, type Difference } from "./difference";
import { count, visible } from "./words";

const MAX_TEXT = 2_000;

/** Texts as they are, everything else as JSON. */
function asText(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? String(value));
  return visible(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
}

interface DifferenceTableProps {
  of: Difference[];
  /** A name for a text that is the id of something. */
  named?: (text: string) => string | undefined;
}

export function DifferenceTable({ of, named }: DifferenceTableProps) {
  const texts = t().review;
  const nameOf = (value: unknown) => (typeof value === "string" ? named?.(value) : undefined);
  if (of.length === 0) return <p class="quiet">{texts.same}</p>;
  return (
    <div class="scroll">
      <table class="table differences">
        <thead>
          <tr>
            <th scope="col">{texts.field}</th>
            <th scope="col">{texts.before}</th>
            <th scope="col">{texts.after}</th>
          </tr>
        </thead>
        <tbody>
          {of.slice(0, MAX_DIFFERENCES).map(({ path, before, after }) => (
            <tr key={path}>
              <th scope="row">
                <code>{visible(path) || "·"}</code>
              </th>
              <td>{before !== undefined && <Side sign="−" meaning="removed" text={asText(before)} name={nameOf(before)} />}</td>
              <td>{after !== undefined && <Side sign="+" meaning="added" text={asText(after)} name={nameOf(after)} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.length > MAX_DIFFERENCES && <p class="inside quiet">{t().state.ofMany(count(MAX_DIFFERENCES), count(of.length), false)}</p>}
    </div>
  );
}

interface SideProps {
  sign: string;
  meaning: "added" | "removed";
  text: string;
  name?: string;
}

const Side = ({ sign, meaning, text, name }: SideProps) => (
  <>
    <code class={meaning}>
      <span aria-hidden="true">{sign}</span> {text}
    </code>
    {name && <span class="quiet"> {visible(name)}</span>}
  </>
);
