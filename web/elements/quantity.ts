// Figures as people read them: times, bytes and counts with as many digits as tell something.

const NARROW_SPACE = "\u202f";

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** `1.25 ms`; of nanoseconds. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)}${NARROW_SPACE}ns`;
  if (size < 1e6) return `${digits(ns / 1e3)}${NARROW_SPACE}µs`;
  if (size < 1e9) return `${digits(ns / 1e6)}${NARROW_SPACE}ms`;
  return `${digits(ns / 1e9)}${NARROW_SPACE}s`;
}

/** A moment with the digits that a step of `stepNs` needs: `1.234 567 s` beside its neighbours. */
export function moment(ns: number, stepNs: number): string {
  const [unit, size] = stepNs < 1e3 ? ["µs", 1e3] : stepNs < 1e6 ? ["ms", 1e6] : ["s", 1e9];
  const [factor, name] =
    Math.abs(ns) >= 1e9 ? [1e9, "s"] : Math.abs(ns) >= 1e6 && size < 1e9 ? [1e6, "ms"] : [size as number, unit];
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(factor as number) - Math.log10(stepNs) - 1e-9)));
  return `${(ns / (factor as number)).toFixed(decimals)}${NARROW_SPACE}${name}`;
}

/** `1.5 MiB`. */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(count) >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(count) : digits(count)}${NARROW_SPACE}${units[unit]}`;
}

/** `12,345`. */
export const count = (value: number): string => Math.round(value).toLocaleString("en-US");

/** `1 world`, `2 worlds`. */
export const counted = (value: number, name: string): string => `${count(value)} ${name}${value === 1 ? "" : "s"}`;

/** `+12 %`; an empty text where there is nothing to compare with. */
export function change(before: number, after: number): string {
  if (before === 0) return after === 0 ? "" : "new";
  const percent = (after / before - 1) * 100;
  const text = Math.abs(percent) >= 10 ? percent.toFixed(0) : percent.toFixed(1);
  return `${percent > 0 ? "+" : ""}${text}${NARROW_SPACE}%`;
}
