// Numbers, money and time as people read them. The interface has costs of logs in cents and budgets in dollars; neither unit
// is shown as it comes.
import { language } from "../i18n";

const formats = new Map<string, Intl.NumberFormat>();

function format(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = language.value + JSON.stringify(options);
  let found = formats.get(key);
  if (!found) formats.set(key, (found = new Intl.NumberFormat(language.value, options)));
  return found;
}

export const count = (value: number) => format({ maximumFractionDigits: 0 }).format(value);

/** 1.24 M: for tiles and axes. */
export const short = (value: number) =>
  Math.abs(value) < 10_000 ? format({ maximumFractionDigits: value < 10 ? 2 : 0 }).format(value) : format({ notation: "compact", maximumFractionDigits: 2 }).format(value);

export const percent = (value: number) => `${format({ maximumFractionDigits: Math.abs(value) < 10 ? 2 : 1 }).format(value)} %`;

/** As many digits as matter: $0.0032, $812.40. */
export function dollars(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 4 : Math.min(8, 3 - Math.floor(Math.log10(size)));
  return format({ style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", minimumFractionDigits: 2, maximumFractionDigits: digits }).format(value);
}

export const cents = (value: number | null | undefined) => (value === null || value === undefined ? "–" : dollars(value / 100));

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return ms === 0 ? "0 ms" : "<1 ms";
  if (ms < 1000) return `${format({ maximumFractionDigits: 0 }).format(ms)} ms`;
  if (ms < 60_000) return `${format({ maximumFractionDigits: ms < 10_000 ? 2 : 1 }).format(ms / 1000)} s`;
  return `${format({ maximumFractionDigits: 1 }).format(ms / 60_000)} min`;
}

export function clock(date: Date, { seconds = true, millis = false } = {}): string {
  return new Intl.DateTimeFormat(language.value, {
    hour: "2-digit",
    minute: "2-digit",
    second: seconds ? "2-digit" : undefined,
    fractionalSecondDigits: millis ? 3 : undefined,
    hourCycle: "h23",
  }).format(date);
}

export function day(date: Date): string {
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return new Intl.DateTimeFormat(language.value, { day: "numeric", month: "short", year }).format(date);
}

export const dateAndTime = (date: Date) => `${day(date)} ${clock(date, { seconds: false })}`;

/** "2 min ago" up to an hour, then the time, then the day. */
export function ago(date: Date, now = new Date()): string {
  const seconds = (date.getTime() - now.getTime()) / 1000;
  const relative = new Intl.RelativeTimeFormat(language.value, { numeric: "auto", style: "short" });
  if (Math.abs(seconds) < 60) return relative.format(Math.round(seconds), "second");
  if (Math.abs(seconds) < 3600) return relative.format(Math.round(seconds / 60), "minute");
  if (Math.abs(seconds) < 86400) return clock(date, { seconds: false });
  return day(date);
}

/** Control and direction characters become visible, so that a text can neither hide nor reorder anything. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}
