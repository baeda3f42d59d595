//! External provenance as rows of the graph: Darshan logs, SLURM's accounting, OpenLineage events, directory trees. And
//! our lineages for other tools: [`export()`], [`compare()`], [`script()`].
//!
//! [`recognise`] identifies a file, [`read`] and [`LineageReader`] turn it into [`GraphRows`], and [`tree`] walks a
//! directory in batches. Nothing here puts rows into a store.
//!
//! Invariants:
//! * ids and times depend only on the content read, so that importing the same history twice adds it once; in
//!   particular, no row is stamped with the time of its import;
//! * a relation is given once, from its source: the graph adds its reverse;
//! * a vertex is put only if the source describes it; files and users exist by their relations alone, so that users'
//!   notes on them stay;
//! * [`GraphRows::notes`] names facts that do not fit the rows; content that cannot be parsed is an error that names
//!   the file and the line, record or event.
//!
//! ```
//! use fieldstone::lineage::{LineageOptions, LineageSource, recognise, sacct};
//! let listing = "JobID|UID|Start|End|State\n17|1000|2026-11-21T07:00:00|2026-11-21T07:01:00|COMPLETED\n";
//! assert_eq!(recognise("jobs.txt".as_ref(), listing.as_bytes()), Some(LineageSource::Sacct));
//! let rows = sacct(listing.as_bytes(), &LineageOptions::default())?;
//! assert_eq!(rows.relations[0].source.to_string(), "user:1000");
//! assert_eq!(rows.relations[0].target.to_string(), "job:17");
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod checksum;
mod compare;
mod darshan;
pub(crate) mod export;
mod openlineage;
mod openlineage_own;
mod outcome;
pub(crate) mod props;
mod sacct;
mod script;
mod tree;
mod units;

use std::path::Path;

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, Result};

pub use crate::graph::{Props, VertexName};
pub use fieldstone_graph::put::{RelationPut, VertexPut};

use crate::interop::helper::{Helper, HelperOptions};

pub use checksum::checksum;
pub use compare::{Difference, compare, compared_by};
pub use export::{LineageFormat, export, write_text};
pub use openlineage::OpenLineage;
pub use sacct::{sacct, utc_offset};
pub use script::script;
pub use tree::{Listing, OWNED_BY, TreePart, TreeReport, tree};

/// Number of bytes of a file that [`recognise`] needs, if the file has that many.
pub const HEAD: usize = 64 << 10;
/// Maximum length of a text file.
const LONGEST: u64 = 1 << 30;
/// The number at byte 8 of a Darshan log, in either byte order.
const DARSHAN_MAGIC: u64 = 6_567_223;

/// Rows of the graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphRows {
    /// Vertices with a description.
    pub vertices: Vec<VertexPut>,
    /// Relations, each from its source.
    pub relations: Vec<RelationPut>,
    /// Omitted or uncertain facts, one line each.
    pub notes: Vec<String>,
    /// Whether they describe their vertices completely, so that they replace the graph's facts at their times; else
    /// they add to them.
    pub whole: bool,
}

impl GraphRows {
    /// Adds the rows of `more`.
    pub fn extend(&mut self, more: GraphRows) {
        self.vertices.extend(more.vertices);
        self.relations.extend(more.relations);
        self.notes.extend(more.notes);
    }

    /// Number of vertices and relations.
    pub fn len(&self) -> usize {
        self.vertices.len() + self.relations.len()
    }

    /// Whether there are neither.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The recorder of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineageSource {
    /// Darshan: reads and writes of a job's processes.
    Darshan,
    /// SLURM: jobs and their steps, as `sacct -P` lists them.
    Sacct,
    /// OpenLineage: events of runs.
    OpenLineage,
}

/// Options of [`read`].
#[derive(Debug, Clone, Default)]
pub struct LineageOptions {
    /// Seconds that local time was ahead of UTC on the machine of `sacct`, for times without an offset: 3600 for UTC+1.
    /// It is one number for a whole listing, so `TZ=UTC sacct …` is better if the clocks changed in between.
    pub ahead: i32,
    /// Options for starting the helper, which reads Darshan logs.
    pub helper: HelperOptions,
}

/// Identifies a file by its name and first bytes ([`HEAD`] of them are enough); `None` for other files.
pub fn recognise(path: &Path, head: &[u8]) -> Option<LineageSource> {
    // The library uses this name until the job has ended; reading reports that such a log is incomplete.
    let named = path.extension().is_some_and(|suffix| suffix == "darshan" || suffix == "darshan_partial");
    if named || is_darshan(head) {
        return Some(LineageSource::Darshan);
    }
    if sacct::is_header(head) {
        return Some(LineageSource::Sacct);
    }
    openlineage::is_event(head).then_some(LineageSource::OpenLineage)
}

fn is_darshan(head: &[u8]) -> bool {
    let magic = head.get(8..16).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let versioned = head.first().is_some_and(u8::is_ascii_digit) && head.get(1) == Some(&b'.');
    versioned
        && magic.is_some_and(|magic| {
            u64::from_le_bytes(magic) == DARSHAN_MAGIC || u64::from_be_bytes(magic) == DARSHAN_MAGIC
        })
}

/// The rows of one file. FileFormat for a file of an unknown kind.
///
/// Read files that belong together, such as events of one run in several files, with one [`LineageReader`].
pub fn read(env: &Env, path: &Path, options: &LineageOptions) -> Result<GraphRows> {
    let mut reader = LineageReader::new(env, options);
    let mut rows = reader.read(path)?;
    rows.extend(reader.finish()?);
    Ok(rows)
}

/// Reads files one after another: with one helper, and with the events of a run combined, whichever files they are in.
#[derive(Debug)]
pub struct LineageReader<'a> {
    env: &'a Env,
    options: &'a LineageOptions,
    helper: Option<Helper>,
    events: OpenLineage,
}

impl<'a> LineageReader<'a> {
    /// A new reader, without any events.
    pub fn new(env: &'a Env, options: &'a LineageOptions) -> LineageReader<'a> {
        LineageReader { env, options, helper: None, events: OpenLineage::default() }
    }

    /// The rows of a file; those of OpenLineage come with [`finish`](LineageReader::finish). An error drops the whole
    /// file, and the next one can be read.
    pub fn read(&mut self, path: &Path) -> Result<GraphRows> {
        let named = |error: Error| error.context(path.display());
        match recognise(path, &self.bytes(path, HEAD as u64, false)?) {
            Some(LineageSource::Darshan) => darshan::read(&mut self.helper, &self.options.helper, path),
            Some(LineageSource::Sacct) => {
                sacct(&self.bytes(path, LONGEST, true)?, self.options).map_err(named)
            }
            Some(LineageSource::OpenLineage) => {
                let bytes = self.bytes(path, LONGEST, true)?;
                self.events.add(&bytes).map_err(named)?;
                Ok(GraphRows::default())
            }
            None => {
                Err(Code::FileFormat.error(format!("{} is not in a known provenance format", path.display())))
                    .map_err(|e| {
                        e.with_hint(
                    "give Darshan logs, text of sacct -P with its header, or OpenLineage events (JSON)",
                )
                    })
            }
        }
    }

    /// The OpenLineage events that were read.
    pub fn events(&mut self) -> &mut OpenLineage {
        &mut self.events
    }

    /// The rows of all OpenLineage events that were read.
    pub fn finish(self) -> Result<GraphRows> {
        self.events.rows()
    }

    /// The beginning of a file; with `whole`, TooLarge if there is more.
    fn bytes(&self, path: &Path, most: u64, whole: bool) -> Result<Vec<u8>> {
        let failed = |e| Error::io("read", path, e).with_hint("check the path and its permissions");
        let file = self.env.disk.open_read(path).map_err(failed)?;
        let mut bytes = Vec::new();
        let mut part = vec![0; HEAD];
        while (bytes.len() as u64) < most {
            match file.read_at(&mut part, bytes.len() as u64).map_err(failed)? {
                0 => return Ok(bytes),
                n => bytes.extend_from_slice(part.get(..n).unwrap_or_default()),
            }
        }
        if whole {
            let why = format!("{} is longer than {} MiB", path.display(), LONGEST >> 20);
            return Err(Code::TooLarge.error(why).with_hint("split it into several files"));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_core::env::sim::SimWorld;

    use super::*;

    #[test]
    fn files_are_known_by_what_they_hold() {
        let event = br#" [{"eventTime": "x", "run": {"runId": "1"}}]"#;
        let cases: [(&str, &[u8], Option<LineageSource>); 12] = [
            ("a.darshan", b"", Some(LineageSource::Darshan)),
            ("a.darshan_partial", b"", Some(LineageSource::Darshan)),
            ("a", b"3.41\0\0\0\0\x37\x35\x64\0\0\0\0\0", Some(LineageSource::Darshan)),
            ("a", b"3.41\0\0\0\0\0\0\0\0\0\x64\x35\x37", Some(LineageSource::Darshan)),
            ("a", b"3.41\0\0\0\0\0\0\0\0\0\x64\x35\x36", None),
            ("jobs", b"State|JobIDRaw|End\n", Some(LineageSource::Sacct)),
            ("jobs", b"JobID\n17\n", None),
            ("jobs", b"a|b\nJobID|c\n", None),
            ("a.json", event, Some(LineageSource::OpenLineage)),
            ("a.json", br#"{"eventTime": "x", "eventName": "of a cloud"}"#, None),
            ("a.csv", br#"x,{"eventTime": "x", "run": {"runId": "1"}}"#, None),
            ("a.nc", b"CDF\x01", None),
        ];
        for (name, head, source) in cases {
            assert_eq!(recognise(name.as_ref(), head), source, "{name} {}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_names_it() {
        let world = SimWorld::new(1);
        let env = world.host("a");
        let write = |name: &str, text: &str| {
            env.disk.create_new(name.as_ref()).unwrap().write_at(text.as_bytes(), 0).unwrap();
        };
        write("/a.txt", "nothing of the kind");
        write("/b.json", "{\"eventTime\": \"x\", \"run\": {\"runId\": 1}}");
        write("/c", "JobID|Start\n1|yesterday\n");
        let options = LineageOptions::default();
        for (name, code) in [
            ("/a.txt", Code::FileFormat),
            ("/b.json", Code::Value),
            ("/c", Code::Value),
            ("/d", Code::FileNotFound),
        ] {
            let error = read(&env, name.as_ref(), &options).unwrap_err();
            assert!(error.message().contains(name), "{error}");
            assert_eq!(error.code(), code, "{error}");
        }
    }
}
