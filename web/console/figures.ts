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

/** `12:04:31`, of the same clock; with its day if that is long ago by `nowUnixS`. */
export const clock = (unixS: number, nowUnixS: number): string => moment(unixS).slice(nowUnixS - unixS < CLOCK_S ? 11 : 0);

/** Half a day: until then no hour is named twice (s). */
const CLOCK_S = 12 * 3_600;

/** `3 min`, in full units. */
export function span(seconds: number): string {
  const [size, unit] = seconds < 120 ? [1, "s"] : seconds < 7_200 ? [60, "min"] : seconds < 172_800 ? [3_600, "h"] : [86_400, "days"];
  return `${count(Math.floor(Math.max(0, seconds) / Number(size)))}\u202f${unit}`;
}

/** Words for what a share of a budget is. */
export const budgetClass = (share: number | undefined): string =>
  share === undefined ? "" : share > 1 ? "bad" : share > 0.8 ? "warn" : "";
