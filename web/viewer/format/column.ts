// Columns that grow: typed arrays to which values are pushed, one array for each field of many equal things.

type Numbers = Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array;

export class Column<T extends Numbers> {
  length = 0;
  values: T;

  constructor(
    private readonly make: new (length: number) => T,
    capacity = 16,
  ) {
    this.values = new make(Math.max(capacity, 16));
  }

  push(value: number): void {
    if (this.length === this.values.length) this.grow(this.length * 2);
    this.values[this.length++] = value;
  }

  /** Makes room for `capacity` values in all. */
  reserve(capacity: number): void {
    if (capacity > this.values.length) this.grow(Math.max(capacity, Math.ceil(this.values.length * 1.5)));
  }

  private grow(capacity: number): void {
    const larger = new this.make(capacity);
    larger.set(this.values as ArrayLike<number>);
    this.values = larger;
  }

  /** What was pushed, as an array of that length, which may be a view of a larger one. */
  done(): T {
    // What was reserved for a few more is as good as none; a copy would cost more.
    const isNearlyFull = this.length > 0.6 * this.values.length;
    return (isNearlyFull ? this.values.subarray(0, this.length) : this.values.slice(0, this.length)) as T;
  }
}

export const f64 = (capacity?: number) => new Column(Float64Array, capacity);
export const f32 = (capacity?: number) => new Column(Float32Array, capacity);
export const u32 = (capacity?: number) => new Column(Uint32Array, capacity);
export const u16 = (capacity?: number) => new Column(Uint16Array, capacity);
export const u8 = (capacity?: number) => new Column(Uint8Array, capacity);
