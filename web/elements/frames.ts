// Frames against their budget, as console and viewer both judge them.
//
// A frame is closed on time: one that lasted for as long as its budget left a world behind that was still in its tick. That
// is no bad frame by itself.

/** What a closed frame takes beside its waiting, as shares of the budget: from, and up to. */
export const CLOSED = [0.98, 1.1] as const;

/** Whether it took longer than a frame that was closed on time. Both in one unit. */
export const isLong = (took: number, budget: number): boolean => budget > 0 && took > budget * CLOSED[1];
