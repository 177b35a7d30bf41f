// The picture: pixels of all tracks into memory, then names, lines and the selection on top.
//
// Cost: tracks on screen x their width; the number of scopes does not matter. Nothing is kept between two pictures but
// the palette.

import { isBright, Lettering, mix, pixel, Pixels, type Pixel } from "../../elements/pixels.ts";
import { bytes, duration, moment } from "../../elements/quantity.ts";
import { upperBound } from "../prepare/search.ts";
import { worldStretches } from "../prepare/range_sums.ts";
import type { State } from "../state.ts";
import { worldColor, type Palette } from "./colors.ts";
import { drawHolding, drawPlaces, drawRow, drawStretches, type Label, type Line } from "./scope_lines.ts";
import { RULER, type Track } from "./tracks.ts";
import { boundsOf } from "./bounds.ts";
import { maximaOf, stepsOf } from "./curves.ts";

/** Where the picture is, in CSS pixels; `gutter` is what tracks' names take on the left. */
export interface Frame {
  width: number;
  height: number;
  gutter: number;
  ratio: number;
}

export class Picture {
  private readonly pixels = new Pixels(1, 1);
  private readonly lettering: Lettering;
  private font = "";
  private budgetLine = new Uint8Array(0);
  private linePixels = new Uint32Array(0);
  /** Names drawn in this picture. A wall of them takes longer than the rest, and nobody reads it. */
  private names = 0;

  constructor(private readonly context: CanvasRenderingContext2D) {
    this.lettering = new Lettering(context);
  }

  draw(state: State, tracks: readonly Track[], colors: Palette, frame: Frame, hover: number | undefined): void {
    const { ratio } = frame;
    const width = Math.round(frame.width * ratio);
    const height = Math.round(frame.height * ratio);
    const gutter = Math.round(frame.gutter * ratio);
    this.pixels.resize(width, height);
    this.pixels.clear(colors.surface);
    this.names = 0;
    const lineWidth = Math.max(1, width - gutter);
    if (this.linePixels.length !== lineWidth) {
      this.linePixels = new Uint32Array(lineWidth);
      this.budgetLine = new Uint8Array(lineWidth);
    }
    const { view } = state;
    const line: Line = {
      begin: view.begin,
      scale: lineWidth / view.width,
      width: lineWidth,
      pixels: this.linePixels,
      over: this.budgetLine,
    };
    const top = RULER - view.scrollY;
    const visible = tracks.filter((track) => track.y + track.height + top > RULER && track.y + top < frame.height);
    const names: (() => void)[] = [];
    const masks = new Map<number, Uint8Array>();
    for (const track of visible) {
      const y = Math.round((track.y + top) * ratio);
      const h = Math.round(track.height * ratio);
      this.track(state, track, colors, line, gutter, y, h, ratio, names, masks);
    }
    this.pixels.fill(0, 0, width, Math.round(RULER * ratio), colors.surface);
    const { context } = this;
    context.putImageData(this.pixels.image, 0, 0);
    const font = `${Math.round(11 * ratio)}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`;
    context.font = font;
    if (font !== this.font) {
      this.font = font;
      this.lettering.forget();
    }
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(0, RULER * ratio, width, height - RULER * ratio);
    context.clip();
    this.edges(state, colors, line, gutter, height, ratio);
    names.forEach((draw) => draw());
    this.gutter(visible, colors, top, gutter, ratio, state.closed);
    this.selection(state, visible, colors, line, gutter, top, height, ratio);
    context.restore();
    this.ruler(state, colors, line, gutter, width, ratio, hover);
  }

  private track(
    state: State,
    track: Track,
    colors: Palette,
    line: Line,
    gutter: number,
    y: number,
    h: number,
    ratio: number,
    names: (() => void)[],
    masks: Map<number, Uint8Array>,
  ): void {
    const { prepared } = state;
    const { pixels } = line;
    const end = prepared.about.endNs;
    const isEmpty = track.kind === "heading";
    pixels.fill(isEmpty ? colors.raised : colors.surface);
    const text = (left: number, right: number, text: () => string, on: Pixel) => {
      if (right - left >= 34 * ratio && this.names++ < 700) names.push(() => this.name(text(), left + gutter, right + gutter, y, h, isBright(on), ratio));
    };
    switch (track.kind) {
      case "heading":
        this.pixels.fill(0, y, this.pixels.width, h, colors.raised);
        return;
      case "frames": {
        const { frames } = prepared;
        const good = mix(colors.good, colors.surface, 0.55);
        drawStretches(line, frames.begin, (place) => frames.end[place]!, (place) => (state.isBad(place) ? colors.bad : good), (place, left, right) => {
          if (right - left > 3) pixels[right - 1] = colors.surface;
          text(left, right, () => `${frames.number[place]} · ${duration(frames.end[place]! - frames.begin[place]!)}`, state.isBad(place) ? colors.bad : good);
        });
        // A bad one among thousands of good ones is seen from afar.
        const bad = badFrames(state);
        drawStretches(line, bad.begin, (place) => bad.end[place]!, () => colors.bad);
        break;
      }
      case "logs": {
        const { logs, logsAt } = prepared;
        const wide = Math.max(2, Math.round(2 * ratio)) / line.scale;
        const its: Record<string, Pixel> = { error: colors.bad, warn: colors.warn };
        drawStretches(line, logsAt, (place) => logsAt[place]! + wide, (place) => its[logs[place]!.level] ?? colors.own);
        break;
      }
      case "stalls": {
        const stalls = prepared.hostStalls;
        drawStretches(line, prepared.stallsAt, (place) => stalls[place]!.endNs, () => colors.bad);
        break;
      }
      case "state": {
        const { switches, preempted } = prepared.threads[track.thread]!;
        const its = [colors.running, colors.preempted, colors.blocked];
        drawHolding(line, switches.at, end, (place) => its[switches.change[place]!]!);
        // Time without a core is seen from afar.
        drawStretches(line, preempted.at, (place) => switches.at[preempted.place[place]! + 1] ?? end, () => colors.preempted);
        break;
      }
      case "worlds": {
        const { worlds } = prepared.threads[track.thread]!;
        const dim = state.world;
        const its = (place: number) => {
          const world = worlds.world[place]!;
          if (world < 0) return -1;
          const own = pixel(worldColor(world));
          return dim === undefined || dim === world ? own : mix(own, colors.surface, 0.15);
        };
        drawHolding(line, worlds.at, end, its, (place, left, right) => {
          if (right - left > 3) pixels[right - 1] = colors.surface;
          if (dim === undefined || dim === worlds.world[place]) text(left, right, () => state.worldName(worlds.world[place]!), its(place));
        });
        break;
      }
      case "scopes":
        this.scopes(state, track.thread, track.depth, colors, line, gutter, y, h, ratio, names, masks);
        return;
      case "waits": {
        const { waits } = prepared.threads[track.thread]!;
        drawStretches(line, waits.begin, (place) => waits.end[place]!, () => colors.wait, (place, left, right) =>
          text(left, right, () => waitText(state, track.thread, place), colors.wait),
        );
        break;
      }
      case "allocated": {
        const { allocated } = prepared.threads[track.thread]!;
        const columns = stepsOf(allocated.at, allocated.bytes, line);
        const most = this.bars(columns, gutter, y, h, mix(colors.own, colors.surface, 0.7));
        const right = gutter + line.width;
        if (most > 0) names.push(() => this.figure(`at most ${bytes(most)} in a pixel`, right, y, ratio, colors));
        return;
      }
      case "marks": {
        const { pageFaults, largeAllocations } = prepared.threads[track.thread]!;
        const wide = Math.max(1, Math.round(1.5 * ratio)) / line.scale;
        drawStretches(line, pageFaults, (place) => pageFaults[place]! + wide, () => mix(colors.warn, colors.surface, 0.75));
        drawStretches(line, largeAllocations.at, (place) => largeAllocations.at[place]! + 2 * wide, () => colors.bad);
        break;
      }
      case "core": {
        const { runs } = prepared.cores[track.core]!;
        const its = (place: number) => {
          const thread = prepared.hostThreads[runs.thread[place]!];
          return !thread ? -1 : thread.owner === "own" ? colors.own : thread.owner === "idle" ? colors.idle : colors.foreign;
        };
        drawHolding(line, runs.at, end, its, (place, left, right) => {
          const thread = prepared.hostThreads[runs.thread[place]!];
          if (thread && thread.owner !== "idle") text(left, right, () => thread.name || thread.process, its(place));
        });
        break;
      }
      case "memory":
      case "series": {
        const { at, value } = track.kind === "series" ? prepared.series[track.series]! : liveBytes(state);
        const most = this.bars(maximaOf(at, value, line), gutter, y, h, mix(colors.own, colors.surface, 0.6));
        const figure = track.kind === "memory" ? bytes(most) : most.toLocaleString("en-US", { maximumSignificantDigits: 4 });
        const right = gutter + line.width;
        names.push(() => this.figure(`at most ${figure}`, right, y, ratio, colors));
        return;
      }
    }
    this.pixels.repeat(pixels, gutter, y, h);
  }

  private scopes(
    state: State,
    thread: number,
    depth: number,
    colors: Palette,
    line: Line,
    gutter: number,
    y: number,
    h: number,
    ratio: number,
    names: (() => void)[],
    masks: Map<number, Uint8Array>,
  ): void {
    const row = state.prepared.threads[thread]!.rows[depth]!;
    const labels: Label[] = [];
    line.over.fill(0);
    const dimmed = state.found !== undefined;
    drawRow(line, row, dimmed ? colors.siteDim : colors.site, colors.surface, state.budgets, 34 * ratio, labels);
    const places = state.matches?.[thread]?.[depth];
    if (places) drawPlaces(line, row, places, colors.site, colors.surface);
    const mask = this.mask(state, thread, line, masks);
    if (mask) {
      const { pixels } = line;
      for (let x = 0; x < line.width; x++) {
        if (mask[x] === 0 && pixels[x] !== colors.surface) pixels[x] = mix(pixels[x]!, colors.surface, 0.14);
      }
    }
    this.pixels.repeat(line.pixels, gutter, y, h);
    // A red edge where a scope is over its budget.
    const edge = Math.max(2, Math.round(2.5 * ratio));
    let from = -1;
    for (let x = 0; x <= line.width; x++) {
      const isOver = x < line.width && line.over[x] === 1 && (!mask || mask[x] === 1);
      if (isOver && from < 0) from = x;
      if (!isOver && from >= 0) {
        this.pixels.fill(gutter + from, y, x - from, edge, colors.bad);
        from = -1;
      }
    }
    for (const { place, left, right } of labels) {
      if (this.names++ >= 700) break;
      const site = row.site[place]!;
      const isDim = (state.found && !state.found[site]) || (mask && mask[(left + right) >> 1] === 0);
      if (isDim) continue;
      const ns = row.end[place]! - row.begin[place]!;
      const name = state.siteName(site);
      names.push(() => {
        const isWide = right - left > 190 * ratio;
        this.name(isWide ? `${name}  ${duration(ns)}` : name, left + gutter, right + gutter, y, h, colors.siteIsBright[site] === 1, ratio);
      });
    }
  }

  /** By pixel, whether the thread worked for the world that is asked for. */
  private mask(state: State, thread: number, line: Line, masks: Map<number, Uint8Array>): Uint8Array | undefined {
    if (state.world === undefined) return undefined;
    let mask = masks.get(thread);
    if (mask) return mask;
    mask = new Uint8Array(line.width);
    const { prepared } = state;
    const range = [line.begin, line.begin + line.width / line.scale] as const;
    for (const [begin, end] of worldStretches(prepared.threads[thread]!, state.world, range, prepared.about.endNs)) {
      const x = Math.max(0, ((begin - line.begin) * line.scale) | 0);
      mask.fill(1, x, Math.max(x + 1, Math.ceil((end - line.begin) * line.scale)));
    }
    masks.set(thread, mask);
    return mask;
  }

  /** Draws them as high as the largest allows, which comes back. */
  private bars(columns: Float64Array, gutter: number, y: number, h: number, color: Pixel): number {
    const most = columns.reduce((most, it) => Math.max(most, it), 0);
    if (!(most > 0)) return 0;
    columns.forEach((value, x) => {
      const height = value > 0 ? Math.max(1, Math.round((value / most) * (h - 1))) : 0;
      if (height > 0) this.pixels.fill(gutter + x, y + h - height, 1, height, color);
    });
    return most;
  }

  /** How high a curve's highest point is, in its corner. */
  private figure(text: string, right: number, y: number, ratio: number, colors: Palette): void {
    const { context } = this;
    const width = this.lettering.width(text) + 8 * ratio;
    context.globalAlpha = 0.75;
    context.fillStyle = colors.surfaceText;
    context.fillRect(right - width, y, width, 13 * ratio);
    context.globalAlpha = 1;
    context.fillStyle = colors.quiet;
    context.fillText(text, right - width + 4 * ratio, y + 7 * ratio);
  }

  private name(text: string, left: number, right: number, y: number, h: number, onBright: boolean, ratio: number): void {
    const pad = Math.round(4 * ratio);
    const fit = this.lettering.fit(text, right - left - 2 * pad);
    if (fit === "") return;
    this.context.fillStyle = onBright ? "#10151d" : "#ffffff";
    this.context.fillText(fit, left + pad, y + h / 2 + ratio * 0.5);
  }

  /** Frames' begins as lines through all tracks, once there is room between them. */
  private edges(state: State, colors: Palette, line: Line, gutter: number, height: number, ratio: number): void {
    const { begin, end } = state.prepared.frames;
    const first = Math.max(0, upperBound(begin, line.begin) - 1);
    const last = upperBound(begin, line.begin + line.width / line.scale);
    if (last - first > 60) return;
    const { context } = this;
    for (let frame = first; frame < last; frame++) {
      context.fillStyle = colors.lineText;
      context.fillRect(gutter + Math.round((begin[frame]! - line.begin) * line.scale), 0, Math.max(1, Math.round(ratio * 0.75)), height);
      if (frame !== state.toldFrame) continue;
      const left = (begin[frame]! - line.begin) * line.scale;
      const right = (end[frame]! - line.begin) * line.scale;
      context.fillStyle = colors.badText;
      context.globalAlpha = 0.05;
      context.fillRect(gutter + left, 0, right - left, height);
      context.globalAlpha = 1;
    }
  }

  private gutter(visible: readonly Track[], colors: Palette, top: number, gutter: number, ratio: number, closed: ReadonlySet<string>): void {
    const { context } = this;
    for (const track of visible) {
      const y = (track.y + top + track.height / 2) * ratio;
      if (track.kind === "heading") {
        const name = `${closed.has(track.key) ? "▸" : "▾"} ${track.text}`;
        context.fillStyle = colors.text;
        context.fillText(name, 6 * ratio, y);
        context.fillStyle = colors.quiet;
        context.fillText(track.detail, 12 * ratio + context.measureText(name).width, y);
      } else if (track.label !== "") {
        if (gutter > 0) {
          context.fillStyle = colors.quiet;
          context.fillText(this.lettering.fit(track.label, gutter - 10 * ratio), 6 * ratio, y);
        } else if (track.kind === "series" || track.kind === "memory") {
          context.fillStyle = colors.text;
          context.fillText(track.label, 6 * ratio, (track.y + top + 7) * ratio);
        }
      }
    }
  }

  private selection(
    state: State,
    visible: readonly Track[],
    colors: Palette,
    line: Line,
    gutter: number,
    top: number,
    height: number,
    ratio: number,
  ): void {
    const { selection } = state;
    const bounds = selection && boundsOf(state.prepared, selection);
    if (!selection || !bounds) return;
    const { context } = this;
    const left = gutter + (bounds.begin - line.begin) * line.scale;
    const right = gutter + (bounds.end - line.begin) * line.scale;
    const from = Math.max(gutter - 2, left);
    const width = Math.max(2 * ratio, Math.min(right, gutter + line.width + 2) - from);
    context.strokeStyle = context.fillStyle = colors.text;
    context.lineWidth = 2 * ratio;
    if (selection.kind === "range") {
      context.globalAlpha = 0.12;
      context.fillRect(from, 0, width, height);
      context.globalAlpha = 1;
      context.fillRect(from, 0, ratio, height);
      context.fillRect(from + width - ratio, 0, ratio, height);
      return;
    }
    const track = visible.find((track) => bounds.isTrack(track));
    if (!track || right < gutter || left > gutter + line.width) return;
    context.strokeRect(from + ratio, (track.y + top) * ratio + ratio, Math.max(ratio, width - 2 * ratio), track.height * ratio - 2 * ratio);
  }

  private ruler(
    state: State,
    colors: Palette,
    line: Line,
    gutter: number,
    width: number,
    ratio: number,
    hover: number | undefined,
  ): void {
    const { context } = this;
    const height = RULER * ratio;
    context.fillStyle = colors.lineText;
    context.fillRect(0, height - ratio, width, ratio);
    const step = niceStep((95 * ratio) / line.scale);
    context.font = this.font;
    for (let at = Math.ceil(line.begin / step) * step; (at - line.begin) * line.scale < line.width; at += step) {
      const x = gutter + (at - line.begin) * line.scale;
      context.fillStyle = colors.lineText;
      context.fillRect(Math.round(x), height - 7 * ratio, ratio, 7 * ratio);
      context.fillStyle = colors.quiet;
      context.fillText(moment(at, step), x + 3 * ratio, height / 2);
    }
    const trigger = gutter + (state.prepared.about.trigger.atNs - line.begin) * line.scale;
    if (trigger >= gutter && trigger <= width) {
      context.fillStyle = colors.badText;
      context.beginPath();
      context.moveTo(trigger - 5 * ratio, 0);
      context.lineTo(trigger + 5 * ratio, 0);
      context.lineTo(trigger, 7 * ratio);
      context.fill();
      context.fillRect(Math.round(trigger), 0, ratio, height);
    }
    if (hover === undefined) return;
    const x = gutter + (hover - line.begin) * line.scale;
    context.fillStyle = colors.quiet;
    context.globalAlpha = 0.5;
    context.fillRect(Math.round(x), 0, ratio, this.pixels.height);
    context.globalAlpha = 1;
  }
}

/** 1, 2 or 5 times a power of ten, at least as large. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10;
  return Math.max(1, factor * power);
}

export function waitText(state: State, thread: number, place: number): string {
  const { waits } = state.prepared.threads[thread]!;
  const holder = waits.holderThread[place]!;
  const who = holder < 0 ? "" : ` · ${state.prepared.threads[holder]!.name} had it`;
  return `${state.prepared.locks[waits.lock[place]!]}${who}`;
}

const badOf = new WeakMap<State, { begin: Float64Array; end: Float64Array }>();

function badFrames(state: State): { begin: Float64Array; end: Float64Array } {
  let bad = badOf.get(state);
  if (!bad) {
    const { begin, end } = state.prepared.frames;
    const places = Array.from(begin, (_, frame) => frame).filter((frame) => state.isBad(frame));
    bad = {
      begin: Float64Array.from(places, (place) => begin[place]!),
      end: Float64Array.from(places, (place) => end[place]!),
    };
    badOf.set(state, bad);
  }
  return bad;
}

const liveOf = new WeakMap<State, { at: Float64Array; value: Float32Array }>();

function liveBytes(state: State): { at: Float64Array; value: Float32Array } {
  let live = liveOf.get(state);
  if (!live) {
    const { at, bySite } = state.prepared.memory;
    const value = Float32Array.from(at, (_, moment) => bySite.reduce((sum, { bytes }) => sum + bytes[moment]!, 0));
    liveOf.set(state, (live = { at, value }));
  }
  return live;
}
