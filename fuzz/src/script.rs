//! Script: the fuzzer's bytes as operations and arguments.

/// What is left of the input. Arguments beyond its end are zero or empty.
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// The next operation; `None` at the end.
    pub fn operation(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u8(&mut self) -> u8 {
        self.operation().unwrap_or_default()
    }

    /// Little endian.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    /// Little endian.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// The next `len` bytes, or as many as there are.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A length of 16 bits and so many bytes.
    pub fn block(&mut self) -> &'a [u8] {
        let len = self.u16();
        self.bytes(len.into())
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Changes `bytes` as the script says: cut, lengthened or overwritten in up to 15 places.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        let plan = self.u8();
        if plan & 0x80 != 0 {
            bytes.resize(usize::from(self.u16()) % 1_500, 0);
        }
        for _ in 0..plan & 15 {
            let (at, value) = (usize::from(self.u16()), self.u8());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= value;
            }
        }
    }
}
