// Why bytes are not a capture, in the words of `throng_capture::format::ReadError`.

/** `offset` is the place in the file (bytes). */
export class ReadError extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
    this.name = "ReadError";
  }
}

const at = (offset: number, what: string) => new ReadError(`at byte ${offset}: ${what}`, offset);

export const notACapture = () =>
  new ReadError("this is not a capture: it does not begin with `throng-capture`", 0);
export const unknownVersion = (version: number, oldest: number, newest: number) =>
  at(14, `version ${version} is not known, only ${oldest} to ${newest}; open it with the \`throng\` that wrote it`);
export const cutShort = (offset: number) =>
  at(offset, "the file ends in the middle; it was cut short, copy it again");
export const damaged = (offset: number) =>
  at(offset, "the section that begins here is damaged (its checksum differs); copy the file again");
export const unexpectedSection = (offset: number, kind: number) =>
  at(offset, `a section of kind ${kind} cannot stand here`);
export const outOfRange = (offset: number, what: string) => at(offset, `${what} is out of range`);
export const badText = (offset: number, what: string) => at(offset, `${what} is not UTF-8`);
export const tooMany = (offset: number, what: string, maximum: number) => at(offset, `more than ${maximum} ${what}`);
export const tooMuchMemory = (offset: number, maximumBytes: number) =>
  at(offset, `the capture takes more than ${Math.floor(maximumBytes / 2 ** 20)} MiB of memory`);
export const noSuch = (offset: number, what: string, index: number, count: number) =>
  at(offset, `${what} ${index} does not exist, the capture has only ${count}`);
export const bytesAfterEnd = (offset: number) => at(offset, "bytes after the end of the capture");
