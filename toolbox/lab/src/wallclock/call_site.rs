//! Call sites: does a value on the stack point right behind a call, and whom did it call?
//!
//! Every true return address does. Few other values on a stack do, and where the call names its function in its own
//! bytes, even fewer.

/// The instruction in front of a return address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum CallSite {
    /// `call` of a fixed address.
    Direct { target: u64 },
    /// `call` through a register or through memory.
    Indirect,
}

/// Longest call in front of a return address: opcode, addressing byte, scale byte and four bytes of displacement.
pub(super) const CALL_BYTES_MAX: usize = 7;

/// Reads the bytes that stand in front of `return_address`, of which there are at most [`CALL_BYTES_MAX`].
pub(super) fn before(return_address: u64, bytes: &[u8]) -> Option<CallSite> {
    if let [.., 0xe8, a, b, c, d] = *bytes {
        let target = return_address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
        return Some(CallSite::Direct { target });
    }
    let length_matches = |length: usize| {
        let Some(start) = bytes.len().checked_sub(length) else { return false };
        bytes[start] == 0xff
            && bytes.get(start + 1).is_some_and(|modrm| indirect_length(*modrm, bytes.get(start + 2)) == Some(length))
    };
    [2, 3, 4, 6, 7].into_iter().any(length_matches).then_some(CallSite::Indirect)
}

/// Length of `ff /2`, a call through what its addressing byte names; nothing for the other uses of that opcode.
fn indirect_length(modrm: u8, scale: Option<&u8>) -> Option<usize> {
    let (mode, operation, base) = (modrm >> 6, (modrm >> 3) & 7, modrm & 7);
    if operation != 2 {
        return None;
    }
    let scaled = usize::from(base == 4 && mode != 3);
    let displacement = match mode {
        0 if base == 5 => 4,
        0 if scaled == 1 && scale.is_some_and(|scale| scale & 7 == 5) => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(2 + scaled + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expect: Option<CallSite>) {
        assert_eq!(before(0x1000, bytes), expect, "{bytes:02x?}");
    }

    #[test]
    fn calls_are_told_from_other_bytes() {
        check(&[0, 0, 0xe8, 0x10, 0, 0, 0], Some(CallSite::Direct { target: 0x1010 }));
        check(&[0xe8, 0xf0, 0xff, 0xff, 0xff], Some(CallSite::Direct { target: 0xff0 }));
        check(&[0, 0, 0, 0, 0, 0xff, 0xd0], Some(CallSite::Indirect)); // call rax
        check(&[0, 0, 0, 0, 0xff, 0x50, 0x08], Some(CallSite::Indirect)); // call [rax + 8]
        check(&[0, 0xff, 0x15, 1, 2, 3, 4], Some(CallSite::Indirect)); // call [rip + 0x4030201]
        check(&[0xff, 0x94, 0xc8, 1, 2, 3, 4], Some(CallSite::Indirect)); // call [rax + rcx * 8 + 0x4030201]
        check(&[0, 0, 0, 0, 0, 0xff, 0xe0], None); // jmp rax
        check(&[0x90; 7], None);
        check(&[], None);
    }
}
