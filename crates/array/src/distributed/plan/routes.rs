//! Which elements of this rank go to which owner, and where what comes here belongs.
//!
//! Both sides sort by block and no further: a counting pass and a placing pass, no comparison. The indices are sent
//! once, narrow where the ranges allow; owners keep them.
//!
//! Invariants: [`sent`](Routes::sent) names the units of memory in the order of blocks, as the owner of each has
//! them in [`kept`](Routes::kept), source by source.

use std::ops::Range;

use fieldstone_core::env::comm::{Parts, Team};
use fieldstone_core::{Error, Result};

use super::ranges::Ranges;
use crate::distributed::view::Footprint;
use crate::distributed::view::footprint::gcd;

/// Whether numbers below `limit` take four bytes, else eight.
fn is_narrow(limit: u64) -> bool {
    u32::try_from(limit).is_ok()
}

/// A number as it is kept, which was found to be wide enough; bytes stand as they are sent, least byte first.
trait StoredNumber: Copy {
    fn of(number: u64) -> Self;
}

impl StoredNumber for u32 {
    fn of(number: u64) -> Self {
        number as u32
    }
}

impl StoredNumber for u64 {
    fn of(number: u64) -> Self {
        number
    }
}

impl StoredNumber for [u8; 4] {
    fn of(number: u64) -> Self {
        (number as u32).to_le_bytes()
    }
}

impl StoredNumber for [u8; 8] {
    fn of(number: u64) -> Self {
        number.to_le_bytes()
    }
}

/// A list of numbers, narrow where all fit.
#[derive(Debug)]
pub(super) enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

/// Numbers as they are sent, least byte first; narrow where all fit.
#[derive(Debug, Clone, Copy)]
pub(super) enum SentNumbers<'a> {
    Narrow(&'a [[u8; 4]]),
    Wide(&'a [[u8; 8]]),
}

impl SentNumbers<'_> {
    pub fn len(&self) -> usize {
        match self {
            SentNumbers::Narrow(list) => list.len(),
            SentNumbers::Wide(list) => list.len(),
        }
    }

    /// The number at a place.
    pub fn get(&self, place: usize) -> u64 {
        match self {
            SentNumbers::Narrow(list) => u64::from(u32::from_le_bytes(list[place])),
            SentNumbers::Wide(list) => u64::from_le_bytes(list[place]),
        }
    }
}

/// For each source: the units that it has of this rank's range, counted from the range's beginning, by block. They stay in
/// the memory that they came in.
#[derive(Debug)]
struct KeptUnits {
    rank: usize,
    is_narrow: bool,
    /// Of the other ranks, one after another, and where each begins and ends.
    others: Vec<u8>,
    bytes: Vec<Range<usize>>,
    own: Vec<u8>,
}

impl KeptUnits {
    fn of(&self, source: usize) -> SentNumbers<'_> {
        let bytes = match source == self.rank {
            true => &self.own[..],
            false => {
                self.bytes.get(source).and_then(|range| self.others.get(range.clone())).unwrap_or_default()
            }
        };
        match self.is_narrow {
            true => SentNumbers::Narrow(bytes.as_chunks().0),
            false => SentNumbers::Wide(bytes.as_chunks().0),
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Routes {
    /// Elements that always move together.
    pub unit: u64,
    pub ranges: Ranges,
    /// Memory number of the first element of each unit of this rank, by block.
    pub sent: Numbers,
    /// Where the units of each block begin in `sent`, and their end.
    pub starts: Vec<u64>,
    kept: KeptUnits,
    /// How many units of each block of this rank's range there are, repeated ones among them.
    pub counts: Vec<u64>,
    /// Which units of this rank's range there are.
    present: Vec<u64>,
    covered: u64,
    repeated: u64,
}

impl Routes {
    /// Collective: sends the indices to the owners.
    pub fn new(team: &Team, step: &'static str, footprint: &Footprint, owners: usize) -> Result<Routes> {
        let unit = common_unit(team, step, footprint)?;
        // Where all ranks are owners it does not matter where they run.
        let hosts = if owners < team.size() { team.hosts(step)? } else { vec![0; team.size()].into() };
        let ranges = Ranges::new(footprint.total(), unit, owners, &hosts);
        let blocks = ranges.blocks as usize;
        let mut starts = vec![0u64; blocks + 1];
        footprint.for_each_unit(unit, |at, _| starts[(at >> ranges.shift) as usize + 1] += 1);
        for block in 0..blocks {
            starts[block + 1] += starts[block];
        }
        let units = starts[blocks] as usize;
        let mut origins = vec![0u64; blocks];
        for owner in 0..owners {
            let range = ranges.of_owner(owner);
            origins[range.start as usize..range.end as usize].fill(ranges.unit(range.start));
        }
        let mut sent = match is_narrow(footprint.memory()) {
            true => Numbers::Narrow(vec![0; units]),
            false => Numbers::Wide(vec![0; units]),
        };
        let is_narrow = is_narrow(ranges.most_blocks() << ranges.shift);
        let width = if is_narrow { 4 } else { 8 };
        let mut offsets = vec![0; units * width];
        let from = BlockOrder { footprint, unit, ranges: &ranges, starts: &starts, origins: &origins };
        match (&mut sent, is_narrow) {
            (Numbers::Narrow(sent), true) => from.place(sent, offsets.as_chunks_mut::<4>().0),
            (Numbers::Narrow(sent), false) => from.place(sent, offsets.as_chunks_mut::<8>().0),
            (Numbers::Wide(sent), true) => from.place(sent, offsets.as_chunks_mut::<4>().0),
            (Numbers::Wide(sent), false) => from.place(sent, offsets.as_chunks_mut::<8>().0),
        }
        drop(origins);
        let bytes_of = |rank: usize| match ranges.owner(rank) {
            Some(owner) => {
                let range = ranges.of_owner(owner);
                starts[range.start as usize] as usize * width..starts[range.end as usize] as usize * width
            }
            None => 0..0,
        };
        let mut lens: Vec<usize> = (0..team.size()).map(|rank| bytes_of(rank).len()).collect();
        // What is this rank's own is not sent.
        let own_bytes = bytes_of(team.rank());
        let own = offsets[own_bytes.clone()].to_vec();
        offsets.drain(own_bytes);
        lens[team.rank()] = 0;
        let (others, lens) = team.alltoallv_parts(step, Ok(Parts { bytes: &offsets, lens: &lens }))?;
        drop(offsets);
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let bytes = ends.zip(&lens).map(|(end, len)| end - len..end).collect();
        let kept = KeptUnits { rank: team.rank(), is_narrow, others, bytes, own };
        let (counts, present) = (Vec::new(), Vec::new());
        let mut routes =
            Routes { unit, ranges, sent, starts, kept, counts, present, covered: 0, repeated: 0 };
        let looked = routes.look(team);
        team.agree(step, looked)?;
        Ok(routes)
    }

    /// The units that a source has of this rank's range, counted from the range's beginning, by block.
    pub fn kept(&self, source: usize) -> SentNumbers<'_> {
        self.kept.of(source)
    }

    /// Units of the owner's range.
    fn range_units(&self, owner: usize) -> u64 {
        let range = self.ranges.of_owner(owner);
        self.ranges.unit(range.end) - self.ranges.unit(range.start)
    }

    /// Finds out what there is of this rank's range.
    fn look(&mut self, team: &Team) -> Result<()> {
        let owner = self.ranges.owner(team.rank());
        let units = owner.map_or(0, |owner| self.range_units(owner));
        let shift = self.ranges.shift;
        let mut counts = vec![0; owner.map_or(0, |owner| self.ranges.of_owner(owner).count())];
        let mut present = vec![0; units.div_ceil(64) as usize];
        let mut named = 0;
        for source in 0..team.size() {
            let kept = self.kept(source);
            let outside = match kept {
                SentNumbers::Narrow(kept) => {
                    let kept = kept.iter().map(|at| u64::from(u32::from_le_bytes(*at)));
                    mark(kept, (units, shift), &mut counts, &mut present)
                }
                SentNumbers::Wide(kept) => {
                    let kept = kept.iter().map(|at| u64::from_le_bytes(*at));
                    mark(kept, (units, shift), &mut counts, &mut present)
                }
            };
            if let Some(at) = outside {
                return Err(Error::internal(format!("rank {source} sent index {at} of a range of {units}")));
            }
            named += kept.len() as u64;
        }
        self.covered = present.iter().map(|word: &u64| u64::from(word.count_ones())).sum();
        self.repeated = named - self.covered;
        (self.counts, self.present) = (counts, present);
        Ok(())
    }

    /// Elements of this rank's range that some rank names.
    pub fn covered(&self) -> u64 {
        self.covered * self.unit
    }

    /// Elements named again, of this rank's range.
    pub fn repeated(&self) -> u64 {
        self.repeated * self.unit
    }

    /// The stretches of units that there are, of those from `at` to `end` of this rank's range; gaps of up to `gap`
    /// units are taken with them.
    pub fn stretches(&self, at: u64, end: u64, gap: u64) -> Vec<(u64, u64)> {
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        let mut unit = at;
        while unit < end {
            let word = self.present[(unit / 64) as usize];
            // 64 units at a time where none or all of them are there.
            let (is_present, behind) = match unit.is_multiple_of(64) && (word == 0 || word == u64::MAX) {
                true => (word != 0, (unit + 64).min(end)),
                false => (word >> (unit % 64) & 1 == 1, unit + 1),
            };
            if is_present {
                match stretches.last_mut() {
                    Some(last) if unit - last.1 <= gap => last.1 = behind,
                    _ => stretches.push((unit, behind)),
                }
            }
            unit = behind;
        }
        stretches
    }

    /// Of each rank the units, of those that it has of this owner's range, in the next blocks of it; `cursors` say of each how
    /// many were in those before.
    pub fn units_of(&self, cursors: &mut [usize], blocks: &Range<u64>, owner: usize) -> Vec<Range<usize>> {
        let end = self.ranges.unit(blocks.end) - self.ranges.unit(self.ranges.of_owner(owner).start);
        let next = |(source, cursor): (usize, &mut usize)| {
            let begin = std::mem::replace(cursor, first_from(self.kept(source), *cursor, end));
            begin..*cursor
        };
        cursors.iter_mut().enumerate().map(next).collect()
    }

    /// Slots of `sent` for some blocks.
    pub fn slots(&self, blocks: &Range<u64>) -> Range<usize> {
        self.starts[blocks.start as usize] as usize..self.starts[blocks.end as usize] as usize
    }
}

/// The units of a rank, in the order of its memory, and where those of each block go.
struct BlockOrder<'a> {
    footprint: &'a Footprint,
    unit: u64,
    ranges: &'a Ranges,
    starts: &'a [u64],
    /// Where the range that a block is in begins.
    origins: &'a [u64],
}

impl BlockOrder<'_> {
    /// Places the number in memory of each unit, and its number in the owner's range, by block.
    fn place<M: StoredNumber, A: StoredNumber>(&self, memory: &mut [M], offsets: &mut [A]) {
        let mut next = self.starts.to_vec();
        self.footprint.for_each_unit(self.unit, |at, number| {
            let block = (at >> self.ranges.shift) as usize;
            let place = next[block] as usize;
            next[block] += 1;
            memory[place] = M::of(number);
            offsets[place] = A::of(at - self.origins[block]);
        });
    }
}

/// Counts units by block and marks them as present; the first that is beyond the range ends it.
fn mark(
    kept: impl Iterator<Item = u64>,
    (units, shift): (u64, u32),
    counts: &mut [u64],
    present: &mut [u64],
) -> Option<u64> {
    for at in kept {
        if at >= units {
            return Some(at);
        }
        counts[(at >> shift) as usize] += 1;
        present[(at / 64) as usize] |= 1 << (at % 64);
    }
    None
}

/// The first place from `begin` on of a number of `end`, the beginning of a block, or more: numbers stand by block.
fn first_from(kept: SentNumbers<'_>, begin: usize, end: u64) -> usize {
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

/// Collective: how many elements always move together, on all ranks.
fn common_unit(team: &Team, step: &'static str, footprint: &Footprint) -> Result<u64> {
    let own = footprint.unit();
    // Mostly all ranks have the same one, or one of them has 1.
    let ones = team.max(step, Ok(vec![u64::from(own == 1)]))?;
    if ones[0] == 1 {
        return Ok(1);
    }
    let all = team.allgather(step, Ok(own.to_le_bytes().to_vec()))?;
    let units = all.iter().filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
    let unit = units.fold(footprint.total(), gcd);
    Ok(largest_divisor(unit.max(1), MOST_UNIT))
}

/// Elements of a unit at most, so that blocks, which are units at least, stay small.
const MOST_UNIT: u64 = 1 << 16;

/// The largest divisor of `number` that halving gives and that is at most `limit`, else 1.
fn largest_divisor(number: u64, limit: u64) -> u64 {
    let mut divisor = number;
    while divisor > limit {
        divisor = if divisor.is_multiple_of(2) { divisor / 2 } else { 1 };
    }
    divisor
}
