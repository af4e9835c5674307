// Periods as addresses write them: `-24h` stays relative, so that a link shows the last day whenever it is opened.
import { param } from "./query";

export const PERIODS = ["-15m", "-1h", "-6h", "-24h", "-7d", "-30d"] as const;
export const DEFAULT_PERIOD = "-24h";

const UNITS: Record<string, number> = { m: 60e3, h: 3600e3, d: 86400e3 };

export interface Period {
  from: Date;
  to: Date;
}

/** `-90m`, `-24h`, `-7d` before now; else a time. Null for what is neither. */
export function moment(text: string, now: Date): Date | null {
  const relative = /^-(\d{1,4})([mhd])$/.exec(text);
  if (relative) return new Date(now.getTime() - Number(relative[1]) * UNITS[relative[2]!]!);
  const time = new Date(text);
  return text && !Number.isNaN(time.getTime()) ? time : null;
}

/** The period of the address at this moment. */
export function period(now = new Date()): Period {
  const from = moment(param("from") || DEFAULT_PERIOD, now) ?? moment(DEFAULT_PERIOD, now)!;
  const to = (param("to") && moment(param("to"), now)) || now;
  return from < to ? { from, to } : { from: to, to: from };
}

/** Of the address alone, so that the same address asks once. */
export const periodKey = () => `${param("from") || DEFAULT_PERIOD}..${param("to")}`;

/** As searches name it. */
export function timeQuery(now = new Date()): { time_of_generation_min: string; time_of_generation_max: string } {
  const { from, to } = period(now);
  return { time_of_generation_min: from.toISOString(), time_of_generation_max: to.toISOString() };
}
