//! Taking files into a store: netCDF, read by the helper process, GRIB, read here, and provenance that others
//! recorded, which goes into the graph.
//!
//! With a name for it, the unstructured mesh of a file is taken instead, and kept by its content.
//!
//! A netCDF file becomes a field per variable and value of its leading coordinate, and a header that
//! turns them back into the file (`spec/netcdf-header.md`); a GRIB file a field per message, byte for
//! byte, under the keywords of the `mars` schema (`spec/helper-protocol.md`, "GRIB keys").
//!
//! What is named may be folders and patterns, too ([`NamedFiles`]). The report has the key of each file, totals, and
//! what was left out by reasons; it is filled as files are done, so that an ingest that ends early leaves it behind
//! ([`ingest_into`], B-18), and the same call goes on where that one ended.
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
pub use fieldstone_format::helper::StepDim;
pub use files::NamedFiles;
pub(crate) use netcdf::HEADER;
pub use report::{IngestReport, Reason, Skipped, Taken};

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
    /// checksums. Possible for GRIB, netCDF classic files and containers; others are skipped by name.
    pub external: bool,
    /// The name under which the unstructured mesh of a file is taken, and nothing else of it.
    pub mesh: Option<String>,
    /// Whether directories are taken: what stands in them, as vertices of the graph.
    pub tree: bool,
    /// Whether of a folder only its own files are taken, and none of those in folders below it.
    pub shallow: bool,
    /// Along which dimension variables of netCDF files are fields per step.
    pub step_dim: StepDim,
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
            .field("shallow", &self.shallow)
            .field("step_dim", &self.step_dim)
            .field("ahead", &self.ahead)
            .field("helper", &self.helper)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What stands for a whole file in [`Skipped::what`].
const WHOLE_FILE: &str = "the file";
/// The same for a folder of which no file can be taken.
const WHOLE_FOLDER: &str = "the folder";
/// The same for a pattern that matches nothing.
const WHOLE_PATTERN: &str = "the pattern";

/// Takes files into a store, one after another: those named, those in folders, those that match patterns.
///
/// The store's schema decides what fits: `mars` takes GRIB, `simulation` takes netCDF, `mixed` both, a schema of your
/// own what it has the keywords for; see [`suggest_schema`] for a store that is yet to be made.
///
/// Errors: `Invalid` for a mesh with a key, or whose values are to stay in the file, or of directories of provenance.
pub fn ingest<P: AsRef<Path>>(
    store: &Store,
    paths: &[P],
    options: &IngestOptions<'_>,
) -> Result<IngestReport> {
    let mut report = IngestReport::default();
    ingest_into(store, paths, options, &mut report)?;
    Ok(report)
}

/// As [`ingest`], with a report that is there after an error, too: of the files that were done before it.
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
            // In floating point: a part of a file is no exact number of its bytes.
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
                // Who interrupts an ingest interrupts its helper: that is not what is wrong with the file.
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

/// The schema for a new store that is to take these files, folders and patterns: `mars` where all that is recognised
/// is GRIB, `mixed` where GRIB and netCDF are among them, `simulation` otherwise.
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

/// How much of a file is searched for the first GRIB message: bulletins may stand before it.
const GRIB_SEARCH: u64 = 64 << 10;
/// What netCDF files and containers begin with.
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

/// HDF5 may begin behind 512, 1024, 2048 ... bytes of something else.
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
