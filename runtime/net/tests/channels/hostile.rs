//! Promise: a peer that holds the key may send what it likes. No panic, no more than 256 KiB of heap, and
//! what it can make us allocate is what it sent.

use std::cell::Cell;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::connection::{
    Acks, Channels, FRAGMENT_BYTES_MAX, FragmentId, FragmentRefusal, HEAP_BYTES_MAX, MalformedPacket, PacketHeader,
    PacketSequence, PacketWriter, PayloadError, Received, Refusal, WINDOW_FRAGMENTS,
};
use throng_platform::allocator::thread_counts;
use throng_platform::process::thread_cpu_time;
use throng_platform::time::Nanos;

thread_local! {
    /// How many payloads each pattern sends; a test has its thread to itself.
    static PAYLOADS: Cell<u64> = const { Cell::new(100_000) };
}
const PAYLOAD_BYTES: usize = 1_200;
/// No payload may take longer to read.
const READ_TIME_MAX: Nanos = Nanos::from_micros(50);
/// Packets that the victim has sent before the attack, so that there is something to ack.
const SENT_BEFORE: u16 = 10;

fn victim() -> Channels {
    let mut channels = Channels::new(Nanos::ZERO);
    for number in 0..SENT_BEFORE {
        channels.write(Nanos::from_millis(number.into()), b"snapshot", &mut [0; PAYLOAD_BYTES]);
    }
    channels
}

/// What one payload of a pattern says; `number` counts since the victim's connection began.
type Pattern = fn(number: u64, rng: &mut Xoshiro256PlusPlus, out: &mut [u8; PAYLOAD_BYTES]) -> usize;

/// Sends a pattern `PAYLOADS` times, 1,000 payloads per second; when the victim ends the connection, the
/// attacker comes back. Returns how often it was ended.
fn check(name: &str, pattern: Pattern) -> u64 {
    let payloads = PAYLOADS.get();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut received = Received::default();
    let (mut channels, mut began, mut ended) = (victim(), 0, 0);
    let (mut heap_max, mut slow, mut total) = (0, 0, Nanos::ZERO);
    for number in 0..payloads {
        let now = Nanos::from_millis(number);
        let mut payload = [0; PAYLOAD_BYTES];
        let len = pattern(number - began, &mut rng, &mut payload);
        received.clear();
        // The thread's own time: others may run in between.
        let start = thread_cpu_time();
        let _ = channels.read(now, &payload[..len], &mut received);
        let took = thread_cpu_time() - start;
        slow += u64::from(took > READ_TIME_MAX);
        total += took;
        heap_max = heap_max.max(channels.heap_bytes());
        if number % 16 == 0 {
            channels.update(now, &mut received);
        }
        if number % 512 == 0 {
            channels.check();
        }
        if channels.refusal().is_some() {
            (channels, began, ended) = (victim(), number + 1, ended + 1);
        }
    }
    let mean = Nanos(total.0 / payloads);
    println!("{name:32} heap {heap_max:6} B, mean {mean:?}, {slow} slower than {READ_TIME_MAX:?}, ended {ended}");
    assert!(heap_max <= HEAP_BYTES_MAX, "{name}: {heap_max} B");
    assert!(mean < READ_TIME_MAX, "{name}: {mean:?} per payload");
    // Interrupts are booked on the thread that they hit.
    assert!(slow <= payloads / 100, "{name}: {slow} of {payloads} took longer than {READ_TIME_MAX:?}");
    ended
}

#[test]
#[ignore = "the full size: 1e6 payloads of each pattern"]
fn r02_a_million_payloads_of_each_pattern_keep_to_the_budget() {
    PAYLOADS.set(1_000_000);
    gaps_hold_the_window_at_most();
    repeated_fragments_are_dropped();
    fragments_far_ahead_end_the_connection();
    acks_of_unsent_packets_are_refused_and_counted();
    acks_in_circles_cost_little();
}

fn packet(number: u64, out: &mut [u8; PAYLOAD_BYTES]) -> PacketWriter<'_> {
    let acks = Acks { newest: PacketSequence(0), bits: 0 };
    PacketWriter::begin(out, PacketHeader { sequence: PacketSequence(number as u16), acks })
}

fn fragment(packet: &mut PacketWriter<'_>, id: u64, last: bool) {
    let len = if last { 1 } else { FRAGMENT_BYTES_MAX };
    packet.fragment(FragmentId(id as u16), last, len).fill(9);
}

#[test]
fn gaps_hold_the_window_at_most() {
    let every_second: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..3).for_each(|index| fragment(&mut packet, 1 + 2 * ((number * 3 + index) % 128), false));
        packet.len()
    };
    let all_but_the_first: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..3).for_each(|index| fragment(&mut packet, 1 + (number * 3 + index) % 255, false));
        packet.len()
    };
    let one_byte_each: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..200).for_each(|index| fragment(&mut packet, 1 + (number * 200 + index) % 255, true));
        packet.len()
    };
    let never_ending: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..3).for_each(|index| fragment(&mut packet, number * 3 + index, false));
        packet.len()
    };
    let random: Pattern = |number, rng, out| {
        let mut packet = packet(number, out);
        (0..3).for_each(|_| fragment(&mut packet, rng.random_range(0..256), rng.random_bool(0.1)));
        packet.len()
    };
    // 12 s of standing still are the end: 8 times in 100 s.
    assert!(check("every second fragment", every_second) >= 7);
    assert!(check("all fragments but the first", all_but_the_first) >= 7);
    assert!(check("fragments of one byte", one_byte_each) >= 7);
    assert!(check("a message without end", never_ending) > 1_000);
    check("random fragments", random);
}

#[test]
fn repeated_fragments_are_dropped() {
    let same: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..3).for_each(|_| fragment(&mut packet, 7, false));
        packet.len()
    };
    let delivered: Pattern = |number, _, out| {
        let mut packet = packet(number, out);
        (0..200).for_each(|_| fragment(&mut packet, 0, true));
        packet.len()
    };
    let same_packet: Pattern = |_, _, out| {
        let mut packet = packet(0, out);
        fragment(&mut packet, 0, true);
        packet.len()
    };
    check("one fragment again and again", same);
    assert_eq!(check("a delivered fragment again", delivered), 0);
    assert_eq!(check("one packet again and again", same_packet), 0);
}

#[test]
fn fragments_far_ahead_end_the_connection() {
    let far: Pattern = |number, rng, out| {
        let mut packet = packet(number, out);
        fragment(&mut packet, rng.random_range(WINDOW_FRAGMENTS as u64..32_768), rng.random());
        packet.len()
    };
    assert_eq!(check("fragments far ahead", far), PAYLOADS.get(), "each time");

    let mut channels = victim();
    let mut out = [0; PAYLOAD_BYTES];
    let len = far(0, &mut Xoshiro256PlusPlus::seed_from_u64(1), &mut out);
    let refusal = Refusal::Fragment(FragmentRefusal::BeyondWindow);
    let read = channels.read(Nanos::ZERO, &out[..len], &mut Received::default());
    assert_eq!(read, Err(PayloadError::Refused(refusal)));
    assert_eq!(channels.refusal(), Some(refusal));
    assert!(!channels.wants_packet(Nanos::from_secs(100)));
}

#[test]
fn acks_of_unsent_packets_are_refused_and_counted() {
    let future: Pattern = |number, rng, out| {
        let newest = PacketSequence(rng.random_range(SENT_BEFORE..=u16::MAX));
        let acks = Acks { newest, bits: rng.random::<u32>() | 1 };
        PacketWriter::begin(out, PacketHeader { sequence: PacketSequence(number as u16), acks }).len()
    };
    assert_eq!(check("acks of packets never sent", future), 0);

    let mut channels = victim();
    let mut received = Received::default();
    let mut out = [0; PAYLOAD_BYTES];
    for (newest, bits) in [(SENT_BEFORE, 1), (SENT_BEFORE - 1, 1 << SENT_BEFORE | 1), (u16::MAX, 1), (40_000, !0)] {
        let acks = Acks { newest: PacketSequence(newest), bits };
        let mut writer = PacketWriter::begin(&mut out, PacketHeader { sequence: PacketSequence(3), acks });
        writer.unreliable(5).copy_from_slice(b"hello");
        let len = writer.len();
        let read = channels.read(Nanos::ZERO, &out[..len], &mut received);
        assert!(matches!(read, Err(PayloadError::AckOfUnsent(_))), "{newest} {bits:b}");
    }
    assert_eq!(channels.stats().acks_of_unsent, 4);
    assert_eq!(received.messages().count(), 0, "nothing of such a packet is taken");
    assert!(received.acked.is_empty());
}

#[test]
fn acks_in_circles_cost_little() {
    let swinging: Pattern = |number, rng, out| {
        let acks = Acks { newest: PacketSequence(rng.random_range(0..SENT_BEFORE)), bits: 1 };
        let sequence = PacketSequence((number * 31) as u16);
        PacketWriter::begin(out, PacketHeader { sequence, acks }).len()
    };
    assert_eq!(check("acks and numbers that jump", swinging), 0);
}

/// Everything that can be kept is kept at once: no maximum is missed, and the budget counts what was
/// allocated.
#[test]
fn all_maxima_together_stay_within_the_budget() {
    let mut received = Received::default();
    let mut payload = [0; PAYLOAD_BYTES];
    let before = thread_counts();
    let mut channels = Channels::new(Nanos::ZERO);
    while channels.send_reliable(&[1]).is_ok() {}
    (0..64).for_each(|_| channels.send_unreliable(&[2; 100]).unwrap());
    for _ in 0..500 {
        channels.write(Nanos::ZERO, &[], &mut payload);
    }
    (0..64).for_each(|_| channels.send_unreliable(&[2; 100]).unwrap());
    let own = thread_counts() - before;
    for number in 0..85u64 {
        let mut packet = packet(number, &mut payload);
        (0..3).for_each(|index| fragment(&mut packet, 1 + number * 3 + index, false));
        let len = packet.len();
        channels.read(Nanos::ZERO, &payload[..len], &mut received).unwrap();
    }
    let all = thread_counts() - before;
    channels.check();
    let heap = channels.heap_bytes() as u64;
    println!("with all maxima reached: {heap} B held, {} B ever allocated", all.bytes);
    assert!(own.bytes < heap && heap <= all.bytes, "held {heap} B of {} B", all.bytes);
    assert!(all.bytes <= 2 * heap);
    assert!(heap <= HEAP_BYTES_MAX as u64);
}

/// R11: a size that is declared is only believed for bytes that are there.
#[test]
fn r11_bombs_are_refused_without_an_allocation() {
    let header = [0u8; 8];
    let mut bombs: Vec<(Vec<u8>, MalformedPacket)> = Vec::new();
    for len in (1..0x4000u16).step_by(13) {
        for kind in 0..4u16 {
            let tag = (kind << 14 | len).to_le_bytes();
            // Declares `len` bytes, brings a handful.
            let bomb = [&header[..], &tag[..], &[0, 0, 1][..]].concat();
            let expect = match kind {
                0 if len <= 3 => continue,
                2 if len == 1 => continue,
                3 => MalformedPacket::UnknownChunk,
                1 if len as usize != FRAGMENT_BYTES_MAX => MalformedPacket::FragmentLength,
                2 if len as usize > FRAGMENT_BYTES_MAX => MalformedPacket::FragmentLength,
                _ => MalformedPacket::Truncated,
            };
            bombs.push((bomb, expect));
        }
    }
    let mut channels = victim();
    let mut received = Received::default();
    let heap_before = channels.heap_bytes();
    let before = thread_counts();
    for (bomb, expect) in &bombs {
        let read = channels.read(Nanos::ZERO, bomb, &mut received);
        assert_eq!(read, Err(PayloadError::Malformed(*expect)));
    }
    assert_eq!((thread_counts() - before).allocations, 0);
    assert_eq!(channels.heap_bytes(), heap_before);
    assert_eq!(channels.stats().malformed, bombs.len() as u64);
    assert!(bombs.len() > 500);
}

/// Payloads of a lively conversation, damaged in every way, into the middle of that conversation.
#[test]
fn two_hundred_thousand_mutated_payloads_do_no_harm() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(77);
    let mut received = Received::default();
    let (mut a, mut b) = (Channels::new(Nanos::ZERO), Channels::new(Nanos::ZERO));
    let mut corpus: Vec<Vec<u8>> = vec![vec![0; 8]];
    let (mut taken, mut ended) = (0, 0);
    for number in 0..200_000u64 {
        let now = Nanos::from_millis(number);
        if number % 8 == 0 {
            received.clear();
            corpus.push(speak(&mut a, now, &mut rng));
            let _ = b.read(now, &corpus[corpus.len() - 1], &mut received);
            corpus.push(speak(&mut b, now, &mut rng));
            let _ = a.read(now, &corpus[corpus.len() - 1], &mut received);
            a.update(now, &mut received);
            b.update(now, &mut received);
            if corpus.len() > 64 {
                corpus.drain(..32);
            }
        }
        let mut payload = corpus.choose(&mut rng).cloned().unwrap_or_default();
        mutate(&mut payload, &corpus, &mut rng);
        received.clear();
        taken += u64::from(a.read(now, &payload, &mut received).is_ok());
        if number % 256 == 0 {
            a.check();
            b.check();
        }
        if a.refusal().is_some() || b.refusal().is_some() {
            ended += 1;
            (a, b) = (Channels::new(now), Channels::new(now));
        }
    }
    println!("of 200,000 mutated payloads {taken} were packets; the connection was ended {ended} times");
    assert!(taken > 1_000 && ended > 10, "the mutations reach what lies behind the parser");
}

/// An honest packet.
fn speak(channels: &mut Channels, now: Nanos, rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let _ = channels.send_reliable(&vec![5; rng.random_range(1..2_000)]);
    let _ = channels.send_unreliable(&vec![6; rng.random_range(1..300)]);
    let mut payload = [0; PAYLOAD_BYTES];
    let (_, len) = channels.write(now, &[7; 3], &mut payload);
    payload[..len].to_vec()
}

fn mutate(payload: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Xoshiro256PlusPlus) {
    for _ in 0..rng.random_range(1..4) {
        if payload.is_empty() {
            payload.push(rng.random());
        }
        let at = rng.random_range(0..payload.len());
        match rng.random_range(0..7) {
            0 => payload[at] ^= 1 << rng.random_range(0..8),
            1 => payload[at] = *[0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff].choose(rng).unwrap_or(&0),
            2 => payload.truncate(at),
            3 => payload.extend((0..rng.random_range(0..40)).map(|_| rng.random::<u8>())),
            4 => {
                // The tail of another one.
                let other = corpus.choose(rng).cloned().unwrap_or_default();
                payload.truncate(at);
                payload.extend_from_slice(&other[at.min(other.len())..]);
            }
            // A fresh number, so that the rest is looked at.
            5 => payload.splice(..2.min(payload.len()), rng.random::<u16>().to_le_bytes()).for_each(drop),
            _ => {
                let end = rng.random_range(at..payload.len());
                payload.drain(at..end);
            }
        }
    }
    payload.truncate(PAYLOAD_BYTES);
}
