// Builds the pages: bundles each with its worker and styles into one HTML file, the same bytes from the same sources.
//
// `node build.mjs` writes into the crate that carries them (toolbox/pages/built); `node build.mjs FOLDER` elsewhere.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? join(root, "../toolbox/pages/built");

/** What pages are made of: the built file says its hash, so that tidy sees without Node whether it is up to date. */
const SOURCES = ["client", "console", "elements", "play", "viewer", "build.mjs", "package-lock.json"];

const options = { bundle: true, minify: true, target: "es2022", legalComments: "none", charset: "utf8", write: false };

async function bundle(entry, more = {}) {
  const { outputFiles } = await build({ ...options, entryPoints: [join(root, entry)], ...more });
  // A closing tag inside would end the script that it stands in.
  return outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const from = `Built from web/ by \`cargo xtask web\`; sources: ${sourcesHash()}`;

/** A page with its style and its program inside; `more` is what else its policy allows, and whose licence is to be told. */
async function page(file, about, template, styles, script, more) {
  const style = (await Promise.all(styles.map((path) => bundle(path)))).join("\n");
  const policy = ["default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, ...more.policy, "base-uri 'none'", "form-action 'none'"];
  const parts = { CSP: policy.join("; "), STYLE: style, SCRIPT: script };
  const head = `<!doctype html>\n<!-- ${about}\n     ${from} -->`;
  const text = readFileSync(join(root, template), "utf8")
    .replace("<!doctype html>", () => head)
    .replace(/%([A-Z]+)%/g, (_, name) => parts[name]);
  write(file, more.licence ? `${text}<!--\n${more.licence}\n-->\n` : text);
}

function write(file, text) {
  writeFileSync(join(out, file), text);
  const figure = (count) => count.toLocaleString("en-US");
  console.log(`${join(relative(process.cwd(), out), file)}: ${figure(text.length)} bytes, ${figure(gzipSync(text).length)} with gzip`);
}

mkdirSync(out, { recursive: true });
const worker = await bundle("viewer/worker.ts", { format: "iife" });
const viewer = await bundle("viewer/main.ts", { format: "iife", define: { WORKER_SOURCE: JSON.stringify(worker) } });
const ours = "Throng's viewer of captures. MIT OR Apache-2.0; nothing in it is of anybody else.";
await page("viewer.html", ours, "viewer/index.html", ["elements/theme.css", "viewer/viewer.css"], viewer, { policy: ["worker-src blob:"] });
const watching = await bundle("console/main.ts", { format: "iife" });
await page(
  "console.html",
  "Throng's console of a running server. MIT OR Apache-2.0; nothing in it is of anybody else.",
  "console/index.html",
  ["elements/theme.css", "console/console.css"],
  watching,
  // The server that it came from, and nobody else.
  { policy: ["connect-src 'self'", "img-src data:"] },
);

// Its licence asks to be in all copies.
const licence = readFileSync(join(root, "node_modules/@noble/ciphers/LICENSE"), "utf8").trim();
const withCipher = "MIT OR Apache-2.0, but for the cipher, which is that of @noble/ciphers; its licence stands at the end.";
for (const game of ["precinct", "frontier", "duel"]) {
  const script = await bundle(`play/${game}/main.ts`, { format: "iife" });
  const speaks = { policy: ["connect-src 'self' https: ws: wss:"], licence };
  await page(`play_${game}.html`, `Plays Throng's ${game}. ${withCipher}`, "play/index.html", ["play/play.css"], script, speaks);
}
const client = await bundle("play/module.ts", { format: "esm" });
write("client.js", `// Throng's client for browsers. ${withCipher}\n// ${from}\n${client}\n/*\n${licence}\n*/\n`);

/** FNV-1a, 64 bits, of every file's path and text, in the order of paths; the same in xtask/src/tidy/pages.rs. */
function sourcesHash() {
  const files = SOURCES.flatMap(list).sort();
  let hash = 0xcbf29ce484222325n;
  const take = (bytes) => {
    for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  };
  for (const file of files) {
    take(Buffer.from(file));
    take([0]);
    take(readFileSync(join(root, file)));
    take([0]);
  }
  return hash.toString(16).padStart(16, "0");
}

function list(path) {
  const entry = join(root, path);
  if (/\.[a-z]+$/.test(path)) return [path];
  return readdirSync(entry, { withFileTypes: true }).flatMap((it) => list(`${path}/${it.name}`));
}
