//! Executions that are parts of one another, and their reads and writes that last over some time.
//!
//! A walk that reaches an execution again, at another time, reaches all of its job again. It has already
//! followed the reads and writes that were over; a read or write that lasts may be left at the new time, and
//! lead to another period of the data.

use std::collections::HashMap;

use fieldstone_format::graph_segment::VertexPlace;

use super::reached::Hop;

/// Groups, each named by one of its members.
#[derive(Debug, Default)]
pub struct Groups {
    /// For a member, another one that is nearer to the naming member.
    above: HashMap<VertexPlace, VertexPlace>,
    lasting: HashMap<VertexPlace, Vec<Hop>>,
    /// Members whose relations differ between times, by the group's name.
    bounded: HashMap<VertexPlace, Vec<VertexPlace>>,
}

impl Groups {
    /// The name of an execution's group.
    pub fn name(&mut self, place: VertexPlace) -> VertexPlace {
        let (mut at, mut path) = (place, Vec::new());
        while let Some(above) = self.above.get(&at).copied() {
            path.push(at);
            at = above;
        }
        for below in path {
            self.above.insert(below, at);
        }
        at
    }

    /// Adds an execution together with its job or its processes. `is_bounded`: whether its relations differ
    /// between times.
    pub fn add(&mut self, place: VertexPlace, hops: &[Hop], is_bounded: bool) {
        let mut name = self.name(place);
        for part in hops.iter().filter(|hop| hop.is_part()) {
            let other = self.name(part.far);
            if other == name {
                continue;
            }
            let size = |groups: &Groups, name| groups.lasting.get(name).map_or(0, Vec::len);
            let (large, small) =
                if size(self, &other) > size(self, &name) { (other, name) } else { (name, other) };
            let moved = self.lasting.remove(&small).unwrap_or_default();
            if !moved.is_empty() {
                self.lasting.entry(large).or_default().extend(moved);
            }
            let moved = self.bounded.remove(&small).unwrap_or_default();
            if !moved.is_empty() {
                self.bounded.entry(large).or_default().extend(moved);
            }
            self.above.insert(small, large);
            name = large;
        }
        let lasting: Vec<Hop> = hops.iter().filter(|hop| hop.lasts()).cloned().collect();
        if !lasting.is_empty() {
            self.lasting.entry(name).or_default().extend(lasting);
        }
        if is_bounded && hops.iter().any(Hop::is_part) {
            self.bounded.entry(name).or_default().push(place);
        }
    }

    /// Members of a group whose relations differ between times.
    pub fn bounded(&self, name: VertexPlace) -> &[VertexPlace] {
        self.bounded.get(&name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The reads and writes of a group's executions that last over some time.
    pub fn lasting(&mut self, name: VertexPlace) -> Option<&mut Vec<Hop>> {
        self.lasting.get_mut(&name)
    }

    /// Whether the group of a vertex has such reads and writes.
    pub fn lasts(&mut self, place: VertexPlace) -> bool {
        let name = self.name(place);
        self.lasting.get(&name).is_some_and(|hops| !hops.is_empty())
    }
}
