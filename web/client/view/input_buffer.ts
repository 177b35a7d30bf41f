// Input buffer: inputs that wait for the next packet, and those that go into it once more in case an earlier one was lost.
// In a packet the oldest come first. What a snapshot tells as taken is not said again, nor what would take more than 600
// bytes of a packet.

const KEPT_MAX = 32;
const REPEATED_BYTES_MAX = 600;

interface Kept {
  readonly number: number;
  /** In how many packets it is still to go. */
  packetsLeft: number;
  readonly message: Uint8Array;
}

export class InputBuffer {
  #kept: Kept[] = [];
  /** Of those kept, how many have been in no packet: the newest ones. */
  #unsent = 0;

  /** Takes a whole message, for the next packet and so many after that. `queue` gets what there is no room for. */
  push(number: number, repeats: number, message: Uint8Array, queue: (message: Uint8Array) => void): void {
    if (this.#kept.length === KEPT_MAX) {
      const oldest = this.#kept.shift()!;
      if (this.#unsent > this.#kept.length) {
        queue(oldest.message);
        this.#unsent--;
      }
    }
    this.#kept.push({ number, packetsLeft: repeats + 1, message });
    this.#unsent++;
  }

  get hasUnsent(): boolean {
    return this.#unsent > 0;
  }

  /** A packet is made: gives `queue` what goes into it, oldest first. */
  queueDue(queue: (message: Uint8Array) => void): void {
    const firstUnsent = this.#kept.length - this.#unsent;
    let firstSaid = firstUnsent;
    for (let left = REPEATED_BYTES_MAX; firstSaid > 0; firstSaid--) {
      left -= this.#kept[firstSaid - 1]!.message.length;
      if (left < 0) break;
    }
    for (const [place, kept] of this.#kept.entries()) {
      kept.packetsLeft--;
      if (place >= firstSaid) queue(kept.message);
    }
    this.#unsent = 0;
    this.#kept = this.#kept.filter((kept) => kept.packetsLeft > 0);
  }

  /** A snapshot says that `number` was taken, and with it all that stood in the same packet ahead of it. */
  answered(number: number): void {
    const place = this.#kept.slice(0, this.#kept.length - this.#unsent).findIndex((kept) => kept.number === number);
    this.#kept.splice(0, place + 1);
  }

  leftWorld(): void {
    this.#kept = [];
    this.#unsent = 0;
  }
}
