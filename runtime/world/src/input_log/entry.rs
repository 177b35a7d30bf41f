//! Entry: one thing that entered a world, as bytes. Writing and reading stand side by side.
//!
//! Numbers are little endian. A length is held against the bytes that are there before anything is made of it, and
//! what is read borrows from the log: reading allocates nothing, whatever the bytes claim.

use throng_net::protocol::{ClientId, UserData};
use throng_pack::{Fault, Reader};
use throng_platform::time::Nanos;
use throng_replication::{PackedId, TimeFactor};

use super::LogFault;
use crate::{
    ids::{ClientKey, WorldId},
    inbox::{InboxMessage, MessageKind},
    saving::{SaveAnswer, SaveRequest, SaveStore},
    seen_moment::SeenMoment,
    tick_resources::{Arrival, RefusedTravel, TravelRefusal},
    transfer::{TRANSFER_BYTES_MAX, WorldMessage},
    tunable::TunedValues,
};

const ARRIVAL: u8 = 1;
const DEPARTURE: u8 = 2;
const INPUT: u8 = 3;
const REQUEST: u8 = 4;
const WORLD_MESSAGE: u8 = 5;
const RULES: u8 = 6;
const TIME_FACTOR: u8 = 7;
const TUNABLES: u8 = 8;
const SAVE_ANSWERS: u8 = 9;
const SAVE_STORE: u8 = 10;

/// One thing that entered a world.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    Arrival(LoggedArrival<'a>),
    Departure(ClientKey),
    Message(InboxMessage<'a>),
    WorldMessage { from: WorldId, bytes: &'a [u8] },
    Rules(&'a [u8]),
    TimeFactor(TimeFactor),
    Tunables(LoggedTunables<'a>),
    SaveAnswers(LoggedSaveAnswers<'a>),
    SaveStore(SaveStore),
}

/// What became of the game's requests to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedSaveAnswers<'a>(&'a [u8]);

impl LoggedSaveAnswers<'_> {
    pub fn iter(&self) -> impl Iterator<Item = SaveAnswer> {
        self.0.chunks_exact(SAVE_ANSWER_BYTES).map(|bytes| SaveAnswer {
            request: SaveRequest(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            is_on_disk: bytes[4] != 0,
        })
    }
}

/// The request's number, and whether it is on disk.
const SAVE_ANSWER_BYTES: usize = 4 + 1;

/// What was in force, by number; tunables that were not set say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedTunables<'a>(&'a [u8]);

impl LoggedTunables<'_> {
    pub fn iter(&self) -> impl Iterator<Item = Option<f64>> {
        let values =
            self.0.chunks_exact(TUNABLE_BYTES).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        values.map(|value| (!value.is_nan()).then_some(value))
    }
}

const TUNABLE_BYTES: usize = 8;

/// An [`Arrival`] whose bytes lie in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedArrival<'a> {
    pub client: ClientKey,
    pub client_id: ClientId,
    pub user_data: &'a UserData,
    pub from: Option<WorldId>,
    pub transfer: Option<&'a [u8]>,
    pub refused: Option<RefusedTravel>,
}

pub(super) fn write_arrival(arrival: &Arrival, out: &mut Vec<u8>) {
    out.push(ARRIVAL);
    out.extend_from_slice(&arrival.client.0.to_le_bytes());
    out.extend_from_slice(&arrival.client_id.0.to_le_bytes());
    out.extend_from_slice(&arrival.user_data[..]);
    out.push(arrival.from.is_some().into());
    if let Some(from) = arrival.from {
        write_world(from, out);
    }
    out.push(arrival.transfer.is_some().into());
    if let Some(transfer) = &arrival.transfer {
        write_bytes(transfer.bytes(), out);
    }
    match arrival.refused {
        None => out.push(0),
        Some(RefusedTravel { to, reason }) => {
            out.push(match reason {
                TravelRefusal::NoSuchWorld => 1,
                TravelRefusal::TransferUnreadable => 2,
                TravelRefusal::NotSaved => 3,
            });
            write_world(to, out);
        }
    }
}

pub(super) fn write_departure(client: ClientKey, out: &mut Vec<u8>) {
    out.push(DEPARTURE);
    out.extend_from_slice(&client.0.to_le_bytes());
}

pub(super) fn write_message(message: &InboxMessage<'_>, out: &mut Vec<u8>) {
    let kind = match message.kind {
        MessageKind::Input { number, kind } => {
            out.push(INPUT);
            out.extend_from_slice(&number.to_le_bytes());
            kind
        }
        MessageKind::Request { kind } => {
            out.push(REQUEST);
            kind
        }
    };
    out.push(kind.0);
    out.extend_from_slice(&message.client.0.to_le_bytes());
    out.push(message.is_late.into());
    out.push(message.seen.is_some().into());
    if let Some(seen) = message.seen {
        out.extend_from_slice(&seen.tick.to_le_bytes());
        out.push(seen.part);
        out.extend_from_slice(&seen.newest_tick.to_le_bytes());
        out.extend_from_slice(&seen.acked_tick.to_le_bytes());
        out.extend_from_slice(&seen.round_trip.0.to_le_bytes());
    }
    write_bytes(message.bytes, out);
}

pub(super) fn write_world_message(message: &WorldMessage, out: &mut Vec<u8>) {
    out.push(WORLD_MESSAGE);
    write_world(message.from, out);
    write_bytes(message.bytes(), out);
}

pub(super) fn write_rules(rules: &[u8], out: &mut Vec<u8>) {
    out.push(RULES);
    write_bytes(rules, out);
}

pub(super) fn write_time_factor(factor: TimeFactor, out: &mut Vec<u8>) {
    out.extend_from_slice(&[TIME_FACTOR, factor.percent()]);
}

/// One that was not set is no number.
pub(super) fn write_tunables(values: &TunedValues, out: &mut Vec<u8>) {
    out.push(TUNABLES);
    out.extend_from_slice(&((values.iter().len() * TUNABLE_BYTES) as u32).to_le_bytes());
    values.iter().for_each(|value| out.extend_from_slice(&value.unwrap_or(f64::NAN).to_le_bytes()));
}

pub(super) fn write_save_answers(answers: &[SaveAnswer], out: &mut Vec<u8>) {
    out.push(SAVE_ANSWERS);
    out.extend_from_slice(&((answers.len() * SAVE_ANSWER_BYTES) as u32).to_le_bytes());
    for SaveAnswer { request, is_on_disk } in answers {
        out.extend_from_slice(&request.0.to_le_bytes());
        out.push((*is_on_disk).into());
    }
}

pub(super) fn write_save_store(store: SaveStore, out: &mut Vec<u8>) {
    out.extend_from_slice(&[SAVE_STORE, store.is_away.into(), store.has_turned.into()]);
}

fn write_world(world: WorldId, out: &mut Vec<u8>) {
    out.extend_from_slice(&(world.index() as u32).to_le_bytes());
    out.extend_from_slice(&world.generation().to_le_bytes());
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The next entry.
pub(super) fn read<'a>(from: &mut Reader<'a>) -> Result<Entry<'a>, LogFault> {
    Ok(match from.u8()? {
        ARRIVAL => Entry::Arrival(read_arrival(from)?),
        DEPARTURE => Entry::Departure(read_client(from)?),
        INPUT => {
            let number = u16::from_le_bytes(from.array()?);
            let kind = PackedId(from.u8()?);
            Entry::Message(read_message(MessageKind::Input { number, kind }, from)?)
        }
        REQUEST => {
            let kind = PackedId(from.u8()?);
            Entry::Message(read_message(MessageKind::Request { kind }, from)?)
        }
        WORLD_MESSAGE => Entry::WorldMessage { from: read_world(from)?, bytes: read_carried(from)? },
        RULES => Entry::Rules(read_bytes(from)?),
        TIME_FACTOR => Entry::TimeFactor(TimeFactor::decode(from.u8()?).ok_or(Fault::OutOfRange)?),
        TUNABLES => {
            let bytes = read_bytes(from)?;
            let is_whole = bytes.len().is_multiple_of(TUNABLE_BYTES);
            Entry::Tunables(LoggedTunables(is_whole.then_some(bytes).ok_or(Fault::OutOfRange)?))
        }
        SAVE_ANSWERS => {
            let bytes = read_bytes(from)?;
            let is_sound = bytes.len().is_multiple_of(SAVE_ANSWER_BYTES)
                && bytes.chunks_exact(SAVE_ANSWER_BYTES).all(|it| it[4] < 2);
            Entry::SaveAnswers(LoggedSaveAnswers(is_sound.then_some(bytes).ok_or(Fault::OutOfRange)?))
        }
        SAVE_STORE => Entry::SaveStore(SaveStore { is_away: from.flag()?, has_turned: from.flag()? }),
        got => return Err(LogFault::UnknownEntry { got }),
    })
}

fn read_arrival<'a>(from: &mut Reader<'a>) -> Result<LoggedArrival<'a>, LogFault> {
    Ok(LoggedArrival {
        client: read_client(from)?,
        client_id: ClientId(read_u64(from)?),
        user_data: from.bytes(size_of::<UserData>())?.try_into().map_err(|_| Fault::Truncated)?,
        from: if from.flag()? { Some(read_world(from)?) } else { None },
        transfer: if from.flag()? { Some(read_carried(from)?) } else { None },
        refused: match from.u8()? {
            0 => None,
            1 => Some(RefusedTravel { to: read_world(from)?, reason: TravelRefusal::NoSuchWorld }),
            2 => Some(RefusedTravel { to: read_world(from)?, reason: TravelRefusal::TransferUnreadable }),
            3 => Some(RefusedTravel { to: read_world(from)?, reason: TravelRefusal::NotSaved }),
            got => return Err(Fault::UnknownVariant { got }.into()),
        },
    })
}

fn read_message<'a>(kind: MessageKind, from: &mut Reader<'a>) -> Result<InboxMessage<'a>, LogFault> {
    let client = read_client(from)?;
    let is_late = from.flag()?;
    let seen = if from.flag()? { Some(read_seen(from)?) } else { None };
    Ok(InboxMessage { client, kind, is_late, seen, bytes: read_bytes(from)? })
}

fn read_seen(from: &mut Reader<'_>) -> Result<SeenMoment, LogFault> {
    Ok(SeenMoment {
        tick: read_u32(from)?,
        part: from.u8()?,
        newest_tick: read_u32(from)?,
        acked_tick: read_u32(from)?,
        round_trip: Nanos(read_u64(from)?),
    })
}

/// What a player or a message between worlds carries: never longer than a world would have made it.
fn read_carried<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], LogFault> {
    let bytes = read_bytes(from)?;
    if bytes.len() > TRANSFER_BYTES_MAX { Err(Fault::OutOfRange.into()) } else { Ok(bytes) }
}

fn read_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], LogFault> {
    let length = read_u32(from)?;
    Ok(from.bytes(usize::try_from(length).map_err(|_| Fault::Truncated)?)?)
}

fn read_world(from: &mut Reader<'_>) -> Result<WorldId, LogFault> {
    Ok(WorldId::new(read_u32(from)?, read_u32(from)?))
}

fn read_client(from: &mut Reader<'_>) -> Result<ClientKey, LogFault> {
    Ok(ClientKey(read_u32(from)?))
}

fn read_u32(from: &mut Reader<'_>) -> Result<u32, LogFault> {
    Ok(u32::from_le_bytes(from.array()?))
}

fn read_u64(from: &mut Reader<'_>) -> Result<u64, LogFault> {
    Ok(u64::from_le_bytes(from.array()?))
}
