//! The steps of collective work: each agreement of ranks belongs to a step.

use std::fmt;

/// A step, identified by its name. A plain text converts to a step that is not repeatable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The step's name, which appears in messages and distinguishes steps.
    pub name: &'static str,
    /// Whether the ranks can go on together if one of them failed before it entered the step.
    pub repeatable: bool,
}

impl Step {
    /// A step after whose failure the ranks do not go on.
    pub const fn once(name: &'static str) -> Step {
        Step { name, repeatable: false }
    }

    /// A step that may fail; the ranks go on together afterwards.
    pub const fn repeatable(name: &'static str) -> Step {
        Step { name, repeatable: true }
    }

    /// The bytes sent to other ranks: 1 if the step is repeatable, else 0; then its name.
    pub(super) fn packed(self) -> Vec<u8> {
        [&[u8::from(self.repeatable)], self.name.as_bytes()].concat()
    }
}

impl From<&'static str> for Step {
    fn from(name: &'static str) -> Step {
        Step::once(name)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A step received from another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ForeignStep<'a> {
    pub name: &'a str,
    pub repeatable: bool,
}

impl ForeignStep<'_> {
    /// Reads the bytes that [`Step::packed`] made.
    pub fn unpacked(bytes: &[u8]) -> ForeignStep<'_> {
        let (flag, name) = bytes.split_first().unwrap_or((&0, &[]));
        ForeignStep { name: std::str::from_utf8(name).unwrap_or("?"), repeatable: *flag == 1 }
    }
}
