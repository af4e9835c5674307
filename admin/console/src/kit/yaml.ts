// JSON values as YAML, for files that the command line reads. Texts are written plainly where they can be nothing else, and
// quoted as JSON everywhere else, which YAML reads alike.

/** Letters, digits and a few signs; begins with a letter and is no word that YAML takes for something else. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[A-Za-z][\w./-]*$/i;

const scalar = (value: unknown): string => (typeof value === "string" && PLAIN.test(value) ? value : JSON.stringify(value ?? null));

const isEmpty = (value: object) => Object.keys(value).length === 0;

/** Lines without indentation. */
function lines(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [scalar(value)];
  if (isEmpty(value)) return [Array.isArray(value) ? "[]" : "{}"];
  if (Array.isArray(value)) {
    return value.flatMap((one) => {
      const [first, ...rest] = lines(one);
      return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
    });
  }
  return Object.entries(value).flatMap(([name, one]) => {
    const isNested = typeof one === "object" && one !== null && !isEmpty(one);
    return isNested ? [`${scalar(name)}:`, ...lines(one).map((line) => `  ${line}`)] : [`${scalar(name)}: ${lines(one)[0]}`];
  });
}

export const yaml = (value: unknown): string => `${lines(value).join("\n")}\n`;
