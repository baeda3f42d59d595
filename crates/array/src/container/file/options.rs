//! How a container is created and opened.

use fieldstone_format::netcdf::Version;
use fieldstone_format::netcdf::layout::Alignment;

use crate::container::enddef::Indexing;
use crate::container::model::{Format, Strategy};

/// Options of [`Container::create`](super::Container::create).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateOptions {
    /// The format; CDF-5 unless said.
    pub format: Format,
    /// How ranks come to one header; `None` for the format's default.
    pub strategy: Option<Strategy>,
    /// Whether the file gets a name index.
    pub indexing: Indexing,
    /// Whether elements that nobody writes read as the fill value; else they are zeros.
    pub fill: bool,
    /// Where data begin, and room kept free for later definitions.
    pub alignment: Alignment,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        CreateOptions {
            format: Format::Classic(Version::Cdf5),
            strategy: None,
            indexing: Indexing::Auto,
            fill: false,
            alignment: Alignment::default(),
        }
    }
}

/// How a container is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For reading.
    Read,
    /// For reading, writing, and further definitions.
    Append,
}
