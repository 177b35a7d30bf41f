// Builds the package `throng-client` into dist/client, as npm takes it: `npm pack ./dist/client`, `npm publish ./dist/client`.
//
// Modules and their types, one for one with the sources, so that a bundler takes what it needs and a debugger shows names.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL(".", import.meta.url));
const out = join(root, "dist/client");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { status } = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--project", "tsconfig.package.json"], { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
for (const file of ["package.json", "README.md", "example.ts"]) cpSync(join(root, "client", file), join(out, file));
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(root, "..", licence), join(out, licence), { dereference: true });
console.log(`dist/client: npm pack ./dist/client`);
