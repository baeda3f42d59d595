//! A rank's edits of the objects that the file had before a redefinition: which objects, not their new content, which
//! is in the rank's definitions.

use std::collections::BTreeSet;

/// The objects of the base that a rank has edited.
#[derive(Debug, Clone, Default)]
pub(super) struct BaseEdits {
    /// Dimensions that it renamed.
    pub dims: BTreeSet<u32>,
    /// Variables that it renamed.
    pub vars: BTreeSet<u32>,
    /// Variables whose attributes it changed.
    pub attrs: BTreeSet<u32>,
    /// Global attributes whose value it changed.
    pub put: BTreeSet<String>,
    /// Global attributes that it deleted.
    pub deleted: BTreeSet<String>,
}
