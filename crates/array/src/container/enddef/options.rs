//! How definitions end: what all ranks give alike.

use fieldstone_core::env::Clock;
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::Alignment;
use fieldstone_format::netcdf::trailer::MANY;

use crate::container::model::{Counts, Strategy};

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

impl Indexing {
    /// Whether a file of so many objects gets one.
    pub(super) fn wants(self, counts: Counts) -> bool {
        match self {
            // A file without variables ends with its header: ncvalidator refuses what comes after it.
            Indexing::Auto => counts.vars > 0 && counts.dims + counts.attrs + counts.vars > MANY,
            Indexing::Always => true,
            Indexing::Never => false,
        }
    }
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
