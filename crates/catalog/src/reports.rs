//! Settings of a catalog, and the reports of its calls, as plain data for every implementation.

/// The place of the engine.
#[derive(Debug, Clone, Default)]
pub struct CatalogSettings {
    /// `postgresql://…`; the embedded engine if absent.
    pub engine: Option<String>,
}

/// The work of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Logs read.
    pub logs: u64,
    /// Commits with side records.
    pub commits: u64,
    /// Attributes applied.
    pub attributes: u64,
    /// Fields seen.
    pub fields: u64,
    /// The place of the engine.
    pub engine: String,
}

/// The findings of [`verify`](crate::access::CatalogAdmin::verify).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogCheck {
    /// Lines of the tables that were compared.
    pub lines: u64,
    /// Lines that differ between the engine and the logs, and lines that the engine lacks. At most 100.
    pub different: Vec<String>,
    /// Side records that cannot be read, each with its log. The other records are readable.
    pub damaged: Vec<String>,
}

impl CatalogCheck {
    /// Whether the engine agrees with the logs, and all logs could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
}
