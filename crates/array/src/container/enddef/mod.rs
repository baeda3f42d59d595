//! The collective moment: what ranks defined apart becomes one header.
//!
//! | module | what it does |
//! |---|---|
//! | `names` | names checked by the ranks that own a part of all hashes |
//! | `shared` | objects that several ranks define, compared; `difference` says in words how they differ |
//! | `place` | numbers, header offsets and data offsets from sums over the lower ranks |
//! | `emit` | each rank's part of the header, written in pieces |
//! | `partitioned` | the strategy that compares only what stands under shared paths |
//! | `central` | the strategies that bring everything to one rank, or to all, for comparison |
//! | `changes` | what ranks did to objects that the file had |
//! | [`report`] | what it took |
//!
//! It has two parts, so that the caller can decide into which file it writes once it is known whether data
//! must move: [`plan`] checks and places, [`Planned::write`] writes. [`enddef`] is both.
//!
//! Invariants: the bytes of the file depend on the sequence of definitions, not on the number of ranks that
//! share it or on the strategy; an error on one rank is raised on all, and nothing was written where `plan`
//! fails; the file says that it is unfinished until its caller publishes it.

mod central;
mod changes;
mod difference;
mod emit;
mod names;
mod packing;
mod partitioned;
mod place;
pub mod report;
mod scalable;
mod shared;

use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::{Alignment, Layout};
use fieldstone_format::netcdf::trailer::{IndexPart, MANY};

use super::define::Definitions;
use super::model::{Counts, Strategy};
use super::partitioned::Reader;
use super::partitioned::write::Ready;
pub use central::MAX_SLOTS;
pub(super) use central::check_slots;
pub(super) use names::sort_words;
use place::Placed;
use report::Watch;
pub use report::{Phase, Report};

/// Which files get a name index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Indexing {
    /// Those of more than a thousand objects.
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

/// How definitions end.
#[derive(Debug, Clone, Copy)]
pub struct EnddefOptions<'a> {
    /// How ranks come to one header.
    pub strategy: Strategy,
    /// Alignment and free space.
    pub alignment: Alignment,
    /// Which files get a name index.
    pub indexing: Indexing,
    /// On a redefinition, the header that the file has, with begins; the definitions began from it.
    pub old: Option<&'a Header>,
    /// Number of records that the file has.
    pub numrecs: u64,
    /// For the report's seconds.
    pub clock: &'a dyn Clock,
}

impl<'a> EnddefOptions<'a> {
    /// A new file, by `strategy`, with everything else as usual.
    pub fn new(strategy: Strategy, clock: &'a dyn Clock) -> EnddefOptions<'a> {
        EnddefOptions {
            strategy,
            alignment: Alignment::default(),
            indexing: Indexing::Auto,
            old: None,
            numrecs: 0,
            clock,
        }
    }
}

/// What came of definitions, on one rank. Sizes and begins of the variables that this rank placed are in the
/// definitions' header.
#[derive(Debug, Clone)]
pub struct Defined {
    /// The file's number of each local variable.
    pub var_ids: Vec<u64>,
    /// The file's number of each local dimension.
    pub dim_ids: Vec<u64>,
    /// Where things are in the file.
    pub layout: Layout,
    /// How many objects the file has, of all ranks; the attribute that states how paths are spelled is not
    /// counted.
    pub counts: Counts,
    /// Whether names in the file are spelled paths.
    pub spelled: bool,
    /// Offsets of the tags of the lists of dimensions, global attributes and variables.
    pub lists: [u64; 3],
    /// This rank's part of the name index, where the file gets one.
    pub index: Option<IndexPart>,
    /// With the partitioned header, what is found through it.
    pub reader: Option<Arc<Reader>>,
    /// What it took on this rank.
    pub report: Report,
}

/// Checked and placed, not yet written.
#[derive(Debug)]
pub struct Planned {
    placed: Placed,
    /// In central strategies, on ranks that write, all definitions; they are written in place of this rank's.
    whole: Option<(Header, Placed)>,
    index: Option<IndexPart>,
    moves: bool,
    /// With the partitioned header, what is written in place of all of the above.
    blocks: Option<Ready>,
    report: Report,
    held: u64,
}

/// Checks the definitions of all ranks against one another and places everything. Collective.
///
/// Errors: `Conflict` that names objects, differences and ranks; `Invalid` for limits of the format; whatever
/// fails on any rank.
pub fn plan(team: &Team, definitions: &mut Definitions, options: &EnddefOptions<'_>) -> Result<Planned> {
    let mut watch = Watch::new(options.clock, definitions.memory());
    if options.old.is_some() {
        changes::exchange(team, definitions)?;
    }
    match options.strategy {
        Strategy::Scalable => scalable::plan(team, definitions, options, &mut watch),
        Strategy::App | Strategy::LibraryHash { .. } | Strategy::LibrarySort => {
            central::plan(team, definitions, options, &mut watch)
        }
        Strategy::Partitioned => partitioned::plan(team, definitions, options, &mut watch),
    }
}

/// [`plan`], and its writing into `file`. Collective.
pub fn enddef(
    file: &TeamFile,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
) -> Result<Defined> {
    plan(file.team(), definitions, options)?.write(file, definitions, options)
}

impl Planned {
    /// Where things will be.
    pub fn layout(&self) -> Layout {
        self.placed.layout
    }

    /// Whether data that the file has must move.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// Writes the header, which says that the file is unfinished, and makes the file as long as its data
    /// (what was never written reads as zeros). Collective.
    pub fn write(
        mut self,
        file: &TeamFile,
        definitions: &mut Definitions,
        options: &EnddefOptions<'_>,
    ) -> Result<Defined> {
        let mut watch = Watch::resume(options.clock, self.held, self.report);
        let team = file.team();
        let layout = self.placed.layout;
        let len = layout.file_len(options.numrecs).ok_or_else(|| {
            let (records, size) = (options.numrecs, layout.record_size);
            Error::invalid(format!("{records} records of {size} bytes each are beyond every file"))
        });
        let (header, _) = definitions.for_enddef();
        header.numrecs = Some(options.numrecs);
        let written = match (&mut self.whole, is_central(options.strategy)) {
            _ if self.blocks.is_some() => {
                let ids = &self.placed.dim_ids;
                self.blocks.as_ref().map_or(Ok(0), |ready| ready.write(file, header, ids))
            }
            (Some((whole, placed)), _) if team.rank() == 0 => {
                whole.numrecs = header.numrecs;
                emit::write(file, whole, placed, self.index.as_mut(), &mut watch)
            }
            (_, true) => Ok(0),
            _ => emit::write(file, header, &self.placed, self.index.as_mut(), &mut watch),
        };
        let written = written.and_then(|written| len.map(|len| (written, len)));
        let (written, len) = match written {
            Ok((written, len)) => (written, Ok(len)),
            Err(error) => (0, Err(error)),
        };
        file.set_len("header written", len)?;
        watch.end("header write");
        watch.report.header_bytes_written = written;
        let Placed { dim_ids, var_ids, lists, counts, spelled, .. } = self.placed;
        watch.report.counters = team.counters();
        let (index, report) = (self.index, watch.report);
        let reader = self.blocks.map(|ready| Arc::new(Reader::of(file.clone(), ready.head, ready.table)));
        Ok(Defined { var_ids, dim_ids, layout, counts, spelled, lists, index, reader, report })
    }
}

fn is_central(strategy: Strategy) -> bool {
    !matches!(strategy, Strategy::Scalable | Strategy::Partitioned)
}

/// Whether a file of so many objects gets a name index.
fn wants_index(indexing: Indexing, counts: Counts) -> bool {
    match indexing {
        // A file without variables ends with its header: ncvalidator refuses what comes after it.
        Indexing::Auto => counts.vars > 0 && counts.dims + counts.attrs + counts.vars > MANY,
        Indexing::Always => true,
        Indexing::Never => false,
    }
}

/// Whether objects that the file had lie elsewhere now. The same on every rank.
fn moves(old: Option<&Header>, header: &Header, layout: &Layout) -> Result<bool> {
    let Some(old) = old else { return Ok(false) };
    let before = Layout::of(old, 0)?;
    let moved = old.vars.begins.iter().zip(&header.vars.begins).any(|(old, new)| old != new);
    let has_records = before.record_size > 0;
    let grown = has_records && before.record_size != layout.record_size;
    Ok(moved || grown)
}
