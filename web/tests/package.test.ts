// Promise: what npm takes as `throng-client` is whole: it is imported by its name in Node, with all that the sources export,
// and the example in its README has the types that it says.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as sources from "../client/index.ts";

const OUT = resolve("dist/client");
/** A project that has installed it. */
const PROJECT = resolve("dist/project");

function run(...words: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  assert.equal(status, 0, `${words.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

test("the package is built, and is what its sources are", async () => {
  run("package.mjs");
  rmSync(PROJECT, { recursive: true, force: true });
  mkdirSync(join(PROJECT, "node_modules"), { recursive: true });
  symlinkSync(OUT, join(PROJECT, "node_modules/throng-client"));
  const about = JSON.parse(readFileSync(join(OUT, "package.json"), "utf8")) as { files: string[]; exports: { ".": Record<string, string> } };
  for (const file of [...about.files, ...Object.values(about.exports["."]), "LICENSE-MIT"]) assert.ok(existsSync(join(OUT, file)), file);

  const program = join(PROJECT, "names.mjs");
  writeFileSync(program, `import * as client from "throng-client"; console.log(JSON.stringify(Object.keys(client)));`);
  assert.deepEqual(JSON.parse(run(program)), Object.keys(sources).sort());
  const { Schema } = (await import(pathToFileURL(join(OUT, "dist/index.js")).href)) as typeof sources;
  assert.equal(new Schema({ hash: "0", components: [], events: [], inputs: [], requests: [], messages: [] }).data.hash, "0");
});

test("its README's example has the types that the package says", () => {
  const example = readFileSync(join(OUT, "example.ts"), "utf8");
  assert.ok(example.split("\n").length <= 51, "50 lines");
  writeFileSync(join(PROJECT, "example.ts"), example.replace('"./index.ts"', '"throng-client"'));
  const options = { module: "nodenext", moduleResolution: "nodenext", target: "es2022", lib: ["es2023", "dom", "dom.iterable"], strict: true, noEmit: true, types: [], skipLibCheck: false };
  writeFileSync(join(PROJECT, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(PROJECT, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["example.ts"] }));
  run("node_modules/typescript/bin/tsc", "--project", PROJECT);
});
