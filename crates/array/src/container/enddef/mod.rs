//! The collective moment: what ranks defined apart becomes one header.
//!
//! | module | what it does |
//! |---|---|
//! | `names` | names checked by the ranks that own a part of all hashes |
//! | `shared` | objects that several ranks define, compared; `difference` says in words how they differ |
//! | `placement` | numbers, header offsets and data offsets from sums over the lower ranks |
//! | `emit` | each rank's part of the header, written in pieces |
//! | `partitioned` | the strategy that compares only what stands under shared paths |
//! | `central` | the strategies that bring everything to one rank, or to all, for comparison |
//! | `changes` | what ranks did to objects that the file had |
//! | [`options`] | how definitions end |
//! | [`report`] | what it took |
//!
//! It has two parts, so that the caller can decide into which file it writes once it is known whether data
//! must move: [`plan`] checks and places, [`EnddefPlan::write`] writes. [`enddef`] is both.
//!
//! Invariants: the bytes of the file depend on the sequence of definitions, not on the number of ranks that
//! share it or on the strategy; an error on one rank is raised on all, and nothing was written where `plan`
//! fails; the file says that it is unfinished until its caller publishes it.

mod central;
mod changes;
mod difference;
mod emit;
mod names;
pub mod options;
mod packing;
mod partitioned;
mod placement;
pub mod report;
mod scalable;
mod shared;

use std::sync::Arc;

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::trailer::IndexPart;

use super::define::Definitions;
use super::model::{Counts, Strategy};
use super::partitioned::Reader;
use central::CentralHeader;
pub use central::MAX_SLOTS;
pub(super) use central::check_slots;
pub use options::{EnddefOptions, Indexing};
use partitioned::PartitionedHeader;
use placement::Placement;
pub use report::{Phase, Report};
use report::{Progress, Watch};
use scalable::ScalableHeader;

/// What came of definitions, on one rank. Sizes and begins of the variables that this rank placed are in the
/// definitions' header.
#[derive(Debug, Clone)]
pub struct EnddefOutcome {
    /// The file's number of each local variable.
    pub var_ids: Vec<u64>,
    /// The file's number of each local dimension.
    pub dim_ids: Vec<u64>,
    /// Where things are in the file.
    pub layout: Layout,
    /// How many objects the file has, of all ranks; the attribute that states how paths are escaped is not
    /// counted.
    pub counts: Counts,
    /// Whether names in the file are escaped paths.
    pub escaped: bool,
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
pub struct EnddefPlan {
    header: HeaderPlan,
    progress: Progress,
}

/// Who writes what of the header.
#[derive(Debug)]
enum HeaderPlan {
    Scalable(ScalableHeader),
    Central(CentralHeader),
    Partitioned(Box<PartitionedHeader>),
}

/// Checks the definitions of all ranks against one another and places everything. Collective.
///
/// Errors: `Conflict` that names objects, differences and ranks; `Invalid` for limits of the format; whatever
/// fails on any rank.
pub fn plan(team: &Team, definitions: &mut Definitions, options: &EnddefOptions<'_>) -> Result<EnddefPlan> {
    let mut watch = Watch::new(options.clock, definitions.memory());
    if options.old.is_some() {
        changes::exchange(team, definitions)?;
    }
    let header = match options.strategy {
        Strategy::Scalable => HeaderPlan::Scalable(scalable::plan(team, definitions, options, &mut watch)?),
        Strategy::App | Strategy::LibraryHash { .. } | Strategy::LibrarySort => {
            HeaderPlan::Central(central::plan(team, definitions, options, &mut watch)?)
        }
        Strategy::Partitioned => {
            HeaderPlan::Partitioned(Box::new(partitioned::plan(team, definitions, options, &mut watch)?))
        }
    };
    Ok(EnddefPlan { header, progress: watch.pause() })
}

/// [`plan`], and its writing into `file`. Collective.
pub fn enddef(
    file: &TeamFile,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
) -> Result<EnddefOutcome> {
    plan(file.team(), definitions, options)?.write(file, definitions, options)
}

impl EnddefPlan {
    /// Where things will be.
    pub fn layout(&self) -> Layout {
        self.header.placement().layout
    }

    /// Whether data that the file has must move.
    pub fn moves(&self) -> bool {
        match &self.header {
            HeaderPlan::Scalable(header) => header.moves,
            HeaderPlan::Central(header) => header.moves,
            HeaderPlan::Partitioned(_) => false,
        }
    }

    /// Writes the header, which says that the file is unfinished, and makes the file as long as its data
    /// (what was never written reads as zeros). Collective.
    pub fn write(
        mut self,
        file: &TeamFile,
        definitions: &mut Definitions,
        options: &EnddefOptions<'_>,
    ) -> Result<EnddefOutcome> {
        let mut watch = Watch::resume(options.clock, self.progress);
        let len = self.header.placement().layout.file_len(options.numrecs).ok_or_else(|| {
            let (records, size) = (options.numrecs, self.header.placement().layout.record_size);
            Code::ContainerLimit
                .error(format!("{records} records of {size} bytes each are beyond every file"))
        });
        let (header, _) = definitions.for_enddef();
        header.numrecs = Some(options.numrecs);
        let written = self.header.write(file, header, options.numrecs, &mut watch);
        let (written, len) = match written.and_then(|written| Ok((written, len?))) {
            Ok((written, len)) => (written, Ok(len)),
            Err(error) => (0, Err(error)),
        };
        file.set_len("header written", len)?;
        watch.end("header write");
        watch.report.header_bytes_written = written;
        watch.report.counters = file.team().counters();
        let (placement, index, reader) = self.header.into_parts(file);
        let Placement { dim_ids, var_ids, lists, counts, layout, escaped } = placement;
        Ok(EnddefOutcome {
            var_ids,
            dim_ids,
            layout,
            counts,
            escaped,
            lists,
            index,
            reader,
            report: watch.report,
        })
    }
}

impl HeaderPlan {
    fn placement(&self) -> &Placement {
        match self {
            HeaderPlan::Scalable(header) => &header.placement,
            HeaderPlan::Central(header) => &header.placement,
            HeaderPlan::Partitioned(header) => &header.placement,
        }
    }

    /// Writes what this rank writes of the header: of `header`, its own definitions, or of all; gives the bytes.
    fn write(
        &mut self,
        file: &TeamFile,
        header: &Header,
        numrecs: u64,
        watch: &mut Watch<'_>,
    ) -> Result<u64> {
        match self {
            HeaderPlan::Scalable(planned) => planned.write(file, header, watch),
            HeaderPlan::Central(planned) => planned.write(file, numrecs, watch),
            HeaderPlan::Partitioned(planned) => planned.write(file, header),
        }
    }

    /// What data mode goes on with: numbers and places, this rank's part of the name index, and with the
    /// partitioned header what is found through it.
    fn into_parts(self, file: &TeamFile) -> (Placement, Option<IndexPart>, Option<Arc<Reader>>) {
        match self {
            HeaderPlan::Scalable(header) => (header.placement, header.index, None),
            HeaderPlan::Central(header) => (header.placement, header.index, None),
            HeaderPlan::Partitioned(header) => {
                let (placement, reader) = header.into_reader(file.clone());
                (placement, None, Some(Arc::new(reader)))
            }
        }
    }
}
