//! One numbering for the vertices of several segments, for walks that pass many of them.
//!
//! The numbers of the largest segment serve for all, so that most of a walk needs no translation. Vertices
//! that it lacks have the numbers after them. A segment's own numbers follow the order of places, and so do
//! these: the vertices that a segment shares with the largest one ascend in both.

use std::ops::Range;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph_segment::VertexPlace;

use crate::segment::{Segment, outside};

/// Places that are read together.
const RUN: u32 = 1024;
/// If one segment has this many times the vertices of another, the vertices of the smaller are looked up one
/// by one.
const FAR_SMALLER: u32 = 16;

/// The numbering.
#[derive(Debug)]
pub struct Frame {
    segments: Vec<Arc<Segment>>,
    /// The index of the largest one.
    base: usize,
    /// For each segment, the frame numbers of its own numbers; empty for the largest.
    numbers: Vec<Vec<u32>>,
    /// For each segment, its vertices: number in the frame, own number; ascending.
    own: Vec<Vec<(u32, u32)>>,
    /// Vertices that the largest one lacks.
    others: Vec<VertexPlace>,
}

fn places(segment: &Segment, range: Range<u32>) -> Result<Vec<VertexPlace>> {
    let bytes = segment.places(range)?;
    let place = |bytes: &[u8]| bytes.try_into().map(|bytes| VertexPlace(u128::from_be_bytes(bytes))).ok();
    Ok(bytes.chunks_exact(16).filter_map(place).collect())
}

/// Visits all places of a segment, ascending, with their numbers.
fn each_place(segment: &Segment, mut visit: impl FnMut(u32, VertexPlace) -> Result<()>) -> Result<()> {
    for from in (0..segment.vertices()).step_by(RUN as usize) {
        let to = from.saturating_add(RUN).min(segment.vertices());
        for (number, place) in (from..).zip(places(segment, from..to)?) {
            visit(number, place)?;
        }
    }
    Ok(())
}

impl Frame {
    /// The numbering of these segments.
    pub fn of(segments: &[Arc<Segment>]) -> Result<Frame> {
        let base = (0..segments.len()).max_by_key(|i| segments[*i].vertices()).unwrap_or(0);
        let mut frame = Frame {
            segments: segments.to_vec(),
            base,
            numbers: vec![Vec::new(); segments.len()],
            own: vec![Vec::new(); segments.len()],
            others: Vec::new(),
        };
        // For each segment: which of the largest one's vertices it has, and which others.
        let mut lacking: Vec<Vec<(VertexPlace, u32)>> = vec![Vec::new(); segments.len()];
        for (i, segment) in segments.iter().enumerate().filter(|(i, _)| *i != base) {
            let mut shared = Vec::new();
            match_places(segment, &segments[base], |number, place, in_base| match in_base {
                Some(known) => shared.push((known, number)),
                None => lacking[i].push((place, number)),
            })?;
            frame.own[i] = shared;
        }
        frame.others = lacking.iter().flatten().map(|(place, _)| *place).collect();
        frame.others.sort_unstable();
        frame.others.dedup();
        let first = frame.base_len();
        for (i, lacking) in lacking.into_iter().enumerate() {
            for (place, number) in lacking {
                let other = frame.others.binary_search(&place).unwrap_or(0) as u32;
                frame.own[i].push((first + other, number));
            }
            let mut numbers = vec![0; if i == base { 0 } else { segments[i].vertices() as usize }];
            for (known, number) in &frame.own[i] {
                numbers[*number as usize] = *known;
            }
            frame.numbers[i] = numbers;
        }
        Ok(frame)
    }

    fn base_len(&self) -> u32 {
        self.segments.get(self.base).map_or(0, |segment| segment.vertices())
    }

    /// The segments.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The number of vertices.
    pub fn len(&self) -> usize {
        self.base_len() as usize + self.others.len()
    }

    /// The number of a vertex; `None` if no segment names it.
    pub fn find(&self, place: VertexPlace) -> Result<Option<u32>> {
        let Some(base) = self.segments.get(self.base) else { return Ok(None) };
        if let Some(number) = base.find(place)? {
            return Ok(Some(number));
        }
        Ok(self.others.binary_search(&place).ok().map(|other| self.base_len() + other as u32))
    }

    /// The place of a vertex.
    pub fn place(&self, number: u32) -> Result<VertexPlace> {
        match number.checked_sub(self.base_len()) {
            Some(other) => Ok(self.others[other as usize]),
            None => self.segments[self.base].place(number),
        }
    }

    /// The frame number of a vertex of the i-th segment. Corrupt if the segment has no such vertex.
    #[inline]
    pub fn number(&self, i: usize, own: u32) -> Result<u32> {
        let number = match i == self.base {
            true => (own < self.base_len()).then_some(own),
            false => self.numbers[i].get(own as usize).copied(),
        };
        number.ok_or_else(outside)
    }

    /// The i-th segment's number of a vertex; `None` if it lacks it. `at` remembers the position of the last
    /// lookup, so that lookups in ascending order are fast.
    pub fn own(&self, i: usize, number: u32, at: &mut usize) -> Option<u32> {
        if i == self.base {
            return (number < self.base_len()).then_some(number);
        }
        let own = &self.own[i];
        if own.get(*at).is_none_or(|(known, _)| *known > number) {
            *at = 0;
        }
        let mut stride = 1;
        while own.get(*at + stride).is_some_and(|(known, _)| *known <= number) {
            *at += stride;
            stride *= 2;
        }
        let end = (*at + stride).min(own.len());
        *at += own[(*at).min(end)..end].partition_point(|(known, _)| *known < number);
        own.get(*at).filter(|(known, _)| *known == number).map(|(_, own)| *own)
    }
}

/// Visits the vertices of a segment, each with its number in another one.
fn match_places(
    segment: &Segment,
    other: &Segment,
    mut visit: impl FnMut(u32, VertexPlace, Option<u32>),
) -> Result<()> {
    if segment.vertices() < other.vertices() / FAR_SMALLER {
        return each_place(segment, |number, place| {
            visit(number, place, other.find(place)?);
            Ok(())
        });
    }
    let (mut run, mut first) = (Vec::new(), 0u32);
    let mut at = 0usize;
    each_place(segment, |number, place| {
        loop {
            match run.get(at) {
                Some(known) if *known < place => at += 1,
                Some(known) => {
                    let found = (*known == place).then_some(first + at as u32);
                    visit(number, place, found);
                    return Ok(());
                }
                None => {
                    first += run.len() as u32;
                    let to = first.saturating_add(RUN).min(other.vertices());
                    if first >= to {
                        visit(number, place, None);
                        run.clear();
                        at = 0;
                        return Ok(());
                    }
                    (run, at) = (places(other, first..to)?, 0);
                }
            }
        }
    })
}
