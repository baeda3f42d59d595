//! Objects that several ranks define: found by equal hashes, compared by their complete definitions.
//!
//! Only objects with equal hashes come here. Their owner requests the definitions (round one), receives them (round
//! two), and sends the conflicts to all ranks, and to each rank the objects of that rank which a lower rank places
//! (round three). A shared object belongs to the lowest rank that defines it. Objects with equal hashes but different
//! paths are not shared.
//!
//! When numbers are known, each rank sends them to the owners, and owners forward them to the ranks that share the
//! objects.

use fieldstone_core::Result;
use fieldstone_core::env::comm::Team;
use fieldstone_format::netcdf::Header;

use super::difference::{Conflict, Conflicts, difference};
use super::names::{Kind, SharedNames};
use super::packing::{MessageReader, put_bytes, put_object, put_u32};
use super::report::Watch;

/// Assigns the objects that several ranks define.
#[derive(Debug, Default)]
pub(super) struct SharedObjects {
    /// Local numbers, ascending, of this rank's objects that a lower rank places, by kind.
    pub not_mine: [Vec<u32>; 3],
    /// On the owner: position in its table of the object that counts, and of one equal to it.
    same: Vec<(Kind, u32, u32)>,
}

/// Requests and compares the definitions of all suspects, and decides on them; `Conflict` on all ranks if some
/// disagree. If a rank sent only some of its objects, `sent` has their local numbers by kind, and numbers in the
/// exchange are indexes into it.
pub(super) fn resolve_suspects(
    team: &Team,
    header: &Header,
    sent: Option<&[Vec<u32>; 3]>,
    table: &SharedNames<'_>,
    watch: &mut Watch<'_>,
) -> Result<SharedObjects> {
    let ranks = team.size();
    let mut asked = vec![Vec::new(); ranks];
    for (kind, positions) in &table.suspects {
        for position in positions {
            let (rank, local) = table.whose(*kind, *position);
            asked[rank].push(*kind as u8);
            put_u32(&mut asked[rank], local);
        }
    }
    let asked = team.alltoallv("shared names", Ok(asked))?;
    let answers = asked.iter().map(|asked| answer(header, sent, asked)).collect();
    let answers = team.alltoallv("shared definitions", answers)?;
    let bytes: u64 = answers.iter().map(|answer| answer.len() as u64).sum();
    watch.hold(bytes);
    let compared = compare(table, &answers, watch);
    watch.release(bytes);
    let mut shared = SharedObjects::default();
    let verdicts = compared.map(|(mut conflicts, same)| {
        let mut all = Vec::new();
        conflicts.pack(&mut all);
        let mut verdicts = vec![all; ranks];
        for (kind, _, position) in &same {
            let (rank, local) = table.whose(*kind, *position);
            verdicts[rank].push(*kind as u8);
            put_u32(&mut verdicts[rank], local);
        }
        shared.same = same;
        verdicts
    });
    let verdicts = team.alltoallv("shared verdicts", verdicts)?;
    let mut conflicts = Conflicts::default();
    for verdict in &verdicts {
        let mut from = MessageReader(verdict);
        conflicts.unpack(&mut from)?;
        while !from.is_empty() {
            let kind = from.kind()?;
            shared.not_mine[kind as usize].push(from.u32()?);
        }
    }
    shared.not_mine.iter_mut().for_each(|list| list.sort_unstable());
    watch.report.shared = shared.not_mine.iter().map(|list| list.len() as u64).sum();
    conflicts.into_result()?;
    Ok(shared)
}

fn answer(header: &Header, sent: Option<&[Vec<u32>; 3]>, asked: &[u8]) -> Result<Vec<u8>> {
    let (mut answer, mut one) = (Vec::new(), Vec::new());
    let mut from = MessageReader(asked);
    while !from.is_empty() {
        let kind = from.kind()?;
        let local = from.u32()?;
        one.clear();
        let local = sent.and_then(|sent| sent[kind as usize].get(local as usize)).copied().unwrap_or(local);
        put_object(&mut one, header, kind, local as usize);
        put_bytes(&mut answer, &one);
    }
    Ok(answer)
}

/// The conflicts, and the positions that hold the same object as another.
type Comparison = (Conflicts, Vec<(Kind, u32, u32)>);

fn compare(table: &SharedNames<'_>, answers: &[Vec<u8>], watch: &mut Watch<'_>) -> Result<Comparison> {
    let mut readers: Vec<MessageReader<'_>> = answers.iter().map(|answer| MessageReader(answer)).collect();
    let (mut conflicts, mut same) = (Conflicts::default(), Vec::new());
    for (kind, positions) in &table.suspects {
        // Path, rank, position, and the rest of the definition.
        let mut group: Vec<(&str, usize, u32, &[u8])> = Vec::with_capacity(positions.len());
        for position in positions {
            let (rank, _) = table.whose(*kind, *position);
            let mut object = MessageReader(readers[rank].bytes()?);
            let path = object.text()?;
            group.push((path, rank, *position, object.0));
        }
        watch.report.comparisons += group.len() as u64 - 1;
        // The sort is stable: for one path, ranks and local numbers ascend.
        group.sort_by_key(|(path, ..)| *path);
        for group in group.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            let defined: Vec<(usize, &[u8])> = group.iter().map(|one| (one.1, one.3)).collect();
            let first = group[0].2;
            match difference(*kind, group[0].0, &defined)? {
                Some(text) => {
                    let first = (group[0].1 as u32, table.local(*kind, first));
                    conflicts.add(Conflict { kind: *kind, first, text });
                }
                None => same.extend(group[1..].iter().map(|one| (*kind, first, one.2))),
            }
        }
    }
    Ok((conflicts, same))
}

impl SharedObjects {
    /// Sends all numbers to the owners of the names, and receives those of the objects that other ranks place. `ids`
    /// has the numbers of this rank's dimensions and variables; fills in those of
    /// [`not_mine`](SharedObjects::not_mine). Returns the numbers of the table's positions for dimensions and
    /// variables; `u32::MAX` for a position with the same object as another.
    pub fn resolve_numbers(
        &self,
        team: &Team,
        table: &SharedNames<'_>,
        hashes: [&[u64]; 2],
        skip: [usize; 2],
        ids: [&mut [u64]; 2],
        watch: &mut Watch<'_>,
    ) -> Result<[Vec<u32>; 2]> {
        let ranks = team.size();
        let mut parts: [Vec<Vec<u8>>; 2] = [vec![Vec::new(); ranks], vec![Vec::new(); ranks]];
        for which in 0..2 {
            for (hash, id) in hashes[which].iter().zip(ids[which].iter()).skip(skip[which]) {
                put_u32(&mut parts[which][super::names::owner(*hash, ranks)], *id as u32);
            }
        }
        let [dims, vars] = parts;
        let parts: Vec<Vec<u8>> = dims
            .into_iter()
            .zip(vars)
            .map(|(mut part, vars)| {
                part.extend(vars);
                part
            })
            .collect();
        let parts = team.alltoallv("numbers", Ok(parts))?;
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        watch.hold(bytes);
        let known = numbers(table, &parts);
        watch.hold(bytes);
        drop(parts);
        let answers = known.map(|mut known| {
            let mut answers = vec![Vec::new(); ranks];
            for (kind, first, position) in self.same.iter().filter(|(kind, ..)| *kind != Kind::Attr) {
                let (rank, local) = table.whose(*kind, *position);
                answers[rank].push(*kind as u8);
                put_u32(&mut answers[rank], local);
                put_u32(&mut answers[rank], known[usize::from(*kind == Kind::Var)][*first as usize]);
            }
            for (kind, _, position) in self.same.iter().filter(|(kind, ..)| *kind != Kind::Attr) {
                known[usize::from(*kind == Kind::Var)][*position as usize] = u32::MAX;
            }
            (known, answers)
        });
        let (known, answers) = team.agree("numbers received", answers)?;
        let answers = team.alltoallv("shared numbers", Ok(answers))?;
        watch.release(bytes);
        let [dim_ids, var_ids] = ids;
        for answer in &answers {
            let mut from = MessageReader(answer);
            while !from.is_empty() {
                let list = if from.kind()? == Kind::Dim { &mut *dim_ids } else { &mut *var_ids };
                let local = from.u32()? as usize;
                list[local] = u64::from(from.u32()?);
            }
        }
        Ok(known)
    }
}

/// Numbers of the table's positions, from the messages of all ranks.
fn numbers(table: &SharedNames<'_>, parts: &[Vec<u8>]) -> Result<[Vec<u32>; 2]> {
    let mut readers: Vec<MessageReader<'_>> = parts.iter().map(|part| MessageReader(part)).collect();
    let mut known = [Vec::new(), Vec::new()];
    for (known, kind) in known.iter_mut().zip([Kind::Dim, Kind::Var]) {
        known.reserve_exact(table.hashes[kind as usize].len());
        for (from, span) in readers.iter_mut().zip(table.starts[kind as usize].windows(2)) {
            for _ in span[0]..span[1] {
                known.push(from.u32()?);
            }
        }
    }
    Ok(known)
}
