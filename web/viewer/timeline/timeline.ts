// The timeline: a canvas that shows the state, and what mouse, touch and keys do there. After each picture the canvas has
// the event `drawn`, whose `detail` is how long that took (ms).
//
//   drag: pan   shift + drag: mark a stretch   wheel: scroll   ctrl + wheel, pinch: zoom   click: select
//   w s: zoom   a d: pan   arrows: pan and scroll   f: all   [ ]: bad frames   m: the selection

import { h } from "../../elements/dom.ts";
import { duration } from "../../elements/quantity.ts";
import { describe } from "../describe.ts";
import type { State } from "../state.ts";
import { boundsOf, thingAt } from "./bounds.ts";
import { palette, type Palette } from "./colors.ts";
import { Picture, type Frame } from "./draw.ts";
import { layout, RULER, trackAt, type Track } from "./tracks.ts";

/** How far off a click may be (CSS pixels). */
const NEAR = 4;
const GUTTER = 84;
/** Below this width the names of tracks stand in the headings alone. */
const NARROW = 620;

export class Timeline {
  readonly canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": "Timeline of threads and scopes",
    "aria-describedby": "keys",
  });
  readonly tip = h("div", { class: "tip", hidden: true });
  private readonly picture: Picture;
  private tracks: Track[] = [];
  private height = 0;
  private colors: Palette;
  private frame: Frame = { width: 1, height: 1, gutter: 0, ratio: 1 };
  private hover: number | undefined;
  private isPending = false;
  private readonly fingers = new Map<number, { x: number; y: number }>();
  private dragged: { x: number; y: number; moved: boolean; from: number; isRange: boolean } | undefined;

  constructor(private readonly state: State) {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.picture = new Picture(context);
    this.colors = palette(state.prepared.sites);
    this.relayout();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.listen();
    state.onChange((changes) => {
      if (changes.has("tracks")) this.relayout();
      if (changes.has("selection") || changes.has("tracks")) this.reveal();
      this.request();
    });
  }

  themeChanged(): void {
    this.colors = palette(this.state.prepared.sites);
    this.request();
  }

  private relayout(): void {
    ({ tracks: this.tracks, height: this.height } = layout(this.state.prepared, this.state.closed));
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    this.frame = { width, height, gutter: width < NARROW ? 0 : GUTTER, ratio };
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.request();
  }

  private request(): void {
    if (this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      this.draw();
    });
  }

  draw(): void {
    const began = performance.now();
    const { view } = this.state;
    view.scrollY = Math.max(0, Math.min(view.scrollY, this.height - (this.frame.height - RULER)));
    this.picture.draw(this.state, this.tracks, this.colors, this.frame, this.hover);
    this.canvas.dispatchEvent(new CustomEvent("drawn", { detail: performance.now() - began }));
  }

  /** Scrolls so that the selection's track is seen. */
  private reveal(): void {
    const { selection, view, prepared } = this.state;
    const bounds = selection && boundsOf(prepared, selection);
    const track = bounds && this.tracks.find((track) => bounds.isTrack(track));
    if (!track) return;
    const room = this.frame.height - RULER;
    if (track.y < view.scrollY) view.scrollY = Math.max(0, track.y - 30);
    else if (track.y + track.height > view.scrollY + room) view.scrollY = track.y + track.height - room + 30;
  }

  private timeOf(x: number): number {
    const { view } = this.state;
    return view.begin + ((x - this.frame.gutter) / (this.frame.width - this.frame.gutter)) * view.width;
  }

  private shareOf(x: number): number {
    return Math.min(1, Math.max(0, (x - this.frame.gutter) / (this.frame.width - this.frame.gutter)));
  }

  private trackOf(y: number): Track | undefined {
    return y < RULER ? undefined : trackAt(this.tracks, y - RULER + this.state.view.scrollY);
  }

  private within(): number {
    return (NEAR * this.state.view.width) / this.frame.width;
  }

  private listen(): void {
    const { canvas, state } = this;
    const { view } = state;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(-event.deltaY * 0.005), this.shareOf(event.offsetX));
      else if (event.shiftKey) view.pan(event.deltaY / this.frame.width);
      else {
        view.pan(event.deltaX / this.frame.width);
        view.scrollY += event.deltaY;
      }
      state.changed("view");
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      const isRange = event.shiftKey || event.offsetY < RULER;
      this.dragged = { x: event.offsetX, y: event.offsetY, moved: false, from: this.timeOf(event.offsetX), isRange };
      this.tip.hidden = true;
    });
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => {
      this.fingers.delete(event.pointerId);
      if (this.dragged && !this.dragged.moved) this.clicked(event.offsetX, event.offsetY);
      this.dragged = undefined;
    });
    canvas.addEventListener("pointercancel", (event) => {
      this.fingers.delete(event.pointerId);
      this.dragged = undefined;
    });
    canvas.addEventListener("pointerleave", () => {
      this.hover = undefined;
      this.tip.hidden = true;
      this.request();
    });
    canvas.addEventListener("dblclick", (event) => {
      const bounds = state.selection && boundsOf(state.prepared, state.selection);
      if (bounds) state.goTo(bounds.begin, bounds.end);
      event.preventDefault();
    });
  }

  private moved(event: PointerEvent): void {
    const { state } = this;
    const { view } = state;
    const finger = this.fingers.get(event.pointerId);
    if (!finger || !this.dragged) return this.hovered(event);
    const now = { x: event.offsetX, y: event.offsetY };
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    const drag = this.dragged;
    if (Math.hypot(now.x - drag.x, now.y - drag.y) > NEAR) drag.moved = true;
    if (drag.moved) {
      const plot = this.frame.width - this.frame.gutter;
      if (other) {
        const [before, after] = [Math.abs(finger.x - other.x), Math.abs(now.x - other.x)];
        if (before > 10 && after > 10) view.zoom(after / before, this.shareOf((now.x + other.x) / 2));
        view.pan((finger.x - now.x) / 2 / plot);
      } else if (drag.isRange) {
        const [a, b] = [drag.from, this.timeOf(now.x)];
        state.select({ kind: "range", begin: Math.round(Math.min(a, b)), end: Math.round(Math.max(a, b)) });
      } else {
        view.pan((finger.x - now.x) / plot);
        view.scrollY += finger.y - now.y;
      }
      state.changed("view");
    }
    this.fingers.set(event.pointerId, now);
  }

  private hovered(event: PointerEvent): void {
    const { state } = this;
    const { offsetX: x, offsetY: y } = event;
    const at = this.timeOf(x);
    this.hover = x >= this.frame.gutter ? at : undefined;
    const track = this.trackOf(y);
    this.canvas.style.cursor = track?.kind === "heading" ? "pointer" : "default";
    const thing = track && x >= this.frame.gutter ? thingAt(state.prepared, track, at, this.within()) : undefined;
    if (thing && event.pointerType === "mouse") {
      const { title, facts } = describe(state, thing);
      this.tip.replaceChildren(h("b", {}, title), ...facts.slice(0, 4).map(([name, value]) => h("div", {}, `${name}: ${value}`)));
      this.tip.hidden = false;
      this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.frame.width - 270))}px`;
      this.tip.style.top = y > this.frame.height - 130 ? "" : `${y + 16}px`;
      this.tip.style.bottom = y > this.frame.height - 130 ? `${this.frame.height - y + 12}px` : "";
    } else {
      this.tip.hidden = true;
    }
    this.request();
  }

  private clicked(x: number, y: number): void {
    const { state } = this;
    const track = this.trackOf(y);
    if (track?.kind === "heading") return state.toggle(track.key);
    state.select(track ? thingAt(state.prepared, track, this.timeOf(x), this.within()) : undefined);
  }

  /** A key anywhere on the page but in a field; true if it meant something. */
  key(event: KeyboardEvent): boolean {
    const { state } = this;
    const { view } = state;
    const step = 60;
    const acts: Record<string, () => void> = {
      w: () => view.zoom(1.35),
      s: () => view.zoom(1 / 1.35),
      a: () => view.pan(-0.12),
      d: () => view.pan(0.12),
      ArrowLeft: () => view.pan(-0.12),
      ArrowRight: () => view.pan(0.12),
      ArrowUp: () => void (view.scrollY -= step),
      ArrowDown: () => void (view.scrollY += step),
      PageUp: () => void (view.scrollY -= this.frame.height * 0.8),
      PageDown: () => void (view.scrollY += this.frame.height * 0.8),
      "+": () => view.zoom(1.35),
      "-": () => view.zoom(1 / 1.35),
      f: () => view.fit(),
      m: () => {
        const bounds = state.selection && boundsOf(state.prepared, state.selection);
        if (bounds) view.around(bounds.begin, bounds.end);
      },
      "[": () => this.badFrame(-1),
      "]": () => this.badFrame(1),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return false;
    act();
    state.changed("view");
    return true;
  }

  /** The next bad frame before or after what is on screen. */
  badFrame(direction: 1 | -1): void {
    const { state } = this;
    const { begin, end } = state.prepared.frames;
    const middle = (state.view.begin + state.view.end) / 2;
    const at = state.selection?.kind === "frame" ? state.selection.place : undefined;
    const isBeyond = (frame: number) =>
      at === undefined ? direction * ((begin[frame]! + end[frame]!) / 2 - middle) > 0 : direction * (frame - at) > 0;
    const frames = Array.from(begin, (_, frame) => frame).filter((frame) => state.isBad(frame) && isBeyond(frame));
    const frame = direction > 0 ? frames[0] : frames.at(-1);
    if (frame !== undefined) state.goToFrame(frame);
  }

  /** What is on screen, in words. */
  summary(): string {
    const { view, prepared } = this.state;
    return `${duration(view.width)} of ${duration(prepared.about.endNs)} on screen`;
  }
}
