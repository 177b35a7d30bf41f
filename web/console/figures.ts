// Figures of the console as people read them, from the units that the server tells them in.

import { bytes, count, duration } from "../elements/quantity.ts";

export const us = (value: number): string => duration(value * 1e3);
export const ms = (value: number): string => duration(value * 1e6);
export const perSecond = (value: number): string => (value >= 100 ? count(value) : value.toFixed(1));
export const bytesPerSecond = (value: number): string => `${bytes(value)}/s`;
export const megabytes = (mb: number): string => bytes(mb * 1e6);
export const percent = (share: number): string => `${(share * 100).toFixed(share >= 0.1 ? 0 : 1)}\u202f%`;
export const cores = (value: number): string => `${value.toFixed(2)} cores`;

/** `2026-11-26 07:40:11`, in UTC as the server's log has it. */
export const moment = (unixS: number): string => {
  const date = new Date(unixS * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 19).replace("T", " ");
};

/** `12:04:31` in UTC; `2026-11-28 12:04:31` if it is half a day or more before `nowUnixS`, when a time of day alone could be either day's. */
export const timeOfDay = (unixS: number, nowUnixS: number): string => moment(unixS).slice(nowUnixS - unixS < DAY_SHOWN_AFTER_S ? 11 : 0);

/** Half a day: until then no time of day is named twice (s). */
const DAY_SHOWN_AFTER_S = 12 * 3_600;

/** Units of long durations, each with where it gives way to the next (s). */
const LONG_UNITS = [
  { below_s: 120, size_s: 1, unit: "s" },
  { below_s: 7_200, size_s: 60, unit: "min" },
  { below_s: 172_800, size_s: 3_600, unit: "h" },
  { below_s: Infinity, size_s: 86_400, unit: "days" },
] as const;

/** `3 min`: whole seconds, minutes, hours or days, rounded down. */
export function longDuration(seconds: number): string {
  const { size_s, unit } = LONG_UNITS.find(({ below_s }) => seconds < below_s) ?? LONG_UNITS[3];
  return `${count(Math.floor(Math.max(0, seconds) / size_s))}\u202f${unit}`;
}

/** Words for what a share of a budget is. */
export const budgetClass = (share: number | undefined): string =>
  share === undefined ? "" : share > 1 ? "bad" : share > 0.8 ? "warn" : "";
