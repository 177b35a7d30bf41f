//! The crate map: ARCHITECTURE.md says what each crate is and what it uses, and this holds it to the Cargo.tomls.
//!
//! ```text
//! | rank | crate | folder | what it is | ...
//! |---|---|---|---|
//! | 4 | `throng-net` | `runtime/net` | netcode, channels, transports | ...
//! ```
//!
//! Checked are rank (the floor in [`direction`]), crate and folder; what follows is prose. Benches are not in the map:
//! they come and go, and `cargo xtask bench` lists them. `cargo xtask tidy --map` prints a map with the Cargo.tomls'
//! descriptions, to start from.
//!
//! [`direction`]: super::direction

use std::collections::BTreeMap;
use std::path::Path;

use super::crates::Crate;
use super::direction;

const PAGE: &str = "ARCHITECTURE.md";

pub(super) fn check(root: &Path, crates: &[Crate]) -> Vec<String> {
    match std::fs::read_to_string(root.join(PAGE)) {
        Ok(page) => compare(&page, crates),
        Err(cause) => {
            vec![format!("{PAGE}: cannot be read: {cause}; it holds the crate map (`cargo xtask tidy --map`)")]
        }
    }
}

fn compare(page: &str, crates: &[Crate]) -> Vec<String> {
    let mut rows: BTreeMap<&str, (usize, &str, &str)> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some((rank, name, folder)) = row(line) else { continue };
        if let Some((first, ..)) = rows.insert(name, (index + 1, rank, folder)) {
            problems.push(format!("{PAGE}:{}: {name} is in line {first} already; remove one of the rows", index + 1));
        }
    }
    for one in mapped(crates) {
        let expected = line(one);
        match rows.remove(one.name.as_str()) {
            None => problems.push(format!("{PAGE}: the crate map lacks {}; add: {expected}", one.name)),
            Some((number, written, folder)) if folder != one.folder || written != rank(one) => {
                problems.push(format!("{PAGE}:{number}: {} has moved; the row now begins: {expected}", one.name));
            }
            Some(_) => {}
        }
    }
    for (name, (number, ..)) in rows {
        problems.push(format!("{PAGE}:{number}: there is no crate {name} for the map; remove the row"));
    }
    problems
}

/// The whole map, from the ground up.
pub(super) fn expected(crates: &[Crate]) -> String {
    let mut mapped: Vec<&Crate> = mapped(crates).collect();
    mapped.sort_by_key(|one| (direction::floor_of(one), &one.folder));
    let header = "| rank | crate | folder | what it is |\n|---|---|---|---|\n".to_owned();
    mapped.into_iter().fold(header, |map, one| map + &line(one) + "\n")
}

fn mapped(crates: &[Crate]) -> impl Iterator<Item = &Crate> {
    crates.iter().filter(|one| !one.folder.starts_with("bench/"))
}

fn line(one: &Crate) -> String {
    format!("| {} | `{}` | `{}` | {} |", rank(one), one.name, one.folder, one.description)
}

/// Counted from 1; a dash for what is only for developers.
fn rank(one: &Crate) -> String {
    match direction::floor_of(one) {
        Some(floor) if one.folder != "xtask" => (floor + 1).to_string(),
        _ => "-".to_owned(),
    }
}

/// Rank, crate and folder of a row of the map; `None` for every other line.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [rank, name, folder, ..] = cells[..] else {
        return None;
    };
    let code = |cell: &'_ str| cell.len() > 2 && cell.starts_with('`') && cell.ends_with('`');
    (code(name) && code(folder)).then(|| (rank, name.trim_matches('`'), folder.trim_matches('`')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates() -> Vec<Crate> {
        let made_up = |name: &str, folder: &str, description: &str| Crate {
            name: name.to_owned(),
            folder: folder.to_owned(),
            description: description.to_owned(),
            ..Crate::default()
        };
        vec![
            made_up("bench-scheduler", "bench/scheduler", "Costs."),
            made_up("throng-net", "runtime/net", "Bytes."),
            made_up("throng-platform", "runtime/platform", "The system."),
            made_up("xtask", "xtask", "Commands."),
        ]
    }

    #[test]
    fn the_map_goes_from_the_ground_up_and_leaves_benches_out() {
        let expect = "| rank | crate | folder | what it is |\n|---|---|---|---|\n\
                      | 1 | `throng-platform` | `runtime/platform` | The system. |\n\
                      | 4 | `throng-net` | `runtime/net` | Bytes. |\n\
                      | - | `xtask` | `xtask` | Commands. |\n";
        assert_eq!(expected(&crates()), expect);
    }

    #[test]
    fn the_printed_map_is_accepted_whatever_the_prose() {
        let map = expected(&crates());
        assert_eq!(compare(&map, &crates()), Vec::<String>::new());
        let own_words = map.replace("Bytes. |", "Sockets | never reads a clock |");
        assert_eq!(compare(&own_words, &crates()), Vec::<String>::new());
    }

    #[test]
    fn missing_moved_left_over_and_double_rows_are_named() {
        let map = expected(&crates());
        let check = |page: &str, part: &str| {
            let found = compare(page, &crates());
            assert!(found.len() == 1 && found[0].contains(part), "{found:?}");
        };
        check(&map.replace("| 4 |", "| 2 |"), "ARCHITECTURE.md:4: throng-net has moved; the row now begins: | 4 |");
        check(&map.replace("`runtime/net`", "`net`"), "ARCHITECTURE.md:4: throng-net has moved");
        check(&map.replace("| `throng-net`", "| throng-net"), "lacks throng-net");
        let left_over = map.clone() + "| 3 | `throng-attic` | `runtime/attic` | Old. |\n";
        check(&left_over, "ARCHITECTURE.md:6: there is no crate throng-attic");
        let double = map.clone() + "| 4 | `throng-net` | `runtime/net` | Sockets. |\n";
        check(&double, "ARCHITECTURE.md:6: throng-net is in line 4 already; remove one of the rows");
    }
}
