// The ways to a server, as it tells them with a token, and the best of them that this browser and its line can go.

import { type WebTransportPlace, openWebTransport } from "./web_transport.ts";
import { openWebSocket } from "./websocket.ts";
import type { Tunnel } from "./tunnel.ts";

/** What `/play/token` answers, and a login service of your own. */
export interface TokenAnswer {
  /** Base64. */
  readonly token: string;
  /** Relative to where it was asked for, or whole. */
  readonly web_socket: string;
  readonly web_transport?: { readonly url: string; readonly certificate_hash?: string | null } | null;
}

export interface Ways {
  /** `ws://` or `wss://`. */
  readonly webSocket: string;
  /** `null`: the server has none. */
  readonly webTransport: WebTransportPlace | null;
}

/** The ways of an answer that was got from `asked`. */
export function waysOf(answer: TokenAnswer, asked: string | URL): Ways {
  const { url, certificate_hash } = answer.web_transport ?? {};
  return {
    webSocket: new URL(answer.web_socket, asked).href.replace(/^http/, "ws"),
    webTransport: url === undefined ? null : { url, certificateHash: certificate_hash ?? null },
  };
}

/** Places where WebTransport was tried in vain: a network without UDP costs its time once. */
const inVain = new Set<string>();

/** WebTransport, or else a WebSocket. Rejects if nobody answers there either. */
export async function openTunnel({ webSocket, webTransport }: Ways): Promise<Tunnel> {
  if (webTransport && typeof WebTransport !== "undefined" && !inVain.has(webTransport.url)) {
    try {
      return await openWebTransport(webTransport);
    } catch {
      inVain.add(webTransport.url);
    }
  }
  return openWebSocket(webSocket);
}
