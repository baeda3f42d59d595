//! Outside files that ranks read together: raw files, and netCDF classic files.
//!
//! Opening an [`Import`] reads the header, if there is one, and compares the request with the contents;
//! [`Import::read`] then reads elements, on each rank those of its view. An import only knows the positions of a
//! variable's bytes: [`plan`](super::plan) does the rest, as for files of our own.
//!
//! Invariants:
//! * a file is never written; a read returns the values of its bytes, converted to the machine's byte order;
//! * every variable of an import ends inside the file; opening finds missing bytes, and so does reading;
//! * the checksum depends on the bytes of the variables, not on the ranks (A-31).
//!
//! ```
//! use std::{path::Path, sync::Arc};
//! use fieldstone_array::distributed::buffer::BufferMut;
//! use fieldstone_array::distributed::import::Import;
//! use fieldstone_array::distributed::plan::Settings;
//! use fieldstone_core::{dtype::DType, env::comm::{FileMode, Team, single::SingleComm}, env::sim::SimWorld};
//! use fieldstone_format::catalog::ImportedVariable;
//! # fn main() -> fieldstone_core::Result<()> {
//! let disk = SimWorld::memory().disk;
//! let (team, path) = (Team::new(Arc::new(SingleComm::new(disk.clone()))), Path::new("/mesh.bin"));
//! team.open("create", path, FileMode::CreateNew)?.write_at(&[9, 0, 1, 0, 2], 0)?;
//!
//! let x = ImportedVariable { name: "x".into(), dtype: DType::parse(">i2")?, offset: 1, shape: vec![2] };
//! let import = Import::raw(&team, &*disk, path, vec![x])?;
//! let (view, mut x) = (import.view("x", None)?, [0; 4]);
//! let element = import.variable("x")?.element(DType::parse("i2")?)?;
//! let mut into = BufferMut::new(&mut x, element, view.local_shape())?;
//! import.read("x", Ok((&view, &mut into)), Settings::default())?;
//! assert_eq!(x, [1i16.to_ne_bytes(), 2i16.to_ne_bytes()].concat()[..]);
//! # Ok(()) }
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};

use fieldstone_core::dtype::DType;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::{FileMode, Team, TeamFile, TeamReader};
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{FileSums, ImportDecl, ImportFormat, ImportedVariable, sums_block};
use fieldstone_format::content_sum::{BLOCK, BYTES, ContentSum};
use fieldstone_format::netcdf::Header;

use super::agreed::alike;
use super::buffer::{BufferMut, Element};
use super::files::checked::CheckedFile;
use super::files::image::Extent;
use super::plan::{FileArray, MoveReport, PastFileEnd, Planner, Read, Settings};
use super::view::{LocalView, View};

mod netcdf;

const STEP: &str = "import";
/// The hint for ranks that pass different arguments.
const ALIKE: &str = "import the same variables of the same file on all ranks";

/// A variable of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedArray {
    /// Its description; `dtype` has the file's byte order.
    pub variable: ImportedVariable,
    /// The positions of its elements.
    pub array: FileArray,
}

impl ImportedArray {
    /// The conversion of elements into memory of type `memory`.
    ///
    /// Errors: `Invalid` for another type, apart from byte order.
    pub fn element(&self, memory: DType) -> Result<Element> {
        let dtype = self.variable.dtype;
        match memory.to_native() == dtype.to_native() {
            true => Element::of(memory, dtype.byte_order()),
            false => Err(Code::DtypeMismatch
                .error(format!(
                    "variable `{}` has elements of {}, not {}",
                    self.variable.name,
                    dtype.name(),
                    memory.name()
                ))
                .with_hint("read them unchanged, then convert them")),
        }
    }

    /// Checks that it can be read, and ends within a file of `len` bytes.
    fn check(&self, path: &Path, len: u64) -> Result<()> {
        let ImportedVariable { name, dtype, shape, .. } = &self.variable;
        let in_variable = |error: Error| error.context(format_args!("variable `{name}`"));
        Element::of(*dtype, dtype.byte_order()).map_err(in_variable)?;
        let total = shape.iter().try_fold(1u64, |total, len| total.checked_mul(*len));
        let total =
            total.ok_or_else(|| Code::TooLarge.error(format!("variable `{name}` has shape {shape:?}")));
        let total = total?;
        self.array.check(total).map_err(in_variable)?;
        let end = self.array.end(total);
        if total > 0 && end > len {
            return Err(Code::Truncated
                .error(format!(
                    "variable `{name}` needs the bytes {} to {end} of {}, which has {len}",
                    self.array.begin,
                    path.display()
                ))
                .with_hint("the file was cut, or offset, type and shape belong to another file"));
        }
        Ok(())
    }
}

/// The facts about a file when it was opened.
#[derive(Debug, Clone)]
struct FileFacts {
    size: u64,
    mtime: i64,
    /// Its absolute path, on rank 0's host.
    source: String,
}

/// An outside file that all ranks have open. See the module's documentation.
#[derive(Debug)]
pub struct Import {
    file: TeamFile,
    /// The file, through the layer that verifies it, if there are checksums.
    reader: TeamReader,
    path: PathBuf,
    format: ImportFormat,
    facts: FileFacts,
    arrays: Vec<ImportedArray>,
    planner: Planner,
}

impl Import {
    /// Collective: imports variables of a raw file, whose offsets, types and shapes the caller knows. Reads nothing.
    ///
    /// Errors: `NotFound` if there is no file; `Corrupt` if it ends before a variable does; `Invalid` for two
    /// variables of one name, or elements that no rank can hold; `Conflict` if ranks pass different variables.
    pub fn raw(
        team: &Team,
        disk: &dyn Disk,
        path: &Path,
        variables: Vec<ImportedVariable>,
    ) -> Result<Import> {
        let said = variables.iter().map(|v| format!("`{}` {} {} {:?}", v.name, v.dtype, v.offset, v.shape));
        let said = said.collect::<Vec<_>>().join(", ");
        let names: Vec<&str> = variables.iter().map(|variable| &*variable.name).collect();
        let (file, facts) = open(team, disk, path, &names, &said)?;
        let array = |variable: ImportedVariable| {
            let array = FileArray::dense(variable.offset, variable.dtype.size() as u64);
            ImportedArray { variable, array }
        };
        let arrays = variables.into_iter().map(array).collect();
        Import::checked((file.reader(), file), path, ImportFormat::Raw, facts, Ok(arrays))
    }

    /// Collective: imports variables of a netCDF classic file, by name; all variables if `names` is empty. One rank
    /// reads the header.
    ///
    /// Errors: `NotFound` for a missing file or variable, with the nearest names; `Invalid` for a netCDF-4 file,
    /// which is HDF5; `Corrupt` for a damaged header, or a file that ends before a variable does; `Conflict` if ranks
    /// pass different names.
    pub fn netcdf(team: &Team, disk: &dyn Disk, path: &Path, names: &[&str]) -> Result<Import> {
        let said = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let names_of = |_: &Header| Ok((names.iter().map(|name| (*name).to_owned()).collect(), ()));
        Ok(Import::of_header((team, disk), path, (names, &said, None), names_of)?.0)
    }

    /// Collective: imports the variables of a netCDF classic file that `select` names, and returns what else it finds
    /// in the header. Bytes read are compared with `sums`, if given; these are equal on all ranks.
    pub(in crate::distributed) fn of_header<T>(
        (team, disk): (&Team, &dyn Disk),
        path: &Path,
        (names, said, sums): (&[&str], &str, Option<&FileSums>),
        select: impl FnOnce(&Header) -> Result<(Vec<String>, T)>,
    ) -> Result<(Import, T)> {
        let (file, facts) = open(team, disk, path, names, said)?;
        let reader = match checked(&file, path, facts.size, sums) {
            Ok(checked) => checked,
            Err(error) => {
                file.give_up();
                return Err(error);
            }
        };
        let header = match team.rank() {
            0 => netcdf::read_header(&reader, facts.size).map_err(|error| error.context(path.display())),
            _ => Ok(Vec::new()),
        };
        let header = match team.broadcast(STEP, 0, header) {
            Ok(header) => header,
            Err(error) => {
                file.give_up();
                return Err(error);
            }
        };
        let found = netcdf::ImportedHeader::parse(header, facts.size).and_then(|header| {
            let (names, more) = select(&header.header)?;
            Ok((header.arrays(facts.size, &names)?, more))
        });
        let (arrays, more) = match found.map_err(|error| error.context(path.display())) {
            Ok((arrays, more)) => (Ok(arrays), Ok(more)),
            Err(error) => (Err(error.replicate()), Err(error)),
        };
        let import = Import::checked((reader, file), path, ImportFormat::NetCdf, facts, arrays)?;
        Ok((import, more?))
    }

    fn checked(
        (reader, file): (TeamReader, TeamFile),
        path: &Path,
        format: ImportFormat,
        facts: FileFacts,
        arrays: Result<Vec<ImportedArray>>,
    ) -> Result<Import> {
        let arrays = arrays.and_then(|arrays| {
            arrays.iter().try_for_each(|array| array.check(path, facts.size))?;
            Ok(arrays)
        });
        // A failure is raised on all ranks, and all close the file.
        let arrays = match file.team().agree(STEP, arrays) {
            Ok(arrays) => arrays,
            Err(error) => {
                file.give_up();
                return Err(error);
            }
        };
        Ok(Import { file, reader, path: path.to_owned(), format, facts, arrays, planner: Planner::new() })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its variables, in the order of the request.
    pub fn variables(&self) -> &[ImportedArray] {
        &self.arrays
    }

    /// A variable by name.
    ///
    /// Errors: `NotFound`, with the nearest names.
    pub fn variable(&self, name: &str) -> Result<&ImportedArray> {
        let found = self.arrays.iter().find(|array| array.variable.name == name);
        let names = || self.arrays.iter().map(|array| &*array.variable.name);
        found.ok_or_else(|| absent(name, &format!("the import of {}", self.path.display()), names()))
    }

    /// Collective: resolves a view of a variable on this rank, before memory for it is allocated. Without a view, it
    /// is this rank's share in a balanced cut of the first dimension; each rank has all of a variable without
    /// dimensions.
    ///
    /// Errors: `NotFound` for a missing variable; those of [`View::resolve`].
    pub fn view(&self, name: &str, view: Option<&View>) -> Result<LocalView> {
        self.view_in(name, view, false)
    }

    /// As [`view`](Self::view); with `reversed`, by a view with its dimensions in reverse order, as in Fortran. Its
    /// memory is then one of [`BufferMut::transposed`].
    pub fn view_in(&self, name: &str, view: Option<&View>, reversed: bool) -> Result<LocalView> {
        let team = self.file.team();
        // Our own cut is along the file's first dimension in either case.
        let reversed = reversed && view.is_some();
        let shape = self.variable(name).map(|array| {
            let mut shape = array.variable.shape.clone();
            if reversed {
                shape.reverse();
            }
            shape
        });
        let count = shape.as_ref().map_err(Error::replicate).and_then(|shape| {
            let count = view.and_then(View::joined_count).unwrap_or(0);
            match shape.first().is_none_or(|len| count <= *len) {
                true => Ok(vec![count]),
                false => Err(Code::Box.error(format!("a joined view of {count} indices of {shape:?}"))),
            }
        });
        let before = team.sums(STEP, count)?.before[0];
        let local = shape.and_then(|shape| {
            let share;
            let view = match view {
                Some(view) => view,
                None => {
                    share = share_of(shape.len(), team.size());
                    &share
                }
            };
            let local = view.resolve_joined(&shape, team.rank(), team.size(), before)?;
            Ok(if reversed { local.transposed() } else { local })
        });
        team.agree(STEP, local.map_err(|error| error.context(format_args!("variable `{name}`"))))
    }

    /// Collective: reads each rank's view of a variable into the rank's memory, whose element type came from
    /// [`ImportedArray::element`]. A rank that failed before passes its error.
    ///
    /// Errors: `NotFound` for a missing variable; `Corrupt` if the file ends before the variable does; `Invalid` for
    /// a buffer of another shape; `Conflict` if ranks read different variables.
    pub fn read(
        &self,
        name: &str,
        local: Result<(&LocalView, &mut BufferMut<'_>)>,
        settings: Settings,
    ) -> Result<MoveReport> {
        let read = local.and_then(|(view, into)| {
            let array = self.variable(name)?.array;
            Ok(Read { view, array, into, past_end: PastFileEnd::Corrupt, settings })
        });
        let report = self.planner.read(&self.reader, STEP, read);
        report.map_err(|error| error.context(format_args!("variable `{name}` of {}", self.path.display())))
    }

    /// Collective: the checksum of the bytes of all variables, as they are in the file: a [`ContentSum`] whose arrays
    /// are the variables in order, and whose items are blocks of 1 MiB of each variable's bytes. Each rank reads a
    /// share.
    ///
    /// Errors: `Corrupt` if the file ends before a variable does.
    pub fn checksum(&self) -> Result<[u8; BYTES]> {
        let team = self.file.team();
        let (rank, size) = (team.rank() as u128, team.size() as u128);
        let (mut sum, mut bytes, mut outcome) = (ContentSum::new(), Vec::new(), Ok(()));
        for (number, imported) in (0u64..).zip(&self.arrays) {
            let ImportedArray { variable, array } = imported;
            let total: u64 = variable.shape.iter().product();
            // Only whole elements: a block of 3-byte elements has one byte less.
            let each = (BLOCK / array.size).max(1);
            let cut = |rank: u128| (u128::from(total.div_ceil(each)) * rank / size) as u64;
            for block in cut(rank)..cut(rank + 1) {
                let range = block * each..((block + 1) * each).min(total);
                outcome = outcome.and_then(|()| self.read_range(imported, range, &mut bytes));
                sum.add(number, block, &bytes);
            }
        }
        let sums = team.allgather(STEP, outcome.map(|()| sum.to_bytes().to_vec()))?;
        let mut whole = ContentSum::new();
        sums.iter().filter_map(|sum| sum.first_chunk()).for_each(|sum| whole.join(sum));
        Ok(whole.to_bytes())
    }

    /// Reads the elements of a range, as they are in the file, on this rank alone.
    pub(in crate::distributed) fn read_range(
        &self,
        imported: &ImportedArray,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let ImportedArray { variable, array } = imported;
        bytes.resize(((range.end - range.start) * array.size) as usize, 0);
        let read = array.pieces(range.start, range.end, |offset, place, count| {
            let part = &mut bytes[(place * array.size) as usize..][..(count * array.size) as usize];
            PastFileEnd::Corrupt.read(&self.reader, offset, part).map(drop)
        });
        read.map_err(|error| {
            error.context(format_args!("variable `{}` of {}", variable.name, self.path.display()))
        })
    }

    /// Collective: the checksums of the whole file, of which each rank reads a share. If the file is read through a
    /// layer with checksums, that layer compares them.
    ///
    /// Errors: `Corrupt` if the file is shorter than it was, or a block of it has changed.
    pub(in crate::distributed) fn sum_file(&self) -> Result<FileSums> {
        let (team, size) = (self.file.team(), self.facts.size);
        let block = sums_block(size);
        let cut =
            |rank: usize| (u128::from(size.div_ceil(block)) * rank as u128 / team.size() as u128) as u64;
        let mut bytes = vec![0; block.min(size) as usize];
        let mut own = Vec::new();
        let mut blocks = cut(team.rank())..cut(team.rank() + 1);
        let read = blocks.try_for_each(|number| {
            let part = &mut bytes[..block.min(size - number * block) as usize];
            PastFileEnd::Corrupt.read(&self.reader, number * block, part)?;
            own.extend(crc32c::crc32c(part).to_le_bytes());
            Ok(())
        });
        let all = team.allgather(STEP, read.map(|()| own))?.concat();
        let sums = all.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        Ok(FileSums { size, block, sums })
    }

    /// The catalog's record of it under a name: its absolute path, size and time when it was opened; `checksum` is
    /// one that was [computed](Self::checksum).
    pub fn describe(&self, name: &str, checksum: Option<[u8; BYTES]>) -> ImportDecl {
        ImportDecl {
            name: name.to_owned(),
            source: self.facts.source.clone(),
            format: self.format,
            size: self.facts.size,
            mtime: self.facts.mtime,
            checksum: checksum.map(|sum| sum.to_vec()),
            variables: self.arrays.iter().map(|array| array.variable.clone()).collect(),
        }
    }

    /// Collective: closes the file.
    pub fn close(self) -> Result<()> {
        self.file.close(STEP, Ok(()))
    }
}

/// Collective: checks that all ranks pass the same arguments, and opens the file.
fn open(
    team: &Team,
    disk: &dyn Disk,
    path: &Path,
    names: &[&str],
    said: &str,
) -> Result<(TeamFile, FileFacts)> {
    let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    let asked = match twice {
        Some((_, name)) => Err(Code::Name.error(format!("two variables have the name `{name}`"))),
        None => Ok(format!("{} with {said}", path.display())),
    };
    alike(team, STEP, asked, ALIKE)?;
    let facts = match team.rank() {
        0 => disk.stat_with_time(path).and_then(|(stat, mtime)| {
            let source = disk.absolute(path)?.display().to_string();
            Ok([&stat.len.to_le_bytes()[..], &mtime.to_le_bytes(), source.as_bytes()].concat())
        }),
        _ => Ok(Vec::new()),
    };
    let facts = team.broadcast(STEP, 0, facts.map_err(|cause| Error::io("import", path, cause)))?;
    let (size, rest) = facts.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let (mtime, source) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let (size, mtime) = (u64::from_le_bytes(*size), i64::from_le_bytes(*mtime));
    let facts = FileFacts { size, mtime, source: String::from_utf8_lossy(source).into_owned() };
    Ok((team.open(STEP, path, FileMode::Read)?, facts))
}

/// A file of `size` bytes, with a layer that compares reads with checksums.
fn checked(file: &TeamFile, path: &Path, size: u64, sums: Option<&FileSums>) -> Result<TeamReader> {
    let Some(FileSums { size: kept, block, sums }) = sums else { return Ok(file.reader()) };
    if size != *kept {
        return Err(Code::Truncated
            .error(format!("{} has {size} bytes, but had {kept} when it was written", path.display()))
            .with_hint("the file was changed or is damaged: restore it from a copy"));
    }
    let whole = Extent { offset: 0, len: size };
    let name = path.display().to_string();
    Ok(CheckedFile::over(&file.reader(), &name, whole, *block, sums.clone())?.0)
}

/// A balanced cut of the first dimension; everything if there are no dimensions.
fn share_of(dims: usize, ranks: usize) -> View {
    match dims {
        0 => View::block(&[], &[]),
        _ => View::grid(&[&[ranks as u64][..], &vec![1; dims - 1]].concat()),
    }
}

/// The error for a missing name.
fn absent<'a>(name: &str, of: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    let listed = || match names.clone().take(12).map(|name| format!("`{name}`")).collect::<Vec<_>>() {
        names if names.is_empty() => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let hint = did_you_mean(name, names.clone()).unwrap_or_else(listed);
    Code::VariableNotFound.error(format!("{of} has no variable `{name}`")).with_hint(hint)
}
