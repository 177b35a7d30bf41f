// Numbers that wrap at 65,536: compared by the way between them, up to half the circle ahead is newer.

export const HALF = 0x8000;

/** How far `number` is ahead of `older`; `HALF` and above: it comes before it. */
export const distance = (number: number, older: number): number => (number - older) & 0xffff;

export const isNewer = (number: number, other: number): boolean => number !== other && distance(number, other) < HALF;

/** True when `number` is `other` or comes after it. */
export const isAtOrAfter = (number: number, other: number): boolean => distance(number, other) < HALF;
