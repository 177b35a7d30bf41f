//! Caps: which ranges of a rules file reach less far than they say.
//!
//! What is told of an entity is told to those who hold it, so a range beyond the radius in which clients hold entities
//! does nothing, and nothing else would say so. It is no mistake: the rules are in force, and the next ones may raise
//! the radius. So it is a warning, with file, line and key, at start and at each reading.
//!
//! ```text
//! rules.toml:7: [events."chat.shout"] range_m: 300 m reach no farther than the 60 m in which clients hold entities
//! (hub); lower it, or raise [replication] enter_radius_m and leave_radius_m
//! ```

use std::sync::Arc;

use throng_replication::rules::{InterestRadii, ReplicationRules};
use throng_world::tick_resources::ScanRange;

use super::RuleNames;
use super::replication::{RangeOf, ReplicationFileRules, SaidRange};
use crate::server::Server;
use crate::settings::Mistake;

/// What ranges are held against: the game's own rules, and what the worlds of a server were made with.
#[derive(Clone, Debug)]
pub struct RangeCaps {
    pub(super) names: RuleNames,
    pub(super) game: ReplicationRules,
    /// The kind of world in which clients see farthest, and how far.
    pub(super) widest: Option<(Arc<str>, InterestRadii)>,
    /// None: no world keeps neighbour lists.
    pub(super) scan: Option<ScanRange>,
}

impl RangeCaps {
    /// Of a server before its first frame, with its worlds in it and the game's own rules in force.
    pub fn of(server: &Server) -> Self {
        let worlds = || server.worlds.iter().filter_map(|slot| slot.home.as_ref()).map(|hosted| &hosted.world);
        let radii = worlds().map(|world| (world.name().clone(), world.own_radii()));
        Self {
            names: RuleNames::of(server.schema(), server.world_kind_names().map(str::to_owned).collect()),
            game: server.replication_rules().clone(),
            widest: radii.max_by(|(_, one), (_, other)| one.enter_m.total_cmp(&other.enter_m)),
            scan: worlds().find_map(|world| world.ecs().get_resource::<ScanRange>().copied()),
        }
    }

    /// What of a file reaches less far than it says, in the order of its lines.
    pub fn warnings(&self, file: &ReplicationFileRules) -> Vec<Mistake> {
        let warn = |said: &SaidRange| {
            let message = match said.of {
                RangeOf::Component | RangeOf::Event => self.beyond_interest(file, said.range_m),
                RangeOf::Enter => self.cut_short(file, said.range_m),
                RangeOf::Scan => self.below_questions(said.range_m),
            };
            message.map(|message| Mistake { message, ..said.place.clone() })
        };
        file.said.iter().filter_map(warn).collect()
    }

    fn beyond_interest(&self, file: &ReplicationFileRules, range_m: f32) -> Option<String> {
        let (cap_m, whose) = match (file.radii.or(self.game.radii), &self.widest) {
            (Some(radii), _) => (radii.enter_m, String::new()),
            (None, Some((kind, radii))) => (radii.enter_m, format!(" ({kind})")),
            (None, None) => return None,
        };
        // Infinite: without a range, on purpose.
        (range_m > cap_m && range_m.is_finite()).then(|| {
            format!(
                "{range_m} m reach no farther than the {cap_m} m in which clients hold entities{whose}; lower it, or \
                 raise [replication] enter_radius_m and leave_radius_m"
            )
        })
    }

    /// The game's own ranges that a lower radius cuts short, the file's own left out: those have their warning.
    fn cut_short(&self, file: &ReplicationFileRules, enter_m: f32) -> Option<String> {
        let is_cut = |range_m: Option<f32>| range_m.filter(|range_m| range_m.is_finite() && *range_m > enter_m);
        let says_component =
            |index: usize| file.components.iter().any(|(said, rule)| *said == index && rule.range_m.is_some());
        let says_event = |index: usize| file.events.iter().any(|(said, rule)| *said == index && rule.range_m.is_some());
        let components = self.game.components.iter().map(|rule| rule.range_m).zip(&self.names.components).enumerate();
        let events = self.game.events.iter().map(|rule| rule.range_m).zip(&self.names.events).enumerate();
        let components = components.filter(|(index, _)| !says_component(*index)).map(|(_, row)| row);
        let events = events.filter(|(index, _)| !says_event(*index)).map(|(_, row)| row);
        let cut: Vec<String> = components
            .chain(events)
            .filter_map(|(range_m, name)| Some(format!("{name} ({} m)", is_cut(range_m)?)))
            .collect();
        (!cut.is_empty()).then(|| {
            format!("{enter_m} m cut short what the game tells farther: {}; raise it, or lower those", cut.join(", "))
        })
    }

    fn below_questions(&self, range_m: f32) -> Option<String> {
        match self.scan {
            None => Some("the game keeps no neighbour lists; remove the key".to_owned()),
            Some(scan) if range_m < scan.asked_m => Some(format!(
                "{range_m} m are less than the {} m that the game asks for, and such questions look at everybody; \
                 raise it to that",
                scan.asked_m
            )),
            Some(_) => None,
        }
    }
}
