//! Names of objects: a function computes which file has which piece of a variable, so that names are never stored
//! (Q-18).
//!
//! A [`Template`] is a text with holes, such as `{run}/{variable}_{step:06d}_{x}_{y}.nc`. An [`ObjectGrid`] divides a
//! variable into objects: into chunks, and each chunk along its first dimension into pieces of about the size that
//! suits the file system or object store. Together they form a pure function from a box to the objects that hold it,
//! and back from a name to its box.
//!
//! Invariants:
//! * the objects of a box hold each of its elements exactly once;
//! * [`Template::read`] inverts [`Template::name`].
//!
//! ```
//! use fieldstone_core::geometry::IndexBox;
//! use fieldstone_core::template::{Names, ObjectGrid, Template, Words};
//!
//! let grid = ObjectGrid::new(vec![100, 80], vec![50, 40])?;
//! let names = Names::new(Template::parse("{run}/{variable}_{step:04d}_{x}_{y}.nc", &[])?, grid)?;
//! let words = Words { run: "a", variable: "t", step: Some(7), ..Words::default() };
//! let found: Vec<_> = names.objects(&words, &IndexBox::parse("40:60,0:10")?)?.collect::<Result<_, _>>()?;
//! assert_eq!(found[1].name, "a/t_0007_50_0.nc");
//! assert_eq!(found[1].piece.to_string(), "50:100,0:40");
//! assert_eq!(found[1].part.to_string(), "50:60,0:10");
//! assert_eq!(names.piece_of("a/t_0007_50_0.nc", &words)?, found[1].piece);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod grid;
mod read;
mod text;

pub use grid::{ObjectGrid, Pieces};
pub use read::Reading;
pub use text::{Template, Words};

use crate::geometry::IndexBox;
use crate::{Error, Result};

/// One object that a box touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its content, in global indices.
    pub piece: IndexBox,
    /// The part of the requested box that is in it, in global indices.
    pub part: IndexBox,
}

/// A template and the grid of a variable that fit each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    template: Template,
    grid: ObjectGrid,
}

impl Names {
    /// Invalid if objects of different pieces would have the same name, or the template names a dimension that the
    /// grid does not have.
    pub fn new(template: Template, grid: ObjectGrid) -> Result<Names> {
        let rank = grid.shape().len();
        if let Some(d) = template.dimensions().filter(|d| *d >= rank).max() {
            return Err(Error::invalid(format!(
                "the template {template} names dimension {d}, but the variable has {rank}"
            )));
        }
        let named = |d| template.dimensions().any(|named| named == d);
        match (0..rank).find(|&d| grid.counts()[d] > 1 && !template.has_piece() && !named(d)) {
            None => Ok(Names { template, grid }),
            Some(d) => Err(Error::invalid(format!(
                "the template {template} does not name dimension {d}, which has {} pieces",
                grid.counts()[d]
            ))
            .with_hint(format!(
                "add {{{d}}}, the first index of a piece, or make chunks as long as the dimension"
            ))),
        }
    }

    /// The grid.
    pub fn grid(&self) -> &ObjectGrid {
        &self.grid
    }

    /// The objects that contain a box, in C order of their pieces.
    pub fn objects<'a>(
        &'a self,
        words: &'a Words<'a>,
        region: &'a IndexBox,
    ) -> Result<impl Iterator<Item = Result<Object>> + 'a> {
        let pieces = self.grid.overlapping(region)?;
        Ok(pieces.map(move |index| {
            let piece = self.grid.piece(&index)?;
            let part = piece.intersect(region).ok_or_else(|| Error::internal("a piece beside its box"))?;
            Ok(Object { name: self.template.name(words, &self.grid, &index)?, piece, part })
        }))
    }

    /// The piece in the object with a name. If the name alone is ambiguous, known words (those that are not empty)
    /// decide how to parse it; Invalid if it cannot be parsed.
    pub fn piece_of(&self, name: &str, known: &Words<'_>) -> Result<IndexBox> {
        self.template.read(name, known)?.piece(&self.grid)
    }
}
