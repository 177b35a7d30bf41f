// Colours of the picture: one hue for each category, a little lighter or darker from scope to scope; one for each world.

import { categoryColor, hash } from "../../elements/categories.ts";
import { color, theme } from "../../elements/theme.ts";
import { isBright, mix, pixel, type Pixel } from "../../elements/pixels.ts";
import type { Site } from "../format/capture.ts";

export { categoryColor } from "../../elements/categories.ts";

const WORLDS = ["#5b8fd9", "#d99a4e", "#63b07a", "#b583cf", "#c9b23f", "#4fb0b5", "#cf7fa8", "#8c9a54", "#8c86d6", "#b98a6a"];

export function worldColor(world: number): string {
  return WORLDS[hash(String(world)) % WORLDS.length]!;
}

/** Everything that the picture is made of, for the theme that holds now. */
export interface Palette {
  surface: Pixel;
  raised: Pixel;
  line: Pixel;
  site: Uint32Array;
  /** Of what a search or a filter leaves out. */
  siteDim: Uint32Array;
  /** 1: dark text is easier to read on it. */
  siteIsBright: Uint8Array;
  bad: Pixel;
  warn: Pixel;
  good: Pixel;
  running: Pixel;
  preempted: Pixel;
  blocked: Pixel;
  wait: Pixel;
  own: Pixel;
  foreign: Pixel;
  idle: Pixel;
  text: string;
  quiet: string;
  link: string;
  badText: string;
  lineText: string;
  surfaceText: string;
}

export function palette(sites: readonly Site[]): Palette {
  const surface = pixel(color("surface"));
  const shade = theme() === "dark" ? pixel("#000000") : pixel("#ffffff");
  const site = Uint32Array.from(sites, ({ name, category }) =>
    mix(pixel(categoryColor(category)), shade, 1 - ((hash(name) % 5) * 0.06)),
  );
  return {
    surface,
    raised: pixel(color("raised")),
    line: pixel(color("line")),
    site,
    siteDim: site.map((it) => mix(it, surface, 0.18)),
    siteIsBright: Uint8Array.from(site, (it) => (isBright(it) ? 1 : 0)),
    bad: pixel(color("bad")),
    warn: pixel(theme() === "dark" ? "#e3b341" : "#e0a21b"),
    good: pixel(theme() === "dark" ? "#3f8f63" : "#6fbf8d"),
    running: pixel(theme() === "dark" ? "#3f8f63" : "#6fbf8d"),
    preempted: pixel(color("bad")),
    blocked: mix(pixel(color("quiet")), surface, 0.3),
    wait: pixel(theme() === "dark" ? "#c7553f" : "#dd6b4d"),
    own: pixel("#4c8dd6"),
    foreign: pixel("#e08a3c"),
    idle: mix(pixel(color("quiet")), surface, 0.14),
    text: color("text"),
    quiet: color("quiet"),
    link: color("link"),
    badText: color("bad"),
    lineText: color("line"),
    surfaceText: color("surface"),
  };
}
