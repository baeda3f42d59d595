//! Options for the end of define mode, equal on all ranks.

use fieldstone_core::env::Clock;
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::Alignment;
use fieldstone_format::netcdf::trailer::MANY;

use crate::container::model::{Counts, Strategy};

/// Which files get a name index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Indexing {
    /// Files of more than a thousand objects.
    #[default]
    Auto,
    /// All files.
    Always,
    /// No files.
    Never,
}

impl Indexing {
    /// Whether a file with these objects gets one.
    pub(super) fn wants(self, counts: Counts) -> bool {
        match self {
            // A file without variables ends with its header: ncvalidator refuses bytes after it.
            Indexing::Auto => counts.vars > 0 && counts.dims + counts.attrs + counts.vars > MANY,
            Indexing::Always => true,
            Indexing::Never => false,
        }
    }
}

/// Options for the end of define mode.
#[derive(Debug, Clone, Copy)]
pub struct EnddefOptions<'a> {
    /// The method by which ranks build one header.
    pub strategy: Strategy,
    /// Alignment and free space.
    pub alignment: Alignment,
    /// Which files get a name index.
    pub indexing: Indexing,
    /// On a redefinition, the existing header, with begins; the definitions began from it.
    pub old: Option<&'a Header>,
    /// Number of records in the file.
    pub numrecs: u64,
    /// The clock for the report's seconds.
    pub clock: &'a dyn Clock,
}

impl<'a> EnddefOptions<'a> {
    /// Options for a new file made by `strategy`, with defaults for everything else.
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
