//! Text table: rows of typed cells, as aligned text or as JSON.
//!
//! ```text
//! player  world   x m     speed m/s
//! anna    hub 0   -12.50        4.0
//! bert\n  zone 3    3.25        0.0      (a name with a line break, which stays one row)
//! ```
//!
//! Columns are as wide as their widest cell, which is known at the end only. So each cell is rendered once, in its place
//! by the widths that were expected, and where these were wrong all rows are laid out again from what was rendered. Right
//! hints save that second pass and the growth of buffers; wrong ones cost nothing but it. The text is the same for all
//! hints.
//!
//! Text comes from players, too. What would end a line, move the cursor, turn the direction of writing or look like the
//! gap between two columns is shown as an escape, so that a row is one line and a cell never looks like two.
//!
//! A table that is cleared and filled again allocates nothing once it was as large. Runs where a console does. Cost:
//! `cargo xtask bench tables`.
//!
//! ```
//! use throng_metrics::text_table::{Cell, Column, TextTable};
//!
//! let mut table = TextTable::new([Column::text("player", "player"), Column::float("x m", "x_m", 1)]);
//! table.row(&[Cell::Text("anna"), Cell::Float(-12.5)]);
//! assert_eq!(table.text(), "player    x m\nanna    -12.5\n");
//! assert_eq!(table.json(), r#"[{"player":"anna","x_m":-12.5}]"#);
//! ```

mod render;
#[cfg(test)]
mod tests;

pub use render::FLOAT_DIGITS_MAX;

/// Spaces between two columns.
const GAP: usize = 2;

/// What a column holds, and how its cells are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text { characters_max: u32 },
    Integer,
    Float { digits: u8 },
    Duration,
    Bytes,
}

/// A column: its title in the text, its key in JSON, and what it holds.
#[derive(Debug, Clone)]
pub struct Column {
    title: &'static str,
    key: &'static str,
    kind: Kind,
}

impl Column {
    /// Text, on the left.
    pub const fn text(title: &'static str, key: &'static str) -> Self {
        Self { title, key, kind: Kind::Text { characters_max: u32::MAX } }
    }

    /// Text of which so many characters are shown; the JSON has all of it.
    pub const fn text_at_most(title: &'static str, key: &'static str, characters_max: u32) -> Self {
        Self { title, key, kind: Kind::Text { characters_max } }
    }

    /// Whole numbers, on the right.
    pub const fn integer(title: &'static str, key: &'static str) -> Self {
        Self { title, key, kind: Kind::Integer }
    }

    /// Numbers with so many digits after the point, at most [`FLOAT_DIGITS_MAX`], in both forms.
    pub const fn float(title: &'static str, key: &'static str, digits: u8) -> Self {
        assert!(digits <= FLOAT_DIGITS_MAX);
        Self { title, key, kind: Kind::Float { digits } }
    }

    /// Durations, with the unit that suits each; JSON has nanoseconds, which `key` should say.
    pub const fn duration(title: &'static str, key: &'static str) -> Self {
        Self { title, key, kind: Kind::Duration }
    }

    /// Sizes, with the unit that suits each, by 1,024; JSON has bytes, which `key` should say.
    pub const fn bytes(title: &'static str, key: &'static str) -> Self {
        Self { title, key, kind: Kind::Bytes }
    }

    fn is_left(&self) -> bool {
        matches!(self.kind, Kind::Text { .. })
    }
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    Text(&'a str),
    Integer(i64),
    /// Without a finite value it is shown as `-`, and JSON has `null`.
    Float(f64),
    /// Nanoseconds.
    Duration(u64),
    /// Bytes.
    Bytes(u64),
    /// Nothing to tell, in a column of any kind; JSON has `null`.
    Empty,
}

/// A cell as the table keeps it: text lies in a buffer of all texts.
#[derive(Debug, Clone, Copy)]
enum Kept {
    Text { start: usize, len: usize },
    Value(Cell<'static>),
}

/// Where a rendered cell lies in the first draft.
#[derive(Debug, Clone, Copy)]
struct Placed {
    start: usize,
    len: usize,
    width: usize,
}

/// Rows of one kind, to be filled, shown, cleared and filled again.
#[derive(Debug, Clone)]
pub struct TextTable {
    columns: Vec<Column>,
    expected_widths: Vec<usize>,
    cells: Vec<Kept>,
    /// The texts of all cells.
    texts: String,
    widths: Vec<usize>,
    placed: Vec<Placed>,
    /// One rendered cell.
    rendered: Vec<u8>,
    /// The rows by the expected widths; the JSON, too.
    draft: Vec<u8>,
    /// The rows by their real widths, where these are others.
    laid_out: Vec<u8>,
}

impl TextTable {
    /// A table without rows.
    ///
    /// # Panics
    /// Without columns, or if a key is not made of letters, digits and `_` alone.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        let columns = columns.into();
        assert!(!columns.is_empty(), "a table has columns");
        let is_plain = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        assert!(columns.iter().all(|column| is_plain(column.key)), "keys are names");
        Self {
            expected_widths: columns.iter().map(|column| column.title.chars().count()).collect(),
            widths: Vec::with_capacity(columns.len()),
            columns,
            cells: Vec::new(),
            texts: String::new(),
            placed: Vec::new(),
            rendered: Vec::new(),
            draft: Vec::new(),
            laid_out: Vec::new(),
        }
    }

    /// Expects so many rows, and columns so wide, counted in characters; columns beyond the hints are expected to be as
    /// wide as their titles. Right hints make it faster; none changes what is shown.
    #[must_use]
    pub fn with_hints(mut self, rows: usize, widths: &[usize]) -> Self {
        for (expected, hint) in self.expected_widths.iter_mut().zip(widths) {
            *expected = (*expected).max(*hint);
        }
        let line_bytes = self.expected_widths.iter().map(|width| width.saturating_add(GAP)).sum::<usize>();
        // A hint is no promise: a mad one must not take the memory of the host.
        let rows = rows.min(ROWS_RESERVED_MAX);
        self.cells.reserve(rows * self.columns.len());
        self.placed.reserve((rows + 1) * self.columns.len());
        self.draft.reserve((rows + 1) * line_bytes.min(LINE_BYTES_RESERVED_MAX));
        self
    }

    /// Takes all rows out, and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.texts.clear();
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the cells are not those of the columns: the caller's own mistake.
    pub fn row(&mut self, cells: &[Cell<'_>]) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        for (cell, column) in cells.iter().zip(&self.columns) {
            let kept = match (*cell, column.kind) {
                (Cell::Text(text), Kind::Text { .. }) => {
                    let start = self.texts.len();
                    self.texts.push_str(text);
                    Kept::Text { start, len: text.len() }
                }
                (Cell::Integer(value), Kind::Integer) => Kept::Value(Cell::Integer(value)),
                (Cell::Float(value), Kind::Float { .. }) => Kept::Value(Cell::Float(value)),
                (Cell::Duration(ns), Kind::Duration) => Kept::Value(Cell::Duration(ns)),
                (Cell::Bytes(bytes), Kind::Bytes) => Kept::Value(Cell::Bytes(bytes)),
                (Cell::Empty, _) => Kept::Value(Cell::Empty),
                (cell, kind) => panic!("{cell:?} in a column of {kind:?}"),
            };
            self.cells.push(kept);
        }
    }

    /// How many rows it has.
    pub fn row_count(&self) -> usize {
        self.cells.len() / self.columns.len()
    }

    /// A line of titles and a line for each row, each with its end.
    pub fn text(&mut self) -> &str {
        let Self { columns, expected_widths, cells, texts, widths, placed, rendered, draft, laid_out } = self;
        draft.clear();
        placed.clear();
        widths.clear();
        for (index, column) in columns.iter().enumerate() {
            let width = column.title.chars().count();
            widths.push(width);
            placed.push(place(draft, columns, index, column.title.as_bytes(), width, expected_widths[index]));
        }
        for row in cells.chunks_exact(columns.len()) {
            for (index, kept) in row.iter().enumerate() {
                let (rendered, width) = render::text(cell(kept, texts), columns[index].kind, rendered);
                widths[index] = widths[index].max(width);
                placed.push(place(draft, columns, index, rendered, width, expected_widths[index]));
            }
        }
        if widths == expected_widths {
            return whole(draft);
        }
        laid_out.clear();
        for row in placed.chunks_exact(columns.len()) {
            for (index, Placed { start, len, width }) in row.iter().copied().enumerate() {
                place(laid_out, columns, index, &draft[start..start + len], width, widths[index]);
            }
        }
        whole(laid_out)
    }

    /// An array with an object for each row, in one line.
    pub fn json(&mut self) -> &str {
        let Self { columns, cells, texts, draft: out, .. } = self;
        out.clear();
        out.push(b'[');
        for (number, row) in cells.chunks_exact(columns.len()).enumerate() {
            out.extend_from_slice(if number == 0 { "{" } else { ",{" }.as_bytes());
            for (index, (kept, column)) in row.iter().zip(columns.iter()).enumerate() {
                out.extend_from_slice(if index == 0 { "\"" } else { ",\"" }.as_bytes());
                out.extend_from_slice(column.key.as_bytes());
                out.extend_from_slice(b"\":");
                render::json(cell(kept, texts), column.kind, out);
            }
            out.push(b'}');
        }
        out.push(b']');
        whole(out)
    }
}

/// Hints reserve no more than this.
const ROWS_RESERVED_MAX: usize = 10_000;
const LINE_BYTES_RESERVED_MAX: usize = 512;

fn cell<'a>(kept: &Kept, texts: &'a str) -> Cell<'a> {
    match *kept {
        Kept::Text { start, len } => Cell::Text(&texts[start..start + len]),
        Kept::Value(value) => value,
    }
}

/// What was put together of whole texts, as text: one look at all of it, which costs less than one at each cell.
fn whole(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("made of whole texts")
}

/// Writes a cell to its line: with what fills it up to the column's width, and what follows it. A last column on the left
/// is not filled up, so that lines do not end in spaces.
#[inline]
fn place(
    out: &mut Vec<u8>,
    columns: &[Column],
    index: usize,
    text: &[u8],
    width: usize,
    column_width: usize,
) -> Placed {
    let is_last = index + 1 == columns.len();
    let is_left = columns[index].is_left();
    let missing = column_width.saturating_sub(width);
    if !is_left {
        pad(out, missing);
    }
    let start = out.len();
    out.extend_from_slice(text);
    if is_last {
        out.push(b'\n');
    } else {
        pad(out, GAP + if is_left { missing } else { 0 });
    }
    Placed { start, len: text.len(), width }
}

#[inline]
fn pad(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}
