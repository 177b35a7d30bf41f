// Handed over: a capture from the console, whose page has opened this one and is of the same server. The viewer itself
// still asks no network for anything.

import type { Story } from "./story.ts";

/** What this page says to the one that opened it. */
export const READY = "throng viewer: ready for a capture";

export interface Handed {
  capture: ArrayBuffer;
  name: string;
  story?: Story;
}

/** Waits for a capture from the page that opened this one, if one did; `failed` is told why none comes. */
export function awaitHanded(taken: (handed: Handed) => void, failed: (words: string) => void): void {
  const opener = window.opener as Window | null;
  if (!opener || !location.protocol.startsWith("http")) return;
  window.addEventListener("message", ({ origin, source, data }: MessageEvent<Partial<Handed> & { error?: unknown }>) => {
    if (origin !== location.origin || source !== opener || typeof data !== "object" || data === null) return;
    if (data.capture instanceof ArrayBuffer && typeof data.name === "string") taken(data as Handed);
    else if (typeof data.error === "string") failed(data.error);
  });
  opener.postMessage(READY, location.origin);
}
