//! The rounds of an exchange: in each round, every aggregator receives one window of its range and writes it, or reads it
//! and sends it out.
//!
//! Invariants: all ranks make the same number of rounds; the bytes that a rank sends, those that it receives and its
//! window each take at most a third of the buffer, or one block; an element that comes twice is compared, never just
//! overwritten. A failure on one rank reaches all after at most [`UNAGREED`] bytes of windows.

use std::ops::Range;

use fieldstone_core::env::comm::{Step, Team, TeamFile, TeamReader, TeamWriter};
use fieldstone_core::{Code, Error, Result};

use super::file_array::{FileArray, PastFileEnd};
use super::round_parts::{RoundBuffers, RoundParts, fit};
use super::routes::{Numbers, Routes, SentNumbers};
use super::{MovePlan, Read, Write};
use crate::distributed::buffer::{Buffer, BufferMut, by_size};

/// Gaps of up to this many bytes are read and written back, which is cheaper than another system call.
pub(super) const GAP: u64 = 1 << 12;

/// Size of a window, even if there is space for more: pages that stay in the cache are touched once and used in every
/// round.
const WINDOW: u64 = 2 << 20;
/// A window grows beyond that until a rank sends each other rank this many bytes in a round, on average.
const MESSAGE: u64 = 64 << 10;
/// Bytes of windows between two agreements on failures.
const UNAGREED: u64 = 16 << 20;

/// Limit on the bytes that a rank sends in a round, receives, or has as its window.
pub(super) fn share(buffer: usize, ranks: usize) -> u64 {
    (buffer as u64 / 3).clamp(1, WINDOW.max(MESSAGE.saturating_mul(ranks as u64)))
}

/// Limit on the bytes of a bucket of eight-byte elements, if a rank may use `buffer` bytes: a window, or less if two
/// buckets of 16-byte elements would exceed a share of the buffer.
pub(super) fn bucket(buffer: usize) -> u64 {
    (buffer as u64 / 12).min(WINDOW)
}

/// Number of rounds, with windows of this size, between two agreements.
pub(super) fn rounds_between(window: u64) -> u64 {
    (UNAGREED / window.max(1)).max(1)
}

/// Collective: writes all ranks' elements. Returns the number of bytes that this rank wrote. `holes` is the number of
/// unwritten elements. Without a fill, gaps of up to [`GAP`] bytes of them are read from `gaps` and written back;
/// without `gaps` they are left out.
pub(super) fn write(
    plan: &MovePlan,
    routes: &Routes,
    file: &TeamWriter,
    step: Step,
    (write, holes, gaps): (&Write<'_>, u64, Option<&TeamFile>),
    memory: &mut RoundBuffers,
) -> Result<u64> {
    let team = file.team();
    let window = window(plan, routes, team, step, (write.array.size, write.settings.buffer))?;
    if let Some(gaps) = gaps.filter(|_| holes > 0 && write.fill.is_none()) {
        // Aggregators are about to read bytes that others may have written.
        gaps.visibility_barrier(step, Ok(()))?;
    }
    let (array, fill) = (write.array, write.fill);
    let unit_bytes = routes.unit as usize * array.size as usize;
    let RoundBuffers { sent, own, taken, window: bytes } = std::mem::take(memory);
    let mut aggregator = WindowWriter { routes, file, array, fill, gaps, bytes, written: 0 };
    let (mut sent, mut taken) = (RoundParts::new(team, sent, own), RoundParts::new(team, taken, Vec::new()));
    let own = routes.ranges.aggregator(team.rank());
    let mut outcome = Ok(());
    for round in 0..routes.ranges.buckets().div_ceil(window.buckets) {
        if window.is_agreed_before(round) {
            team.agree(step, outcome)?;
            outcome = Ok(());
        }
        pack(routes, write.from, (round, window.buckets), &mut sent);
        // All ranks, including one that has failed, know which units come.
        let buckets = routes.ranges.window(round, window.buckets);
        taken.make_room(|source| routes.kept(source, &buckets).len() * unit_bytes);
        sent.exchange(&mut taken, team, window.longest)?;
        if let Some(own) = own {
            // A rank that failed takes part in further rounds, but writes nothing.
            taken.own = std::mem::take(&mut sent.own);
            outcome = outcome.and_then(|()| aggregator.round(&buckets, own, &taken));
            sent.own = std::mem::take(&mut taken.own);
        }
    }
    team.agree(step, outcome)?;
    *memory = kept(sent, taken, aggregator.bytes);
    Ok(aggregator.written)
}

/// Collective: reads the elements that all ranks request. Returns the number of bytes that this rank read. If one
/// fails, the content of every rank's memory is unspecified.
pub(super) fn read(
    plan: &MovePlan,
    routes: &Routes,
    file: &TeamReader,
    step: Step,
    read: &mut Read<'_, '_>,
    memory: &mut RoundBuffers,
) -> Result<u64> {
    let team = file.team();
    let window = window(plan, routes, team, step, (read.array.size, read.settings.buffer))?;
    let own = routes.ranges.aggregator(team.rank());
    let unit_bytes = routes.unit as usize * read.array.size as usize;
    let RoundBuffers { sent, own: own_part, taken, window: bytes } = std::mem::take(memory);
    let mut aggregator = WindowReader { routes, file, array: read.array, bytes, read: 0 };
    let mut sent = RoundParts::new(team, sent, own_part);
    let mut taken = RoundParts::new(team, taken, Vec::new());
    let mut outcome = Ok(());
    for round in 0..routes.ranges.buckets().div_ceil(window.buckets) {
        if window.is_agreed_before(round) {
            team.agree(step, outcome)?;
            outcome = Ok(());
        }
        if let Some(own) = own {
            let buckets = routes.ranges.window(round, window.buckets);
            sent.make_all_room(|rank| routes.kept(rank, &buckets).len() * unit_bytes);
            outcome = outcome.and_then(|()| aggregator.round(&buckets, own, read.past_end, &mut sent));
        }
        taken.make_room(|source| match routes.ranges.aggregator(source) {
            Some(aggregator) => {
                routes.slots(aggregator, &routes.ranges.window(round, window.buckets)).len() * unit_bytes
            }
            None => 0,
        });
        // A rank that failed still takes part, because the others wait for its data.
        sent.exchange(&mut taken, team, window.longest)?;
        taken.own = std::mem::take(&mut sent.own);
        unpack(routes, read.into, (round, window.buckets), &mut taken);
        sent.own = std::mem::take(&mut taken.own);
    }
    team.agree(step, outcome)?;
    *memory = kept(sent, taken, aggregator.bytes);
    Ok(aggregator.read)
}

/// Keeps the memory of a call for the next one.
fn kept(sent: RoundParts, taken: RoundParts, window: Vec<u8>) -> RoundBuffers {
    let ((sent, own), (taken, _)) = (sent.into_memory(), taken.into_memory());
    RoundBuffers { sent, own, taken, window }
}

/// The amounts moved in a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Number of buckets of each aggregator.
    buckets: u64,
    /// Maximum number of bytes that one rank sends to another.
    longest: usize,
    /// Number of rounds between two agreements.
    unagreed: u64,
}

impl Window {
    fn is_agreed_before(&self, round: u64) -> bool {
        round > 0 && round.is_multiple_of(self.unagreed)
    }
}

/// The number of buckets in a window. Collective in its first call for a size of elements.
fn window(
    plan: &MovePlan,
    routes: &Routes,
    team: &Team,
    step: Step,
    (size, buffer): (u64, usize),
) -> Result<Window> {
    let key = (size as usize, buffer);
    if let Some(window) = plan.windows().get(&key) {
        return Ok(*window);
    }
    // As many buckets as fit in a share, at least one.
    let share = share(buffer, team.size());
    let unit = routes.unit * size;
    let bucket = (unit << routes.ranges.bucket_shift()).max(1);
    let most = (share / bucket).clamp(1, routes.ranges.buckets().max(1));
    // If many elements are in few buckets, or on one rank, a round must take fewer buckets.
    let mut own = most;
    while own > 1 && busiest(routes, own, team.rank()).saturating_mul(unit) > share {
        own /= 2;
    }
    // Windows smaller than this rank's own contain less.
    let longest = busiest(routes, own, team.rank()).saturating_mul(unit);
    // The maximum of `!own` gives the minimum of `own`: all ranks use the smallest window.
    let agreed = team.max(step, Ok(vec![!own, longest]))?;
    let [buckets, longest] = [!agreed[0], agreed[1]];
    let buckets = buckets.max(1);
    let (longest, unagreed) =
        (usize::try_from(longest).unwrap_or(usize::MAX), rounds_between(buckets.saturating_mul(bucket)));
    let window = Window { buckets, longest, unagreed };
    plan.windows().insert(key, window);
    Ok(window)
}

/// The maximum number of units that this rank sends or receives in a round of windows of `window` buckets.
fn busiest(routes: &Routes, window: u64, rank: usize) -> u64 {
    let ranges = &routes.ranges;
    let rounds = ranges.buckets().div_ceil(window);
    let sent = (0..rounds).map(|round| {
        let buckets = ranges.window(round, window);
        (0..ranges.aggregators()).map(|aggregator| routes.slots(aggregator, &buckets).len() as u64).sum()
    });
    let own = ranges.aggregator(rank).is_some();
    let taken = routes.counts.chunks(window as usize).map(|counts| counts.iter().sum()).filter(|_| own);
    sent.chain(taken).max().unwrap_or(0)
}

/// Packs the data that this rank sends in a round.
fn pack(routes: &Routes, from: &Buffer<'_>, (round, window): (u64, u64), sent: &mut RoundParts) {
    let unit = routes.unit as usize;
    let ranges = &routes.ranges;
    let slots = |rank: usize| match ranges.aggregator(rank) {
        Some(aggregator) => routes.slots(aggregator, &ranges.window(round, window)),
        None => 0..0,
    };
    sent.make_all_room(|rank| slots(rank).len() * unit * from.element().size());
    for (rank, part) in sent.each_mut().enumerate() {
        match &routes.sent {
            Numbers::Narrow(sent) => from.gather(&sent[slots(rank)], unit, part),
            Numbers::Wide(sent) => from.gather(&sent[slots(rank)], unit, part),
        }
    }
}

/// Copies the data that aggregators sent in a round to their places in memory.
fn unpack(routes: &Routes, into: &mut BufferMut<'_>, (round, window): (u64, u64), taken: &mut RoundParts) {
    let unit = routes.unit as usize;
    for (rank, part) in taken.each_mut().enumerate() {
        let Some(aggregator) = routes.ranges.aggregator(rank) else { continue };
        let slots = routes.slots(aggregator, &routes.ranges.window(round, window));
        match &routes.sent {
            Numbers::Narrow(sent) => into.scatter(&sent[slots], unit, part),
            Numbers::Wide(sent) => into.scatter(&sent[slots], unit, part),
        }
    }
}

/// An aggregator that writes window by window.
struct WindowWriter<'a> {
    routes: &'a Routes,
    file: &'a TeamWriter,
    array: FileArray,
    fill: Option<&'a [u8]>,
    /// The file whose gaps are read and written back.
    gaps: Option<&'a TeamFile>,
    bytes: Vec<u8>,
    written: u64,
}

impl WindowWriter<'_> {
    fn unit_bytes(&self) -> usize {
        self.routes.unit as usize * self.array.size as usize
    }

    /// Receives one window and writes it: from each source some units, and their bytes.
    fn round(&mut self, buckets: &Range<u64>, aggregator: usize, parts: &RoundParts) -> Result<()> {
        let routes = self.routes;
        let origin = routes.ranges.unit(routes.ranges.of_aggregator(aggregator).start);
        let Range { start: at, end } = routes.ranges.units_in(aggregator, buckets);
        if at == end {
            return Ok(());
        }
        let unit_bytes = self.unit_bytes();
        let taken: usize = parts.each().map(<[u8]>::len).sum();
        fit(&mut self.bytes, (end - at) as usize * unit_bytes);
        let expected: u64 = routes.counts[buckets.start as usize..buckets.end as usize].iter().sum();
        if taken as u64 != expected * unit_bytes as u64 {
            return Err(Error::internal(format!(
                "received {taken} bytes for {expected} units of {unit_bytes} bytes"
            )));
        }
        let (fill, gap) = (self.fill, self.gaps.map_or(0, |_| GAP / unit_bytes as u64));
        // Without repeated units, a full window has all its units.
        let is_full = routes.repeated() == 0 && expected == end - at;
        let stretches = match fill {
            _ if is_full => vec![(at, end)],
            Some(fill) => {
                self.bytes.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
                vec![(at, end)]
            }
            None => {
                let stretches = routes.stretches(at, end, gap);
                if let Some(file) = self.gaps.filter(|_| gap > 0) {
                    self.read_back(file, &stretches, (at, origin))?;
                }
                stretches
            }
        };
        self.take(buckets, parts, (at, origin))?;
        for (from, to) in stretches {
            let bytes = &self.bytes[(from - at) as usize * unit_bytes..(to - at) as usize * unit_bytes];
            let (first, last) = ((origin + from) * routes.unit, (origin + to) * routes.unit);
            let size = self.array.size as usize;
            self.array.pieces(first, last, |offset, place, count| {
                let begin = place as usize * size;
                self.file.write_at(&bytes[begin..begin + count as usize * size], offset)
            })?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Reads the bytes in the gaps of stretches, which are written back.
    fn read_back(
        &mut self,
        file: &TeamFile,
        stretches: &[(u64, u64)],
        (at, origin): (u64, u64),
    ) -> Result<()> {
        let (unit, size) = (self.routes.unit, self.array.size as usize);
        let unit_bytes = unit as usize * size;
        for (from, to) in stretches {
            let bytes = &mut self.bytes[(from - at) as usize * unit_bytes..(to - at) as usize * unit_bytes];
            self.array.pieces((origin + from) * unit, (origin + to) * unit, |offset, place, count| {
                let begin = place as usize * size;
                let bytes = &mut bytes[begin..begin + count as usize * size];
                let read = file.read_at(bytes, offset)?;
                bytes[read..].fill(0);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Copies the received data to their places in the window, which begins at unit `at` of the range.
    fn take(&mut self, buckets: &Range<u64>, parts: &RoundParts, (at, origin): (u64, u64)) -> Result<()> {
        let unit_bytes = self.unit_bytes();
        let mut seen = match self.routes.repeated() {
            0 => Vec::new(),
            _ => vec![0u64; (self.bytes.len() / unit_bytes).div_ceil(64)],
        };
        for (source, part) in parts.each().enumerate() {
            let kept = self.routes.kept(source, buckets);
            if seen.is_empty() {
                match kept {
                    SentNumbers::Narrow(kept) => {
                        let places = kept.iter().map(|n| u64::from(u32::from_le_bytes(*n)) - at);
                        put(&mut self.bytes, part, places, unit_bytes);
                    }
                    SentNumbers::Wide(kept) => {
                        let places = kept.iter().map(|n| u64::from_le_bytes(*n) - at);
                        put(&mut self.bytes, part, places, unit_bytes);
                    }
                }
                continue;
            }
            for (n, element) in part.chunks_exact(unit_bytes).enumerate() {
                let place = (kept.get(n) - at) as usize;
                let into = &mut self.bytes[place * unit_bytes..(place + 1) * unit_bytes];
                let (word, bit) = (&mut seen[place / 64], 1u64 << (place % 64));
                if *word & bit != 0 && into != element {
                    let size = self.array.size as usize;
                    let differs =
                        into.chunks(size).zip(element.chunks(size)).position(|(a, b)| a != b).unwrap_or(0);
                    let element = (origin + at + place as u64) * self.routes.unit + differs as u64;
                    return Err(self.conflict(element, at + place as u64, source));
                }
                *word |= bit;
                into.copy_from_slice(element);
            }
        }
        Ok(())
    }

    /// The error for two ranks that passed different values for one element; `unit` is its unit in the range,
    /// `source` the later rank.
    fn conflict(&self, element: u64, unit: u64, source: usize) -> Error {
        let names = |rank: &usize| {
            let kept = self.routes.kept(*rank, &(0..self.routes.ranges.buckets()));
            (0..kept.len()).any(|place| kept.get(place) == unit)
        };
        let first = (0..=source).find(names).unwrap_or(source);
        let ranks = match first == source {
            true => format!("rank {source}"),
            false => format!("ranks {first} and {source}"),
        };
        Code::PiecesDiffer
            .error(format!("{ranks} wrote different bytes to element {element} (in C order)"))
            .with_hint(
                "let only one rank write it: put ghosts after the owned entries, and set the number of \
                 owned entries",
            )
    }
}

/// Copies elements of `unit` bytes to their places.
fn put(bytes: &mut [u8], part: &[u8], places: impl Iterator<Item = u64>, unit: usize) {
    fn each<const N: usize>(bytes: &mut [u8], part: &[u8], places: impl Iterator<Item = u64>) {
        let bytes = bytes.as_chunks_mut::<N>().0;
        for (element, place) in part.as_chunks::<N>().0.iter().zip(places) {
            bytes[place as usize] = *element;
        }
    }
    by_size!(unit, each(bytes, part, places), {
        part.chunks_exact(unit).zip(places).for_each(|(element, place)| {
            bytes[place as usize * unit..(place as usize + 1) * unit].copy_from_slice(element);
        });
    });
}

/// An aggregator that reads window by window.
struct WindowReader<'a> {
    routes: &'a Routes,
    file: &'a TeamReader,
    array: FileArray,
    bytes: Vec<u8>,
    read: u64,
}

impl WindowReader<'_> {
    /// Reads a window and makes the part for each rank from it: some units, in the space of the part.
    fn round(
        &mut self,
        buckets: &Range<u64>,
        aggregator: usize,
        past_end: PastFileEnd,
        sent: &mut RoundParts,
    ) -> Result<()> {
        let routes = self.routes;
        let origin = routes.ranges.unit(routes.ranges.of_aggregator(aggregator).start);
        let Range { start: at, end } = routes.ranges.units_in(aggregator, buckets);
        let (size, unit_bytes) = (self.array.size as usize, routes.unit as usize * self.array.size as usize);
        fit(&mut self.bytes, (end - at) as usize * unit_bytes);
        for (from, to) in routes.stretches(at, end, GAP.max(unit_bytes as u64) / unit_bytes.max(1) as u64) {
            let bytes = &mut self.bytes[(from - at) as usize * unit_bytes..(to - at) as usize * unit_bytes];
            self.array.pieces(
                (origin + from) * routes.unit,
                (origin + to) * routes.unit,
                |offset, place, elements| {
                    let begin = place as usize * size;
                    let into = &mut bytes[begin..begin + elements as usize * size];
                    self.read += past_end.read(self.file, offset, into)?;
                    Ok(())
                },
            )?;
        }
        for (source, part) in sent.each_mut().enumerate() {
            match routes.kept(source, buckets) {
                SentNumbers::Narrow(kept) => {
                    let places = kept.iter().map(|n| u64::from(u32::from_le_bytes(*n)) - at);
                    take(&self.bytes, part, places, unit_bytes);
                }
                SentNumbers::Wide(kept) => {
                    let places = kept.iter().map(|n| u64::from_le_bytes(*n) - at);
                    take(&self.bytes, part, places, unit_bytes);
                }
            }
        }
        Ok(())
    }
}

/// Copies elements of `unit` bytes from their places.
fn take(bytes: &[u8], part: &mut [u8], places: impl Iterator<Item = u64>, unit: usize) {
    fn each<const N: usize>(bytes: &[u8], part: &mut [u8], places: impl Iterator<Item = u64>) {
        let bytes = bytes.as_chunks::<N>().0;
        for (element, place) in part.as_chunks_mut::<N>().0.iter_mut().zip(places) {
            *element = bytes[place as usize];
        }
    }
    by_size!(unit, each(bytes, part, places), {
        part.chunks_exact_mut(unit).zip(places).for_each(|(element, place)| {
            element.copy_from_slice(&bytes[place as usize * unit..(place as usize + 1) * unit]);
        });
    });
}
