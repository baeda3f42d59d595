//! Which elements of this rank go to which owner, and where what comes here belongs.
//!
//! Both sides sort by block and no further: a counting pass and a placing pass, no comparison. The indices are sent
//! once, narrow where the ranges allow; owners keep them.
//!
//! Invariants: [`sent`](Routes::sent) names the units of memory in the order of blocks, as the owner of each has
//! them in [`kept`](Routes::kept), source by source.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};

use super::ranges::Ranges;
use crate::distributed::view::Footprint;
use crate::distributed::view::footprint::gcd;

/// A list of numbers, narrow where all fit.
#[derive(Debug)]
pub(super) enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Numbers {
    /// Places numbers below `limit`.
    fn zeros(len: usize, limit: u64) -> Numbers {
        match u32::try_from(limit) {
            Ok(_) => Numbers::Narrow(vec![0; len]),
            Err(_) => Numbers::Wide(vec![0; len]),
        }
    }

    fn set(&mut self, place: usize, number: u64) {
        match self {
            Numbers::Narrow(list) => list[place] = number as u32,
            Numbers::Wide(list) => list[place] = number,
        }
    }

    fn bytes(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        match self {
            Numbers::Narrow(list) => {
                list[range].iter().map(|n| n.to_le_bytes()).collect::<Vec<_>>().into_flattened()
            }
            Numbers::Wide(list) => {
                list[range].iter().map(|n| n.to_le_bytes()).collect::<Vec<_>>().into_flattened()
            }
        }
    }

    fn of_bytes(bytes: &[u8], limit: u64) -> Numbers {
        match u32::try_from(limit) {
            Ok(_) => {
                Numbers::Narrow(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
            Err(_) => {
                Numbers::Wide(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Numbers::Narrow(list) => list.len(),
            Numbers::Wide(list) => list.len(),
        }
    }

    /// The number at a place.
    pub fn get(&self, place: usize) -> u64 {
        match self {
            Numbers::Narrow(list) => u64::from(list[place]),
            Numbers::Wide(list) => list[place],
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
    /// For each source: the units that it has of this rank's range, counted from the range's beginning, by block.
    pub kept: Vec<Numbers>,
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
        // Where the range that a block is in begins.
        let mut origins = vec![0u64; blocks];
        for owner in 0..owners {
            let range = ranges.of_owner(owner);
            origins[range.start as usize..range.end as usize].fill(ranges.unit(range.start));
        }
        let longest = ranges.most_blocks() << ranges.shift;
        let mut sent = Numbers::zeros(units, footprint.memory());
        let mut offsets = Numbers::zeros(units, longest);
        let mut next = starts.clone();
        footprint.for_each_unit(unit, |at, memory| {
            let block = (at >> ranges.shift) as usize;
            let place = next[block] as usize;
            next[block] += 1;
            sent.set(place, memory);
            offsets.set(place, at - origins[block]);
        });
        let mut parts = vec![Vec::new(); team.size()];
        for owner in 0..owners {
            let range = ranges.of_owner(owner);
            let slots = starts[range.start as usize] as usize..starts[range.end as usize] as usize;
            parts[ranges.rank(owner)] = offsets.bytes(slots);
        }
        drop((offsets, next, origins));
        let parts = team.alltoallv(step, Ok(parts))?;
        let kept = parts.into_iter().map(|part| Numbers::of_bytes(&part, longest)).collect();
        let mut routes = Routes {
            unit,
            ranges,
            sent,
            starts,
            kept,
            counts: Vec::new(),
            present: Vec::new(),
            covered: 0,
            repeated: 0,
        };
        let looked = routes.look(team.rank());
        team.agree(step, looked)?;
        Ok(routes)
    }

    /// Units of the owner's range.
    fn range_units(&self, owner: usize) -> u64 {
        let range = self.ranges.of_owner(owner);
        self.ranges.unit(range.end) - self.ranges.unit(range.start)
    }

    /// Finds out what there is of this rank's range.
    fn look(&mut self, rank: usize) -> Result<()> {
        let owner = self.ranges.owner(rank);
        let units = owner.map_or(0, |owner| self.range_units(owner));
        self.counts = vec![0; owner.map_or(0, |owner| self.ranges.of_owner(owner).count())];
        self.present = vec![0; units.div_ceil(64) as usize];
        let shift = self.ranges.shift;
        for (source, numbers) in self.kept.iter().enumerate() {
            for place in 0..numbers.len() {
                let at = numbers.get(place);
                if at >= units {
                    return Err(Error::internal(format!(
                        "rank {source} sent index {at} of a range of {units}"
                    )));
                }
                self.counts[(at >> shift) as usize] += 1;
                let (word, bit) = (&mut self.present[(at / 64) as usize], 1u64 << (at % 64));
                let is_new = *word & bit == 0;
                *word |= bit;
                self.covered += u64::from(is_new);
                self.repeated += u64::from(!is_new);
            }
        }
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
    pub fn units_of(
        &self,
        cursors: &mut [usize],
        blocks: &std::ops::Range<u64>,
        owner: usize,
    ) -> Vec<std::ops::Range<usize>> {
        let end = self.ranges.unit(blocks.end) - self.ranges.unit(self.ranges.of_owner(owner).start);
        let next = |(kept, cursor): (&Numbers, &mut usize)| {
            let begin = std::mem::replace(cursor, first_from(kept, *cursor, end));
            begin..*cursor
        };
        self.kept.iter().zip(cursors).map(next).collect()
    }

    /// Slots of `sent` for some blocks.
    pub fn slots(&self, blocks: &std::ops::Range<u64>) -> std::ops::Range<usize> {
        self.starts[blocks.start as usize] as usize..self.starts[blocks.end as usize] as usize
    }
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
