// The module `/play/client.js` that servers carry: the client package and the shell of pages, for pages that are built of
// nothing.

export * from "../client/index.ts";
export * from "./camera.ts";
export * from "./flashes.ts";
export * from "./runner.ts";
export * from "./shell.ts";
export * from "./tracks.ts";
