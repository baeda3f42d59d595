//! Executions that are parts of one another, and what they read or wrote over some time.
//!
//! A walk that comes to an execution again, at another time, comes to all of its job. It went on already from reads and writes
//! that are over; those that last it may leave at the new time, and find another epoch of the data.

use std::collections::HashMap;

use fieldstone_format::graph_segment::VertexPlace;

use super::reached::Hop;

/// Groups, each called after one of its members.
#[derive(Debug, Default)]
pub struct Groups {
    /// A member that is nearer to the one that gives the name.
    above: HashMap<VertexPlace, VertexPlace>,
    lasting: HashMap<VertexPlace, Vec<Hop>>,
    /// Members that do not show the same at all times, by the group's name.
    bounded: HashMap<VertexPlace, Vec<VertexPlace>>,
}

impl Groups {
    /// What the group of an execution is called.
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

    /// Adds an execution, with those that it is a part of or that are parts of it. `is_bounded`: whether it does not show
    /// the same at all times.
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

    /// Members of a group that do not show the same at all times.
    pub fn bounded(&self, name: VertexPlace) -> &[VertexPlace] {
        self.bounded.get(&name).map(Vec::as_slice).unwrap_or_default()
    }

    /// What the executions of a group read or wrote over some time.
    pub fn lasting(&mut self, name: VertexPlace) -> Option<&mut Vec<Hop>> {
        self.lasting.get_mut(&name)
    }

    /// Whether there is such for the group of a vertex.
    pub fn lasts(&mut self, place: VertexPlace) -> bool {
        let name = self.name(place);
        self.lasting.get(&name).is_some_and(|hops| !hops.is_empty())
    }
}
