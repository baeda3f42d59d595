//! Settings of a catalog, and the reports of its calls: plain data, whatever answers.

/// Where the engine is.
#[derive(Debug, Clone, Default)]
pub struct CatalogSettings {
    /// `postgresql://…`; the embedded engine where absent.
    pub engine: Option<String>,
}

/// What a rebuild did.
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
    /// Where the engine is.
    pub engine: String,
}

/// What [`verify`](crate::access::CatalogAdmin::verify) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogCheck {
    /// Lines of the tables that were compared.
    pub lines: u64,
    /// Where the engine says otherwise than the logs: its line, or the one it lacks. At most 100.
    pub different: Vec<String>,
    /// Side records that cannot be read, each with its log; the rest is readable.
    pub damaged: Vec<String>,
}

impl CatalogCheck {
    /// Whether the engine says what the logs say, and all of it could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
}
