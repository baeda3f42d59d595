//! Taking files into a store: netCDF, read by the helper process, GRIB, read here, and provenance that others
//! recorded, which goes into the graph.
//!
//! With a name for it, the unstructured mesh of a file is taken instead, and kept by its content.
//!
//! A netCDF file becomes a field per variable and value of its leading coordinate, and a header that
//! turns them back into the file (`spec/netcdf-header.md`); a GRIB file a field per message, byte for
//! byte, under the keywords of the `mars` schema (`spec/helper-protocol.md`, "GRIB keys").
//!
//! Invariants:
//! * a file is taken whole (but for the parts that the report names) or not at all: it is a transaction;
//! * nothing that one call took is replaced by the same call, and a file taken twice adds nothing;
//! * what is wrong with a file stands in the report; only what is wrong with the store, or with the
//!   Python that is to read, is an error;
//! * a file whose values stay in it is the same file from the first look to the last, or is skipped;
//! * memory holds one batch of GRIB messages (16 MiB, or one message), or two parts of an array, and 256
//!   bytes per message seen.
//!
//! ```no_run
//! use fieldstone::{IngestOptions, OpenOptions};
//!
//! let files = ["era5.nc", "ocean.nc"];
//! let schema = Some(fieldstone::suggest_schema(&files).to_owned());
//! let store = fieldstone::open("store", &OpenOptions { schema, ..Default::default() })?;
//! let report = fieldstone::ingest(&store, &files, &IngestOptions::default())?;
//! for skipped in &report.skipped {
//!     eprintln!("{skipped}");
//! }
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod declare;
mod external;
mod fdb;
mod file;
mod grib;
mod mesh;
mod netcdf;
mod provenance;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use self::provenance::Provenance;
use crate::Store;
use crate::interop::helper::{HelperOptions, Texts};
use crate::interop::lineage::LineageOptions;
use fieldstone_core::Result;
use fieldstone_core::env::Env;

pub use fdb::{FdbSource, fdb_schema, ingest_fdb};

/// How far an ingest is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The file being read.
    pub path: &'a Path,
    /// Its place among the files, from 0.
    pub index: usize,
    /// How many files there are.
    pub files: usize,
    /// Bytes of all files that are done.
    pub done: u64,
    /// Bytes of all files.
    pub of: u64,
}

/// Called as an ingest goes on, at most ten times a second and at the end of every file. An error ends
/// the ingest: what the current file brought is dropped, files before it stay.
pub type OnProgress<'a> = dyn Fn(&Progress<'_>) -> Result<()> + 'a;

/// Options of [`ingest`].
#[derive(Clone, Default)]
pub struct IngestOptions<'a> {
    /// Further keywords for every field. `run` takes the place of a netCDF file's name; any other one
    /// may not contradict what the file says.
    pub key: Texts,
    /// Whether values stay in their files (`copy=False` in Python): the store keeps their places and
    /// checksums. Possible for netCDF classic files alone; others are skipped by name.
    pub external: bool,
    /// The name under which the unstructured mesh of a file is taken, and nothing else of it.
    pub mesh: Option<String>,
    /// Whether directories are taken: what stands in them, as vertices of the graph.
    pub tree: bool,
    /// Seconds by which local times in SLURM's accounting are ahead of UTC.
    pub ahead: i32,
    /// How the helper is started.
    pub helper: HelperOptions,
    /// What is reported about progress.
    pub progress: Option<&'a OnProgress<'a>>,
}

impl fmt::Debug for IngestOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngestOptions")
            .field("key", &self.key)
            .field("external", &self.external)
            .field("mesh", &self.mesh)
            .field("tree", &self.tree)
            .field("ahead", &self.ahead)
            .field("helper", &self.helper)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// A file that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The file.
    pub path: PathBuf,
    /// Fields that the store has now and had not before.
    pub fields: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fields that the store had already, equal in every byte, what of provenance the graph had, and meshes that there were.
    pub unchanged: u64,
    /// Vertices and relations of the graph that are there now and were not before.
    pub relations: u64,
    /// Meshes that there are now and were not before.
    pub meshes: u64,
}

impl Taken {
    fn nothing(path: &Path) -> Taken {
        Taken { path: path.to_owned(), fields: 0, bytes: 0, unchanged: 0, relations: 0, meshes: 0 }
    }
}

/// Something that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// The part of it (a variable, a message), or `the file`.
    pub what: String,
    /// The reason, with what can be done about it.
    pub why: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path.display(), self.what, self.why)
    }
}

/// What [`ingest`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// Files that were taken, whole or in part, in the order given.
    pub taken: Vec<Taken>,
    /// Files and parts of files that were not, with the reasons.
    pub skipped: Vec<Skipped>,
}

/// What stands for a whole file in [`Skipped::what`].
const WHOLE_FILE: &str = "the file";

/// Takes files into a store, one after another.
///
/// The store's schema decides what fits: `mars` takes GRIB, `simulation` takes netCDF, a schema of your
/// own what it has the keywords for; see [`suggest_schema`] for a store that is yet to be made.
///
/// Errors: `Invalid` for a mesh with a key, or whose values are to stay in the file, or of directories of provenance.
pub fn ingest<P: AsRef<Path>>(
    store: &Store,
    paths: &[P],
    options: &IngestOptions<'_>,
) -> Result<IngestReport> {
    store.will_write();
    let sizes: Vec<u64> =
        paths.iter().map(|path| std::fs::metadata(path).map_or(0, |facts| facts.len())).collect();
    let of = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
    if let Some(name) = &options.mesh {
        return mesh::ingest(store, paths, name, options);
    }
    let mut report = IngestReport::default();
    let mut state = file::State::new(store, options)?;
    let lineage = LineageOptions { ahead: options.ahead, helper: options.helper.clone() };
    let outside = Env::real();
    let mut provenance = Provenance::new(store, &outside, &lineage);
    let mut before = 0u64;
    for (index, (path, size)) in paths.iter().zip(&sizes).enumerate() {
        let path = path.as_ref();
        let report_progress = |part: f64| match options.progress {
            // In floating point: a part of a file is no exact number of its bytes.
            Some(progress) => {
                let done = before.saturating_add((*size as f64 * part) as u64);
                progress(&Progress { path, index, files: paths.len(), done: done.min(of), of })
            }
            None => Ok(()),
        };
        let outcome = match provenance::look(path) {
            Some(what) => provenance.take(path, what, options, report.taken.len(), &mut report.skipped),
            None => state.take(path, &report_progress, &mut report.skipped),
        };
        let outcome = outcome.and_then(|taken| report_progress(1.0).map(|()| taken));
        let taken = outcome.map_err(|e| match report.taken.len() {
            0 => e.context(path.display()),
            n => e.context(format!("{} ({n} files were taken before it)", path.display())),
        })?;
        report.taken.extend(taken);
        before = before.saturating_add(*size);
    }
    provenance.finish(&mut report.taken, &mut report.skipped)?;
    Ok(report)
}

/// The schema for a new store that is to take these files: `mars` where the first file that can be read
/// is GRIB, `simulation` otherwise.
pub fn suggest_schema<P: AsRef<Path>>(paths: &[P]) -> &'static str {
    for path in paths {
        if let Ok(head) = read_head(path.as_ref()) {
            return if looks_like_grib(&head) { "mars" } else { "simulation" };
        }
    }
    "simulation"
}

/// How much of a file is searched for the first GRIB message: bulletins may stand before it.
const GRIB_SEARCH: u64 = 64 << 10;

fn read_head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(GRIB_SEARCH).read_to_end(&mut head)?;
    Ok(head)
}

fn looks_like_grib(head: &[u8]) -> bool {
    let netcdf = [&b"CDF\x01"[..], b"CDF\x02", b"CDF\x05", b"FSP", b"\x89HDF\r\n\x1a\n"];
    !netcdf.iter().any(|magic| head.starts_with(magic))
        && head.windows(8).any(|at| at.starts_with(b"GRIB") && (at[7] == 1 || at[7] == 2))
}
