// A page in a real browser, opened from a file as a reader would: Debian's chromium, driven by playwright-core.

import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium, type Browser, type Page } from "playwright-core";

/** A folder of pages, as `node build.mjs FOLDER` writes it, to be looked at and played instead of those that are committed and that a
 * command carries. */
const PAGES = process.env["PAGES"];
export const BUILT = resolve(PAGES ?? "../toolbox/pages/built");
const VIEWER = join(BUILT, "viewer.html");
export const folder = mkdtempSync(join(tmpdir(), "throng-web-"));

/** `isIdle`: it runs while nobody else on the machine wants to. */
export function launch({ isIdle = false } = {}): Promise<Browser> {
  // What a test puts in the place of a page has no address, and may not speak to this host else.
  const more = PAGES ? ["--disable-features=LocalNetworkAccessChecks"] : [];
  const chosen = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  const executablePath = isIdle ? file("idle-chromium", new TextEncoder().encode(`#!/bin/sh\nexec chrt -i 0 '${chosen}' "$@"\n`)) : chosen;
  if (isIdle) chmodSync(executablePath, 0o755);
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1", ...more] });
}

/** Puts pages as they are now, by their paths, in the place of those that a command carries; only where PAGES says so. */
export async function showBuilt(page: Page, files: Record<string, string>): Promise<void> {
  if (!PAGES) return;
  for (const [path, file] of Object.entries(files)) {
    await page.route((url) => url.pathname === path, (route) => route.fulfill({ path: resolve(PAGES, file) }));
  }
}

export interface Options {
  width?: number;
  height?: number;
  dark?: boolean;
  url?: string;
}

/** A page without network, whose errors fail the test that asks for them. */
export async function page(browser: Browser, { width = 1400, height = 900, dark = false, url }: Options = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    offline: true,
    hasTouch: width < 500,
  });
  const page = await context.newPage();
  // CI runs this at the lowest priority beside everything else.
  page.setDefaultTimeout(120_000);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url())) errors.push(`the page asked for ${request.url()}`);
  });
  await page.goto(url ?? pathToFileURL(VIEWER).href);
  return { page, errors, context };
}

/** A page of a running server's, which asks that server alone. */
export async function livePage(browser: Browser, url: string, { width = 1400, height = 900, dark = false }: Options = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    hasTouch: width < 500,
  });
  context.setDefaultTimeout(120_000);
  const errors: string[] = [];
  const watch = (page: Page) => {
    page.on("pageerror", (error) => errors.push(String(error)));
    // What the server refuses is told in the page, and by the browser here as well.
    page.on("console", (message) => message.type() === "error" && !/status of (400|401|403|503)|ERR_/.test(message.text()) && errors.push(message.text()));
    page.on("request", (request) => {
      const address = request.url();
      if (/^https?:/.test(address) && !address.startsWith(`${new URL(url).origin}/`)) errors.push(`the page asked for ${address}`);
    });
  };
  context.on("page", watch);
  const page = await context.newPage();
  await page.goto(url);
  return { page, errors, context };
}

export function file(name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** Chooses a file in the landing page and waits until it is open or refused. */
export async function openCapture(page: Page, path: string): Promise<void> {
  await page.setInputFiles("#file", path);
  await page.waitForFunction(() => /open$|error/.test(document.body.dataset["state"] ?? ""));
}

/** A page with the capture inside, as `throng capture show --html` writes it. */
export function withCapture(name: string, capture: Uint8Array, story: object): string {
  const packed = gzipSync(capture).toString("base64");
  const json = JSON.stringify(story).replaceAll("<", "\\u003c");
  const data = `<script type="application/json" id="story">${json}</script>\n<script type="text/plain" id="capture">${packed}</script>`;
  const path = file(name, Buffer.from(readFileSync(VIEWER, "utf8").replace("<!--capture-->", () => data)));
  return pathToFileURL(path).href;
}
