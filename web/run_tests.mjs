// Bundles the tests under tests/ and runs them with Node's own runner: `unit`, `browser` or `live`. `load`, `hostile`, `people`,
// `figures` and `pictures` are programs, run one after the other; their parts are bundled beside them (tests/parts.ts).
//
// `node run_tests.mjs KIND [NAME] [ARGUMENTS]`: all of a kind, or that one alone, such as `figures speed`.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL(".", import.meta.url));
const kind = process.argv[2] ?? "unit";
const endings = { unit: ".test.ts", browser: ".browser.ts", live: ".live.ts", load: ".load.ts", figures: ".figures.ts", pictures: ".pictures.ts", hostile: ".hostile.ts", people: ".people.ts" };
const ending = endings[kind];
if (!ending) throw new Error(`no tests are called ${kind}; there are ${Object.keys(endings).join(", ")}`);

const all = readdirSync(join(root, "tests"));
const isNamed = all.includes(`${process.argv[3]}${ending}`);
const tests = isNamed ? [`${process.argv[3]}${ending}`] : all.filter((name) => name.endsWith(ending)).sort();
const given = process.argv.slice(isNamed ? 4 : 3);
const out = join(root, "dist", kind);
mkdirSync(out, { recursive: true });
const parts = (where) => all.filter((name) => name.endsWith(where));
const bundle = (names, more) => build({ entryPoints: names.map((name) => join(root, "tests", name)), outdir: out, bundle: true, sourcemap: "inline", ...more });
await bundle([...tests, ...parts(".process.ts")], { platform: "node", format: "esm", packages: "external", outExtension: { ".js": ".mjs" } });
await bundle(parts(".page.ts"), { platform: "browser", format: "iife" });
const files = tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
const isTest = ["unit", "browser", "live"].includes(kind);
const together = kind === "live" ? ["--test-concurrency=1"] : [];
const runs = isTest ? [["--test", "--test-reporter=spec", ...together, ...files]] : files.map((file) => [file]);
for (const run of runs) {
  const flags = ["--enable-source-maps", "--experimental-websocket"];
  const { status } = spawnSync(process.execPath, [...flags, ...run, ...given], { stdio: "inherit", cwd: root });
  // One that missed its goal keeps none of the others from being measured.
  if (status !== 0) process.exitCode = status ?? 1;
}
