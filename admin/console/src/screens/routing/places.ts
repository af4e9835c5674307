// Where in a JSON text each value begins, so that what the interface says about `targets[1].provider` can be shown at its
// line; and where a text stops being JSON.

export interface Places {
  /** Lines, from 1, by the path of a value. */
  lines: Map<string, number>;
  /** The place where the text is no JSON any more. */
  wrong: { offset: number; line: number } | null;
}

/** Configs are some levels deep; a text that is deeper is not looked into. */
const MAX_DEPTH = 100;

class NotJson extends Error {
  constructor(readonly offset: number) {
    super();
  }
}

const lineAt = (text: string, offset: number) => text.slice(0, offset).split("\n").length;

export function places(text: string): Places {
  const lines = new Map<string, number>();
  let at = 0;
  let [line, counted] = [1, 0];
  /** `at` only moves on, so each line is counted once. */
  const lineHere = () => {
    for (; counted < at; counted += 1) if (text[counted] === "\n") line += 1;
    return line;
  };
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at += 1;
  };
  const expect = (sign: string) => {
    skip();
    if (text[at] !== sign) throw new NotJson(at);
    at += 1;
  };
  const token = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) throw new NotJson(at);
    at += found[0].length;
    return found[0];
  };
  const string = (): string => JSON.parse(token(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y)) as string;
  /** The members between two brackets. */
  const members = (end: string, read: (index: number) => void) => {
    at += 1;
    skip();
    if (text[at] === end) return void (at += 1);
    for (let index = 0; ; index += 1) {
      read(index);
      skip();
      if (text[at] === end) return void (at += 1);
      expect(",");
    }
  };
  const value = (path: string, depth: number) => {
    skip();
    if (depth > MAX_DEPTH) throw new NotJson(at);
    lines.set(path, lineHere());
    const first = text[at];
    if (first === "{") {
      members("}", () => {
        skip();
        const name = string();
        expect(":");
        value(path ? `${path}.${name}` : name, depth + 1);
      });
    } else if (first === "[") {
      members("]", (index) => value(`${path}[${index}]`, depth + 1));
    } else if (first === '"') string();
    else token(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y);
  };
  try {
    value("", 0);
    skip();
    if (at < text.length) throw new NotJson(at);
    return { lines, wrong: null };
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return { lines, wrong: { offset: error.offset, line: lineAt(text, error.offset) } };
  }
}

/** The line of a path, or of the closest thing around it that is there. */
export function lineOf({ lines }: Places, path: string): number {
  for (let one = path; one; one = one.replace(/(?:\.[^.[\]]*|\[\d+\]|^[^.[\]]*)$/, "")) {
    const line = lines.get(one);
    if (line !== undefined) return line;
  }
  return 1;
}
