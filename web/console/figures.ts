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

/** Words for what a share of a budget is. */
export const budgetClass = (share: number | undefined): string =>
  share === undefined ? "" : share > 1 ? "bad" : share > 0.8 ? "warn" : "";
