// The shape of every packet: kinds, the prefix byte, sequence bytes, sizes. Drawn in docs/spec/netcode.md.
//
// Whatever a datagram holds it is read or refused, never an exception.

export const PAYLOAD_BYTES_MAX = 1200;
export const TAG_BYTES = 16;
export const VERSION = new TextEncoder().encode("NETCODE 1.02\0");
export const PRIVATE_TOKEN_BYTES = 1024;
export const CHALLENGE_BODY_BYTES = 8 + 300;

/** Version, protocol id, expiry, nonce, private token. */
export const REQUEST_BODY_BYTES = 13 + 8 + 8 + 24 + PRIVATE_TOKEN_BYTES;
export const HELLO_BYTES = 1 + 16 + 8 + REQUEST_BODY_BYTES;
export const COOKIE_BYTES = 16;

/** Numbers 0 to 6 are netcode's; 7 to 10 are ours. */
export const Kind = {
  denied: 1,
  challenge: 2,
  response: 3,
  keepAlive: 4,
  payload: 5,
  disconnect: 6,
  hello: 7,
  cookie: 8,
  cookieRequest: 9,
  queued: 10,
} as const;

/** Bodies of sealed kinds, at least and at most (bytes). */
const BODY_BYTES: Record<number, readonly [number, number]> = {
  [Kind.denied]: [0, 1],
  [Kind.challenge]: [CHALLENGE_BODY_BYTES, CHALLENGE_BODY_BYTES],
  [Kind.response]: [CHALLENGE_BODY_BYTES, CHALLENGE_BODY_BYTES],
  [Kind.keepAlive]: [8, 8],
  [Kind.payload]: [1, PAYLOAD_BYTES_MAX],
  [Kind.disconnect]: [0, 0],
  [Kind.queued]: [9, 9],
};

/** The header of a sealed packet, read but not yet believed. */
export interface SealedHeader {
  readonly kind: number;
  /** 0 to 8. */
  readonly sequenceBytes: number;
  /** Exact up to 2^53; the handshake's are beyond and compared as `sequenceOf` gives them. */
  readonly sequence: number;
}

/** `null`: it cannot be a sealed packet of its kind. */
export function readSealedHeader(datagram: Uint8Array): SealedHeader | null {
  const prefix = datagram[0];
  if (prefix === undefined) return null;
  const kind = prefix & 15;
  const sequenceBytes = prefix >> 4;
  const limits = BODY_BYTES[kind];
  const bodyBytes = datagram.length - 1 - sequenceBytes - TAG_BYTES;
  if (!limits || sequenceBytes > 8 || bodyBytes < limits[0] || bodyBytes > limits[1]) return null;
  let sequence = 0;
  for (let index = sequenceBytes; index > 0; index--) sequence = sequence * 256 + datagram[index]!;
  return { kind, sequenceBytes, sequence };
}

/** The whole sequence, however large. */
export function sequenceOf(datagram: Uint8Array, header: SealedHeader): bigint {
  let sequence = 0n;
  for (let index = header.sequenceBytes; index > 0; index--) sequence = (sequence << 8n) | BigInt(datagram[index]!);
  return sequence;
}

/** How many bytes a sequence takes on the wire: 1 to 8. */
export function sequenceBytesOf(sequence: number): number {
  let bytes = 1;
  for (let rest = sequence; rest >= 256; rest = Math.floor(rest / 256)) bytes++;
  return bytes;
}
