// Keys and mouse: what is down now, where the pointer is, and how near the wheel has brought the picture. Nothing is down once the
// page has lost the focus.

/** How much larger a notch of the wheel makes the picture. */
const NOTCH = 1.2;
const ZOOM_MIN = 0.2;
const ZOOM_MAX = 4;

export class Controls {
  readonly #down = new Set<string>();
  /** Where the pointer is, in the element. */
  pointerX = 0;
  pointerY = 0;
  /** 1 from the start. */
  zoom = 1;
  /** Called once for each press: a key's code, or `Mouse0`. */
  onPress: (code: string) => void = () => {};

  constructor(element: HTMLElement) {
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      // Else space and arrows scroll.
      if (event.code === "Space" || event.code.startsWith("Arrow") || event.code === "Tab") event.preventDefault();
      this.#press(event.code);
    });
    addEventListener("keyup", ({ code }) => this.#down.delete(code));
    addEventListener("blur", () => this.#down.clear());
    element.addEventListener("pointermove", (event) => [this.pointerX, this.pointerY] = [event.offsetX, event.offsetY]);
    element.addEventListener("pointerdown", (event) => {
      [this.pointerX, this.pointerY] = [event.offsetX, event.offsetY];
      this.#press(`Mouse${event.button}`);
    });
    addEventListener("pointerup", ({ button }) => this.#down.delete(`Mouse${button}`));
    const turn = (event: WheelEvent): void => {
      event.preventDefault();
      this.zoom = Math.min(Math.max(this.zoom * NOTCH ** -Math.sign(event.deltaY), ZOOM_MIN), ZOOM_MAX);
    };
    element.addEventListener("wheel", turn, { passive: false });
    element.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  isDown(...codes: string[]): boolean {
    return codes.some((code) => this.#down.has(code));
  }

  /** Where the keys point to: east and north, each -1 to 1, no longer than 1 together. */
  get direction(): [east: number, north: number] {
    const east = Number(this.isDown("KeyD", "ArrowRight")) - Number(this.isDown("KeyA", "ArrowLeft"));
    const north = Number(this.isDown("KeyW", "ArrowUp")) - Number(this.isDown("KeyS", "ArrowDown"));
    const length = Math.max(Math.hypot(east, north), 1);
    return [east / length, north / length];
  }

  #press(code: string): void {
    if (this.#down.has(code)) return;
    this.#down.add(code);
    this.onPress(code);
  }
}
