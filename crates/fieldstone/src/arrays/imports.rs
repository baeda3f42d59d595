//! External files that a run takes in: ranks read them through views, and the catalog records them.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::BufferMut;
use fieldstone_array::distributed::group::MemoryMut;
use fieldstone_array::distributed::import::{Import, ImportedArray};
use fieldstone_array::distributed::plan::MoveReport;
use fieldstone_array::distributed::view::{LocalView, View};
use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_format::catalog::{ImportDecl, ImportedVariable, StorageOrder};

use super::inner::JobInner;
use super::job::ArrayJob;
use super::report::Phase;

/// An external file that all ranks have open.
#[derive(Debug)]
pub struct JobImport {
    pub(super) job: Arc<JobInner>,
    pub(super) import: Import,
}

/// A read of a file's variable that all ranks have begun.
#[derive(Debug)]
pub struct FileRead {
    name: String,
    pub(super) local: LocalView,
    dtype: DType,
    pub(super) order: StorageOrder,
    /// The shape of this rank's memory, in the order that the caller uses.
    local_shape: Vec<u64>,
}

impl FileRead {
    pub(super) fn new(name: &str, local: LocalView, dtype: DType, order: StorageOrder) -> FileRead {
        let mut local_shape = local.local_shape().to_vec();
        if order == StorageOrder::Fortran {
            local_shape.reverse();
        }
        FileRead { name: name.to_owned(), local, dtype, order, local_shape }
    }

    /// The shape of this rank's memory.
    pub fn local_shape(&self) -> &[u64] {
        &self.local_shape
    }

    /// Type of the elements, in this machine's byte order.
    pub fn dtype(&self) -> DType {
        self.dtype.to_native()
    }
}

/// Memory for a variable of a file; `Invalid` for another type.
pub(super) fn buffer<'a>(
    array: &ImportedArray,
    order: StorageOrder,
    memory: MemoryMut<'a>,
) -> Result<BufferMut<'a>> {
    let element = array.element(memory.dtype)?;
    let made = match order {
        StorageOrder::C => BufferMut::strided,
        StorageOrder::Fortran => BufferMut::transposed,
    };
    made(memory.bytes, element, memory.shape, memory.strides, memory.origin)
}

impl ArrayJob {
    /// Collective: opens a raw file with the offsets, types and shapes that the caller gives. This reads no data,
    /// except that `checksum` reads all variables once. A rank that failed before passes its error.
    ///
    /// Errors: `NotFound` if there is no file; `Corrupt` if it ends before a variable does; `Invalid` for a variable
    /// that cannot be read; `Conflict` if ranks, or an earlier import of the file, say otherwise.
    pub fn import_raw(
        &self,
        path: &Path,
        variables: Result<Vec<ImportedVariable>>,
        checksum: bool,
    ) -> Result<JobImport> {
        let job = &self.inner;
        let variables = job.team.agree("import", variables)?;
        let import = Import::raw(&job.team, &*job.env().disk, path, variables)?;
        self.imported(import, checksum)
    }

    /// Collective: opens variables of a netCDF classic file by name; all variables if the list is empty.
    ///
    /// Errors: as of [`import_raw`](Self::import_raw); `Invalid` for a netCDF-4 file, which is HDF5.
    pub fn import_netcdf(&self, path: &Path, names: &[&str], checksum: bool) -> Result<JobImport> {
        let job = &self.inner;
        let import = Import::netcdf(&job.team, &*job.env().disk, path, names)?;
        self.imported(import, checksum)
    }

    fn imported(&self, import: Import, checksum: bool) -> Result<JobImport> {
        let job = self.inner.clone();
        job.state().report.opened += 1;
        let sum = if checksum { Some(import.checksum()?) } else { None };
        let recorded = match job.team.rank() {
            0 if job.writable().is_ok() => {
                // The whole path, so that programs in other folders mean the same file.
                let decl = import.describe("", sum);
                let name = decl.source.clone();
                self.run().create_import(ImportDecl { name, ..decl })
            }
            _ => Ok(()),
        };
        job.team.agree("import", recorded)?;
        Ok(JobImport { job, import })
    }
}

impl JobImport {
    /// The file's path.
    pub fn path(&self) -> &Path {
        self.import.path()
    }

    /// Its variables, in the order in which the caller named them: name, type in the file's byte order, shape.
    pub fn variables(&self) -> Vec<ImportedVariable> {
        self.import.variables().iter().map(|array| array.variable.clone()).collect()
    }

    /// Collective: begins to read a variable, by `view`, else this rank's share of a balanced cut of the first
    /// dimension.
    ///
    /// Errors: `NotFound` for a variable that does not exist; `Invalid` for a view that does not fit.
    pub fn begin_read(&self, name: &str, view: Option<&View>) -> Result<FileRead> {
        self.begin_read_in(name, view, StorageOrder::C)
    }

    /// As [`begin_read`](Self::begin_read), with a view and memory whose dimensions use `order`: Fortran's order
    /// reverses the file's dimensions. Without a view, both orders take the share of the file's first dimension.
    pub fn begin_read_in(&self, name: &str, view: Option<&View>, order: StorageOrder) -> Result<FileRead> {
        let local = self.import.view_in(name, view, order == StorageOrder::Fortran)?;
        Ok(FileRead::new(name, local, self.import.variable(name)?.variable.dtype, order))
    }

    /// Collective: reads into memory of the local shape. A rank that failed before passes its error.
    pub fn read(&self, begun: &FileRead, memory: Result<MemoryMut<'_>>) -> Result<MoveReport> {
        let array = self.import.variable(&begun.name);
        let mut buffer = memory.and_then(|memory| buffer(array?, begun.order, memory));
        let read = match &mut buffer {
            Ok(into) => Ok((&begun.local, into)),
            Err(error) => Err(error.replicate()),
        };
        let mut state = self.job.state();
        self.job.timed(&mut state, Phase::Read, |state| {
            let moved = self.import.read(&begun.name, read, self.job.options.to_read())?;
            state.report.note(&moved);
            Ok(moved)
        })
    }

    /// Collective: closes the file.
    pub fn close(self) -> Result<()> {
        self.import.close()
    }
}
