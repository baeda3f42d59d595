//! Walks large sets of vertices, hop by hop, if the plan has no tests.
//!
//! Sets are bits over the numbers of a [`Frame`]; far ends are read as packed numbers. Versions are read only
//! if they may matter: if several segments have the same relation, if one was deleted, or if a segment has
//! anything younger than the moment of the request. A relation at a vertex that was ever deleted takes the
//! slow path, through the state.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::adjacency::{EdgeVersion, GroupBytes, groups};
use fieldstone_journal::session::Limits;

use super::figures::StepFigures;
use super::plan::{Hop, TravelPlan};
use crate::frame::Frame;
use crate::segment::SegmentCursor;
use crate::state::{GraphState, standing};

/// Maximum number of segments with one vertex; for more, the state is used.
const MOST: usize = 16;

/// Up to this many versions are searched from the first to the last.
const FEW: usize = 8;

/// A set of numbers.
#[derive(Debug, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    #[inline]
    fn add(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    #[inline]
    fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] & 1 << (number % 64) != 0
    }

    fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for (i, word) in self.0.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                numbers.push(i as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        numbers
    }

    /// Moves the numbers that it lacks out of another set, which is empty afterwards.
    fn take_new(&mut self, from: &mut Bits) -> Vec<u32> {
        for (known, new) in self.0.iter_mut().zip(&mut from.0) {
            *new &= !*known;
            *known |= *new;
        }
        let numbers = from.numbers();
        from.0.fill(0);
        numbers
    }
}

/// A version of a relation that several segments may have.
#[derive(Debug, Clone, Copy)]
struct Shared {
    far: u32,
    stamp: u64,
    user: u32,
    deleted: bool,
}

/// The parts of the segments that a walk reads.
struct Neighbours<'a> {
    frame: &'a Frame,
    state: &'a GraphState,
    at: u64,
    /// For each segment: whether it has anything that is old enough; whether all of it is.
    old: Vec<(bool, bool)>,
    /// Vertices that were ever deleted; `None` if there are none.
    deleted: Option<Bits>,
    /// The position of the last vertex in each segment.
    last: Vec<usize>,
    cursors: Vec<SegmentCursor>,
    relations: u64,
}

/// The groups of a segment that a hop takes: for each code a number for the type and direction, equal in all
/// segments.
type Codes = Vec<Vec<Option<u32>>>;

/// Walks the sets of a plan without tests; returns the numbers of the last set.
pub(super) fn walk(
    frame: &Frame,
    state: &GraphState,
    plan: &TravelPlan,
    starts: &[VertexPlace],
    clock: &dyn Clock,
    limits: &mut Limits,
) -> Result<(Vec<u32>, Vec<StepFigures>)> {
    let mut neighbours = Neighbours::new(frame, state, plan.at)?;
    let codes: Vec<Codes> = plan.hops.iter().map(|hop| neighbours.codes(hop)).collect();
    let mut known: Vec<Bits> = vec![Bits::new(frame.len()); plan.hops.len() + 1];
    let mut scratch = Bits::new(frame.len());
    let mut figures = Vec::new();
    for place in starts {
        // A vertex that nothing names leads nowhere, and is in no set.
        if let Some(number) = frame.find(*place)? {
            scratch.add(number);
        }
    }
    let mut frontier = known[0].take_new(&mut scratch);
    let mut step = |frontier: Vec<u32>, i: usize, round: u32, known: &mut Vec<Bits>| -> Result<Vec<u32>> {
        let (begun, relations) = (clock.monotonic(), neighbours.relations);
        for vertex in &frontier {
            limits.step()?;
            neighbours.add(*vertex, &plan.hops[i], &codes[i], &mut scratch)?;
        }
        let reached = known[i + 1].take_new(&mut scratch);
        figures.push(StepFigures {
            hop: i,
            round,
            frontier: frontier.len() as u64,
            reached: reached.len() as u64,
            vertices: frontier.len() as u64,
            relations: neighbours.relations - relations,
            nanoseconds: clock.monotonic().saturating_sub(begun),
        });
        Ok(reached)
    };
    if let Some((hops, most)) = plan.repeat {
        for round in 1..=most {
            for i in 0..hops {
                frontier = step(frontier, i, round, &mut known)?;
            }
            // Nothing new was reached, and so no further round can reach anything.
            if frontier.is_empty() {
                break;
            }
        }
        frontier = known[hops].numbers();
    }
    for i in plan.body()..plan.hops.len() {
        frontier = step(frontier, i, 0, &mut known)?;
    }
    Ok((frontier, figures))
}

impl<'a> Neighbours<'a> {
    fn new(frame: &'a Frame, state: &'a GraphState, at: u64) -> Result<Neighbours<'a>> {
        let segments = frame.segments();
        let old = segments.iter().map(|segment| (segment.summary.base <= at, segment.summary.most <= at));
        let mut deleted = None;
        for tombstone in segments.iter().flat_map(|segment| &segment.tombstones) {
            if let Some(number) = frame.find(tombstone.place)? {
                deleted.get_or_insert_with(|| Bits::new(frame.len())).add(number);
            }
        }
        let last = vec![0; segments.len()];
        let cursors = segments.iter().map(|_| SegmentCursor::default()).collect();
        Ok(Neighbours { frame, state, at, old: old.collect(), deleted, last, cursors, relations: 0 })
    }

    fn codes(&self, hop: &Hop) -> Codes {
        let mut numbers: HashMap<(&str, bool), u32> = HashMap::new();
        let mut codes = Vec::new();
        for segment in self.frame.segments() {
            let mut of_segment = Vec::with_capacity(2 * segment.names.len());
            for (name, reverse) in segment.names.iter().flat_map(|name| [(name, false), (name, true)]) {
                let next = numbers.len() as u32;
                let taken = hop.takes(name, reverse);
                of_segment.push(taken.then(|| *numbers.entry((&**name, reverse)).or_insert(next)));
            }
            codes.push(of_segment);
        }
        codes
    }

    /// Adds the far ends of a vertex to a set.
    fn add(&mut self, vertex: u32, hop: &Hop, codes: &Codes, set: &mut Bits) -> Result<()> {
        if self.deleted.as_ref().is_some_and(|deleted| deleted.has(vertex)) {
            return self.add_exactly(vertex, hop, set);
        }
        let frame = self.frame;
        let mut own: [(usize, u32); MOST] = [(0, 0); MOST];
        let mut len = 0;
        for i in 0..frame.segments().len() {
            if self.old[i].0
                && let Some(number) = frame.own(i, vertex, &mut self.last[i])
            {
                if len == MOST {
                    return self.add_exactly(vertex, hop, set);
                }
                own[len] = (i, number);
                len += 1;
            }
        }
        // Moved out, because the readers below need `self` as well.
        let mut cursors = std::mem::take(&mut self.cursors);
        let regular = match &own[..len] {
            [] => Ok(true),
            [(i, number)] => self.add_of_one(*i, *number, codes, &mut cursors[*i], set),
            several => self.add_of_several(several, codes, &mut cursors, set),
        };
        self.cursors = cursors;
        if regular? { Ok(()) } else { self.add_exactly(vertex, hop, set) }
    }

    /// Adds the relations in the only segment that has a vertex; returns whether that was sufficient.
    fn add_of_one(
        &mut self,
        i: usize,
        number: u32,
        codes: &Codes,
        cursors: &mut SegmentCursor,
        set: &mut Bits,
    ) -> Result<bool> {
        let bytes = self.frame.segments()[i].adjacency_on(number, cursors)?;
        let mut regular = true;
        for group in groups(&bytes)? {
            let group = group?;
            if codes[i].get(group.code as usize).copied().flatten().is_some() {
                self.relations += group.len as u64;
                regular &= self.add_group(i, &group, set)?;
            }
        }
        Ok(regular)
    }

    /// The same for several segments.
    fn add_of_several(
        &mut self,
        own: &[(usize, u32)],
        codes: &Codes,
        cursors: &mut [SegmentCursor],
        set: &mut Bits,
    ) -> Result<bool> {
        let mut adjacency: [(usize, Cow<'_, [u8]>); MOST] =
            std::array::from_fn(|_| (0, Cow::Borrowed(&[][..])));
        let having = cursors.iter_mut().enumerate().filter(|(i, _)| own.iter().any(|(known, _)| known == i));
        for (at, ((i, cursors), (_, number))) in having.zip(own).enumerate() {
            adjacency[at] = (i, self.frame.segments()[i].adjacency_on(*number, cursors)?);
        }
        let mut all: Vec<(u32, usize, GroupBytes<'_>)> = Vec::with_capacity(own.len());
        for (i, bytes) in &adjacency[..own.len()] {
            for group in groups(bytes)? {
                let group = group?;
                if let Some(code) = codes[*i].get(group.code as usize).copied().flatten() {
                    self.relations += group.len as u64;
                    all.push((code, *i, group));
                }
            }
        }
        let mut regular = true;
        all.sort_unstable_by_key(|(code, _, group)| (*code, Reverse(group.len)));
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            regular &= match same {
                [(_, i, group)] => self.add_group(*i, group, set)?,
                [(_, i, largest), others @ ..] => self.add_groups(*i, largest, others, set)?,
                [] => true,
            };
        }
        Ok(regular)
    }

    /// Adds the relations that a single segment has; returns whether that was sufficient.
    fn add_group(&self, i: usize, group: &GroupBytes<'_>, set: &mut Bits) -> Result<bool> {
        let mut regular = true;
        let mut add = |own: u32| {
            let far = self.frame.number(i, own)?;
            match &self.deleted {
                Some(deleted) if deleted.has(far) => regular = false,
                _ => set.add(far),
            }
            Ok(())
        };
        // Each relation of a plain group has one version, and all are old enough: the numbers are the answer.
        if group.plain && self.old[i].1 {
            for own in group.numbers() {
                add(own?)?;
            }
        } else {
            let base = self.frame.segments()[i].summary.base;
            let facts = |version: &EdgeVersion| (version.stamp, version.user, version.deleted);
            group.each(base, |own, versions| match standing(versions, self.at, facts).is_empty() {
                true => Ok(()),
                false => add(own),
            })?;
        }
        Ok(regular)
    }

    /// Adds the relations of one type from several segments: the largest group, and others.
    fn add_groups(
        &self,
        i: usize,
        largest: &GroupBytes<'_>,
        others: &[(u32, usize, GroupBytes<'_>)],
        set: &mut Bits,
    ) -> Result<bool> {
        // The smaller groups are read with their versions, to find the relations that several segments have.
        let mut shared: Vec<Shared> = Vec::new();
        for (_, i, group) in others {
            self.read(*i, group, |_| true, &mut shared)?;
        }
        shared.sort_unstable_by_key(|version| version.far);
        let first = shared.len();
        let has = |known: &[Shared], far: u32| match known.len() {
            ..=FEW => known.iter().any(|version| version.far == far),
            _ => known.binary_search_by_key(&far, |version| version.far).is_ok(),
        };
        let mut regular = true;
        if largest.plain && self.old[i].1 {
            let mut both = false;
            for own in largest.numbers() {
                let far = self.frame.number(i, own?)?;
                match &self.deleted {
                    _ if has(&shared, far) => both = true,
                    Some(deleted) if deleted.has(far) => regular = false,
                    _ => set.add(far),
                }
            }
            // The largest group shares relations with others: only now its versions are needed, and only of
            // these.
            if both {
                let known = shared[..first].to_vec();
                self.read(i, largest, |far| has(&known, far), &mut shared)?;
            }
        } else {
            self.read(i, largest, |_| true, &mut shared)?;
        }
        shared.sort_unstable_by_key(|v| (v.far, Reverse(v.stamp), v.user));
        for versions in shared.chunk_by(|a, b| a.far == b.far) {
            // For one stamp and user, the segments may differ: the state knows which version counts.
            let twice =
                versions.windows(2).any(|two| (two[0].stamp, two[0].user) == (two[1].stamp, two[1].user));
            let far = versions[0].far;
            if twice || self.deleted.as_ref().is_some_and(|deleted| deleted.has(far)) {
                regular = false;
            } else if !standing(versions, self.at, |v| (v.stamp, v.user, v.deleted)).is_empty() {
                set.add(far);
            }
        }
        Ok(regular)
    }

    fn read(
        &self,
        i: usize,
        group: &GroupBytes<'_>,
        wanted: impl Fn(u32) -> bool,
        into: &mut Vec<Shared>,
    ) -> Result<()> {
        let segment = &self.frame.segments()[i];
        group.each(segment.summary.base, |own, versions| {
            let far = self.frame.number(i, own)?;
            if wanted(far) {
                for version in versions.iter().filter(|version| version.stamp <= self.at) {
                    let user = segment.user(version.user)?;
                    into.push(Shared { far, stamp: version.stamp, user, deleted: version.deleted });
                }
            }
            Ok(())
        })
    }

    /// Adds the far ends according to the state.
    fn add_exactly(&self, vertex: u32, hop: &Hop, set: &mut Bits) -> Result<()> {
        let place = self.frame.place(vertex)?;
        for edge in self.state.edges(place, &|kind, reverse| hop.takes(kind, reverse))? {
            if self.state.current(place, &edge, self.at)?.is_some()
                && let Some(far) = self.frame.find(edge.far)?
            {
                set.add(far);
            }
        }
        Ok(())
    }
}
