// Opening: hands a file, or the page's own capture, to a worker of its own and waits for what it makes of it.

import type { Answer, Order } from "./worker.ts";

/** The worker's program; the build puts it in. */
declare const WORKER_SOURCE: string;

/** What a file may have at most (bytes): no reader takes more. */
const FILE_BYTES_MAX = 2 ** 31 - 1;

export async function openFile(file: File): Promise<Answer> {
  if (file.size > FILE_BYTES_MAX) return { error: "the file is larger than 2 GiB, which no capture is" };
  try {
    return await ask({ file: await file.arrayBuffer() });
  } catch (error) {
    return { error: `the file cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** The capture that the page carries, if it carries one. */
export function embedded(): string | undefined {
  const element = document.getElementById("capture");
  const packed = element?.textContent;
  // It is large, and nobody reads it twice.
  element?.remove();
  return packed ? packed.trim() : undefined;
}

export function openPacked(packed: string): Promise<Answer> {
  return ask({ packed });
}

function ask(order: Order): Promise<Answer> {
  return new Promise((resolve) => {
    const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    const worker = new Worker(url);
    const end = (answer: Answer) => {
      worker.terminate();
      URL.revokeObjectURL(url);
      resolve(answer);
    };
    worker.onmessage = ({ data }: MessageEvent<Answer>) => end(data);
    worker.onerror = (event) => end({ error: `the capture cannot be opened: ${event.message || "the worker ended"}` });
    worker.onmessageerror = () => end({ error: "the capture is larger than this browser has memory for" });
    worker.postMessage(order, "file" in order ? [order.file] : []);
  });
}
