//! Spoken: lines and names as values that can be sent. What breaks a rule is refused where it is read, so a world never
//! holds one that does.

use std::{fmt, ops::Deref};

use throng_pack::{Fault, Kind, Pack, PackError, Reader, Text, Writer};

use crate::{TextFault, accept_line, accept_name};

macro_rules! spoken {
    ($(#[$attribute:meta])* $name:ident, $accept:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name<const N: usize>(Text<N>);

        impl<const N: usize> $name<N> {
            pub fn new(text: &str) -> Result<Self, TextFault> {
                $accept(text.as_bytes(), N)?;
                Text::new(text).map(Self).ok_or(TextFault::Length)
            }

            pub fn text(&self) -> Text<N> {
                self.0
            }
        }

        impl<const N: usize> Deref for $name<N> {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<const N: usize> fmt::Debug for $name<N> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, out)
            }
        }

        impl<const N: usize> Pack for $name<N> {
            const KIND: Kind = Text::<N>::KIND;
            const BYTES_MIN: usize = Text::<N>::BYTES_MIN;
            const BYTES_MAX: usize = Text::<N>::BYTES_MAX;

            fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
                self.0.pack(out)
            }

            fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
                let text = Text::<N>::unpack(from)?;
                Self::new(&text).map_err(|_| Fault::Refused.into())
            }
        }
    };
}

spoken! {
    /// A line that [`accept_line`] has accepted, of at most `N` bytes.
    Line, accept_line
}
spoken! {
    /// A name that [`accept_name`] has accepted, of at most `N` bytes.
    Name, accept_name
}

#[cfg(test)]
mod tests {
    use throng_pack::{pack_body, unpack_body};

    use super::*;

    #[test]
    fn a_line_comes_back_as_it_went_in_and_nothing_else_does() {
        let line = Line::<40>::new("zwölf Häuser").unwrap();
        let mut bytes = Vec::new();
        pack_body(&line, &mut bytes).unwrap();
        assert_eq!(unpack_body::<Line<40>>(&bytes), Ok(line));
        let check = |bytes: &[u8]| assert!(unpack_body::<Line<40>>(bytes).is_err(), "{bytes:?}");
        check(&bytes[..bytes.len() - 1]);
        check(&[0]);
        check(b"\x03a\nb");
        check(b"\x02\xff\xfe");
        check(&[&[41][..], &[b'x'; 41]].concat());
        assert_eq!(Line::<4>::new("12345"), Err(TextFault::Length));
    }

    #[test]
    fn a_name_is_narrower() {
        assert!(unpack_body::<Name<24>>(b"\x04Faye").is_ok());
        assert!(unpack_body::<Name<24>>(b"\x04<b>!").is_err());
    }
}
