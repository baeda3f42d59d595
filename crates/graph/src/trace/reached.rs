//! The knowledge of a walk about a vertex that it reached: versions of relations, ordered so that those of
//! one time are found without visiting all.

use std::collections::HashMap;

use fieldstone_format::graph_segment::VertexPlace;

use crate::cause::{self, Course};
use crate::state::{END, EdgeVersion};
use crate::vocabulary::Direction;

/// A version of a relation that the walk may take from one of its ends.
#[derive(Debug, Clone)]
pub struct Hop {
    pub far: VertexPlace,
    pub direction: Direction,
    pub version: EdgeVersion,
    /// The time when one of its ends was deleted.
    pub ended: Option<u64>,
}

impl Hop {
    /// Whether it leads from a job to one of its processes, or back.
    pub fn is_part(&self) -> bool {
        &*self.direction.kind == "contains"
    }

    /// Whether it leads from data to an execution: a write that replaced the data may hide it.
    fn is_of_data(&self) -> bool {
        self.direction.reverse && !self.is_part()
    }

    fn end(&self) -> u64 {
        self.version.end().min(self.ended.unwrap_or(END))
    }

    /// Whether the walk may continue at its present time after it, and not only at one of the relation's
    /// times.
    pub fn lasts(&self) -> bool {
        !self.is_part() && &*self.direction.kind != "exe" && self.version.stamp < self.end()
    }

    /// The same for one time.
    pub fn lasts_at(&self, time: u64, course: Course) -> bool {
        let (begin, end) = (self.version.stamp, self.end());
        match course {
            Course::Up => begin <= time && time < end,
            Course::Down => begin < time && time <= end,
        }
    }

    /// Whether a bound is inside its time.
    pub fn has(&self, bound: u64) -> bool {
        self.version.stamp <= bound && bound <= self.end()
    }
}

/// A vertex.
#[derive(Debug, Default)]
pub struct Reached {
    /// The times when it was replaced; ascending.
    replacing: Vec<u64>,
    /// Between two neighbouring bounds, a walk takes the same hops at every time; ascending.
    pub bounds: Vec<u64>,
    /// Hops from data, by the time when they began.
    data: Vec<Hop>,
    /// The latest end of each half of those, each quarter, and so on, down to each hop.
    latest: LatestEnds,
    /// All other hops.
    others: Vec<Hop>,
    /// Whether the hops are loaded, or must be read again.
    pub is_loaded: bool,
    /// Whether a hop from data lasts.
    pub lasts: bool,
    /// For each period, the fewest hops from which the walk has continued over all of it.
    pub done: HashMap<usize, u32>,
}

impl Reached {
    /// A vertex with these hops. `replacing`: the times when it was replaced.
    pub fn of(hops: Vec<Hop>, mut replacing: Vec<u64>, course: Option<Course>) -> Reached {
        replacing.sort_unstable();
        let mut bounds = replacing.clone();
        // Upstream, a deletion that ended a relation hides it at later times.
        if course == Some(Course::Up) {
            bounds.extend(hops.iter().filter_map(|hop| hop.ended));
        }
        bounds.sort_unstable();
        bounds.dedup();
        let (mut data, others): (Vec<Hop>, Vec<Hop>) = hops.into_iter().partition(Hop::is_of_data);
        data.sort_by_key(|hop| hop.version.stamp);
        let latest = LatestEnds::of(data.iter().map(Hop::end));
        let lasts = data.iter().any(Hop::lasts);
        Reached { replacing, bounds, data, latest, others, is_loaded: true, lasts, done: HashMap::new() }
    }

    /// The period of a time.
    pub fn period(&self, time: u64) -> usize {
        self.bounds.partition_point(|bound| *bound <= time)
    }

    /// The hops that a walk takes at a time, and the time at which each continues; without a course all of
    /// them, at the same time.
    pub fn hops(&self, time: u64, course: Option<Course>) -> impl Iterator<Item = (&Hop, u64)> {
        let hiding = course.and_then(|course| cause::hiding(&self.replacing, time, course));
        let by = |stamp: u64| self.data.partition_point(|hop| hop.version.stamp < stamp);
        let (range, before) = match course {
            None => (0..self.data.len(), Vec::new()),
            Some(Course::Up) => {
                (by(hiding.unwrap_or(0))..by(time.saturating_add(1)).max(by(hiding.unwrap_or(0))), Vec::new())
            }
            Some(Course::Down) => {
                let begin = by(time);
                let end = hiding.map_or(self.data.len(), |next| by(next.saturating_add(1))).max(begin);
                // Of those that began before, only those that have not ended.
                (begin..end, self.latest.not_before(time, begin))
            }
        };
        let before = before.into_iter().filter_map(move |i| self.data.get(i));
        before.chain(&self.data[range]).chain(&self.others).filter_map(move |hop| {
            let after = match course {
                Some(course) if !hop.is_part() => {
                    cause::goes_on(&hop.direction, course, (&hop.version, hop.ended), time, hiding)?
                }
                _ => time,
            };
            Some((hop, after))
        })
    }

    /// The hops from data that lead elsewhere than before, for a walk that comes to a period again, at
    /// another time.
    pub fn lasting(&self, time: u64, course: Course) -> Vec<VertexPlace> {
        let hops = self.hops(time, Some(course)).filter(|(hop, _)| hop.is_of_data());
        hops.filter(|(hop, _)| hop.lasts_at(time, course)).map(|(hop, _)| hop.far).collect()
    }

    /// All hops except those from data.
    pub fn others(&self) -> &[Hop] {
        &self.others
    }

    /// Drops hops that only a walk with fewer hops would need again.
    pub fn unload(&mut self) {
        // Without periods and lasting hops, another time shows nothing new.
        if self.bounds.is_empty() && !self.lasts {
            (self.data, self.latest, self.is_loaded) = (Vec::new(), LatestEnds::default(), false);
            self.others = Vec::new();
        }
    }
}

/// The latest of ends: of halves of them, of quarters, and so on.
#[derive(Debug, Default)]
struct LatestEnds {
    /// A tree: below the k-th are the (2k)-th and the next; its last half holds the ends themselves.
    tree: Vec<u64>,
}

impl LatestEnds {
    fn of(ends: impl ExactSizeIterator<Item = u64>) -> LatestEnds {
        let size = ends.len().next_power_of_two();
        let mut tree = vec![0; 2 * size];
        for (i, end) in ends.enumerate() {
            tree[size + i] = end;
        }
        for k in (1..size).rev() {
            tree[k] = tree[2 * k].max(tree[2 * k + 1]);
        }
        LatestEnds { tree }
    }

    /// The indices of those of the first `count` that end at a time or later, in order; each takes as many
    /// steps as the tree is deep.
    fn not_before(&self, time: u64, count: usize) -> Vec<usize> {
        let size = self.tree.len() / 2;
        let (mut found, mut open) = (Vec::new(), vec![(1, 0, size)]);
        // Depth first and left before right, so the indices come out in order.
        while let Some((k, from, len)) = open.pop() {
            if from >= count || self.tree.get(k).is_none_or(|latest| *latest < time) {
                continue;
            }
            if k >= size {
                found.push(from);
                continue;
            }
            let half = len / 2;
            open.extend([(2 * k + 1, from + half, half), (2 * k, from, half)]);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::LatestEnds;

    #[test]
    fn what_has_not_ended_is_found_in_order() {
        let ends = [5, 9, 1, 7, 7, 3, 0];
        for count in 0..=ends.len() {
            let latest = LatestEnds::of(ends[..count].iter().copied());
            for (time, most) in (0..=10).flat_map(|time| (0..=count).map(move |most| (time, most))) {
                let wanted: Vec<usize> = (0..most).filter(|i| ends[*i] >= time).collect();
                assert_eq!(latest.not_before(time, most), wanted, "{time} of {most}");
            }
        }
    }
}
