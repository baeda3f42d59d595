//! Plans: which rank sends which elements to whom, made once for a view and used for all sets of its shape.
//!
//! Elements of a global array go to the [owners](Ownership) of the blocks they lie in. A plan is made together by all
//! ranks: each sorts what it holds by blocks, in one pass that counts and one that places, and says to the owners where its
//! elements belong, in two bytes each. Afterwards elements alone travel, in rounds that take no more than a given number
//! of bytes.
//!
//! | module | |
//! |---|---|
//! | [`blocks`] | blocks and their owners |
//! | `entries` | elements by blocks, and how owners learn of them |
//! | `exchange` | elements to their owners, and back |
//!
//! Invariants:
//! * a plan counts elements and not bytes: it serves every type;
//! * an element that several ranks write is known as such from the plan on, and compared when it is written;
//! * nothing depends on the order in which messages come: the same data become the same bytes for any number of ranks.

pub mod blocks;
mod entries;
mod exchange;

use std::ops::Range;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Result};
use xxhash_rust::xxh3::Xxh3;

use self::blocks::{BLOCK, Ownership};
use self::entries::BlockEntries;
use super::buffer::Element;
use super::view::{LocalView, Run, Whole};

pub use exchange::{BlockSum, SourceBuffer, TargetBuffer};

/// Which of a view's elements a plan moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Those that are written.
    Write,
    /// Those that are read: with halo and ghosts.
    Read,
}

/// A plan of one rank. See the module.
#[derive(Debug)]
pub struct TransferPlan {
    whole: Whole,
    direction: Direction,
    ownership: Ownership,
    /// Elements of the buffer that it was made for.
    buffer: u64,
    /// The own elements, by blocks.
    own: BlockEntries,
    /// As an owner: what each rank has of the own blocks.
    ranks: Vec<BlockEntries>,
    /// As an owner: blocks in which several ranks write an element, ascending.
    shared: Vec<u64>,
    /// As an owner: how many elements of the own blocks nobody has.
    absent: Vec<(u64, u64)>,
    /// Elements of the array that nobody has, on all ranks.
    missing: u64,
}

impl TransferPlan {
    /// Collective: the plan for what each rank holds of an array, with so many owners.
    ///
    /// Errors: `Invalid` where a rank's view failed (on all, naming it), `Conflict` where ranks speak of arrays of other
    /// shapes.
    pub fn make(
        team: &Team,
        local: Result<&LocalView>,
        direction: Direction,
        owners: usize,
    ) -> Result<TransferPlan> {
        let local = team.agree("plan", local)?;
        let whole = local.whole().clone();
        check_alike(team, &whole, direction, owners)?;
        let ownership = Ownership::new(whole.elements(), owners, team.size());
        let give = |each: &mut dyn FnMut(Run)| match direction {
            Direction::Write => local.written(each),
            Direction::Read => local.read(each),
        };
        let own = BlockEntries::of_runs(ownership.blocks(), local.elements(), give);
        let mut parts = vec![Vec::new(); team.size()];
        for owner in 0..ownership.owners() {
            parts[ownership.rank(owner)] = own.message(&ownership.range(owner));
        }
        let messages = team.alltoallv("plan", Ok(parts))?;
        let range = ownership.owner_of_rank(team.rank()).map_or(0..0, |owner| ownership.range(owner));
        let read = |bytes: &Vec<u8>| BlockEntries::of_message(bytes, &range, whole.elements());
        let ranks: Result<Vec<BlockEntries>> = messages.iter().map(read).collect();
        let ranks = team.agree("plan", ranks)?;
        let (shared, absent) = coverage(&ranks, &range, whole.elements());
        let missing = team.sums("plan", Ok(vec![absent.iter().map(|(_, n)| n).sum()]))?;
        let missing = missing.total.first().copied().unwrap_or(0);
        let buffer = local.elements();
        Ok(TransferPlan { whole, direction, ownership, buffer, own, ranks, shared, absent, missing })
    }

    /// The array.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    /// Which elements it moves.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// How the blocks are owned.
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Elements of the array that no rank has.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Bytes of memory that it takes on this rank.
    pub fn memory(&self) -> u64 {
        let ranks: u64 = self.ranks.iter().map(BlockEntries::memory).sum();
        self.own.memory() + ranks + (self.shared.len() * 8 + self.absent.len() * 16) as u64
    }

    /// The blocks of an owner that a round takes, of `window` blocks each.
    fn window(&self, owner: usize, round: u64, window: u64) -> Range<u64> {
        let range = self.ownership.range(owner);
        let begin = (range.start + round * window).min(range.end);
        begin..(begin + window).min(range.end)
    }

    /// Collective: the blocks of a round, so that no rank has more than `buffer` bytes of it to send or to own; at least
    /// one.
    fn agreed_window(&self, team: &Team, element: Element, buffer: Result<u64>) -> Result<u64> {
        let fitting = buffer.map(|buffer| {
            let room = buffer / element.size() as u64;
            let mut window = (room / BLOCK).clamp(1, self.ownership.longest().max(1));
            while window > 1 && self.most_sent(window) > room {
                window = window.div_ceil(2);
            }
            vec![u64::MAX - window]
        });
        let least = team.max("window", fitting)?;
        Ok(u64::MAX - least.first().copied().unwrap_or(u64::MAX - 1))
    }

    /// Elements that this rank sends in the round in which it sends most.
    fn most_sent(&self, window: u64) -> u64 {
        let rounds = self.ownership.longest().div_ceil(window);
        let sent = |round| {
            let owners = 0..self.ownership.owners();
            owners
                .map(|owner| self.own.elements(self.own.entries_in(&self.window(owner, round, window))))
                .sum()
        };
        (0..rounds).map(sent).max().unwrap_or(0)
    }
}

fn check_alike(team: &Team, whole: &Whole, direction: Direction, owners: usize) -> Result<()> {
    let mut digest = Xxh3::new();
    whole.shape().iter().for_each(|len| digest.update(&len.to_le_bytes()));
    digest.update(&[direction as u8]);
    digest.update(&owners.to_le_bytes());
    // The greatest and the least are equal where all are.
    let word = digest.digest();
    let most = team.max("plan", Ok(vec![word, !word]))?;
    match most == [word, !word] {
        true => Ok(()),
        false => Err(team.fail(
            Code::CollectiveMismatch
                .error(format!(
                    "ranks speak of other arrays: rank {} of one of {:?}",
                    team.rank(),
                    whole.shape()
                ))
                .with_hint("give all ranks the same shape and settings"),
        )),
    }
}

/// Blocks with elements that several entries have, and of each block that is not whole how many elements nobody has.
fn coverage(ranks: &[BlockEntries], range: &Range<u64>, elements: u64) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut shared, mut absent) = (Vec::new(), Vec::new());
    let mut seen = vec![0u64; BLOCK as usize / 64];
    let mut lists: Vec<_> = ranks.iter().map(|entries| entries.blocks_in(range).peekable()).collect();
    for block in range.clone() {
        seen.fill(0);
        let (mut count, mut twice) = (0, false);
        for (entries, list) in ranks.iter().zip(&mut lists) {
            let Some((_, own)) = list.next_if(|(listed, _)| *listed == block) else { continue };
            for i in own {
                let (offset, len) = entries.entry(i);
                for at in offset..offset + len {
                    let (word, bit) = (&mut seen[at as usize / 64], 1 << (at % 64));
                    (count, twice) = (count + u64::from(*word & bit == 0), twice || *word & bit != 0);
                    *word |= bit;
                }
            }
        }
        shared.extend(twice.then_some(block));
        let lacks = BLOCK.min(elements - block * BLOCK) - count;
        absent.extend((lacks > 0).then_some((block, lacks)));
    }
    (shared, absent)
}
