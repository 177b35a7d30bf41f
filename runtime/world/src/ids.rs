//! Names of things in one server process. All are small indices: dense, cheap to copy, never sent to a client unless said.

/// One world of this process, from the moment it is created until the process ends. Told to clients on entering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldId(pub u32);

/// One kind of world: the order in which kinds were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub u16);

/// One connection for as long as it lives, in whichever world its player is. Reused after the connection has ended and
/// every world has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientKey(pub u32);
