//! Moves elements in and out through views: each rank declares the part of a variable that it holds, and all ranks
//! call together.
//!
//! [`resolve`] combines the declarations of the ranks: the number of records needed, and the ends of the parts of
//! lower ranks. Then [`put`] or [`get`] moves the elements, through the planner of
//! [`distributed`](crate::distributed).
//!
//! Invariants: values are converted as in [`access`](super), and only those that a view writes or reads; elements
//! outside the view stay as they are, in memory and in the file.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::NcType;
use fieldstone_format::netcdf::fill::{default_fill, fill_of};
use fieldstone_format::netcdf::values::{Conversion, Misfit};

use super::request::{PastEnd, Target};
use super::{GET, PUT};
use crate::container::model::VarInfo;
use crate::distributed::buffer::{Buffer, BufferMut, Element};
use crate::distributed::plan::{FileArray, MoveReport, PastFileEnd, Planner, Read, Settings, Write};
use crate::distributed::view::{Footprint, LocalView, View};

/// A view of a variable, agreed upon by all ranks for one put or get.
#[derive(Debug, Clone)]
pub struct VarView {
    local: LocalView,
    array: FileArray,
    /// Number of records after it is written.
    records: u64,
    /// End of the array in the file, in bytes.
    end: u64,
    file_len: u64,
}

impl VarView {
    /// The shape of this rank's memory.
    pub fn local_shape(&self) -> &[u64] {
        self.local.local_shape()
    }
}

/// This rank's declaration of a view.
struct Said {
    /// Lengths of the dimensions of the viewed array; for the record dimension, as many as this rank needs.
    shape: Vec<u64>,
    array: FileArray,
    /// Whether the first dimension of `shape` is the record dimension.
    grows: bool,
    joined: Option<u64>,
    reach: Option<u64>,
}

/// Collective: resolves `view` for `var`. With `record`, the view covers only that record, and so has one dimension
/// less. `step` is `put` to write, `get` to read.
///
/// Errors: `Invalid`, on all ranks, for a view that does not fit the variable or the views of other ranks.
pub fn resolve(
    target: &Target<'_>,
    var: &VarInfo,
    (view, record): (&View, Option<u64>),
    writes: bool,
    allowed: Result<()>,
) -> Result<VarView> {
    let step = if writes { PUT } else { GET };
    let team = target.file.team();
    let said = allowed.and_then(|()| say(target, var, (view, record), writes));
    let own = said.as_ref().map_err(Error::replicate).map(|said| {
        let joins = u64::from(said.joined.is_some());
        vec![said.joined.unwrap_or(0), joins]
    });
    let sums = team.sums(step, own)?;
    let said = said?;
    let reach = said.reach.unwrap_or(0);
    let own =
        target.file.len().map(|len| vec![reach, u64::from(said.reach.is_some()), target.records.get(), len]);
    let most = team.max(step, own)?;
    let known = most[2];
    if !writes {
        target.records.raise(known);
    }
    let mut shape = said.shape;
    let all_join = sums.total[1] == team.size() as u64;
    let fits = match (sums.total[1], all_join) {
        (1.., false) => Err(Code::Option
            .error("some ranks pass a joined view, others do not")
            .with_hint("pass fst.joined on all ranks; a count may be 0")),
        _ => Ok(()),
    };
    if said.grows {
        shape[0] = match (all_join, most[1]) {
            (true, _) => sums.total[0],
            (false, 1) if writes => reach.max(most[0]),
            _ => known,
        };
    }
    let resolved = fits.and_then(|()| {
        let named = |error: Error| error.context(format_args!("variable `{}`", var.name));
        let joined = all_join.then_some(sums.total[0]);
        check_joined(var, (&shape, said.grows), joined, (!writes).then_some(known))?;
        let local = view.resolve_joined(&shape, team.rank(), team.size(), sums.before[0]).map_err(named)?;
        let total = shape.iter().product();
        said.array.check(total).map_err(named)?;
        let records = match (record, said.grows) {
            (Some(record), _) => record + 1,
            (None, true) => shape[0],
            _ => 0,
        };
        check_records(target, var, records)?;
        let end = if total == 0 { 0 } else { said.array.end(total) };
        Ok(VarView { local, array: said.array, records: records.max(known), end, file_len: most[3] })
    });
    team.agree(step, resolved)
}

/// Refuses counts of joined views that give another first dimension than the variable has: `joined` is their sum, if
/// all ranks pass such a view, and `there` is the number of records if the view reads.
fn check_joined(
    var: &VarInfo,
    (shape, grows): (&[u64], bool),
    joined: Option<u64>,
    there: Option<u64>,
) -> Result<()> {
    if let (Some(joined), Some(len), false) = (joined, shape.first(), grows)
        && *len != joined
    {
        return Err(Code::Box.error(format!(
            "variable `{}`: the counts of joined views add up to {joined}, but its first dimension has \
             length {len}",
            var.name
        )));
    }
    if let (Some(there), true) = (there, grows)
        && shape[0] > there
    {
        return Err(Code::Box.error(format!(
            "variable `{}`: the counts of joined views add up to {}, but there are {there} records",
            var.name, shape[0]
        )));
    }
    Ok(())
}

/// Refuses more records than a file of this format can have.
fn check_records(target: &Target<'_>, var: &VarInfo, records: u64) -> Result<()> {
    let most = target.records.most();
    if records > most {
        return Err(Code::ContainerLimit.error(format!(
            "variable `{}`: {records} records, but a {} file has at most {most}",
            var.name,
            target.version.name()
        )));
    }
    Ok(())
}

fn say(
    target: &Target<'_>,
    var: &VarInfo,
    (view, record): (&View, Option<u64>),
    writes: bool,
) -> Result<Said> {
    let size = var.ty.size() as u64;
    let mut shape: Vec<u64> = var.dims.iter().map(|dim| dim.len).collect();
    let mut array = FileArray::dense(var.begin, size);
    let row: u64 = shape.iter().skip(1).product();
    let mut grows = false;
    match (var.is_record(), record) {
        (false, None) => {}
        (false, Some(record)) => {
            return Err(Code::Box
                .error(format!("variable `{}` has no records, but record {record} is requested", var.name))
                .with_hint("leave start out: the view gives the position"));
        }
        (true, Some(record)) => {
            let known = target.records.get();
            if !writes && record >= known {
                return Err(Code::Box.error(format!(
                    "variable `{}`: record {record} is requested, but there are {known}",
                    var.name
                )));
            }
            let offset = record.checked_mul(var.record_stride).and_then(|above| above.checked_add(var.begin));
            array.begin = offset.filter(|offset| *offset <= i64::MAX as u64).ok_or_else(|| {
                Code::TooLarge.error(format!("variable `{}`: record {record} exceeds every offset", var.name))
            })?;
            shape.remove(0);
        }
        (true, None) => {
            (array.record, array.record_stride, grows) = (row, var.record_stride, true);
            shape[0] = target.records.get();
        }
    }
    let reach = if grows { view.reaches(row) } else { None };
    Ok(Said { shape, array, grows, joined: view.joined_count(), reach })
}

/// The element type for the planner, and the conversion to the caller's type.
fn element_of(target: &Target<'_>, var: &VarInfo, ty: NcType) -> Result<(Conversion, Option<Element>)> {
    let conversion = Conversion::new(var.ty, ty, target.version)
        .map_err(|error| error.context(format_args!("variable `{}`", var.name)))?;
    let size = var.ty.size();
    let swap = if cfg!(target_endian = "little") { size } else { 1 };
    Ok((conversion, conversion.copies().then(|| Element::new(size, swap)).transpose()?))
}

/// Checks that this number of bytes holds the elements of the local shape.
fn check_memory(view: &VarView, var: &VarInfo, ty: NcType, given: usize) -> Result<()> {
    let elements: u64 = view.local_shape().iter().product();
    match elements.checked_mul(ty.size() as u64) == Some(given as u64) {
        true => Ok(()),
        false => Err(Code::ShapeMismatch
            .error(format!(
                "variable `{}`: the view has the local shape {:?} with elements of {} bytes, but {given} \
                 bytes are given",
                var.name,
                view.local_shape(),
                ty.size()
            ))
            .with_hint("pass memory for the view's local shape, including its halo")),
    }
}

/// Collective: writes this rank's part: `data` has elements of type `ty` in C order of the local shape.
///
/// Errors: as for [`Planner::write`]; for values that do not fit, after all others have been written.
pub fn put(
    target: &Target<'_>,
    planner: &Planner,
    (var, view): (&VarInfo, &VarView),
    (data, ty): (&[u8], NcType),
    settings: Settings,
) -> Result<MoveReport> {
    let team = target.file.team();
    let made = check_memory(view, var, ty, data.len()).and_then(|()| {
        let (conversion, element) = element_of(target, var, ty)?;
        let size = var.ty.size();
        let Some(element) = element else {
            let fill = fill_of(var.ty, var.attrs.iter());
            let (bytes, misfit) = external(&conversion, data, view.local.written(), (size, fill));
            return Ok((Some(bytes), Element::new(size, 1)?, misfit));
        };
        Ok((None, element, None))
    });
    let (converted, element, misfit) = team.agree(PUT, made)?;
    if view.end > view.file_len {
        // Collective writes with gaps beyond the end of the file put stale bytes of a buffer into the gaps.
        target.file.set_len(PUT, Ok(view.end))?;
    }
    let known = target.records.get();
    if let (Some(vars), true) = (target.filled, view.records > known) {
        let jobs = vars.iter().flat_map(|var| var.jobs(known, view.records, false));
        super::fill::write_shared(target.file, Ok(jobs.collect()))?;
    }
    // Owners write back the bytes that they read between elements.
    let alone = target.records.excluding();
    let from = Buffer::new(converted.as_deref().unwrap_or(data), element, view.local_shape());
    let write = from.as_ref().map_err(Error::replicate).map(|from| Write {
        view: &view.local,
        array: view.array,
        from,
        fill: None,
        settings,
    });
    let report = planner.write(target.file, PUT, write)?;
    drop(alone);
    target.records.raise(view.records);
    team.agree(PUT, misfit.map_or(Ok(()), |misfit| Err(not_fitting(var, (var.ty, ty), &misfit))))?;
    Ok(report)
}

/// Collective: reads this rank's part into `into`, as elements of type `ty` in C order of the local shape.
///
/// Errors: as for [`Planner::read`]; for values that do not fit, after all others have been read.
pub fn get(
    target: &Target<'_>,
    planner: &Planner,
    (var, view): (&VarInfo, &VarView),
    (into, ty): (&mut [u8], NcType),
    settings: Settings,
) -> Result<MoveReport> {
    let team = target.file.team();
    let past_end = match target.past_end {
        PastEnd::Zeros => PastFileEnd::Zeros,
        PastEnd::Corrupt => PastFileEnd::Corrupt,
    };
    let made = check_memory(view, var, ty, into.len()).and_then(|()| element_of(target, var, ty));
    let (conversion, element) = team.agree(GET, made)?;
    let read = |into: &mut [u8], element: Result<Element>| {
        let mut into = element.and_then(|element| BufferMut::new(into, element, view.local_shape()));
        let read = into.as_mut().map_err(|error| error.replicate()).map(|into| Read {
            view: &view.local,
            array: view.array,
            into,
            past_end,
            settings,
        });
        planner.read(&target.file.reader(), GET, read)
    };
    if let Some(element) = element {
        return read(into, Ok(element));
    }
    let (size, internal) = (var.ty.size(), ty.size());
    let mut bytes = vec![0; into.len() / internal * size];
    let report = read(&mut bytes, Element::new(size, 1))?;
    let mut first = None;
    for run in view.local.read().runs() {
        let (at, end) = (run.memory as usize, (run.memory + run.elements) as usize);
        let (from, to) = (&bytes[at * size..end * size], &mut into[at * internal..end * internal]);
        let misfit = conversion.read(from, to, default_fill(ty));
        first = first.or(misfit.map(|misfit| Misfit { index: misfit.index + run.memory, ..misfit }));
    }
    team.agree(GET, first.map_or(Ok(()), |misfit| Err(not_fitting(var, (var.ty, ty), &misfit))))?;
    Ok(report)
}

/// The elements to write, as they are in the file, and the first that does not fit.
fn external(
    conversion: &Conversion,
    data: &[u8],
    written: &Footprint,
    (size, fill): (usize, &[u8]),
) -> (Vec<u8>, Option<Misfit>) {
    let internal = conversion.memory().size();
    let mut bytes = vec![0; data.len() / internal * size];
    let mut first = None;
    for run in written.runs() {
        let (at, end) = (run.memory as usize, (run.memory + run.elements) as usize);
        let (from, to) = (&data[at * internal..end * internal], &mut bytes[at * size..end * size]);
        let misfit = conversion.write(from, to, fill);
        first = first.or(misfit.map(|misfit| Misfit { index: misfit.index + run.memory, ..misfit }));
    }
    (bytes, first)
}

fn not_fitting(var: &VarInfo, (external, memory): (NcType, NcType), misfit: &Misfit) -> Error {
    let Misfit { index, value } = misfit;
    Code::Value
        .error(format!(
            "variable `{}`: element {index} of this rank's memory, {value}, does not fit ({} in the file, {} in memory)",
            var.name,
            external.name(),
            memory.name()
        ))
        .with_hint("the fill value replaces it; all other elements were converted")
}
