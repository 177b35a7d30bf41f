// Datagrams over a WebSocket: one binary message each. It works everywhere; what TCP adds is that a lost segment holds back
// all that follow it. So nothing more is given to it while much waits: what is old by then is better dropped.

import type { Tunnel } from "./tunnel.ts";

/** What may wait in the browser: some 50 ms of a client that sends much. */
const BUFFERED_BYTES_MAX = 16 * 1024;
const DATAGRAM_BYTES_MAX = 1300;

/** Opens one. Rejects if nobody answers there within `timeoutMs`. */
export function openWebSocket(url: string, timeoutMs = 5000): Promise<Tunnel> {
  const socket = new WebSocket(url, "throng");
  socket.binaryType = "arraybuffer";
  let dropped = 0;
  const tunnel: Tunnel = {
    name: "WebSocket",
    send(datagram) {
      if (socket.readyState !== WebSocket.OPEN || socket.bufferedAmount > BUFFERED_BYTES_MAX) dropped++;
      else socket.send(datagram as Uint8Array<ArrayBuffer>);
    },
    onDatagram: () => {},
    onClose: () => {},
    close: () => socket.close(),
    get dropped() {
      return dropped;
    },
  };
  socket.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer && data.byteLength <= DATAGRAM_BYTES_MAX) tunnel.onDatagram(new Uint8Array(data));
  };
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer);
      reject(new Error(`${url}: ${why}`));
      tunnel.onClose(why);
      tunnel.onClose = () => {};
    };
    const timer = setTimeout(() => {
      fail("no answer");
      socket.close();
    }, timeoutMs);
    socket.onopen = () => {
      clearTimeout(timer);
      resolve(tunnel);
    };
    socket.onclose = ({ code, reason }) => fail(reason || `closed (${code})`);
  });
}
