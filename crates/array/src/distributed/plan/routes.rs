//! The assignment of this rank's elements to aggregators, and the places of the elements that this rank receives.
//!
//! Both sides sort only by bucket, with a counting pass and a placing pass and no comparisons. Inside a bucket,
//! units stay in the order of memory, so that a round passes through the memory of each rank from beginning to end,
//! and jumps only inside a window. The indices are sent once, in a narrow type if the ranges allow; aggregators
//! keep them.
//!
//! Invariants: [`sent`](Routes::sent) lists the units of memory in the order of aggregators and their buckets, as each
//! aggregator has them in [`kept`](Routes::kept), source by source; from one bucket of each range, a rank sends or
//! receives at most a third of the buffer, or one block of each.

use std::ops::Range;

use fieldstone_core::env::comm::{Parts, PartsMut, Step, Team};
use fieldstone_core::{Error, Result};

use super::ranges::Ranges;
use crate::distributed::buffer::Element;
use crate::distributed::view::Footprint;
use crate::distributed::view::footprint::gcd;

/// Whether numbers below `limit` take four bytes, else eight.
fn is_narrow(limit: u64) -> bool {
    u32::try_from(limit).is_ok()
}

/// A number as it is stored, modulo its width; its bytes are in the order in which they are sent, lowest byte first.
trait StoredNumber: Copy {
    fn of(number: u64) -> Self;

    /// The difference, which is correct if it fits, even if the numbers did not.
    fn minus(self, other: Self) -> Self;
}

impl StoredNumber for u32 {
    fn of(number: u64) -> Self {
        number as u32
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl StoredNumber for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl StoredNumber for [u8; 4] {
    fn of(number: u64) -> Self {
        (number as u32).to_le_bytes()
    }

    fn minus(self, other: Self) -> Self {
        u32::from_le_bytes(self).wrapping_sub(u32::from_le_bytes(other)).to_le_bytes()
    }
}

impl StoredNumber for [u8; 8] {
    fn of(number: u64) -> Self {
        number.to_le_bytes()
    }

    fn minus(self, other: Self) -> Self {
        u64::from_le_bytes(self).wrapping_sub(u64::from_le_bytes(other)).to_le_bytes()
    }
}

/// A list of numbers, in a narrow type if all fit.
#[derive(Debug)]
pub(super) enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

/// Numbers as they are sent, lowest byte first, in a narrow type if all fit.
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

    /// The number at an index.
    pub fn get(&self, place: usize) -> u64 {
        match self {
            SentNumbers::Narrow(list) => u64::from(u32::from_le_bytes(list[place])),
            SentNumbers::Wide(list) => u64::from_le_bytes(list[place]),
        }
    }
}

/// For each source: its units in this rank's range, counted from the range's beginning, by bucket. They stay in the
/// memory in which they were received.
#[derive(Debug)]
struct KeptUnits {
    is_narrow: bool,
    /// Those of the other ranks, in order, then this rank's own.
    bytes: Vec<u8>,
    /// The begins of the units of each bucket, and the end of the last one, for each source in turn. Empty if this
    /// rank has no range.
    starts: Vec<u64>,
    places: usize,
}

impl KeptUnits {
    /// For the received units, whose bytes are `bytes`.
    fn new(
        arriving: &Arriving,
        (rank, buckets): (usize, usize),
        is_narrow: bool,
        bytes: Vec<u8>,
    ) -> KeptUnits {
        let places = buckets + 1;
        let mut starts = Vec::with_capacity(arriving.len() / buckets.max(1) * places);
        let of_rank = |source: usize| arriving.iter().skip(source * buckets).take(buckets);
        let (all, own): (u64, u64) = (arriving.iter().sum(), of_rank(rank).sum());
        let mut end = 0;
        for (source, counts) in arriving.chunks(buckets.max(1)).enumerate() {
            // This rank's own units come after those of all others.
            let mut at = if source == rank { all - own } else { end };
            for count in counts {
                starts.push(at);
                at += count;
            }
            starts.push(at);
            if source != rank {
                end = at;
            }
        }
        KeptUnits { is_narrow, bytes, starts, places }
    }

    /// The units of a source in some buckets.
    fn units(&self, source: usize, buckets: &Range<u64>) -> SentNumbers<'_> {
        let start = |bucket: u64| {
            self.starts.get(source * self.places + bucket as usize).map_or(0, |at| *at as usize)
        };
        let units = start(buckets.start)..start(buckets.end);
        match self.is_narrow {
            true => SentNumbers::Narrow(&self.bytes.as_chunks().0[units]),
            false => SentNumbers::Wide(&self.bytes.as_chunks().0[units]),
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Routes {
    /// Number of elements that always move together.
    pub unit: u64,
    pub ranges: Ranges,
    /// The index in memory of the first element of each unit of this rank, by aggregator and bucket.
    pub sent: Numbers,
    /// The begins of the units of each aggregator's buckets in `sent`, and their end.
    starts: Vec<u64>,
    kept: KeptUnits,
    /// Number of units in each bucket of this rank's range, including repeated ones.
    pub counts: Vec<u64>,
    /// The units of this rank's range that are present.
    present: Vec<u64>,
    covered: u64,
    repeated: u64,
}

impl Routes {
    /// Collective: sends the indices to the aggregators. A bucket has up to `bucket` bytes of eight-byte elements.
    pub fn new(
        team: &Team,
        step: Step,
        footprint: &Footprint,
        (aggregators, bucket): (usize, u64),
    ) -> Result<Routes> {
        let unit = common_unit(team, step, footprint)?;
        // If all ranks are aggregators, their hosts do not matter.
        let hosts = if aggregators < team.size() { team.hosts(step)? } else { vec![0; team.size()].into() };
        let blocks = Ranges::new(footprint.total(), unit, aggregators, &hosts);
        let mut order = BucketOrder::new(footprint, unit, blocks).with_buckets(bucket / 8 / unit);
        let mut arriving = order.exchange_counts(team, step)?;
        // The elements of 16 bytes, the largest, in two buckets: at most a third of the buffer.
        let most = order.busiest(&arriving).saturating_mul(unit * Element::LARGEST as u64);
        let is_too_much = most > 4 * bucket && order.ranges.bucket_shift() > order.ranges.shift;
        let agreed = team.max(step, Ok(vec![u64::from(is_too_much), order.longest(team.rank())]))?;
        if agreed[0] > 0 {
            // A few ranks have many elements, or many ranks have the same ones.
            order = order.with_buckets(1);
            arriving = order.exchange_counts(team, step)?;
        }
        order.send(team, step, (arriving, agreed[1]))
    }

    /// The units of a source in some buckets of this rank's range, counted from the range's beginning; empty if this
    /// rank has no range.
    pub fn kept(&self, source: usize, buckets: &Range<u64>) -> SentNumbers<'_> {
        self.kept.units(source, buckets)
    }

    /// Finds the units of this rank's range that are present.
    fn look(&mut self, team: &Team) -> Result<()> {
        let Some(aggregator) = self.ranges.aggregator(team.rank()) else { return Ok(()) };
        let mut present = vec![0; self.ranges.range_units(aggregator).div_ceil(64) as usize];
        let mut counts = vec![0; self.ranges.buckets() as usize];
        for bucket in 0..self.ranges.buckets() {
            let buckets = bucket..bucket + 1;
            let allowed = self.ranges.units_in(aggregator, &buckets);
            for source in 0..team.size() {
                let kept = self.kept(source, &buckets);
                let outside = match kept {
                    SentNumbers::Narrow(kept) => {
                        let kept = kept.iter().map(|at| u64::from(u32::from_le_bytes(*at)));
                        mark(kept, &allowed, &mut present)
                    }
                    SentNumbers::Wide(kept) => {
                        let kept = kept.iter().map(|at| u64::from_le_bytes(*at));
                        mark(kept, &allowed, &mut present)
                    }
                };
                counts[bucket as usize] += kept.len() as u64;
                if let Some(at) = outside {
                    return Err(Error::internal(format!(
                        "rank {source} sent index {at}, which is not among {allowed:?}"
                    )));
                }
            }
        }
        self.covered = present.iter().map(|word: &u64| u64::from(word.count_ones())).sum();
        self.repeated = counts.iter().sum::<u64>() - self.covered;
        (self.counts, self.present) = (counts, present);
        Ok(())
    }

    /// Number of elements of this rank's range that some rank names.
    pub fn covered(&self) -> u64 {
        self.covered * self.unit
    }

    /// Number of elements named again, in this rank's range.
    pub fn repeated(&self) -> u64 {
        self.repeated * self.unit
    }

    /// The stretches of units that are present, from `at` to `end` of this rank's range; includes gaps of up to `gap`
    /// units.
    pub fn stretches(&self, at: u64, end: u64, gap: u64) -> Vec<(u64, u64)> {
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        let mut unit = at;
        while unit < end {
            let word = self.present[(unit / 64) as usize];
            // 64 units at a time if none or all of them are present.
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

    /// The slots of `sent` for some buckets of an aggregator.
    pub fn slots(&self, aggregator: usize, buckets: &Range<u64>) -> Range<usize> {
        slots(&self.starts, &self.ranges, aggregator, buckets)
    }
}

/// The range of units of an aggregator's buckets, if `starts` has the begin of each bucket.
fn slots(starts: &[u64], ranges: &Ranges, aggregator: usize, buckets: &Range<u64>) -> Range<usize> {
    let first = aggregator * ranges.buckets() as usize;
    starts[first + buckets.start as usize] as usize..starts[first + buckets.end as usize] as usize
}

/// The units of a rank, in the order of its memory, and the destination of each bucket.
struct BucketOrder<'a> {
    footprint: &'a Footprint,
    unit: u64,
    ranges: Ranges,
    /// Number of units in each block.
    of_block: Vec<u64>,
    /// The bucket of each block, counted over all aggregators.
    bucket_of: Vec<u32>,
    /// The begins of the units of each aggregator's buckets, and their end.
    starts: Vec<u64>,
}

/// Number of units received for each bucket of this rank's range, source by source; empty if it has no range.
type Arriving = Vec<u64>;

impl<'a> BucketOrder<'a> {
    /// Uses buckets of one block.
    fn new(footprint: &'a Footprint, unit: u64, ranges: Ranges) -> BucketOrder<'a> {
        let mut of_block = vec![0; ranges.blocks as usize];
        footprint.for_each_unit(unit, |at, _| of_block[(at >> ranges.shift) as usize] += 1);
        let (bucket_of, starts) = (vec![0; of_block.len()], Vec::new());
        BucketOrder { footprint, unit, ranges, of_block, bucket_of, starts }.with_buckets(1)
    }

    /// The same in buckets of up to this number of units.
    fn with_buckets(mut self, units: u64) -> BucketOrder<'a> {
        self.ranges = self.ranges.with_buckets(units);
        let buckets = self.ranges.buckets() as usize;
        let mut starts = vec![0; self.ranges.aggregators() * buckets + 1];
        for aggregator in 0..self.ranges.aggregators() {
            let blocks = self.ranges.of_aggregator(aggregator);
            for block in blocks.clone() {
                let bucket = aggregator * buckets + self.ranges.bucket_of(block - blocks.start) as usize;
                self.bucket_of[block as usize] = bucket as u32;
                starts[bucket + 1] += self.of_block[block as usize];
            }
        }
        // Prefix sums turn the counts into begins.
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        BucketOrder { starts, ..self }
    }

    /// Collective: how many units this rank will receive.
    fn exchange_counts(&self, team: &Team, step: Step) -> Result<Arriving> {
        let of_rank = |rank: usize| match self.ranges.aggregator(rank) {
            Some(aggregator) => (0..self.ranges.buckets())
                .flat_map(|bucket| (self.slots(aggregator, bucket..bucket + 1).len() as u64).to_le_bytes())
                .collect(),
            None => Vec::new(),
        };
        let parts = team.alltoallv(step, Ok((0..team.size()).map(of_rank).collect()))?;
        let counts = parts.iter().flat_map(|part| part.as_chunks().0);
        Ok(counts.map(|count| u64::from_le_bytes(*count)).collect())
    }

    fn slots(&self, aggregator: usize, buckets: Range<u64>) -> Range<usize> {
        slots(&self.starts, &self.ranges, aggregator, &buckets)
    }

    /// The maximum number of units that this rank sends or receives from one bucket of each range.
    fn busiest(&self, arriving: &Arriving) -> u64 {
        let of_bucket = |bucket: u64| {
            let sent = (0..self.ranges.aggregators())
                .map(|aggregator| self.slots(aggregator, bucket..bucket + 1).len() as u64);
            let taken = arriving.iter().skip(bucket as usize).step_by(self.ranges.buckets() as usize);
            sent.sum::<u64>().max(taken.fold(0u64, |sum, count| sum.saturating_add(*count)))
        };
        (0..self.ranges.buckets()).map(of_bucket).max().unwrap_or(0)
    }

    /// The maximum number of units that this rank, `rank`, sends to another one.
    fn longest(&self, rank: usize) -> u64 {
        let others = (0..self.ranges.aggregators())
            .filter(|aggregator| self.ranges.aggregator(rank) != Some(*aggregator));
        others
            .map(|aggregator| self.slots(aggregator, 0..self.ranges.buckets()).len() as u64)
            .max()
            .unwrap_or(0)
    }

    /// Collective: sends the indices, up to `longest` to each rank.
    fn send(self, team: &Team, step: Step, (arriving, longest): (Arriving, u64)) -> Result<Routes> {
        let units = self.starts.last().map_or(0, |units| *units as usize);
        let mut sent = match is_narrow(self.footprint.memory()) {
            true => Numbers::Narrow(vec![0; units]),
            false => Numbers::Wide(vec![0; units]),
        };
        let is_narrow = is_narrow(self.ranges.most_blocks() << self.ranges.shift);
        let width = if is_narrow { 4 } else { 8 };
        let mut offsets = vec![0; units * width];
        match (&mut sent, is_narrow) {
            (Numbers::Narrow(sent), true) => self.place(sent, offsets.as_chunks_mut::<4>().0),
            (Numbers::Narrow(sent), false) => self.place(sent, offsets.as_chunks_mut::<8>().0),
            (Numbers::Wide(sent), true) => self.place(sent, offsets.as_chunks_mut::<4>().0),
            (Numbers::Wide(sent), false) => self.place(sent, offsets.as_chunks_mut::<8>().0),
        }
        let (rank, all) = (team.rank(), 0..self.ranges.buckets());
        let bytes_of = |rank: usize| match self.ranges.aggregator(rank) {
            Some(aggregator) => {
                let slots = self.slots(aggregator, all.clone());
                slots.start * width..slots.end * width
            }
            None => 0..0,
        };
        let mut lens: Vec<usize> = (0..team.size()).map(|rank| bytes_of(rank).len()).collect();
        let buckets = self.ranges.buckets() as usize;
        let mut came = vec![0; team.size()];
        for (len, counts) in came.iter_mut().zip(arriving.chunks(buckets.max(1))) {
            *len = counts.iter().sum::<u64>() as usize * width;
        }
        // This rank's own indices are not sent.
        let own = bytes_of(rank);
        (lens[rank], came[rank]) = (0, 0);
        let others = came.iter().sum();
        let mut bytes = vec![0; others + own.len()];
        bytes[others..].copy_from_slice(&offsets[own.clone()]);
        offsets.drain(own);
        let longest = usize::try_from(longest.saturating_mul(width as u64)).unwrap_or(usize::MAX);
        let taken = PartsMut { bytes: &mut bytes[..others], lens: &came };
        team.exchange(Parts { bytes: &offsets, lens: &lens }, taken, longest)?;
        drop(offsets);
        let kept = KeptUnits::new(&arriving, (rank, buckets), is_narrow, bytes);
        let BucketOrder { unit, ranges, starts, .. } = self;
        let (counts, present) = (Vec::new(), Vec::new());
        let mut routes =
            Routes { unit, ranges, sent, starts, kept, counts, present, covered: 0, repeated: 0 };
        let looked = routes.look(team);
        team.agree(step, looked)?;
        Ok(routes)
    }

    /// Sorts the index in memory of each unit, and its index in the aggregator's range, by bucket.
    fn place<M: StoredNumber, A: StoredNumber>(&self, memory: &mut [M], offsets: &mut [A]) {
        let (shift, mut next) = (self.ranges.shift, self.starts.clone());
        self.footprint.for_each_unit(self.unit, |at, number| {
            let next = &mut next[self.bucket_of[(at >> shift) as usize] as usize];
            memory[*next as usize] = M::of(number);
            offsets[*next as usize] = A::of(at);
            *next += 1;
        });
        for aggregator in 0..self.ranges.aggregators() {
            let origin = A::of(self.ranges.unit(self.ranges.of_aggregator(aggregator).start));
            let slots = self.slots(aggregator, 0..self.ranges.buckets());
            offsets[slots].iter_mut().for_each(|at| *at = at.minus(origin));
        }
    }
}

/// Marks units as present; stops at one that is not in the allowed range.
fn mark(kept: impl Iterator<Item = u64>, allowed: &Range<u64>, present: &mut [u64]) -> Option<u64> {
    for at in kept {
        if !allowed.contains(&at) {
            return Some(at);
        }
        present[(at / 64) as usize] |= 1 << (at % 64);
    }
    None
}

/// Collective: the number of elements that always move together, on all ranks.
fn common_unit(team: &Team, step: Step, footprint: &Footprint) -> Result<u64> {
    let own = footprint.unit();
    // Usually all ranks have the same number, or one of them has 1.
    let ones = team.max(step, Ok(vec![u64::from(own == 1)]))?;
    if ones[0] == 1 {
        return Ok(1);
    }
    let all = team.allgather(step, Ok(own.to_le_bytes().to_vec()))?;
    let units = all.iter().filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
    let unit = units.fold(footprint.total(), gcd);
    Ok(largest_divisor(unit.max(1), MOST_UNIT))
}

/// Limit on the elements of a unit, so that blocks, which are at least one unit, stay small.
const MOST_UNIT: u64 = 1 << 16;

/// The largest divisor of `number` that repeated halving gives and that is at most `limit`, else 1.
fn largest_divisor(number: u64, limit: u64) -> u64 {
    let mut divisor = number;
    while divisor > limit {
        divisor = if divisor.is_multiple_of(2) { divisor / 2 } else { 1 };
    }
    divisor
}
