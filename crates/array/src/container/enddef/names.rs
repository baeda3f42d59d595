//! Checks names on the ranks that own a part of all hashes (C-1).
//!
//! The upper half of a name's 64-bit hash determines the rank that owns it: ranges of equal size, in order, so that
//! the owners' sorted tables, one after another, are sorted as a whole. Each rank sends the hashes and local numbers
//! of its objects to their owners, 12 bytes each; the owner sorts them and finds equal hashes. Different names with
//! equal hashes do no harm: [`shared`](super::shared) compares the definitions of just these objects.
//!
//! For each dimension or variable, one word is sorted: upper half of the hash, one bit for the kind, position in the
//! owner's list. That is almost an entry of the name index; numbers replace positions once they are known. A single
//! rank sends nothing and sorts its own.

use std::borrow::Cow;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};

use super::report::Watch;
use crate::container::hash_sort::sort_words;
use crate::container::words::{Words, words};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Dim = 0,
    Attr = 1,
    Var = 2,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Dim, Kind::Attr, Kind::Var];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Dim => "dimension",
            Kind::Attr => "global attribute",
            Kind::Var => "variable",
        }
    }
}

/// The message that a rank sends to every other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Preamble {
    /// Whether any of its names is a path of several parts.
    pub has_paths: bool,
    /// Number of dimensions and variables that it sends.
    pub objects: [u64; 2],
}

words!(Preamble { has_paths: bool, objects: [u64; 2] });

/// The head of a message from one rank to one owner, before the columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Head {
    preamble: Preamble,
    /// Number of objects of each kind that it sends to this owner.
    counts: [u64; 3],
}

words!(Head { preamble: Preamble, counts: [u64; 3] });

/// Size of a [`Head`] in bytes.
const HEAD: usize = Head::LEN * 8;

/// The names on an owner: the objects of all ranks whose hashes fall in its range.
#[derive(Debug)]
pub(super) struct SharedNames<'a> {
    /// Hashes, by kind, in the order of ranks and of each rank's definitions.
    pub hashes: [Cow<'a, [u64]>; 3],
    /// Local number of each object on its rank; empty if that is its position (one rank).
    pub locals: [Vec<u32>; 3],
    /// Index of each rank's first object, and the end.
    pub starts: [Vec<usize>; 3],
    /// Sorted words of dimensions and variables.
    pub words: Vec<u64>,
    /// Groups of positions that share a hash.
    pub suspects: Vec<(Kind, Vec<u32>)>,
}

impl SharedNames<'_> {
    /// Rank and local number of the object at `position`.
    pub fn whose(&self, kind: Kind, position: u32) -> (usize, u32) {
        let starts = &self.starts[kind as usize];
        let rank = starts.partition_point(|start| *start <= position as usize) - 1;
        (rank, self.local(kind, position))
    }

    pub fn local(&self, kind: Kind, position: u32) -> u32 {
        self.locals[kind as usize].get(position as usize).copied().unwrap_or(position)
    }

    /// The number of names that it holds.
    pub fn len(&self) -> usize {
        self.hashes.iter().map(|hashes| hashes.len()).sum()
    }

    /// Bytes of memory it holds beyond what it borrows.
    pub fn memory(&self) -> u64 {
        let owned = |hashes: &Cow<'_, [u64]>| match hashes {
            Cow::Borrowed(_) => 0,
            Cow::Owned(hashes) => hashes.len() as u64 * 8,
        };
        let locals: usize = self.locals.iter().map(Vec::len).sum();
        self.hashes.iter().map(owned).sum::<u64>() + locals as u64 * 4 + self.words.len() as u64 * 8
    }
}

/// The rank, of `ranks`, that owns a hash.
pub(super) fn owner(hash: u64, ranks: usize) -> usize {
    (((hash >> 32) * ranks as u64) >> 32) as usize
}

/// Exchanges the hashes of this rank's objects; returns this rank's table and the preamble of every rank. Another
/// rank sends the first `skip` objects of each kind.
pub(super) fn exchange<'a>(
    team: &Team,
    own: [&'a [u64]; 3],
    skip: [usize; 3],
    preamble: Preamble,
    watch: &mut Watch<'_>,
) -> Result<(SharedNames<'a>, Vec<Preamble>)> {
    let mut table;
    let preambles;
    if team.size() == 1 {
        let starts = own.map(|hashes| vec![0, hashes.len()]);
        let (hashes, locals) = (own.map(Cow::Borrowed), Default::default());
        table = SharedNames { hashes, locals, starts, words: Vec::new(), suspects: Vec::new() };
        preambles = vec![preamble];
    } else {
        let parts = pack(own, skip, preamble, team.size());
        let sent: u64 = parts.iter().map(|part| part.len() as u64).sum();
        watch.hold(sent);
        let parts = team.alltoallv("names", Ok(parts))?;
        watch.release(sent);
        let received: u64 = parts.iter().map(|part| part.len() as u64).sum();
        watch.hold(received);
        let unpacked = team.agree("names received", unpack(parts))?;
        watch.hold(unpacked.0.memory());
        watch.release(received);
        (table, preambles) = unpacked;
    }
    watch.end("exchange");
    let before = table.memory();
    let words = words(&table);
    watch.hold(words.len() as u64 * 8);
    table.words = sort_words(words);
    watch.hold(table.memory() - before);
    watch.release(table.words.len() as u64 * 8);
    watch.report.comparisons += table.len() as u64;
    watch.report.names_held += table.len() as u64;
    find_suspects(&mut table);
    Ok((table, preambles))
}

fn pack(own: [&[u64]; 3], skip: [usize; 3], preamble: Preamble, ranks: usize) -> Vec<Vec<u8>> {
    let mut counts = vec![[0usize; 3]; ranks];
    for kind in 0..3 {
        for hash in &own[kind][skip[kind]..] {
            counts[owner(*hash, ranks)][kind] += 1;
        }
    }
    // The positions of the next hash and the next number of a kind in each owner's part.
    let mut parts = Vec::with_capacity(ranks);
    let mut next = Vec::with_capacity(ranks);
    for count in &counts {
        let all: usize = count.iter().sum();
        let mut part = vec![0; HEAD + all * 12];
        let head = Head { preamble, counts: count.map(|count| count as u64) };
        part[..HEAD].copy_from_slice(&head.to_bytes());
        parts.push(part);
        let numbers = HEAD + all * 8;
        next.push([0, count[0], count[0] + count[1]].map(|first| (HEAD + first * 8, numbers + first * 4)));
    }
    for kind in 0..3 {
        for (i, hash) in own[kind].iter().enumerate().skip(skip[kind]) {
            let to = owner(*hash, ranks);
            let (hash_at, number_at) = &mut next[to][kind];
            parts[to][*hash_at..][..8].copy_from_slice(&hash.to_le_bytes());
            parts[to][*number_at..][..4].copy_from_slice(&(i as u32).to_le_bytes());
            *hash_at += 8;
            *number_at += 4;
        }
    }
    parts
}

fn unpack(parts: Vec<Vec<u8>>) -> Result<(SharedNames<'static>, Vec<Preamble>)> {
    let broken = || Error::internal("a rank sent names in a form that this rank does not know");
    let mut preambles = Vec::with_capacity(parts.len());
    let mut counts = Vec::with_capacity(parts.len());
    for part in &parts {
        let (head, columns) = Head::split_from(part)?;
        preambles.push(head.preamble);
        let count = head.counts.map(|count| count as usize);
        if columns.len() / 12 != count.iter().sum::<usize>() {
            return Err(broken());
        }
        counts.push(count);
    }
    let all = |kind: usize| counts.iter().map(|count| count[kind]).sum::<usize>();
    let mut hashes = [0, 1, 2].map(|kind| Vec::with_capacity(all(kind)));
    let mut locals = [0, 1, 2].map(|kind| Vec::with_capacity(all(kind)));
    let mut starts = [0, 1, 2].map(|_| vec![0]);
    for (part, count) in parts.into_iter().zip(&counts) {
        let (mut hash_at, mut number_at) = (HEAD, HEAD + count.iter().sum::<usize>() * 8);
        for kind in 0..3 {
            let bytes = &part[hash_at..][..count[kind] * 8];
            hashes[kind].extend(bytes.chunks_exact(8).map(word));
            hash_at += bytes.len();
            let bytes = &part[number_at..][..count[kind] * 4];
            locals[kind].extend(bytes.chunks_exact(4).map(half));
            number_at += bytes.len();
            starts[kind].push(hashes[kind].len());
        }
    }
    let hashes = hashes.map(Cow::Owned);
    Ok((SharedNames { hashes, locals, starts, words: Vec::new(), suspects: Vec::new() }, preambles))
}

pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

pub(super) fn half(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// The words of dimensions and variables, in the order of their positions.
fn words(table: &SharedNames<'_>) -> Vec<u64> {
    let [dims, _, vars] = &table.hashes;
    let mut words = Vec::with_capacity(dims.len() + vars.len());
    let upper = |hash: &u64| hash & !0xffff_ffff;
    words.extend(dims.iter().enumerate().map(|(position, hash)| upper(hash) | position as u64));
    words.extend(vars.iter().enumerate().map(|(position, hash)| upper(hash) | 1 << 31 | position as u64));
    words
}

/// Groups of positions whose complete hashes are equal.
fn find_suspects(table: &mut SharedNames<'_>) {
    let mut suspects = Vec::new();
    let group = |kind: Kind, mut positions: Vec<u32>, suspects: &mut Vec<(Kind, Vec<u32>)>| {
        let hashes = &table.hashes[kind as usize];
        positions.sort_by_key(|position| hashes[*position as usize]);
        let equal = |a: &u32, b: &u32| hashes[*a as usize] == hashes[*b as usize];
        let groups = positions.chunk_by(equal).filter(|group| group.len() > 1);
        suspects.extend(groups.map(|group| (kind, group.to_vec())));
    };
    let mut from = 0;
    for to in 1..=table.words.len() {
        if to < table.words.len() && table.words[to] >> 31 == table.words[from] >> 31 {
            continue;
        }
        if to - from > 1 {
            let kind = if table.words[from] >> 31 & 1 == 0 { Kind::Dim } else { Kind::Var };
            let positions = table.words[from..to].iter().map(|word| *word as u32 & 0x7fff_ffff).collect();
            group(kind, positions, &mut suspects);
        }
        from = to;
    }
    if table.hashes[Kind::Attr as usize].len() > 1 {
        let positions = (0..table.hashes[Kind::Attr as usize].len() as u32).collect();
        group(Kind::Attr, positions, &mut suspects);
    }
    table.suspects = suspects;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::words::round_trip;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn a_head_goes_in_six_words() {
        let preamble = Preamble { has_paths: true, objects: [2, 3] };
        assert_eq!(round_trip(&Head { preamble, counts: [4, 5, 6] }), [1, 2, 3, 4, 5, 6]);
        let parts = pack([&[7], &[], &[u64::MAX, 8]], [0; 3], preamble, 2);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [HEAD + 24, HEAD + 12]);
        assert_eq!(parts[1][..HEAD], Head { preamble, counts: [0, 0, 1] }.to_bytes());
    }

    #[test]
    fn owners_ranges_ascend_and_are_equal() {
        for ranks in [1, 2, 3, 7, 256] {
            let mut counts = vec![0; ranks];
            let mut hashes: Vec<u64> = (0..100_000u64).map(|i| xxh3_64(&i.to_le_bytes())).collect();
            hashes.sort();
            assert!(hashes.windows(2).all(|pair| owner(pair[0], ranks) <= owner(pair[1], ranks)));
            hashes.iter().for_each(|hash| counts[owner(*hash, ranks)] += 1);
            let most = counts.iter().max().copied().unwrap_or(0) as f64;
            assert!(most < 100_000.0 / ranks as f64 * 1.2, "{ranks} ranks: {most}");
        }
    }
}
