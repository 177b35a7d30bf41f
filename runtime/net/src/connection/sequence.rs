//! Numbers that wrap: 16 bits on the wire are enough as long as nobody compares them with `<`.
//!
//! Two numbers are compared by the way between them: up to half the circle ahead is newer, the rest is
//! older. Right as long as no two numbers alive at once are 32,768 apart; at 200 packets/s that is 164 s,
//! and neither a packet in flight (256 of them at most) nor the window of fragments comes near.

/// The number of a packet, per connection and direction. Wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PacketSequence(pub u16);

impl PacketSequence {
    pub fn next(self) -> PacketSequence {
        PacketSequence(self.0.wrapping_add(1))
    }

    /// The packet sent `packets` before this one.
    pub fn back(self, packets: u16) -> PacketSequence {
        PacketSequence(self.0.wrapping_sub(packets))
    }

    /// How many packets `older` was sent before this one; above 32,767 it was in truth sent later.
    pub fn distance_from(self, older: PacketSequence) -> u16 {
        self.0.wrapping_sub(older.0)
    }

    /// Whether this packet was sent after `other`.
    pub fn is_newer_than(self, other: PacketSequence) -> bool {
        let distance = self.distance_from(other);
        distance != 0 && distance < HALF
    }
}

/// The number of a fragment of a reliable message, counted through all messages of a direction. Wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FragmentId(pub u16);

impl FragmentId {
    /// The fragment `fragments` behind this one in the order of delivery.
    pub fn ahead(self, fragments: u16) -> FragmentId {
        FragmentId(self.0.wrapping_add(fragments))
    }

    /// How far this fragment is ahead of `older`; [`HALF`] and above: it comes before `older`.
    pub fn distance_from(self, older: FragmentId) -> u16 {
        self.0.wrapping_sub(older.0)
    }
}

/// Half the circle: a distance of this or more points backwards.
pub const HALF: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_holds_across_the_wrap() {
        let check = |a: u16, b: u16, newer: bool| {
            assert_eq!(PacketSequence(a).is_newer_than(PacketSequence(b)), newer, "{a} {b}");
        };
        check(1, 0, true);
        check(0, 1, false);
        check(5, 5, false);
        check(0, u16::MAX, true);
        check(u16::MAX, 0, false);
        check(100, u16::MAX - 100, true);
        check(HALF - 1, 0, true);
        check(HALF, 0, false);
    }
}
