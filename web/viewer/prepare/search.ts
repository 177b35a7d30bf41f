// Binary search in sorted columns.

/** The first place whose value is `least` or more; the length if there is none. */
export function lowerBound(values: ArrayLike<number>, least: number, begin = 0, end = values.length): number {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (values[middle]! < least) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/** The first place whose value is more than `most`. */
export function upperBound(values: ArrayLike<number>, most: number, begin = 0, end = values.length): number {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (values[middle]! <= most) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/** The same columns with `by` rising; those that rise already are left as they are. */
export function sortedBy<T extends Record<string, Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array>>(
  columns: T,
  by: keyof T,
): T {
  const keys = columns[by]!;
  let rises = true;
  for (let index = 1; index < keys.length && rises; index++) rises = keys[index - 1]! <= keys[index]!;
  if (rises) return columns;
  const order = new Uint32Array(keys.length);
  for (let index = 0; index < order.length; index++) order[index] = index;
  order.sort((a, b) => keys[a]! - keys[b]! || a - b);
  const sorted = Object.entries(columns).map(([name, column]) => {
    const copy = column.slice();
    for (let index = 0; index < order.length; index++) copy[index] = column[order[index]!]!;
    return [name, copy];
  });
  return Object.fromEntries(sorted) as T;
}
