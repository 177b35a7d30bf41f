//! The page around a run: head, style, and who it was, for pages of every kind of run.
//!
//! `maud` writes the markup: it is checked when this is compiled, and every text is escaped where it enters the page.
//! Only the style, which is ours, goes in as it is. One file without scripts, fonts or links to fetch.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::dark;

const STYLE: &str = include_str!("page.css");

/// With what is drawn in other colours on dark ground.
fn style() -> String {
    let [drawn, legends] = [dark::rules(), dark::rules_of_legends()];
    format!("{STYLE}@media screen and (prefers-color-scheme: dark) {{\n{drawn}{legends}}}\n")
}

/// What a page begins with.
pub(crate) struct Heading<'a> {
    /// What kind of run it was, as the browser's tab says it and as the page does.
    pub tab: &'a str,
    pub kind: &'a str,
    /// What was found, in a line.
    pub title: &'a str,
    /// `passed` or `failed`, which is also its style.
    pub verdict: &'a str,
    pub subtitle: Markup,
}

/// The whole page, with `sections` below its heading.
pub(crate) fn document(heading: Heading, sections: Markup) -> String {
    let Heading { tab, kind, title, verdict, subtitle } = heading;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (tab) " " (verdict) ": " (title) }
                style { (PreEscaped(style())) }
            }
            body {
                main {
                    header {
                        p.kind { (kind) }
                        h1 { (title) span.verdict.(verdict) { (verdict) } }
                        p.subtitle { (subtitle) }
                    }
                    (sections)
                }
            }
        }
    };
    page.into_string()
}
