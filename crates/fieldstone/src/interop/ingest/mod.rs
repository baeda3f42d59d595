//! Takes files into a store: netCDF, read by the helper process; GRIB, read here; and external provenance, which goes
//! into the graph.
//!
//! Given a name for it, only the unstructured mesh of a file is taken, and kept by its content.
//!
//! A netCDF file becomes a field per variable and value of its leading coordinate, and a header that turns them back
//! into the file (`spec/netcdf-header.md`); a GRIB file a field per message, byte for byte, under the keywords of the
//! `mars` schema (`spec/helper-protocol.md`, "GRIB keys").
//!
//! Paths may also be folders and patterns ([`NamedFiles`]). The report has the key of each file, totals, and omissions
//! grouped by reason; it is filled as files are done, so that an ingest that ends early still leaves it
//! ([`ingest_into`], B-18), and the same call continues where that one ended.
//!
//! Invariants:
//! * a file is taken whole (except for the parts that the report names) or not at all: it is a transaction;
//! * a call replaces nothing that it took itself, and a file taken twice adds nothing;
//! * faults of a file go to the report; only faults of the store, or of the Python that reads, are errors;
//! * a file whose values stay in it is the same file from the first look to the last, or is skipped;
//! * memory holds one batch of GRIB messages (16 MiB, or one message), or two parts of an array, and 256 bytes per
//!   message seen.
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

mod added;
mod declare;
mod exported;
mod external;
mod fdb;
mod file;
mod file_reply;
mod files;
mod grib;
mod mesh;
mod netcdf;
mod provenance;
mod report;
mod tree;

use std::fmt;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use self::provenance::Provenance;
use crate::Store;
use crate::interop::helper::{HelperOptions, Texts};
use crate::interop::lineage::LineageOptions;
use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::real::open_named;
use fieldstone_store::api::Transactions;

pub use fdb::{FdbSource, fdb_schema, ingest_fdb};
pub use fieldstone_core::step_dim::StepDim;
pub use files::NamedFiles;
pub(crate) use netcdf::HEADER;
pub use report::{IngestReport, Reason, Skipped, Taken};

/// Progress of an ingest.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The file being read.
    pub path: &'a Path,
    /// Its index among the files, from 0.
    pub index: usize,
    /// Number of files.
    pub files: usize,
    /// Bytes of finished files.
    pub done: u64,
    /// Bytes of all files.
    pub of: u64,
}

/// Called during an ingest, at most ten times a second and at the end of every file. An error ends the ingest: the
/// current file is dropped, files before it stay.
pub type OnProgress<'a> = dyn Fn(&Progress<'_>) -> Result<()> + 'a;

/// Options of [`ingest`].
#[derive(Clone, Default)]
pub struct IngestOptions<'a> {
    /// Further keywords for every field. `run` replaces a netCDF file's name; any other one may not contradict the
    /// file.
    pub key: Texts,
    /// Whether values stay in their files (`copy=False` in Python): the store keeps their places and checksums.
    /// Possible for GRIB, netCDF classic files and containers; other files are skipped, with their names.
    pub external: bool,
    /// The name for the unstructured mesh of a file; then nothing else of the file is taken.
    pub mesh: Option<String>,
    /// Whether directories are taken: their entries become vertices of the graph.
    pub tree: bool,
    /// Whether folders only contribute their own files, not those of subfolders.
    pub shallow: bool,
    /// The dimension along which variables of netCDF files are split into one field per step.
    pub step_dim: StepDim,
    /// Seconds by which local times in SLURM's accounting are ahead of UTC.
    pub ahead: i32,
    /// Options for starting the helper.
    pub helper: HelperOptions,
    /// Receives progress reports.
    pub progress: Option<&'a OnProgress<'a>>,
}

impl fmt::Debug for IngestOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngestOptions")
            .field("key", &self.key)
            .field("external", &self.external)
            .field("mesh", &self.mesh)
            .field("tree", &self.tree)
            .field("shallow", &self.shallow)
            .field("step_dim", &self.step_dim)
            .field("ahead", &self.ahead)
            .field("helper", &self.helper)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The value of [`Skipped::what`] for a whole file.
const WHOLE_FILE: &str = "the file";
/// The same for a folder without any usable file.
const WHOLE_FOLDER: &str = "the folder";
/// The same for a pattern that matches nothing.
const WHOLE_PATTERN: &str = "the pattern";

/// Takes files into a store, one after another: single ones, those in folders, those that match patterns.
///
/// The store's schema decides what fits: `mars` takes GRIB, `simulation` takes netCDF, `mixed` both, a custom schema
/// the files that its keywords can describe; see [`suggest_schema`] for a new store.
///
/// Errors: `Invalid` for a mesh with a key, with values that are to stay in the file, or with directories of
/// provenance.
pub fn ingest<P: AsRef<Path>>(
    store: &Store,
    paths: &[P],
    options: &IngestOptions<'_>,
) -> Result<IngestReport> {
    let mut report = IngestReport::default();
    ingest_into(store, paths, options, &mut report)?;
    Ok(report)
}

/// As [`ingest`], with a report that survives an error: it has the files that were done before.
pub fn ingest_into<P: AsRef<Path>>(
    store: &Store,
    paths: &[P],
    options: &IngestOptions<'_>,
    report: &mut IngestReport,
) -> Result<()> {
    store.will_write();
    let named = NamedFiles::of(paths, options.shallow, options.tree || options.mesh.is_some());
    let paths = named.files;
    report.done = named.skipped.len();
    report.files = report.done + paths.len();
    report.skipped.extend(named.skipped);
    let sizes: Vec<u64> =
        paths.iter().map(|path| std::fs::metadata(path).map_or(0, |facts| facts.len())).collect();
    let of = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
    if let Some(name) = &options.mesh {
        return mesh::ingest(store, &paths, name, options, report);
    }
    let mut state = file::State::new(store, options)?;
    let lineage = LineageOptions { ahead: options.ahead, helper: options.helper.clone() };
    let outside = Env::real();
    let mut provenance = Provenance::new(store, &outside, &lineage);
    let mut before = 0u64;
    let mut outcome = Ok(());
    for (index, (path, size)) in paths.iter().zip(&sizes).enumerate() {
        let report_progress = |part: f64| match options.progress {
            // In floating point: a part of a file is not an exact number of its bytes.
            Some(progress) => {
                let done = before.saturating_add((*size as f64 * part) as u64);
                progress(&Progress { path, index, files: paths.len(), done: done.min(of), of })
            }
            None => Ok(()),
        };
        let reported = report.skipped.len();
        let taken = match provenance::look(path) {
            Some(what) => provenance.take(path, what, options, report.taken.len(), &mut report.skipped),
            None => state.take(path, &report_progress, &mut report.skipped),
        };
        let missed = matches!(&taken, Ok(None));
        match taken {
            Ok(Some(taken)) => {
                report.taken.push(taken);
                report.done += 1;
            }
            Ok(None) => {}
            Err(error) => outcome = Err(error),
        }
        if outcome.is_ok() {
            outcome = report_progress(1.0);
            if outcome.is_err() && missed {
                // An interrupt of the ingest also interrupts its helper: that is not a fault of the file.
                report.skipped.truncate(reported);
            }
        } else {
            report.skipped.truncate(reported);
        }
        if let Err(error) = outcome {
            outcome = Err(match report.taken.len() {
                0 => error.context(path.display()),
                n => error.context(format!("{} ({n} files were taken before it)", path.display())),
            });
            break;
        }
        report.done += usize::from(missed);
        before = before.saturating_add(*size);
    }
    let finished = provenance.finish(&mut report.taken, &mut report.skipped);
    let apart = if outcome.is_ok() { netcdf::tell_apart(store, &mut report.taken) } else { Ok(()) };
    outcome.and(finished).and(apart)
}

/// The schema for a new store that will take these files, folders and patterns: `mars` if all recognised files are
/// GRIB, `mixed` if GRIB and netCDF are among them, `simulation` otherwise.
pub fn suggest_schema<P: AsRef<Path>>(paths: &[P]) -> &'static str {
    let named = NamedFiles::of(paths, false, false);
    let (mut grib, mut arrays) = (false, false);
    for path in &named.files {
        if let Ok(head) = read_head(path) {
            let is_grib = looks_like_grib(&head);
            grib |= is_grib;
            arrays |= !is_grib && looks_like_netcdf(path, &head);
        }
        if grib && arrays {
            return "mixed";
        }
    }
    if grib { "mars" } else { "simulation" }
}

/// Bytes of a file that are searched for the first GRIB message: bulletins may precede it.
const GRIB_SEARCH: u64 = 64 << 10;
/// First bytes of netCDF files and containers.
const NETCDF: [&[u8]; 6] = [b"CDF\x01", b"CDF\x02", b"CDF\x05", b"FSP", b"FSU", HDF5];
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

fn read_head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_named(path)?.take(GRIB_SEARCH).read_to_end(&mut head)?;
    Ok(head)
}

fn looks_like_grib(head: &[u8]) -> bool {
    !NETCDF.iter().any(|magic| head.starts_with(magic))
        && head.windows(8).any(|at| at.starts_with(b"GRIB") && (at[7] == 1 || at[7] == 2))
}

/// HDF5 may begin after 512, 1024, 2048 ... other bytes.
fn looks_like_netcdf(path: &Path, head: &[u8]) -> bool {
    let behind = |at: &u64| {
        let mut magic = [0; HDF5.len()];
        open_named(path).is_ok_and(|file| file.read_exact_at(&mut magic, *at).is_ok()) && magic[..] == *HDF5
    };
    NETCDF.iter().any(|magic| head.starts_with(magic))
        || (9..=30).map(|power| 1u64 << power).take_while(|at| *at < size_of(path)).any(|at| behind(&at))
}

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}
