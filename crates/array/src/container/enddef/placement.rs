//! Computes numbers, header offsets and data offsets from sums over the lower ranks.
//!
//! Lists in a file are in the order of ranks, and of each rank's definitions. So an object's number is the number of
//! objects before it, its entry begins where theirs end, and its data begin after theirs. One scan of a dozen sums
//! gives each rank all of these.
//!
//! On a redefinition, the existing objects come first. All ranks know them, rank 0 places them, and their data stay
//! in place if the new header leaves room.

use std::ops::Range;

use fieldstone_core::env::comm::{Step, Sums, Team};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::layout::{self, Alignment, Layout};
use fieldstone_format::netcdf::{Header, Version, names::MAX_NAME, write};

use super::difference;
use super::names::Kind;
use super::packing::{MessageReader, put_bytes, put_u32};
use crate::container::model::Counts;
use crate::container::words::{Words, words};

/// The objects that this rank places, as ranges of local numbers by kind.
pub(super) type LocalRanges = [Vec<Range<usize>>; 3];

/// The ranges of `skip..len` without the numbers of `not`, which ascend.
pub(super) fn ranges(skip: usize, len: usize, not: &[u32]) -> Vec<Range<usize>> {
    let (mut list, mut from) = (Vec::with_capacity(1), skip);
    for i in not.iter().map(|i| *i as usize).chain([len]) {
        if i > from {
            list.push(from..i);
        }
        from = from.max(i + 1);
    }
    list
}

/// This rank's contribution to every sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Share {
    /// Objects by kind.
    objects: [u64; 3],
    /// Bytes of their entries, by kind.
    bytes: [u64; 3],
    /// Bytes of fixed variables, padded.
    fixed: u64,
    /// Sums wrap; the sum of the upper halves shows whether data exceed the largest file.
    fixed_upper: u64,
    /// Bytes of one record, padded.
    record: u64,
    /// As `fixed_upper`.
    record_upper: u64,
    /// Bytes of one record without padding, for a file with only one record variable.
    unpadded: u64,
    record_vars: u64,
    record_dims: u64,
    /// Number of variables above the version's limit for all but the last.
    oversized: u64,
}

words!(Share {
    objects: [u64; 3],
    bytes: [u64; 3],
    fixed: u64,
    fixed_upper: u64,
    record: u64,
    record_upper: u64,
    unpadded: u64,
    record_vars: u64,
    record_dims: u64,
    oversized: u64,
});

impl Share {
    /// Checks that the data of a sum of shares fit in a file.
    fn in_file(self) -> Result<Share> {
        if self.fixed_upper >= 1 << 31 || self.record_upper >= 1 << 31 {
            return Err(Code::ContainerLimit.error(format!(
                "the variables of all ranks together end beyond byte {} of the file; no file is larger",
                i64::MAX
            )));
        }
        Ok(self)
    }
}

/// Sums of the shares of lower ranks, and of all.
struct ShareSums {
    before: Share,
    total: Share,
}

/// Facts that every rank knows after placement, whichever rank writes the header.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Numbers of all local dimensions and variables; numbers of objects that other ranks place are valid only after
    /// they are resolved.
    pub dim_ids: Vec<u64>,
    pub var_ids: Vec<u64>,
    /// Offset of each list's tag, by kind; zeros with the partitioned header, which has no lists.
    pub lists: [u64; 3],
    pub counts: Counts,
    pub layout: Layout,
    pub escaped: bool,
}

/// The entries of a classic header that one rank places and writes.
#[derive(Debug, Clone)]
pub(super) struct LocalEntries {
    pub mine: LocalRanges,
    /// Offset of the first entry, by kind.
    pub at: [u64; 3],
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Whether existing objects have moved. The same on every rank.
pub(super) fn moves(old: Option<&Header>, header: &Header, layout: &Layout) -> Result<bool> {
    let Some(old) = old else { return Ok(false) };
    let before = Layout::of(old, 0)?;
    let moved = old.vars.begins.iter().zip(&header.vars.begins).any(|(old, new)| old != new);
    let has_records = before.record_size > 0;
    let grown = has_records && before.record_size != layout.record_size;
    Ok(moved || grown)
}

/// Inputs for placement in addition to the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacementOptions<'a> {
    pub escaped: bool,
    pub alignment: Alignment,
    /// The existing header, on a redefinition.
    pub old: Option<&'a Header>,
    /// Number of existing objects of each kind.
    pub base: [usize; 3],
}

/// The ranks that place together: a team, or a single rank that has everything and needs no communication.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranks<'a>(pub Option<&'a Team>);

impl Ranks<'_> {
    pub const ALONE: Ranks<'static> = Ranks(None);

    fn rank(self) -> usize {
        self.0.map_or(0, Team::rank)
    }

    fn sums(self, step: impl Into<Step>, local: Result<Vec<u64>>) -> Result<Sums> {
        let step = step.into();
        match self.0 {
            Some(team) => team.sums(step, local),
            None => local.map(|total| Sums { before: vec![0; total.len()], total }),
        }
    }

    fn allgather(self, step: impl Into<Step>, local: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let step = step.into();
        match self.0 {
            Some(team) => team.allgather(step, local),
            None => local.map(|own| vec![own]),
        }
    }
}

/// Places everything: sets the sizes and begins of this rank's variables.
pub(super) fn place(
    team: Ranks<'_>,
    header: &mut Header,
    mine: LocalRanges,
    plan: &PlacementOptions<'_>,
) -> Result<(Placement, LocalEntries)> {
    let measured = measure(header, &mine, plan);
    let sizes;
    let own;
    let sums = match measured {
        Ok((share, list)) => {
            (sizes, own) = (list, share.clone());
            team.sums("places", Ok(share.to_words()))?
        }
        Err(error) => {
            let failed = team.sums("places", Err(error));
            return Err(failed.err().unwrap_or_else(|| Error::internal("a failure did not reach the team")));
        }
    };
    let sums = ShareSums { before: Share::from_words(&sums.before)?, total: Share::from_words(&sums.total)? };
    let oversized = sums.total.oversized > 0;
    check_records(team, header, &sums, plan)?;
    let placed = spread(header, mine, plan, sums, &sizes, &own);
    if oversized {
        check_oversized(team, header, &sizes, placed.as_ref().ok())?;
    }
    placed
}

/// This rank's sums, and the size of each of its variables (and of all in the base).
fn measure(header: &Header, mine: &LocalRanges, plan: &PlacementOptions<'_>) -> Result<(Share, Vec<u64>)> {
    let version = header.version;
    let [dims, attrs, vars] = mine;
    let mut share = Share::default();
    for (kind, ranges) in mine.iter().enumerate() {
        share.objects[kind] = ranges.iter().map(|range| range.len() as u64).sum();
    }
    for range in dims {
        share.bytes[0] += write::dims_size(header, range.clone(), plan.escaped);
        let record = header.dims.record.is_some_and(|record| range.contains(&(record as usize)));
        share.record_dims += u64::from(record);
    }
    for i in attrs.iter().cloned().flatten() {
        share.bytes[1] += write::attr_size(version, header.attrs.get(i), plan.escaped);
    }
    if plan.escaped {
        check_spelled(header, mine)?;
    }
    let mut sizes = vec![0; header.vars.len()];
    let limit = layout::max_var_bytes(version);
    let (mut fixed, mut records) = (0u64, layout::Records::default());
    for i in (0..plan.base[2]).chain(vars.iter().cloned().flatten().filter(|i| *i >= plan.base[2])) {
        let var = header.vars.get(i);
        sizes[i] = layout::bytes_of(header, var)?;
        share.oversized += u64::from(sizes[i] > limit);
        if i < plan.base[2] {
            continue;
        }
        if header.is_record(var) {
            records.add(var.name(), sizes[i])?;
            share.record_vars += 1;
            share.unpadded = sizes[i];
            share.record += sizes[i].next_multiple_of(4);
        } else {
            let sum = fixed.checked_add(sizes[i].next_multiple_of(4)).filter(|sum| *sum <= i64::MAX as u64);
            fixed = sum.ok_or_else(|| {
                let name = var.name();
                Code::ContainerLimit
                    .error(format!("variable `{name}` ends beyond byte {}; no file is larger", i64::MAX))
            })?;
        }
    }
    share.fixed = fixed;
    (share.fixed_upper, share.record_upper) = (share.fixed >> 32, share.record >> 32);
    for range in vars {
        share.bytes[2] += write::vars_size(header, range.clone(), plan.escaped);
    }
    Ok((share, sizes))
}

/// Checks the lengths of escaped names: a name that fits may be too long as an escaped path.
fn check_spelled(header: &Header, mine: &LocalRanges) -> Result<()> {
    let lists = [&header.dims.names, &header.attrs.names, &header.vars.names];
    for ((names, ranges), kind) in lists.into_iter().zip(mine).zip(Kind::ALL) {
        for name in ranges.iter().cloned().flatten().map(|i| names.get(i)) {
            let len = write::name_len(name, true);
            if len > MAX_NAME {
                return Err(Code::ContainerLimit.error(format!(
                    "{} `{name}` takes {len} bytes in the file, where paths are escaped; netCDF's limit is {MAX_NAME}",
                    kind.word()
                ))
                .with_hint("shorten the name or one of the parts of its path"));
            }
        }
    }
    Ok(())
}

/// Checks that the whole file has at most one record dimension.
fn check_records(
    team: Ranks<'_>,
    header: &Header,
    sums: &ShareSums,
    plan: &PlacementOptions<'_>,
) -> Result<()> {
    if sums.total.record_dims <= 1 {
        return Ok(());
    }
    let own = header.dims.record.map_or("", |record| header.dims.names.get(record as usize));
    let of_base = header.dims.record.is_some_and(|record| (record as usize) < plan.base[0]);
    let name = if of_base && team.rank() > 0 { "" } else { own };
    let names = team.allgather("record dimensions", Ok(name.as_bytes().to_vec()))?;
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    let said = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
    difference::check_records(&said.map(|(rank, name)| (&**name, rank)).collect::<Vec<_>>())
}

/// Computes offsets and numbers from the sums.
fn spread(
    header: &mut Header,
    mine: LocalRanges,
    plan: &PlacementOptions<'_>,
    sums: ShareSums,
    sizes: &[u64],
    own: &Share,
) -> Result<(Placement, LocalEntries)> {
    let version = header.version;
    let (before, total) = (sums.before.in_file()?, sums.total.in_file()?);
    for (count, list) in total.objects.into_iter().zip(["dimensions", "attributes", "variables"]) {
        layout::check_count(Version::Cdf1, count, || format!("number of {list} of all ranks"))?;
    }
    let head = write::list_head_size(version);
    let stated = if plan.escaped { write::attr_size(version, write::escape_marker(), false) } else { 0 };
    let dims_at = write::head_size(version);
    let attrs_at = dims_at + head + total.bytes[0];
    let vars_at = attrs_at + head + total.bytes[1] + stated;
    let header_len = vars_at + head + total.bytes[2];
    let lists = [dims_at, attrs_at, vars_at];
    let at = [0, 1, 2].map(|kind| lists[kind] + head + before.bytes[kind]);
    let layout = lay_out(header, plan, &total, header_len, sizes)?;

    let ids = |kind: usize, len: usize| {
        // Existing objects keep their numbers; the numbers of others continue after them.
        let mut ids: Vec<u64> = (0..len as u64).collect();
        let mut next = before.objects[kind];
        for range in &mine[kind] {
            ids[range.clone()].iter_mut().for_each(|id| {
                *id = next;
                next += 1;
            });
        }
        ids
    };
    let (dim_ids, var_ids) = (ids(0, header.dims.len()), ids(2, header.vars.len()));
    header.vars.vsizes = sizes.iter().map(|bytes| layout::vsize(version, *bytes)).collect();
    begin(header, plan, &mine, &before, &layout, sizes)?;
    let counts = Counts { dims: total.objects[0], attrs: total.objects[1], vars: total.objects[2] };
    let bytes = own.bytes.iter().sum();
    let placement = Placement { dim_ids, var_ids, lists, counts, layout: layout.0, escaped: plan.escaped };
    Ok((placement, LocalEntries { mine, at, bytes }))
}

/// The layout, and the offsets at which new fixed variables and new variables' records begin.
type DataLayout = (Layout, u64, u64);

/// Does what [`layout::lay_out`] does for a whole header. Every rank walks the existing objects; sums give the rest.
fn lay_out(
    header: &mut Header,
    plan: &PlacementOptions<'_>,
    total: &Share,
    header_len: u64,
    sizes: &[u64],
) -> Result<DataLayout> {
    let old = plan.old.map(|old| Layout::of(old, 0)).transpose()?.unwrap_or_default();
    let beyond = || {
        Code::ContainerLimit
            .error(format!("the variables end beyond byte {} of the file; no file is larger", i64::MAX))
    };
    let checked = |end: Option<u64>| end.filter(|end| *end <= i64::MAX as u64).ok_or_else(beyond);
    let data_begin = if total.objects[2] == 0 && plan.alignment.h_minfree == 0 {
        header_len.max(old.data_begin)
    } else if header_len <= old.data_begin {
        old.data_begin
    } else {
        layout::data_begin(header_len, &plan.alignment)?
    };
    header.vars.begins = vec![0; header.vars.len()];
    let is_record = |header: &Header, i: usize| header.is_record(header.vars.get(i));
    let old_begin = |i: usize| plan.old.and_then(|old| old.vars.begins.get(i).copied()).unwrap_or(0);
    let mut base_end = data_begin;
    for i in (0..plan.base[2]).filter(|i| !is_record(header, *i)).collect::<Vec<_>>() {
        let begin = base_end.max(old_begin(i));
        header.vars.begins[i] = begin;
        base_end = checked(begin.checked_add(sizes[i].next_multiple_of(4)))?;
    }
    let data_end = checked(base_end.checked_add(total.fixed))?;
    let base_records: Vec<usize> = (0..plan.base[2]).filter(|i| is_record(header, *i)).collect();
    let record_vars = base_records.len() as u64 + total.record_vars;
    let record_begin = if !base_records.is_empty() && data_end <= old.record_begin {
        old.record_begin
    } else if record_vars > 0 {
        layout::record_begin(data_end, &plan.alignment)?
    } else {
        data_end
    };
    let mut base_record = 0u64;
    for i in &base_records {
        header.vars.begins[*i] = checked(record_begin.checked_add(base_record))?;
        base_record = checked(base_record.checked_add(sizes[*i].next_multiple_of(4)))?;
    }
    let one_record_var = record_vars == 1;
    let lone = base_records.first().map_or(total.unpadded, |i| sizes[*i]);
    let padded = checked(base_record.checked_add(total.record))?;
    let record_size = if one_record_var { lone } else { padded };
    checked(record_begin.checked_add(record_size))?;
    let layout = Layout { header_len, data_begin, data_end, record_begin, record_size, one_record_var };
    Ok((layout, base_end, record_begin + base_record))
}

/// Sets the begins of this rank's new variables.
fn begin(
    header: &mut Header,
    plan: &PlacementOptions<'_>,
    mine: &LocalRanges,
    before: &Share,
    (_, fixed_at, records_at): &DataLayout,
    sizes: &[u64],
) -> Result<()> {
    let version = header.version;
    let (mut fixed, mut record) = (fixed_at + before.fixed, records_at + before.record);
    for i in mine[2].iter().cloned().flatten().filter(|i| *i >= plan.base[2]) {
        let is_record = header.is_record(header.vars.get(i));
        let at = if is_record { &mut record } else { &mut fixed };
        header.vars.begins[i] = *at;
        *at += sizes[i].next_multiple_of(4);
    }
    if version == Version::Cdf1 {
        for i in (0..plan.base[2]).chain(mine[2].iter().cloned().flatten()) {
            layout::check_begin(version, header.vars.names.get(i), header.vars.begins[i])?;
        }
    }
    Ok(())
}

/// CDF-1 and CDF-2 allow one oversized variable, and only as the last of its kind: all ranks announce theirs, and all
/// check.
fn check_oversized(
    team: Ranks<'_>,
    header: &Header,
    sizes: &[u64],
    placed: Option<&(Placement, LocalEntries)>,
) -> Result<()> {
    let limit = layout::max_var_bytes(header.version);
    let mut announced = vec![0; 16];
    if let Some((placement, entries)) = placed {
        for i in entries.mine[2].iter().cloned().flatten() {
            let var = header.vars.get(i);
            let is_record = header.is_record(var);
            let last = if is_record { 8 } else { 0 };
            announced[last..last + 8].copy_from_slice(&(placement.var_ids[i] + 1).to_le_bytes());
            if sizes[i] > limit {
                announced.extend_from_slice(&(placement.var_ids[i] + 1).to_le_bytes());
                announced.extend_from_slice(&sizes[i].to_le_bytes());
                put_u32(&mut announced, u32::from(is_record));
                put_bytes(&mut announced, var.name().as_bytes());
            }
        }
    }
    let announced = team.allgather("large variables", Ok(announced))?;
    let (mut last, mut list) = ([0; 2], Vec::new());
    for rank in &announced {
        let mut from = MessageReader(rank);
        for last in &mut last {
            *last = from.u64()?.max(*last);
        }
        while !from.is_empty() {
            list.push((from.u64()?, from.u64()?, from.u32()? == 1, from.text()?));
        }
    }
    let record_vars = u64::from(last[1] > 0);
    list.iter().try_for_each(|(id, bytes, is_record, name)| {
        let is_last = last[usize::from(*is_record)] == *id;
        layout::check_var_bytes(header.version, name, *bytes, *is_record, is_last, record_vars)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::words::round_trip;

    #[test]
    fn ranges_leave_out_what_others_place() {
        assert_eq!(ranges(0, 4, &[]), vec![0..4; 1]);
        assert_eq!(ranges(2, 2, &[]), []);
        assert_eq!(ranges(0, 6, &[0, 3, 4]), [1..3, 5..6]);
        assert_eq!(ranges(2, 6, &[2, 5]), vec![3..5; 1]);
    }

    #[test]
    fn sums_beyond_every_file_are_seen_though_they_wrap() {
        let half = Share { fixed: i64::MAX as u64 & !3, ..Share::default() };
        let half = Share { fixed_upper: half.fixed >> 32, ..half };
        let sum = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>();
        let words = half.to_words();
        let all = sum(&sum(&words, &words), &words);
        assert!(half.in_file().is_ok());
        assert!(Share::from_words(&all).unwrap().in_file().is_err());
    }

    #[test]
    fn a_share_goes_in_fourteen_words() {
        let share = Share {
            objects: [1, 2, 3],
            bytes: [4, 5, 6],
            fixed: 7,
            fixed_upper: 8,
            record: 9,
            record_upper: 10,
            unpadded: 11,
            record_vars: 12,
            record_dims: 13,
            oversized: 14,
        };
        assert_eq!(round_trip(&share), (1..=14).collect::<Vec<_>>());
    }
}
