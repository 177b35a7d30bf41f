// Portals of the city block, made of games/precinct/src/portals.rs by `UPDATE_EXPECT=1 cargo test -p precinct --lib portals`.

/** Who is so near to a portal's middle is taken (m). */
export const PORTAL_RADIUS_M = 2.0;
/** Who has been farther than this from all of them since coming into a world may be taken (m). */
export const PORTAL_CLEAR_M = 6.0;

/** The middle of each, and the kind of world that it leads to. */
export const PORTALS = [
  { leadsTo: "hideout", x: 0.00, z: 16.00 },
  { leadsTo: "hub", x: 16.00, z: 0.00 },
  { leadsTo: "dark_zone", x: -16.00, z: 0.00 },
] as const;
