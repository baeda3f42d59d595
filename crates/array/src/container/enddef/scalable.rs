//! Strategy `scalable`: no rank holds, compares or writes more than its share.

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::trailer::IndexPart;

use super::names::{self, Kind, Preamble, SharedNames};
use super::options::EnddefOptions;
use super::placement::{self, LocalEntries, Placement, PlacementOptions, Ranks};
use super::report::Watch;
use super::{emit, shared};
use crate::container::define::Definitions;

/// The entries of a header that each rank places and writes.
#[derive(Debug)]
pub(super) struct ScalableHeader {
    pub placement: Placement,
    entries: LocalEntries,
    pub index: Option<IndexPart>,
    pub moves: bool,
}

impl ScalableHeader {
    /// Writes this rank's part; returns its number of bytes.
    pub fn write(&mut self, file: &TeamFile, header: &Header, watch: &mut Watch<'_>) -> Result<u64> {
        emit::write(file, header, (&self.placement, &self.entries), self.index.as_mut(), watch)
    }
}

pub(super) fn plan(
    team: &Team,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
    watch: &mut Watch<'_>,
) -> Result<ScalableHeader> {
    let base = definitions.base();
    let base = [base.dims as usize, base.attrs as usize, base.vars as usize];
    // Rank 0 sends and places the existing objects; the others know them too.
    let skip = if team.rank() == 0 { [0; 3] } else { base };
    let has_paths = definitions.has_paths();
    let (header, hashes) = definitions.for_enddef();
    let sent = |kind: usize| (hashes[kind].len() - skip[kind]) as u64;
    let preamble = Preamble { has_paths, objects: [sent(0), sent(2)] };
    watch.hold(hashes.iter().map(|hashes| hashes.len() as u64 * 8).sum());
    if team.size() > 1 {
        watch.report.names_held += sent(0) + sent(1) + sent(2);
    }
    let (table, preambles) = names::exchange(team, hashes, skip, preamble, watch)?;
    let escaped = preambles.iter().any(|preamble| preamble.has_paths);

    let suspects = team.max("suspects", Ok(vec![table.suspects.len() as u64]))?[0];
    let shared = match suspects {
        0 => None,
        _ => Some(shared::resolve_suspects(team, header, None, &table, watch)?),
    };
    let lens = [header.dims.len(), header.attrs.len(), header.vars.len()];
    let mine = [0, 1, 2].map(|kind| {
        let not_mine = shared.as_ref().map_or(&[][..], |shared| &shared.not_mine[kind]);
        placement::ranges(skip[kind], lens[kind], not_mine)
    });
    let plan = PlacementOptions { escaped, alignment: options.alignment, old: options.old, base };
    let placed = placement::place(Ranks(Some(team)), header, mine, &plan);
    let (mut placement, entries) = team.agree("placed", placed)?;
    watch.hold((placement.dim_ids.len() + placement.var_ids.len() + header.vars.len() * 2) as u64 * 8);

    let known = match &shared {
        None => None,
        Some(shared) => {
            let hashes = [hashes[0], hashes[2]];
            let ids = [&mut placement.dim_ids[..], &mut placement.var_ids[..]];
            Some(shared.resolve_numbers(team, &table, hashes, [skip[0], skip[2]], ids, watch)?)
        }
    };
    let held = table.memory();
    let index = match options.indexing.wants(placement.counts) {
        true => Some(index(table, &preambles, base, known, watch)),
        false => None,
    };
    watch.release(held - index.as_ref().map_or(0, |index| index.entries.len() as u64 * 8).min(held));
    watch.end("check");
    let moves = placement::moves(options.old, header, &placement.layout)?;
    Ok(ScalableHeader { placement, entries, index, moves })
}

/// The entries of this rank's range of hashes: its sorted words, with numbers in place of positions.
fn index(
    mut table: SharedNames<'_>,
    preambles: &[Preamble],
    base: [usize; 3],
    known: Option<[Vec<u32>; 2]>,
    watch: &mut Watch<'_>,
) -> IndexPart {
    let mut entries = std::mem::take(&mut table.words);
    if preambles.len() > 1 || known.is_some() {
        let known = known.unwrap_or_else(|| count_on(&table, preambles, base));
        watch.hold((known[0].len() + known[1].len()) as u64 * 4);
        for entry in &mut entries {
            let is_var = (*entry >> 31 & 1) as usize;
            let id = known[is_var][(*entry & 0x7fff_ffff) as usize];
            // Entries that another rank places are moved to the end for now: no hash is all ones including its kind.
            *entry = if id == u32::MAX { u64::MAX } else { *entry & !0x7fff_ffff | u64::from(id) };
        }
        entries.retain(|entry| *entry != u64::MAX);
        watch.release((known[0].len() + known[1].len()) as u64 * 4);
    }
    IndexPart { entries, ..IndexPart::default() }
}

/// Numbers of the table's positions if nothing is shared: each rank continues from those before it.
fn count_on(table: &SharedNames<'_>, preambles: &[Preamble], base: [usize; 3]) -> [Vec<u32>; 2] {
    [Kind::Dim, Kind::Var].map(|kind| {
        let mut ids = Vec::with_capacity(table.hashes[kind as usize].len());
        let mut first = 0;
        for (rank, (preamble, span)) in
            preambles.iter().zip(table.starts[kind as usize].windows(2)).enumerate()
        {
            let skip = if rank == 0 { 0 } else { base[kind as usize] as u64 };
            let id = |position: usize| (first + u64::from(table.local(kind, position as u32)) - skip) as u32;
            ids.extend((span[0]..span[1]).map(id));
            first += preamble.objects[usize::from(kind == Kind::Var)];
        }
        ids
    })
}
