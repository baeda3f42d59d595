//! Strategy `partitioned`: compares only names under paths in which several ranks define objects.
//!
//! These names are compared as in strategy `scalable`, by the ranks that own a part of all hashes. In that exchange,
//! numbers of objects count the objects that a rank sent, not all of its own.

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::Header;

use super::names::{self, Preamble};
use super::options::EnddefOptions;
use super::placement::Placement;
use super::report::Watch;
use super::shared::{self, SharedObjects};
use crate::container::define::Definitions;
use crate::container::model::{Counts, Format};
use crate::container::partitioned::Reader;
use crate::container::partitioned::rank_part::{ObjectFilter, Paths, name_index, to_compare};
use crate::container::partitioned::write::{Ownership, PreparedHeader, SoleOwnership, prepare, shared_paths};

/// Each rank writes metadata blocks of its own.
#[derive(Debug)]
pub(super) struct PartitionedHeader {
    pub placement: Placement,
    blocks: PreparedHeader,
}

impl PartitionedHeader {
    /// Writes this rank's part; returns its number of bytes.
    pub fn write(&self, file: &TeamFile, header: &Header) -> Result<u64> {
        self.blocks.write(file, header, &self.placement.dim_ids)
    }

    /// Makes the reader of the header, which also works in an unfinished file.
    pub fn into_reader(self, file: TeamFile) -> (Placement, Reader) {
        (self.placement, Reader::of(file, self.blocks.head, self.blocks.table))
    }
}

/// Finds the rank that places each object under a shared path, by comparison.
struct SharedOwnership<'a, 'w> {
    table: names::SharedNames<'a>,
    shared: SharedObjects,
    sent: &'a [Vec<u32>; 3],
    hashes: [&'a [u64]; 3],
    watch: std::cell::RefCell<&'a mut Watch<'w>>,
}

impl Ownership for SharedOwnership<'_, '_> {
    fn not_mine(&self) -> [Vec<u32>; 3] {
        let local =
            |kind: usize| self.shared.not_mine[kind].iter().map(move |i| self.sent[kind][*i as usize]);
        [0, 1, 2].map(|kind| local(kind).collect())
    }

    fn resolve_numbers(&self, team: &Team, dims: &mut [u64], vars: &mut [u64]) -> Result<()> {
        let pick = |ids: &[u64], sent: &[u32]| sent.iter().map(|i| ids[*i as usize]).collect::<Vec<u64>>();
        let (sent_dims, sent_vars) = (&self.sent[0], &self.sent[2]);
        let (mut some_dims, mut some_vars) = (pick(dims, sent_dims), pick(vars, sent_vars));
        let ids = [&mut some_dims[..], &mut some_vars[..]];
        let hashes = [self.hashes[0], self.hashes[2]];
        let mut watch = self.watch.borrow_mut();
        self.shared.resolve_numbers(team, &self.table, hashes, [0; 2], ids, &mut watch)?;
        sent_dims.iter().zip(&some_dims).for_each(|(i, id)| dims[*i as usize] = *id);
        sent_vars.iter().zip(&some_vars).for_each(|(i, id)| vars[*i as usize] = *id);
        Ok(())
    }
}

pub(super) fn plan(
    team: &Team,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
    watch: &mut Watch<'_>,
) -> Result<PartitionedHeader> {
    let checked = if definitions.format() != Format::Partitioned {
        Err(Code::ContainerFormat
            .error("strategy partitioned makes containers of format partitioned only")
            .with_hint("leave the strategy out, or create the container with format partitioned"))
    } else if options.old.is_some() {
        Err(Code::ContainerFormat
            .error("a container with the partitioned header takes no further definitions")
            .with_hint("convert it to cdf5, or define everything before the first enddef"))
    } else {
        Ok(())
    };
    team.agree("partitioned", checked)?;
    let has_paths = definitions.has_paths();
    let (header, hashes) = definitions.for_enddef();
    let paths = Paths::of(header);
    watch.hold(hashes.iter().map(|hashes| hashes.len() as u64 * 8).sum::<u64>() * 2 + paths.memory());
    let (shared, compared) = shared_paths(team, &paths)?;
    watch.report.comparisons += compared;
    let words = name_index(&ObjectFilter::default(), hashes);
    let sent = to_compare(&paths, &shared, hashes, &words);
    let some = sent.iter().map(|list| list.len() as u64).sum();
    let (blocks, numbers) = match team.max("compared", Ok(vec![some]))?[0] {
        0 => {
            watch.end("exchange");
            prepare(team, header, hashes, &paths, words, &SoleOwnership, &options.alignment)?
        }
        _ => {
            let some = [0, 1, 2]
                .map(|kind| sent[kind].iter().map(|i| hashes[kind][*i as usize]).collect::<Vec<u64>>());
            let some = [&some[0][..], &some[1], &some[2]];
            let preamble = Preamble { has_paths, objects: [some[0].len() as u64, some[2].len() as u64] };
            let (table, _) = names::exchange(team, some, [0; 3], preamble, watch)?;
            let suspects = team.max("suspects", Ok(vec![table.suspects.len() as u64]))?[0];
            if suspects == 0 {
                prepare(team, header, hashes, &paths, words, &SoleOwnership, &options.alignment)?
            } else {
                let shared = shared::resolve_suspects(team, header, Some(&sent), &table, watch)?;
                let watch = std::cell::RefCell::new(&mut *watch);
                let compared = SharedOwnership { table, shared, sent: &sent, hashes: some, watch };
                prepare(team, header, hashes, &paths, words, &compared, &options.alignment)?
            }
        }
    };
    watch.hold(blocks.memory() + numbers.memory());
    watch.end("check");
    header.vars.begins = numbers.begins;
    header.vars.vsizes = vec![0; header.vars.len()];
    let placement = Placement {
        dim_ids: numbers.dim_ids,
        var_ids: numbers.var_ids,
        lists: [0; 3],
        counts: Counts { dims: blocks.head.dims, attrs: blocks.head.attrs, vars: blocks.head.vars },
        layout: blocks.layout,
        escaped: false,
    };
    Ok(PartitionedHeader { placement, blocks })
}
