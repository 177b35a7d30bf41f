// A connect token as its client holds it: 2,048 bytes from whoever lets players in. Drawn in docs/spec/netcode.md.
//
// The private part is handed on unread; the two keys seal what travels. Keep a token as secret as a password.

import { PRIVATE_TOKEN_BYTES, REQUEST_BODY_BYTES, VERSION } from "./packet.ts";

export const TOKEN_BYTES = 2048;
const ADDRESSES_MAX = 32;

export interface ConnectToken {
  readonly protocolId: Uint8Array;
  readonly expiresUnixS: number;
  /** How long either side bears silence (s); 0 or less: for ever. */
  readonly timeoutS: number;
  readonly clientToServerKey: Uint8Array;
  readonly serverToClientKey: Uint8Array;
  /** What shows the token to a server. */
  readonly requestBody: Uint8Array;
}

/**
 * Reads a token: its bytes, or the text that `throng token` prints (base64).
 *
 * @throws if it is none.
 */
export function readToken(token: Uint8Array | string): ConnectToken {
  const bytes = typeof token === "string" ? fromBase64(token.trim()) : token;
  if (bytes.length !== TOKEN_BYTES) throw new Error(`a connect token has ${TOKEN_BYTES} bytes; this has ${bytes.length}`);
  if (!VERSION.every((byte, index) => bytes[index] === byte)) throw new Error("not a netcode 1.02 connect token");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const timeoutAt = 61 + PRIVATE_TOKEN_BYTES;
  const count = view.getUint32(timeoutAt + 4, true);
  if (count < 1 || count > ADDRESSES_MAX) throw new Error("a connect token names 1 to 32 servers");
  let at = timeoutAt + 8;
  for (let index = 0; index < count; index++) {
    const kind = bytes[at];
    if (kind !== 1 && kind !== 2) throw new Error("an address in the connect token is neither IPv4 nor IPv6");
    at += kind === 1 ? 7 : 19;
  }
  const requestBody = new Uint8Array(REQUEST_BODY_BYTES);
  requestBody.set(bytes.subarray(0, 21), 0);
  // Without the time of its making, which is not the server's business.
  requestBody.set(bytes.subarray(29, 61 + PRIVATE_TOKEN_BYTES), 21);
  return {
    protocolId: bytes.slice(13, 21),
    expiresUnixS: Number(view.getBigUint64(29, true)),
    timeoutS: view.getInt32(timeoutAt, true),
    clientToServerKey: bytes.slice(at, at + 32),
    serverToClientKey: bytes.slice(at + 32, at + 64),
    requestBody,
  };
}

function fromBase64(text: string): Uint8Array {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/");
  try {
    return Uint8Array.from(atob(plain), (letter) => letter.charCodeAt(0));
  } catch {
    throw new Error("a connect token as text is base64, and this is not");
  }
}
