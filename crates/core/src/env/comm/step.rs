//! The steps of collective work: each agreement of ranks belongs to one.

use std::fmt;

/// A step, by name. A text is a step that is not repeatable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its name, for messages and to tell it from others.
    pub name: &'static str,
    /// Whether ranks go on together after one of them failed before it was in the step.
    pub repeatable: bool,
}

impl Step {
    /// A step after whose failure the ranks do not go on.
    pub const fn once(name: &'static str) -> Step {
        Step { name, repeatable: false }
    }

    /// A step that may fail, and the ranks then go on together.
    pub const fn repeatable(name: &'static str) -> Step {
        Step { name, repeatable: true }
    }

    /// As other ranks get it: 1 where it is repeatable, else 0; then its name.
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

/// The step of another rank, as it came.
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
