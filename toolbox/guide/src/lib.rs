//! The guide's pages, whose snippets are compiled and run as doc tests of this crate.
//!
//! A page that is not named here has snippets that nobody compiles: a test looks for those.

/// Each page is a module, so that a snippet that fails is told with its page.
macro_rules! pages {
    ($($module:ident: $file:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../docs/guide/", $file))]
            mod $module {}
        )*

        #[cfg(test)]
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    after_a_panic: "after-a-panic.md",
    analytics: "analytics.md",
    bandwidth: "bandwidth.md",
    bots_like_players: "bots-like-players.md",
    budgets_and_captures: "budgets-and-captures.md",
    commands_and_tunables: "commands-and-tunables.md",
    daily: "daily.md",
    density: "density.md",
    hiding_things: "hiding-things.md",
    history: "history.md",
    inputs_requests_messages: "inputs-requests-messages.md",
    moving_between_worlds: "moving-between-worlds.md",
    nav_sectors: "nav-sectors.md",
    npc_crowds: "npc-crowds.md",
    preflight: "preflight.md",
    reactive_worlds: "reactive-worlds.md",
    rules: "rules.md",
    saving: "saving.md",
    shooters: "shooters.md",
    testing_a_world: "testing-a-world.md",
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::PAGES;

    /// Their snippets are those of the project that `throng new` makes, and are held to that.
    const OF_THE_TEMPLATE: [&str; 2] = ["README.md", "first-hour.md"];

    #[test]
    fn every_page_of_the_guide_is_compiled() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let files = fs::read_dir(&folder).expect("the guide is there").map(|file| file.expect("it can be listed"));
        let names = files.map(|file| file.file_name().into_string().expect("a plain name"));
        let mut pages: Vec<String> = names.filter(|name| !OF_THE_TEMPLATE.contains(&name.as_str())).collect();
        pages.sort();
        assert_eq!(pages, PAGES, "add it to `pages!` in toolbox/guide/src/lib.rs");
    }

    /// Four spaces make a block of code, too, which would be compiled as Rust though nobody meant it so.
    #[test]
    fn what_is_code_says_of_which_language() {
        for page in PAGES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
            let text = fs::read_to_string(&path).expect("it was just listed");
            let mut is_code = false;
            for (number, line) in (1..).zip(text.lines()) {
                if let Some(language) = line.strip_prefix("```") {
                    assert!(is_code || !language.is_empty(), "{page}:{number}: say which language");
                    is_code = !is_code;
                }
                assert!(is_code || !line.starts_with("    "), "{page}:{number}: use ``` and the language");
            }
        }
    }
}
