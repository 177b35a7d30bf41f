//! Packed values: whatever stands where a transfer, a message or a save should.
//!
//! Promise: bytes are read or refused. What is read is within its limits, which packing checks, and gives the same
//! bytes when it is packed again; from bytes of older versions, a value that is the same when it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_fuzz::packed::Traveller;
use throng_pack::{HasSchema, envelope, pack_body, unpack_body};

fuzz_target!(|bytes: &[u8]| {
    let mut again = Vec::new();
    if let Ok(value) = envelope::read::<Traveller>(bytes) {
        envelope::write(&value, &mut again).expect("what is read is within its limits");
        let (enclosed, _) = envelope::Envelope::parse(bytes).expect("it was read");
        if enclosed.layout == Traveller::SCHEMA.layout() {
            assert_eq!(again, bytes);
        }
        assert_eq!(envelope::read::<Traveller>(&again).as_ref(), Ok(&value));
    }
    // Without the hashes in front, which a fuzzer does not guess.
    again.clear();
    if let Ok(value) = unpack_body::<Traveller>(bytes) {
        pack_body(&value, &mut again).expect("what is read is within its limits");
        assert_eq!(again, bytes);
    }
});
