//! Sites by subsystem and by category, as numbers that a walk can index by.

use std::collections::HashMap;

use crate::model::Site;

pub(super) struct Grouping<'capture> {
    /// Per site; the last entry is that of sites which are not in the list.
    pub subsystem_of: Vec<u32>,
    pub category_of: Vec<u32>,
    pub subsystems: Vec<&'capture str>,
    pub categories: Vec<&'capture str>,
}

impl<'capture> Grouping<'capture> {
    pub fn of(sites: &'capture [Site]) -> Self {
        let (subsystem_of, subsystems) = number(sites.iter().map(|site| site.subsystem.as_str()));
        let (category_of, categories) = number(sites.iter().map(|site| site.category.as_str()));
        Self { subsystem_of, category_of, subsystems, categories }
    }
}

fn number<'capture>(names: impl Iterator<Item = &'capture str>) -> (Vec<u32>, Vec<&'capture str>) {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut list = Vec::new();
    let of_sites = names
        .chain(["?"])
        .map(|name| {
            *numbers.entry(name).or_insert_with(|| {
                list.push(name);
                list.len() as u32 - 1
            })
        })
        .collect();
    (of_sites, list)
}
