//! What tables show: both forms, figures, hostile names; and that hints change no byte of random tables.

use proptest::prelude::*;

use super::*;

fn columns() -> [Column; 5] {
    [
        Column::text_at_most("player", "player", 12),
        Column::integer("level", "level"),
        Column::float("x m", "x_m", 2),
        Column::duration("here", "here_ns"),
        Column::bytes("sent", "sent_bytes"),
    ]
}

#[track_caller]
fn check(rows: &[[Cell<'_>; 5]], text: &str, json: &str) {
    let mut table = TextTable::new(columns());
    rows.iter().for_each(|row| table.row(row));
    assert_eq!(table.row_count(), rows.len());
    assert_eq!(table.text(), text);
    assert_eq!(table.json(), json);
}

#[test]
fn the_same_rows_are_text_and_json() {
    check(&[], "player  level  x m  here  sent\n", "[]");
    check(
        &[
            [Cell::Text("anna"), Cell::Integer(7), Cell::Float(-12.5), Cell::Duration(1_250_000), Cell::Bytes(512)],
            [Cell::Text(""), Cell::Integer(i64::MIN), Cell::Float(f64::NAN), Cell::Empty, Cell::Bytes(1_536)],
        ],
        "player                 level     x m    here     sent\n\
         anna                       7  -12.50  1.3 ms    512 B\n        \
                 -9223372036854775808       -          1.5 KiB\n",
        r#"[{"player":"anna","level":7,"x_m":-12.50,"here_ns":1250000,"sent_bytes":512},{"player":"","level":-9223372036854775808,"x_m":null,"here_ns":null,"sent_bytes":1536}]"#,
    );
}

#[test]
fn figures_have_their_digits() {
    let shown = |value: f64, digits: u8| {
        let mut table = TextTable::new([Column::float("", "x", digits)]);
        table.row(&[Cell::Float(value)]);
        table.text().trim().to_owned()
    };
    assert_eq!(shown(0.05, 1), "0.1");
    assert_eq!(shown(-0.004, 2), "0.00");
    assert_eq!(shown(1.005e-9, 9), "0.000000001");
    assert_eq!(shown(999.999, 0), "1000");
    assert_eq!(shown(1e20, 1), "100000000000000000000.0");
}

#[test]
fn a_hostile_name_stays_one_cell_of_one_line() {
    for (name, shown) in [
        ("a\nb  7", "a\\nb \\u{20}7"),
        ("\u{1b}[2Ja", "\\u{1b}[2Ja"),
        ("\u{202e}a", "\\u{202e}a"),
        ("  a", "\\u{20}\\u{20}a"),
        ("a\\nb", "a\\\\nb"),
        ("äöü", "äöü"),
        ("a name that is too long", "a name that "),
    ] {
        let mut table = TextTable::new([Column::text_at_most("player", "player", 12), Column::integer("n", "n")]);
        table.row(&[Cell::Text(name), Cell::Integer(1)]);
        let lines: Vec<&str> = table.text().split_terminator('\n').collect();
        assert_eq!(lines.len(), 2, "{name:?}");
        assert!(lines[1].starts_with(shown), "{name:?}: {:?}", lines[1]);
        assert_eq!(lines[0].chars().count(), lines[1].chars().count(), "{name:?}: columns stand apart");
        assert_eq!(table.json().lines().count(), 1, "{name:?}");
    }
}

#[test]
#[should_panic(expected = "in a column of")]
fn a_cell_of_another_kind_is_the_callers_mistake() {
    TextTable::new([Column::integer("n", "n")]).row(&[Cell::Text("7")]);
}

fn any_row() -> impl Strategy<Value = (String, i64, f64, u64, Option<u64>)> {
    (".{0,20}", any::<i64>(), any::<f64>(), any::<u64>(), any::<Option<u64>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hints_change_no_byte(
        rows in prop::collection::vec(any_row(), 0..20),
        rows_hint in 0..40_usize,
        widths in prop::collection::vec(0..40_usize, 0..7),
    ) {
        let fill = |table: &mut TextTable| {
            for (player, level, x_m, here, sent) in &rows {
                let sent = sent.map_or(Cell::Empty, Cell::Bytes);
                table.row(&[Cell::Text(player), Cell::Integer(*level), Cell::Float(*x_m), Cell::Duration(*here), sent]);
            }
        };
        let mut plain = TextTable::new(columns());
        fill(&mut plain);
        let text = plain.text().to_owned();
        // What the widths really are: then the first draft is the text.
        let right = plain.widths.clone();
        prop_assert_eq!(text.lines().count(), rows.len() + 1);
        for hints in [&widths, &right] {
            let mut hinted = TextTable::new(columns()).with_hints(rows_hint, hints);
            fill(&mut hinted);
            prop_assert_eq!(hinted.text(), &text);
            prop_assert_eq!(hinted.json(), plain.json());
            hinted.clear();
            fill(&mut hinted);
            prop_assert_eq!(hinted.text(), &text, "after it was cleared");
        }
    }
}
