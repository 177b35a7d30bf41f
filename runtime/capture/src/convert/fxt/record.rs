//! Records of the Fuchsia trace format, one function per kind.

use std::collections::HashMap;
use std::io::{self, Write};

use super::super::text::cut;

/// A thread that lost its core and could go on. The format calls it "new": it knows no other state for it, and
/// Fuchsia's own kernel writes this one.
pub(super) const READY: u64 = 0;
pub(super) const BLOCKED: u64 = 3;

// Kinds of records.
const METADATA: u64 = 0;
const INITIALIZATION: u64 = 1;
const STRING: u64 = 2;
const THREAD: u64 = 3;
const EVENT: u64 = 4;
const KERNEL_OBJECT: u64 = 7;
const SCHEDULING: u64 = 8;

const MAGIC_RECORD: u64 = 0x0016_5478_4604_0010;
const PROVIDER_INFO: u64 = 1;
const PROVIDER: u64 = 1;
const TICKS_PER_SECOND: u64 = 1_000_000_000;

const INSTANT: u64 = 0;
const COUNTER: u64 = 1;
const DURATION_COMPLETE: u64 = 4;

const PROCESS_OBJECT: u64 = 1;
const THREAD_OBJECT: u64 = 2;
const CONTEXT_SWITCH: u64 = 1;
/// The weight of a thread that stands for a core without work.
const IDLE_WEIGHT: i32 = i32::MIN;

// Kinds of arguments.
const INT32: u64 = 1;
const UINT32: u64 = 2;
const UINT64: u64 = 4;
const DOUBLE: u64 = 5;
const TEXT: u64 = 6;
const OBJECT_ID: u64 = 8;
const BOOL: u64 = 9;

const STRING_INDEX_MAX: usize = 0x7fff;
const THREAD_INDEX_MAX: usize = 0xff;
const INLINE: u64 = 0x8000;
const WORDS_MAX: usize = 0xfff;
/// A record holds at most a category, a name and a few short texts, and one long one: together less than 4,095 words.
const NAME_BYTES_MAX: usize = 1_000;
const TEXT_BYTES_MAX: usize = 8_000;

/// What an argument is worth.
pub(super) enum Value {
    Number(u64),
    Signed(i32),
    Float(f64),
    Bool(bool),
    /// Occurs again and again: goes to the table of strings.
    Name(String),
    /// Occurs once: stands in the record.
    Text(String),
    Object(u64),
}

/// What events of all kinds begin with.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) category: &'a str,
    pub(super) name: &'a str,
    pub(super) thread: u32,
    pub(super) at_ns: u64,
}

/// Writes records, and the tables they refer to as they are needed.
pub(super) struct Writer<W> {
    out: W,
    strings: HashMap<String, u64>,
    threads: HashMap<u32, (u64, u32)>,
    /// The record in the making: its words, without the header.
    words: Vec<u64>,
}

impl<W: Write> Writer<W> {
    pub(super) fn begin(out: W) -> io::Result<Self> {
        let mut writer = Self { out, strings: HashMap::new(), threads: HashMap::new(), words: Vec::new() };
        writer.out.write_all(&MAGIC_RECORD.to_le_bytes())?;
        let name = "throng";
        put_stream(&mut writer.words, name);
        writer.finish(METADATA, PROVIDER_INFO << 16 | PROVIDER << 20 | (name.len() as u64) << 52)?;
        writer.words.push(TICKS_PER_SECOND);
        writer.finish(INITIALIZATION, 0)?;
        Ok(writer)
    }

    pub(super) fn process(&mut self, process: u32, name: &str) -> io::Result<()> {
        self.object(PROCESS_OBJECT, process, name, &[])
    }

    /// Names a thread, and gives it an index while there are some.
    pub(super) fn thread(&mut self, thread: u32, name: &str, process: u32) -> io::Result<()> {
        let index = self.threads.len() + 1;
        if index <= THREAD_INDEX_MAX {
            self.words.extend([u64::from(process), u64::from(thread)]);
            self.finish(THREAD, (index as u64) << 16)?;
            self.threads.insert(thread, (index as u64, process));
        } else {
            self.threads.insert(thread, (0, process));
        }
        self.object(THREAD_OBJECT, thread, name, &[("process", Value::Object(process.into()))])
    }

    fn object(&mut self, kind: u64, id: u32, name: &str, arguments: &[(&str, Value)]) -> io::Result<()> {
        let name = self.string(name)?;
        let arguments = self.arguments(arguments)?;
        self.words.push(id.into());
        name.put(&mut self.words);
        self.words.extend(arguments.words);
        self.finish(KERNEL_OBJECT, kind << 16 | name.reference << 24 | arguments.count << 40)
    }

    pub(super) fn instant(&mut self, event: Event<'_>, arguments: &[(&str, Value)]) -> io::Result<()> {
        self.event(INSTANT, event, arguments, None)
    }

    pub(super) fn counter(&mut self, event: Event<'_>, id: u64, arguments: &[(&str, Value)]) -> io::Result<()> {
        self.event(COUNTER, event, arguments, Some(id))
    }

    pub(super) fn complete(&mut self, event: Event<'_>, end_ns: u64, arguments: &[(&str, Value)]) -> io::Result<()> {
        self.event(DURATION_COMPLETE, event, arguments, Some(end_ns))
    }

    /// `last` is the word that belongs to the kind of event.
    fn event(&mut self, kind: u64, event: Event<'_>, arguments: &[(&str, Value)], last: Option<u64>) -> io::Result<()> {
        let category = self.string(event.category)?;
        let name = self.string(event.name)?;
        let arguments = self.arguments(arguments)?;
        let (thread, process) = self.threads.get(&event.thread).copied().unwrap_or_default();
        self.words.push(event.at_ns);
        if thread == 0 {
            self.words.extend([u64::from(process), u64::from(event.thread)]);
        }
        category.put(&mut self.words);
        name.put(&mut self.words);
        self.words.extend(arguments.words);
        self.words.extend(last);
        let fields = kind << 16 | arguments.count << 20 | thread << 24;
        self.finish(EVENT, fields | category.reference << 32 | name.reference << 48)
    }

    /// A core goes from idle to the thread.
    pub(super) fn switch_in(&mut self, at_ns: u64, core: u32, thread: u32) -> io::Result<()> {
        self.switch(at_ns, core, [0, thread], READY, "outgoing_weight")
    }

    /// A core goes from the thread, which is in `state` then, to idle.
    pub(super) fn switch_out(&mut self, at_ns: u64, core: u32, thread: u32, state: u64) -> io::Result<()> {
        self.switch(at_ns, core, [thread, 0], state, "incoming_weight")
    }

    fn switch(&mut self, at_ns: u64, core: u32, [from, to]: [u32; 2], state: u64, idle: &str) -> io::Result<()> {
        let arguments = self.arguments(&[(idle, Value::Signed(IDLE_WEIGHT))])?;
        self.words.extend([at_ns, from.into(), to.into()]);
        self.words.extend(arguments.words);
        let core = u64::from(core.min(0xffff));
        self.finish(SCHEDULING, arguments.count << 16 | core << 20 | state << 36 | CONTEXT_SWITCH << 60)
    }

    /// A name: by its index in the table, which it enters if it is new and there is room.
    fn string<'a>(&mut self, text: &'a str) -> io::Result<StringReference<'a>> {
        let text = cut(text, NAME_BYTES_MAX);
        if text.is_empty() {
            return Ok(StringReference { reference: 0, inline: None });
        }
        if let Some(&reference) = self.strings.get(text) {
            return Ok(StringReference { reference, inline: None });
        }
        let index = self.strings.len() + 1;
        if index > STRING_INDEX_MAX {
            return Ok(StringReference { reference: INLINE | text.len() as u64, inline: Some(text) });
        }
        // It is a record of its own, so none is in the making.
        debug_assert!(self.words.is_empty());
        put_stream(&mut self.words, text);
        self.finish(STRING, (index as u64) << 16 | (text.len() as u64) << 32)?;
        self.strings.insert(text.to_owned(), index as u64);
        Ok(StringReference { reference: index as u64, inline: None })
    }

    fn arguments(&mut self, arguments: &[(&str, Value)]) -> io::Result<Arguments> {
        let mut words = Vec::with_capacity(arguments.len() * 2);
        for (name, value) in arguments {
            let name = self.string(name)?;
            let text = match value {
                Value::Name(text) => Some(self.string(text)?),
                Value::Text(text) => {
                    let text = cut(text, TEXT_BYTES_MAX);
                    let inline = (!text.is_empty()).then_some(text);
                    Some(StringReference { reference: inline.map_or(0, |text| INLINE | text.len() as u64), inline })
                }
                _ => None,
            };
            let (kind, high, low) = match *value {
                Value::Number(number) => match u32::try_from(number) {
                    Ok(small) => (UINT32, u64::from(small), None),
                    Err(_) => (UINT64, 0, Some(number)),
                },
                Value::Signed(number) => (INT32, u64::from(number.cast_unsigned()), None),
                Value::Float(number) => (DOUBLE, 0, Some(number.to_bits())),
                Value::Bool(is) => (BOOL, is.into(), None),
                Value::Object(id) => (OBJECT_ID, 0, Some(id)),
                Value::Name(_) | Value::Text(_) => (TEXT, text.as_ref().map_or(0, |text| text.reference), None),
            };
            let begin = words.len();
            words.push(0);
            name.put(&mut words);
            text.iter().for_each(|text| text.put(&mut words));
            words.extend(low);
            let length = (words.len() - begin) as u64;
            words[begin] = kind | length << 4 | name.reference << 16 | high << 32;
        }
        Ok(Arguments { count: arguments.len() as u64, words })
    }

    /// Writes the record in the making; `fields` are the bits of its header from 16 on.
    fn finish(&mut self, kind: u64, fields: u64) -> io::Result<()> {
        let length = self.words.len() + 1;
        debug_assert!(length <= WORDS_MAX, "{length} words");
        self.out.write_all(&(kind | (length as u64) << 4 | fields).to_le_bytes())?;
        for word in self.words.drain(..) {
            self.out.write_all(&word.to_le_bytes())?;
        }
        Ok(())
    }
}

struct Arguments {
    count: u64,
    words: Vec<u64>,
}

/// How a record refers to a string, and the string itself if it stands in the record.
#[derive(Clone, Copy)]
struct StringReference<'a> {
    reference: u64,
    inline: Option<&'a str>,
}

impl StringReference<'_> {
    fn put(&self, words: &mut Vec<u64>) {
        self.inline.into_iter().for_each(|text| put_stream(words, text));
    }
}

/// The bytes, filled up with zeros to whole words.
fn put_stream(words: &mut Vec<u64>, text: &str) {
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
}
