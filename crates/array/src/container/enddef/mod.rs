//! The end of define mode: the separate definitions of the ranks become one header.
//!
//! | module | what it does |
//! |---|---|
//! | `names` | checks names on the ranks that own a part of all hashes |
//! | `shared` | compares objects that several ranks define; `difference` describes how they differ |
//! | `placement` | computes numbers, header offsets and data offsets from sums over the lower ranks |
//! | `emit` | writes each rank's part of the header in pieces |
//! | `partitioned` | the strategy that compares only objects under shared paths |
//! | `central` | the strategies that gather everything on one rank, or on all |
//! | `changes` | the ranks' changes of existing objects |
//! | [`options`] | the options of the call |
//! | [`report`] | the cost report |
//!
//! It has two parts, so that the caller can choose the file to write once it knows whether data must move: [`plan`]
//! checks and places, [`EnddefPlan::write`] writes. [`enddef`] does both.
//!
//! Invariants: the bytes of the file depend on the sequence of definitions, not on the number of ranks that share it
//! or on the strategy; an error on one rank is raised on all, and a `plan` that fails has written nothing; the file
//! is marked as unfinished until the caller publishes it.

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

/// The result of `enddef` on one rank. The definitions' header has the sizes and begins of the variables that this
/// rank placed.
#[derive(Debug, Clone)]
pub struct EnddefOutcome {
    /// The number in the file of each local variable.
    pub var_ids: Vec<u64>,
    /// The number in the file of each local dimension.
    pub dim_ids: Vec<u64>,
    /// The positions of the parts of the file.
    pub layout: Layout,
    /// Number of objects in the file, from all ranks, without the attribute that describes how paths are escaped.
    pub counts: Counts,
    /// Whether names in the file are escaped paths.
    pub escaped: bool,
    /// Offsets of the tags of the lists of dimensions, global attributes and variables.
    pub lists: [u64; 3],
    /// This rank's part of the name index, if the file gets one.
    pub index: Option<IndexPart>,
    /// With the partitioned header, the reader that finds objects.
    pub reader: Option<Arc<Reader>>,
    /// The cost on this rank.
    pub report: Report,
}

/// A header that is checked and placed, but not yet written.
#[derive(Debug)]
pub struct EnddefPlan {
    header: HeaderPlan,
    progress: Progress,
}

/// The division of the header's writing among ranks.
#[derive(Debug)]
enum HeaderPlan {
    Scalable(ScalableHeader),
    Central(CentralHeader),
    Partitioned(Box<PartitionedHeader>),
}

/// Checks the definitions of all ranks against each other and places everything. Collective.
///
/// Errors: `Conflict` that names objects, differences and ranks; `Invalid` for limits of the format; any failure on
/// any rank.
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

/// Runs [`plan`] and writes the result into `file`. Collective.
pub fn enddef(
    file: &TeamFile,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
) -> Result<EnddefOutcome> {
    plan(file.team(), definitions, options)?.write(file, definitions, options)
}

impl EnddefPlan {
    /// The planned positions of the parts of the file.
    pub fn layout(&self) -> Layout {
        self.header.placement().layout
    }

    /// Whether existing data must move.
    pub fn moves(&self) -> bool {
        match &self.header {
            HeaderPlan::Scalable(header) => header.moves,
            HeaderPlan::Central(header) => header.moves,
            HeaderPlan::Partitioned(_) => false,
        }
    }

    /// Writes the header, marked as unfinished, and extends the file to the length of its data (unwritten elements
    /// read as zeros). Collective.
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
                .error(format!("{records} records of {size} bytes each exceed the size of any file"))
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

    /// Writes this rank's share of the header, either from `header`, its own definitions, or from the merged header;
    /// returns the number of bytes.
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

    /// The parts that data mode needs: numbers and positions, this rank's part of the name index, and with the
    /// partitioned header its reader.
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
