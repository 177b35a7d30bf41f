// Why an authentic client is turned away: one byte, in words for a player.

export type DenialReason =
  | "unsaid" | "server-full" | "already-connected" | "queue-full" | "unable" | "refused-by-game" | "world-not-ready"
  | "token-used" | "token-expired" | "other-server" | "other-protocol" | "address-taken" | "no-such-world";

const REASONS: readonly (readonly [DenialReason, string])[] = [
  ["unsaid", "the server is full, or you are connected already"],
  ["server-full", "the server is full"],
  ["already-connected", "you are connected already, perhaps by an earlier connection that has not timed out yet"],
  ["queue-full", "too many players are waiting to come in: try again later"],
  ["unable", "the server can let nobody in at the moment: try again later"],
  ["refused-by-game", "the game does not let you in"],
  ["world-not-ready", "your world was not ready in time: try again"],
  ["token-used", "your connect token was used before, and is good for one session: log in again"],
  ["token-expired", "your connect token has expired: log in again"],
  ["other-server", "your connect token is for another server"],
  ["other-protocol", "your connect token is for another game, or another version of it"],
  ["address-taken", "somebody else is connected from your address: try again"],
  ["no-such-world", "your world does not exist any more"],
];

/** Numbers of later versions and an empty body say nothing. */
export function denialOf(body: Uint8Array): DenialReason {
  return (REASONS[body[0] ?? 0] ?? REASONS[0]!)[0];
}

/** For the player who reads it. */
export function textOfDenial(reason: DenialReason): string {
  return REASONS.find(([name]) => name === reason)![1];
}
