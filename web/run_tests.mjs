// Bundles the tests under tests/ and runs them with Node's own runner: `unit`, `browser`, `live`, `figures` or
// `pictures`.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL(".", import.meta.url));
const kind = process.argv[2] ?? "unit";
const endings = { unit: ".test.ts", browser: ".browser.ts", live: ".live.ts", load: ".load.ts", figures: ".figures.ts", pictures: ".pictures.ts", hostile: ".hostile.ts" };
const ending = endings[kind];
if (!ending) throw new Error(`no tests are called ${kind}; there are ${Object.keys(endings).join(", ")}`);

const tests = readdirSync(join(root, "tests")).filter((name) => name.endsWith(ending)).sort();
const out = join(root, "dist", kind);
mkdirSync(out, { recursive: true });
await build({
  entryPoints: tests.map((name) => join(root, "tests", name)),
  outdir: out,
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
  sourcemap: "inline",
  outExtension: { ".js": ".mjs" },
});
const files = tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
const isTest = ["unit", "browser", "live"].includes(kind);
const together = kind === "live" ? ["--test-concurrency=1"] : [];
// Those that are no tests are programs of their own, one after the other.
const runs = isTest ? [["--test", "--test-reporter=spec", ...together, ...files]] : files.map((file) => [file]);
for (const run of runs) {
  const flags = ["--enable-source-maps", "--experimental-websocket"];
  const { status } = spawnSync(process.execPath, [...flags, ...run, ...process.argv.slice(3)], { stdio: "inherit", cwd: root });
  if (status !== 0) process.exit(status ?? 1);
}
