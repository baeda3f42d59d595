//! Names of objects: in which file a piece of a variable lies, computed and never stored (Q-18).
//!
//! A [`Template`] is a text with holes, such as `{run}/{variable}_{step:06d}_{x}_{y}.nc`. An
//! [`ObjectGrid`] says how a variable is cut into objects: into chunks, and each chunk along its first
//! dimension into pieces of about the size that the file system or object store likes. Together they are
//! a pure function from a box to the objects that hold it, and back from a name to its box.
//!
//! Invariants:
//! * the objects of a box hold each of its elements exactly once;
//! * what [`Template::read`] reads from a name that [`Template::name`] made is what it was made of.
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
    /// What it holds, in global indices.
    pub piece: IndexBox,
    /// What of the box asked for lies in it, in global indices.
    pub part: IndexBox,
}

/// A template and the grid of one variable that fit each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    template: Template,
    grid: ObjectGrid,
}

impl Names {
    /// Invalid where objects of different pieces would have one name, or the template names a dimension
    /// that the grid does not have.
    pub fn new(template: Template, grid: ObjectGrid) -> Result<Names> {
        let rank = grid.shape().len();
        if let Some(d) = template.dimensions().filter(|d| *d >= rank).max() {
            return Err(Error::invalid(format!(
                "the template {template} names dimension {d}, the variable has {rank}"
            )));
        }
        let named = |d| template.dimensions().any(|named| named == d);
        match (0..rank).find(|&d| grid.counts()[d] > 1 && !template.has_piece() && !named(d)) {
            None => Ok(Names { template, grid }),
            Some(d) => Err(Error::invalid(format!(
                "the template {template} does not name dimension {d}, along which there are {} pieces",
                grid.counts()[d]
            ))
            .with_hint(format!("put {{{d}}} into it, the first index of a piece, or make chunks as long"))),
        }
    }

    /// The grid.
    pub fn grid(&self) -> &ObjectGrid {
        &self.grid
    }

    /// The objects that hold a box, in C order of their pieces.
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

    /// The piece that the object of a name holds. Words that are known (not empty) make reading sure
    /// where the name alone can be read in several ways; Invalid where it cannot be read.
    pub fn piece_of(&self, name: &str, known: &Words<'_>) -> Result<IndexBox> {
        self.template.read(name, known)?.piece(&self.grid)
    }
}
