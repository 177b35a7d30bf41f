//! A message: what the world told this client, and nobody else.

use throng_pack::unpack_body;
use throng_replication::{ClientMessage, MESSAGE_HEADER_BYTES, MESSAGE_KIND, PackedId, Schema};

/// What a world told this client. What is shown to the game has been read once and is a value of its kind.
///
/// ```
/// # use throng_client::Client;
/// # use throng_pack::Pack;
/// # use throng_replication::ClientMessage;
/// # #[derive(Pack)]
/// # struct Pockets { coins: u32 }
/// # impl ClientMessage for Pockets {}
/// # #[derive(Pack)]
/// # struct Farewell;
/// # impl ClientMessage for Farewell {}
/// # fn hear(client: &mut Client) {
/// for message in client.messages() {
///     if let Some(Pockets { coins }) = message.read() {
///         println!("{coins} coins");
///     } else if let Some(Farewell) = message.read() {
///         println!("that was it");
///     }
/// }
/// client.clear_messages();
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Message<'a> {
    schema: &'a Schema,
    kind: PackedId,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// `None` if the bytes are none of a message that the schema knows.
    pub(crate) fn split(schema: &'a Schema, message: &'a [u8]) -> Option<Self> {
        let &[MESSAGE_KIND, kind] = message.first_chunk::<MESSAGE_HEADER_BYTES>()? else { return None };
        let kind = PackedId(kind);
        schema.messages().get(kind.index())?;
        Some(Self { schema, kind, bytes: &message[MESSAGE_HEADER_BYTES..] })
    }

    /// Whether the bytes are a value of its kind.
    pub(crate) fn is_readable(&self) -> bool {
        self.schema.messages()[self.kind.index()].check(self.bytes).is_ok()
    }

    /// The message, if it is a `T`. Allocates what a value with a list in it takes.
    pub fn read<T: ClientMessage>(&self) -> Option<T> {
        if self.schema.message_of::<T>() == Some(self.kind) { unpack_body(self.bytes).ok() } else { None }
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        self.schema.messages()[self.kind.index()].name
    }
}
