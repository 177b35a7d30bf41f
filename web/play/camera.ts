// The camera: a look from above at a place, with so many metres to the window's shorter side. Screens have y downwards and
// worlds z towards the north, so the picture is turned over once, here.

/** A metre has so many points of the screen at least, however narrow it is: who is 0.9 m wide is to be seen. */
const METRE_POINTS_MIN = 13;
/** What is written is as high as this at least (points). */
const LETTER_POINTS_MIN = 11;

export class Camera {
  x = 0;
  z = 0;
  /** Metres of the shorter side (> 0); fewer where they would be too small. */
  metres = 60;
  /** Times as large as that: what whoever looks has chosen. */
  zoom = 1;
  #scale = 1;
  #width = 1;
  #height = 1;

  /** Fits the canvas to its element, and empties it. */
  begin(element: HTMLCanvasElement, canvas: CanvasRenderingContext2D): void {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [element.clientWidth * ratio, element.clientHeight * ratio];
    if (element.width !== width || element.height !== height) [element.width, element.height] = [width, height];
    [this.#width, this.#height] = [width, height];
    canvas.setTransform(1, 0, 0, 1, 0, 0);
    canvas.clearRect(0, 0, width, height);
  }

  /** Looks at a place: from now on the canvas is in metres. */
  lookAt(canvas: CanvasRenderingContext2D, x: number, z: number): void {
    [this.x, this.z] = [x, z];
    this.#scale = this.zoom * Math.max(Math.min(this.#width, this.#height) / this.metres, METRE_POINTS_MIN * (devicePixelRatio || 1));
    canvas.setTransform(this.#scale, 0, 0, -this.#scale, this.#width / 2 - x * this.#scale, this.#height / 2 + z * this.#scale);
  }

  /** Pixels of a metre. */
  get scale(): number {
    return this.#scale;
  }

  /** Where in the world a point of the element is. */
  worldAt(pointX: number, pointY: number): [x: number, z: number] {
    const ratio = devicePixelRatio || 1;
    return [this.x + (pointX * ratio - this.#width / 2) / this.#scale, this.z - (pointY * ratio - this.#height / 2) / this.#scale];
  }

  /** What can be seen: half of the width and of the height (m). */
  get halfMetres(): [x: number, z: number] {
    return [this.#width / 2 / this.#scale, this.#height / 2 / this.#scale];
  }
}

/** Writes a text, which would stand on its head in the world's own directions. */
export function label(canvas: CanvasRenderingContext2D, text: string, x: number, z: number, metres = 0.8): void {
  const height = Math.max(metres, (LETTER_POINTS_MIN * (devicePixelRatio || 1)) / canvas.getTransform().a);
  canvas.save();
  canvas.translate(x, z);
  canvas.scale(1, -1);
  canvas.font = `${height}px system-ui, sans-serif`;
  canvas.textAlign = "center";
  canvas.fillText(text, 0, 0);
  canvas.restore();
}

/** A round one. */
export function disc(canvas: CanvasRenderingContext2D, x: number, z: number, radius: number): void {
  canvas.beginPath();
  canvas.arc(x, z, radius, 0, 2 * Math.PI);
  canvas.fill();
}

/** A line from here to there. */
export function line(canvas: CanvasRenderingContext2D, fromX: number, fromZ: number, toX: number, toZ: number, width: number): void {
  canvas.lineWidth = width;
  canvas.beginPath();
  canvas.moveTo(fromX, fromZ);
  canvas.lineTo(toX, toZ);
  canvas.stroke();
}

/** A grid of lines so far apart (m), so that one sees oneself move. */
export function grid(canvas: CanvasRenderingContext2D, camera: Camera, apart: number): void {
  const [halfX, halfZ] = camera.halfMetres;
  canvas.lineWidth = 1 / camera.scale;
  canvas.beginPath();
  for (let x = Math.ceil((camera.x - halfX) / apart) * apart; x < camera.x + halfX; x += apart) {
    canvas.moveTo(x, camera.z - halfZ);
    canvas.lineTo(x, camera.z + halfZ);
  }
  for (let z = Math.ceil((camera.z - halfZ) / apart) * apart; z < camera.z + halfZ; z += apart) {
    canvas.moveTo(camera.x - halfX, z);
    canvas.lineTo(camera.x + halfX, z);
  }
  canvas.stroke();
}
