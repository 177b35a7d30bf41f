//! Who: which players of a recording are meant, by their client ids.
//!
//! Nothing in a token says that somebody is a bot. But ids tell: those of players in browsers are drawn from 2^62 on, and a swarm's
//! count up from `--first-client-id`.

use std::{fmt, str::FromStr};

use throng_net::protocol::ClientId;

/// Which players are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    All,
    /// Those who came by the page in a browser.
    Browser,
    /// All but those; and who came before the recording began, since nothing says who they are.
    Others,
    /// Those with an id from the first to the last.
    Ids(u64, u64),
}

impl Who {
    /// Whether a player is meant. `None`: the recording does not say who it is.
    pub fn includes(self, client_id: Option<u64>) -> bool {
        let is_of_browser = client_id.is_some_and(|id| id >= ClientId::BROWSER_FIRST.0);
        match self {
            Self::All => true,
            Self::Browser => is_of_browser,
            Self::Others => !is_of_browser,
            Self::Ids(first, last) => client_id.is_some_and(|id| (first..=last).contains(&id)),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Browser => f.write_str("browser"),
            Self::Others => f.write_str("others"),
            Self::Ids(first, last) => write!(f, "{first}-{last}"),
        }
    }
}

/// A text that names nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no players: write all, browser, others, or client ids as 7 or 1-500")]
pub struct UnknownWho(String);

impl FromStr for Who {
    type Err = UnknownWho;

    fn from_str(text: &str) -> Result<Self, UnknownWho> {
        let ids = || {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(Self::Ids(first, last))
        };
        match text {
            "all" => Ok(Self::All),
            "browser" => Ok(Self::Browser),
            "others" => Ok(Self::Others),
            _ => ids().ok_or_else(|| UnknownWho(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_told_by_their_ids() {
        let check = |text: &str, expect: [bool; 4]| {
            let who: Who = text.parse().unwrap();
            let ids = [None, Some(7), Some(500), Some(ClientId::BROWSER_FIRST.0 + 9)];
            assert_eq!((ids.map(|id| who.includes(id)), who.to_string().as_str()), (expect, text));
        };
        check("all", [true; 4]);
        check("browser", [false, false, false, true]);
        check("others", [true, true, true, false]);
        check("7-499", [false, true, false, false]);
        assert_eq!("7".parse(), Ok(Who::Ids(7, 7)));
        for text in ["", "people", "9-7", "7-", "-7", "1-2-3", "18446744073709551616"] {
            let error = text.parse::<Who>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` names no players")), "{error}");
        }
    }
}
