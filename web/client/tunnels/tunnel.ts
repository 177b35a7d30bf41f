// A tunnel: what carries datagrams to a server and back. Whole or not at all; some may be lost, and none is waited for.

export interface Tunnel {
  /** What it is, to be shown. */
  readonly name: string;
  /** Sends one; drops it where too much waits already. */
  send(datagram: Uint8Array): void;
  /** Called with each that has come. The bytes are the receiver's. */
  onDatagram: (datagram: Uint8Array) => void;
  /** Called once, when nothing comes any more. */
  onClose: (why: string) => void;
  close(): void;
  /** Datagrams that were not sent because too much waited. */
  readonly dropped: number;
}
