// The stream: what the server tells of itself, line by line, for as long as it can be reached; asked again when it ends.
//
// Read with `fetch` and not by an `EventSource`, which cannot show a key.

import type { Line } from "./document.ts";

export type StreamState = "connecting" | "live" | "lost" | "refused";

/** A line has 30 KB with hundreds of worlds; what is longer is no server of ours. */
const LINE_CHARACTERS_MAX = 8 << 20;
/** Before it is asked again (ms), longer each time up to the second. */
const AGAIN_AFTER_MS = [500, 8_000] as const;

export interface StreamOptions {
  /** Headers with the key, if there is one. */
  headers: () => Record<string, string>;
  line: (line: Line) => void;
  /** What became of it, with words where there is something to say. */
  state: (state: StreamState, words: string) => void;
}

export class Stream {
  private abort = new AbortController();
  private timer: number | undefined;
  private failures = 0;

  constructor(private readonly options: StreamOptions) {
    void this.run(this.abort);
  }

  /** Asks anew, with the key that there is now. */
  restart(): void {
    this.stop();
    this.failures = 0;
    this.abort = new AbortController();
    void this.run(this.abort);
  }

  stop(): void {
    window.clearTimeout(this.timer);
    this.abort.abort();
  }

  private async run(abort: AbortController): Promise<void> {
    this.options.state("connecting", "");
    let words = "the server has ended the stream";
    try {
      const answer = await fetch("/api/watch", { headers: this.options.headers(), signal: abort.signal, cache: "no-store" });
      if (!answer.ok || !answer.body) {
        const said = (await answer.json().catch(() => ({}))) as { error?: string };
        const reason = said.error ?? `the server answered ${answer.status}`;
        // A key is needed, or another one: to ask again by itself would only be refused again.
        if (answer.status === 401 || answer.status === 403) return this.options.state("refused", reason);
        throw new Error(reason);
      }
      for await (const line of lines(answer.body)) {
        if (abort.signal.aborted) return;
        if (line.line === "hello") {
          this.failures = 0;
          this.options.state("live", "");
        }
        this.options.line(line);
      }
    } catch (error) {
      words = error instanceof TypeError ? "the server cannot be reached" : error instanceof Error ? error.message : String(error);
    }
    if (abort.signal.aborted) return;
    this.options.state("lost", words);
    const [first, most] = AGAIN_AFTER_MS;
    this.timer = window.setTimeout(() => void this.run(abort), Math.min(most, first * 2 ** this.failures++));
  }
}

/** Takes a body apart at its line ends. Throws for what is no line of ours. */
export async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<Line> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      let end: number;
      while ((end = rest.indexOf("\n")) >= 0) {
        const line = JSON.parse(rest.slice(0, end)) as Line;
        rest = rest.slice(end + 1);
        yield line;
      }
      if (rest.length > LINE_CHARACTERS_MAX) throw new Error("a line without an end: this is no admin port of a Throng server");
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
