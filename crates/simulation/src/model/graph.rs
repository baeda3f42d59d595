//! Relations as a reader sees them, as lines: all versions, and those that hold now.

use std::collections::BTreeSet;

use super::change::Link;
use super::state::{StoreState, Versions};

/// The line of a version.
pub fn version_line(link: &Link, stamp: u64, user: u32, is_deletion: bool) -> String {
    let (kind, source, target) = link;
    let deleted = if is_deletion { " deleted" } else { "" };
    format!("version {source} {kind} {target} at {stamp} by {user}{deleted}")
}

/// The line of a relation that holds now.
pub fn now_line(link: &Link, stamp: u64, user: u32) -> String {
    let (kind, source, target) = link;
    format!("now {source} {kind} {target} at {stamp} by {user}")
}

/// The version that holds: the newest put that its user did not delete later.
fn standing(versions: &Versions) -> Option<(u64, u32)> {
    let is_deleted = |stamp: u64, user: u32| {
        versions.iter().any(|((later, by), deleted)| *deleted && *by == user && *later >= stamp)
    };
    let puts = versions.iter().rev().filter(|(_, deleted)| !**deleted);
    puts.map(|(version, _)| *version).find(|(stamp, user)| !is_deleted(*stamp, *user))
}

impl StoreState {
    /// The user of the version of a relation that holds now.
    pub fn holds(&self, link: &Link) -> Option<u32> {
        Some(standing(self.relations.get(link)?)?.1)
    }

    /// How many users put versions of a relation.
    pub fn putters(&self, link: &Link) -> usize {
        let versions = self.relations.get(link).into_iter().flatten();
        versions.filter(|(_, deleted)| !**deleted).map(|((_, user), _)| user).collect::<BTreeSet<_>>().len()
    }

    /// All versions, and those that hold.
    pub fn graph_lines(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for (link, versions) in &self.relations {
            for ((stamp, user), is_deletion) in versions {
                lines.insert(version_line(link, *stamp, *user, *is_deletion));
            }
            lines.extend(standing(versions).map(|(stamp, user)| now_line(link, stamp, user)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_hides_versions_of_its_own_user_alone() {
        let versions = Versions::from([((1, 501), false), ((2, 502), false), ((3, 502), true)]);
        assert_eq!(standing(&versions), Some((1, 501)));
    }
}
