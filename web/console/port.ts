// The port: what is asked of the server beside the stream, with the key of whoever asks.
//
// The key is kept for this tab only, and never part of an address.

const KEY = "throng-admin-key";

/** What a key looks like: 64 hexadecimal digits. */
const KEY_FORM = /^[0-9a-f]{64}$/i;

/** An answer that is a refusal or an error, in the server's words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let held: string | undefined;

/** The key that is shown, if there is one. */
export function key(): string | undefined {
  if (held === undefined) {
    try {
      held = sessionStorage.getItem(KEY) ?? "";
    } catch {
      held = "";
    }
  }
  return held || undefined;
}

/** Shows this key from now on, or none. A line of a file of keys will do; false: there is no key in it. */
export function showKey(text: string): boolean {
  const words = text.trim().split(/\s+/);
  const found = words.at(-1) ?? "";
  if (text.trim() !== "" && !KEY_FORM.test(found)) return false;
  held = found;
  try {
    if (held) sessionStorage.setItem(KEY, held);
    else sessionStorage.removeItem(KEY);
  } catch {
    // It holds for this page, then.
  }
  return true;
}

/** What is told when the server takes the key no more, as after its restart. */
let onDropped: () => void = () => undefined;

export function whenKeyIsDropped(tell: () => void): void {
  onDropped = tell;
}

function dropKey(): void {
  if (key() === undefined) return;
  showKey("");
  onDropped();
}

export function headers(): Record<string, string> {
  const shown = key();
  return shown ? { Authorization: `Bearer ${shown}` } : {};
}

async function asked(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { cache: "no-store", ...init, headers: { ...headers(), ...(init.headers as Record<string, string>) } });
  } catch {
    throw new Refused(0, "the server cannot be reached");
  }
  if (answer.ok) return answer;
  // Shown again and again, a key that is none any more would have this address kept out for minutes.
  if (answer.status === 401) dropKey();
  const said = (await answer.json().catch(() => ({}))) as { error?: string };
  throw new Refused(answer.status, said.error ?? `the server answered ${answer.status}`);
}

/** Has a line carried out; its text. */
export async function command(line: string): Promise<string> {
  const answer = await asked("/console", { method: "POST", headers: { "x-throng": "console", "Content-Type": "text/plain; charset=utf-8" }, body: line });
  return ((await answer.json()) as { text: string }).text;
}

/** The same, of which the answer is an object. */
export async function commandObject<T>(line: string): Promise<T> {
  return JSON.parse(await command(`${line} --json`)) as T;
}

/** Saves the last seconds; where, on the server's host. */
export async function saveCapture(note: string): Promise<string> {
  const answer = await asked("/capture", { method: "POST", headers: { "x-throng": "capture" }, body: note });
  return ((await answer.json()) as { path: string }).path;
}

export interface Capture {
  path: string;
  bytes: number;
  saved_unix_s: number;
  trigger: string | null;
  name: string | null;
  world: string | null;
  frame: number | null;
  measured: number | null;
  allowed: number | null;
}

export async function captures(): Promise<Capture[]> {
  return ((await (await asked("/api/captures")).json()) as { captures: Capture[] }).captures;
}

const within = (path: string) => path.split("/").map(encodeURIComponent).join("/");

export async function captureBytes(path: string): Promise<ArrayBuffer> {
  return (await asked(`/api/captures/${within(path)}`)).arrayBuffer();
}

export interface Story {
  file: string;
  verdict: string;
  text: string;
  frame: number | null;
}

export async function captureStory(path: string): Promise<Story> {
  return (await (await asked(`/api/stories/${within(path)}`)).json()) as Story;
}
