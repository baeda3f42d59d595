//! The rounds of an exchange: in each, every owner takes in one window of its range and writes it, or reads it and
//! gives it out.
//!
//! Invariants: all ranks make the same number of rounds; what a rank sends, what it takes in and its window are each
//! at most a third of the buffer, or one block; an element that comes twice is compared, never merely overwritten.

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Error, Result};

use super::file_array::{FileArray, PastFileEnd};
use super::routes::{Numbers, Routes};
use super::{MovePlan, Read, Write};
use crate::distributed::buffer::{Buffer, BufferMut};

/// Gaps of up to this many bytes are read and written back: cheaper than another call of the system.
pub(super) const GAP: u64 = 1 << 12;

/// Collective: writes all ranks' elements. Returns how many bytes this rank wrote. `holes`: elements of nobody; without a
/// fill gaps of up to `gap` bytes of them are read and written back.
pub(super) fn write(
    plan: &MovePlan,
    routes: &Routes,
    file: &TeamFile,
    step: &'static str,
    (write, gap, holes): (&Write<'_>, u64, u64),
) -> Result<u64> {
    let team = file.team();
    let window = window(plan, routes, team, step, (write.array.size, write.settings.buffer))?;
    if holes > 0 && write.fill.is_none() && gap > 0 {
        // Owners are about to read what others may have written.
        file.visibility_barrier(step, Ok(()))?;
    }
    let mut owner = WindowWriter {
        routes,
        file,
        array: write.array,
        fill: write.fill,
        gap,
        cursors: Vec::new(),
        bytes: Vec::new(),
        written: 0,
    };
    owner.cursors = vec![0; team.size()];
    let mut outcome = Ok(());
    for round in 0..routes.ranges.most_blocks().div_ceil(window) {
        let parts = outcome.map(|()| pack(routes, write.from, (round, window), team.size()));
        let mut parts = team.alltoallv(step, parts)?;
        outcome = match routes.ranges.owner(team.rank()) {
            Some(own) => owner.round(routes.ranges.window(own, round, window), own, &mut parts),
            None => Ok(()),
        };
    }
    team.agree(step, outcome)?;
    Ok(owner.written)
}

/// Collective: reads what all ranks ask for. Returns how many bytes this rank read.
pub(super) fn read(
    plan: &MovePlan,
    routes: &Routes,
    file: &TeamFile,
    step: &'static str,
    read: &mut Read<'_, '_>,
) -> Result<u64> {
    let team = file.team();
    let window = window(plan, routes, team, step, (read.array.size, read.settings.buffer))?;
    let mut cursors = vec![0; team.size()];
    let (mut bytes, mut count) = (Vec::new(), 0);
    for round in 0..routes.ranges.most_blocks().div_ceil(window) {
        let parts = match routes.ranges.owner(team.rank()) {
            Some(own) => {
                let blocks = routes.ranges.window(own, round, window);
                give(routes, file, (read.array, read.past_end), (blocks, own), &mut cursors, &mut bytes).map(
                    |(parts, read)| {
                        count += read;
                        parts
                    },
                )
            }
            None => Ok(vec![Vec::new(); team.size()]),
        };
        let parts = team.alltoallv(step, parts)?;
        unpack(routes, read.into, (round, window), parts);
    }
    Ok(count)
}

/// Collective in its first call for a size of elements: how many blocks a window has.
fn window(
    plan: &MovePlan,
    routes: &Routes,
    team: &Team,
    step: &'static str,
    (size, buffer): (u64, usize),
) -> Result<u64> {
    let key = (size as usize, buffer);
    if let Some(window) = plan.windows().get(&key) {
        return Ok(*window);
    }
    let share = (buffer as u64 / 3).max(1);
    let unit = routes.unit * size;
    let block = (unit << routes.ranges.shift).max(1);
    let most = (share / block).clamp(1, routes.ranges.most_blocks().max(1));
    // Where elements are many in few blocks, or one rank has them, less has to go in a round.
    let mut own = most;
    while own > 1 && busiest(routes, own, team.rank()).saturating_mul(unit) > share {
        own /= 2;
    }
    let agreed = team.max(step, Ok(vec![!own]))?;
    let window = agreed.first().map_or(1, |word| !word).max(1);
    plan.windows().insert(key, window);
    Ok(window)
}

/// The most units that this rank sends or takes in, in a round of windows of `window` blocks.
fn busiest(routes: &Routes, window: u64, rank: usize) -> u64 {
    let ranges = &routes.ranges;
    let rounds = ranges.most_blocks().div_ceil(window);
    let sent = (0..rounds).map(|round| {
        let slots =
            (0..ranges.owners()).map(|owner| routes.slots(&ranges.window(owner, round, window)).len() as u64);
        slots.sum()
    });
    let own = ranges.owner(rank).is_some();
    let taken = routes.counts.chunks(window as usize).map(|counts| counts.iter().sum()).filter(|_| own);
    sent.chain(taken).max().unwrap_or(0)
}

/// What this rank sends in a round.
fn pack(routes: &Routes, from: &Buffer<'_>, (round, window): (u64, u64), ranks: usize) -> Vec<Vec<u8>> {
    let unit = routes.unit as usize;
    let mut parts = vec![Vec::new(); ranks];
    for owner in 0..routes.ranges.owners() {
        let slots = routes.slots(&routes.ranges.window(owner, round, window));
        let mut part = vec![0; slots.len() * unit * from.element().size()];
        match &routes.sent {
            Numbers::Narrow(sent) => from.gather(&sent[slots], unit, &mut part),
            Numbers::Wide(sent) => from.gather(&sent[slots], unit, &mut part),
        }
        parts[routes.ranges.rank(owner)] = part;
    }
    parts
}

/// Puts what owners sent in a round to its places in memory.
fn unpack(routes: &Routes, into: &mut BufferMut<'_>, (round, window): (u64, u64), mut parts: Vec<Vec<u8>>) {
    let unit = routes.unit as usize;
    for owner in 0..routes.ranges.owners() {
        let slots = routes.slots(&routes.ranges.window(owner, round, window));
        let part = &mut parts[routes.ranges.rank(owner)];
        match &routes.sent {
            Numbers::Narrow(sent) => into.scatter(&sent[slots], unit, part),
            Numbers::Wide(sent) => into.scatter(&sent[slots], unit, part),
        }
    }
}

/// An owner that writes window by window.
struct WindowWriter<'a> {
    routes: &'a Routes,
    file: &'a TeamFile,
    array: FileArray,
    fill: Option<&'a [u8]>,
    /// Bytes of a gap that is read and written back, at most.
    gap: u64,
    /// How many units of each source have come.
    cursors: Vec<usize>,
    bytes: Vec<u8>,
    written: u64,
}

impl WindowWriter<'_> {
    /// Takes in one window and writes it.
    fn round(&mut self, blocks: std::ops::Range<u64>, owner: usize, parts: &mut [Vec<u8>]) -> Result<()> {
        let routes = self.routes;
        let origin = routes.ranges.unit(routes.ranges.of_owner(owner).start);
        let (at, end) = (routes.ranges.unit(blocks.start) - origin, routes.ranges.unit(blocks.end) - origin);
        if at == end {
            return Ok(());
        }
        let unit_bytes = routes.unit as usize * self.array.size as usize;
        let taken: usize = parts.iter().map(Vec::len).sum();
        self.bytes.resize((end - at) as usize * unit_bytes, 0);
        let counts = &routes.counts[(at >> routes.ranges.shift) as usize..];
        let expected: u64 = counts.iter().take((blocks.end - blocks.start) as usize).sum();
        if taken as u64 != expected * unit_bytes as u64 {
            return Err(Error::internal(format!(
                "{taken} bytes came for {expected} units of {unit_bytes} bytes"
            )));
        }
        let (fill, gap) = (self.fill, self.gap / unit_bytes as u64);
        // Without repeated units as many as fit are all there are.
        let is_full = routes.repeated() == 0 && expected == end - at;
        let stretches = match fill {
            _ if is_full => vec![(at, end)],
            Some(fill) => {
                self.bytes.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
                vec![(at, end)]
            }
            None => {
                let stretches = routes.stretches(at, end, gap);
                if gap > 0 {
                    self.read_back(&stretches, (at, origin))?;
                }
                stretches
            }
        };
        self.take(parts, at, origin)?;
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

    /// Reads what stands in the gaps of stretches, which are written back.
    fn read_back(&mut self, stretches: &[(u64, u64)], (at, origin): (u64, u64)) -> Result<()> {
        let (unit, size) = (self.routes.unit, self.array.size as usize);
        let unit_bytes = unit as usize * size;
        for (from, to) in stretches {
            let bytes = &mut self.bytes[(from - at) as usize * unit_bytes..(to - at) as usize * unit_bytes];
            let (file, array) = (self.file, self.array);
            array.pieces((origin + from) * unit, (origin + to) * unit, |offset, place, count| {
                let begin = place as usize * size;
                let bytes = &mut bytes[begin..begin + count as usize * size];
                let read = file.read_at(bytes, offset)?;
                bytes[read..].fill(0);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Puts what came to its places in the window, which begins at unit `at` of the range.
    fn take(&mut self, parts: &mut [Vec<u8>], at: u64, origin: u64) -> Result<()> {
        let unit_bytes = self.routes.unit as usize * self.array.size as usize;
        let mut seen = match self.routes.repeated() {
            0 => Vec::new(),
            _ => vec![0u64; (self.bytes.len() / unit_bytes).div_ceil(64)],
        };
        for (source, part) in parts.iter_mut().enumerate() {
            let part = std::mem::take(part);
            let (cursor, count) = (self.cursors[source], part.len() / unit_bytes);
            self.cursors[source] += count;
            let kept = &self.routes.kept[source];
            if seen.is_empty() {
                match kept {
                    Numbers::Narrow(kept) => {
                        put(
                            &mut self.bytes,
                            &part,
                            kept[cursor..cursor + count].iter().map(|n| u64::from(*n) - at),
                            unit_bytes,
                        );
                    }
                    Numbers::Wide(kept) => {
                        put(
                            &mut self.bytes,
                            &part,
                            kept[cursor..cursor + count].iter().map(|n| n - at),
                            unit_bytes,
                        );
                    }
                }
                continue;
            }
            for (n, element) in part.chunks_exact(unit_bytes).enumerate() {
                let place = (kept.get(cursor + n) - at) as usize;
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

    /// Two ranks have given one element different values; `unit` is its unit in the range, `source` the later rank.
    fn conflict(&self, element: u64, unit: u64, source: usize) -> Error {
        let names = |rank: &usize| {
            let kept = &self.routes.kept[*rank];
            (0..kept.len()).any(|place| kept.get(place) == unit)
        };
        let first = (0..=source).find(names).unwrap_or(source);
        let ranks = match first == source {
            true => format!("rank {source} twice"),
            false => format!("ranks {first} and {source}"),
        };
        Code::PiecesDiffer
            .error(format!("element {element} (in C order) is written by {ranks}, with different bytes"))
            .with_hint(
                "let one rank write it: put ghosts behind the owned entries and say how many are owned",
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
    match unit {
        4 => each::<4>(bytes, part, places),
        8 => each::<8>(bytes, part, places),
        16 => each::<16>(bytes, part, places),
        _ => part.chunks_exact(unit).zip(places).for_each(|(element, place)| {
            bytes[place as usize * unit..(place as usize + 1) * unit].copy_from_slice(element);
        }),
    }
}

/// Reads an owner's window and makes of it what each rank asked for, and says how many bytes were read.
fn give(
    routes: &Routes,
    file: &TeamFile,
    (array, past_end): (FileArray, PastFileEnd),
    (blocks, owner): (std::ops::Range<u64>, usize),
    cursors: &mut [usize],
    bytes: &mut Vec<u8>,
) -> Result<(Vec<Vec<u8>>, u64)> {
    let origin = routes.ranges.unit(routes.ranges.of_owner(owner).start);
    let (at, end) = (routes.ranges.unit(blocks.start) - origin, routes.ranges.unit(blocks.end) - origin);
    let (size, unit_bytes) = (array.size as usize, routes.unit as usize * array.size as usize);
    bytes.resize((end - at) as usize * unit_bytes, 0);
    let mut count = 0;
    for (from, to) in routes.stretches(at, end, GAP.max(unit_bytes as u64) / unit_bytes.max(1) as u64) {
        let bytes = &mut bytes[(from - at) as usize * unit_bytes..(to - at) as usize * unit_bytes];
        array.pieces(
            (origin + from) * routes.unit,
            (origin + to) * routes.unit,
            |offset, place, elements| {
                let begin = place as usize * size;
                count += past_end.read(file, offset, &mut bytes[begin..begin + elements as usize * size])?;
                Ok(())
            },
        )?;
    }
    let mut parts = Vec::with_capacity(cursors.len());
    for (kept, cursor) in routes.kept.iter().zip(cursors) {
        let begin = *cursor;
        *cursor = first_from(kept, begin, end);
        let mut part = vec![0; (*cursor - begin) * unit_bytes];
        match kept {
            Numbers::Narrow(kept) => {
                take(bytes, &mut part, kept[begin..*cursor].iter().map(|n| u64::from(*n) - at), unit_bytes);
            }
            Numbers::Wide(kept) => {
                take(bytes, &mut part, kept[begin..*cursor].iter().map(|n| n - at), unit_bytes)
            }
        }
        parts.push(part);
    }
    Ok((parts, count))
}

/// The first place from `begin` on of a number of `end`, the beginning of a block, or more: numbers stand by block.
fn first_from(kept: &Numbers, begin: usize, end: u64) -> usize {
    let (mut low, mut high) = (begin, kept.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match kept.get(middle) < end {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Copies elements of `unit` bytes from their places.
fn take(bytes: &[u8], part: &mut [u8], places: impl Iterator<Item = u64>, unit: usize) {
    fn each<const N: usize>(bytes: &[u8], part: &mut [u8], places: impl Iterator<Item = u64>) {
        let bytes = bytes.as_chunks::<N>().0;
        for (element, place) in part.as_chunks_mut::<N>().0.iter_mut().zip(places) {
            *element = bytes[place as usize];
        }
    }
    match unit {
        4 => each::<4>(bytes, part, places),
        8 => each::<8>(bytes, part, places),
        16 => each::<16>(bytes, part, places),
        _ => part.chunks_exact_mut(unit).zip(places).for_each(|(element, place)| {
            element.copy_from_slice(&bytes[place as usize * unit..(place as usize + 1) * unit]);
        }),
    }
}
