//! Containers: netCDF classic files and the partitioned header, from one process or many ranks.
//!
//! ```
//! use fieldstone::container::{self, CreateOptions, Mode, NcType, Selection};
//! # fn main() -> fieldstone::Result<()> {
//! # let folder = tempfile::tempdir().map_err(|e| fieldstone::Error::internal(e.to_string()))?;
//! # let path = folder.path().join("run.nc");
//! let file = container::create(&path, None, &CreateOptions::default())?;
//! file.define().dim("event_7/hits", Some(3))?;
//! file.define().var("event_7/charge", NcType::Int, &["hits"])?;
//! file.enddef()?;
//! let charge = file.var("event_7/charge")?;
//! let data: Vec<u8> = [4i32, 5, 6].iter().flat_map(|value| value.to_ne_bytes()).collect();
//! file.elements().put(&charge, &Selection::all(&charge.shape()), &data, NcType::Int, true)?;
//! file.close()?;
//!
//! let file = container::open(&path, Mode::Read, None)?;
//! let charge = file.var("event_7/charge")?;
//! let mut last = [0; 4];
//! file.elements().get(&charge, &Selection::element(&[2]), &mut last, NcType::Int, false)?;
//! assert_eq!(i32::from_ne_bytes(last), 6);
//! # Ok(()) }
//! ```
//!
//! With a communicator all ranks call `create` or `open` together; without one the process is alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::container::{convert, merge};
use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;

pub use fieldstone_array::container::access::{self, Get, Put, Selection};
pub use fieldstone_array::container::convert::Converted;
pub use fieldstone_array::container::define::{DimColumn, RECORD, Types, VarColumns};
pub use fieldstone_array::container::enddef::{Indexing, Phase, Report};
pub use fieldstone_array::container::{
    Container, Counts, CreateOptions, Define, DimInfo, DimRef, Elements, Format, Metadata, Mode, Strategy,
    VarInfo, VarRef,
};
pub use fieldstone_array::container::{cdl, offsets, stats, validate};
pub use fieldstone_core::env::comm::Comm;
pub use fieldstone_format::netcdf::layout::{Alignment, Layout};
pub use fieldstone_format::netcdf::{Attr, Attrs, Names, NcType, Version};

pub mod look;

/// Views of variables, whose elements the ranks of a job move together: see [`Elements::view`].
pub mod views {
    pub use fieldstone_array::container::access::views::VarView;
    pub use fieldstone_array::distributed::plan::{Method, MoveReport, Settings};
    pub use fieldstone_array::distributed::view::decomposition::Decomposition;
    pub use fieldstone_array::distributed::view::{Halo, View};
}

/// Creates a container, in define mode; with `comm` on all its ranks (collective). An existing file of that path stays
/// until the new one is synced or closed.
pub fn create(path: &Path, comm: Option<Arc<dyn Comm>>, options: &CreateOptions) -> Result<Container> {
    let env = Env::real();
    Container::create(path, comm.unwrap_or_else(|| alone(&env)), &env, options)
}

/// Opens a container, in data mode; with `comm` on all its ranks (collective).
pub fn open(path: &Path, mode: Mode, comm: Option<Arc<dyn Comm>>) -> Result<Container> {
    let env = Env::real();
    Container::open(path, mode, comm.unwrap_or_else(|| alone(&env)), &env)
}

/// Writes the content of the container `from` to a new one at `to`, in the format of `options`. An existing file of
/// that path stays until the new one is complete.
pub fn convert(from: &Path, to: &Path, options: &CreateOptions) -> Result<Converted> {
    let from = open(from, Mode::Read, None)?;
    let to = create(to, None, options)?;
    let converted = convert::convert(&from, &to).and_then(|converted| to.close().map(|()| converted));
    converted.inspect_err(|_| to.abort(None))
}

/// Merges the containers of single processes into the one that the processes would have written together.
pub fn merge(files: &[PathBuf], to: &Path, options: &CreateOptions) -> Result<Counts> {
    merge::merge(files, to, &Env::real(), options)
}

fn alone(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}
