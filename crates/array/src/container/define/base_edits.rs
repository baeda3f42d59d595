//! What a rank has edited of the objects that the file had before a redefinition: which, not how. What they are
//! now stands in its definitions.

use std::collections::BTreeSet;

/// Which things of the base a rank has edited.
#[derive(Debug, Clone, Default)]
pub(super) struct BaseEdits {
    /// Dimensions that it renamed.
    pub dims: BTreeSet<u32>,
    /// Variables that it renamed.
    pub vars: BTreeSet<u32>,
    /// Variables whose attributes it changed.
    pub attrs: BTreeSet<u32>,
    /// Global attributes that it gave another value.
    pub put: BTreeSet<String>,
    /// Global attributes that it deleted.
    pub deleted: BTreeSet<String>,
}
