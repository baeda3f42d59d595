//! Compares the tables of two indexes, whatever they hold, in bounded memory: sums over their lines first, then the lines of
//! the few sums that differ.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use fieldstone_core::Result;

use super::dump::each_line;
use super::index::Index;

/// Sums that are kept of one index.
const SUMS: usize = 1 << 16;
/// Differing sums whose lines are listed; each has a line at least that only one index holds.
const LISTED: usize = 128;

/// The comparison of two indexes.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Lines of the first.
    pub lines: u64,
    /// Lines that only the first holds: all of them if they are few.
    pub first_alone: Vec<String>,
    /// Lines that only the second holds: all of them if they are few.
    pub second_alone: Vec<String>,
}

/// Compares two indexes. Needs a read in progress in both.
pub fn compare(first: &mut Index, second: &mut Index) -> Result<Comparison> {
    let (ours, lines) = sums(first)?;
    let (theirs, _) = sums(second)?;
    let differing = (0..SUMS).filter(|at| ours[*at] != theirs[*at]).take(LISTED);
    let differing: HashSet<usize> = differing.collect();
    if differing.is_empty() {
        return Ok(Comparison { lines, ..Comparison::default() });
    }
    let mut balance = HashMap::new();
    count(first, &differing, 1, &mut balance)?;
    count(second, &differing, -1, &mut balance)?;
    let alone = |sign: i64| {
        let mut alone: Vec<String> =
            balance.iter().filter(|(_, more)| **more * sign > 0).map(|(line, _)| line.clone()).collect();
        alone.sort();
        alone
    };
    Ok(Comparison { lines, first_alone: alone(1), second_alone: alone(-1) })
}

/// The place of a line's sum, and what it adds there.
fn hashed(line: &str) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    let hash = hasher.finish();
    (hash as usize % SUMS, hash)
}

/// Sums over the lines of an index, in any order, and the number of lines.
fn sums(index: &mut Index) -> Result<(Vec<u64>, u64)> {
    let (mut sums, mut lines) = (vec![0_u64; SUMS], 0);
    each_line(index, &mut |line| {
        let (at, hash) = hashed(&line);
        sums[at] = sums[at].wrapping_add(hash);
        lines += 1;
    })?;
    Ok((sums, lines))
}

/// Adds `by` for each line of an index that belongs to some of the sums.
fn count(index: &mut Index, of: &HashSet<usize>, by: i64, balance: &mut HashMap<String, i64>) -> Result<()> {
    each_line(index, &mut |line| {
        if of.contains(&hashed(&line).0) {
            *balance.entry(line).or_default() += by;
        }
    })
}
