//! Ranges of coordinates on the meshes and grids that variables stand on.
//!
//! The index knows which variable stands on which mesh, and what each is declared with; where meshes and coordinates lie
//! somebody else knows, who has the files and fields: a [`PointSource`].

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::catalog::{MeshDecl, MeshLocation, RunName};

use super::VariableRow;

/// A range of coordinates by name: both ends included.
pub type CoordinateRange = (String, f64, f64);

/// What a mesh has in ranges of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshRegion {
    /// The dimension along which the mesh's elements stand.
    pub dimension: String,
    /// Which of the ranges are coordinates of the mesh; others were not looked at.
    pub decided: Vec<bool>,
    /// The elements that lie in all of these, ascending.
    pub elements: Arc<[i64]>,
}

/// Elements of a variable, by their indices along some of its dimensions; of the others all belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSet {
    /// The dimensions, by number; none where a coordinate has one value for the whole variable.
    pub dims: Vec<usize>,
    /// The extents of these.
    pub extents: Vec<i64>,
    /// Indices in C order over these, ascending.
    pub elements: Arc<[i64]>,
    /// Along each the first index that an element has, and the one behind the last.
    pub hull: Vec<(i64, i64)>,
}

/// What a variable's grid has in ranges of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRegion {
    /// Which of the ranges are coordinates of the grid; others were not looked at.
    pub decided: Vec<bool>,
    /// An element lies in all of these where it lies in each set; no two sets share a dimension. Where coordinates
    /// differ from step to step: what lies in them at any step.
    pub sets: Vec<PointSet>,
    /// The sets of each step at which something lies in the ranges, where coordinates differ from step to step.
    pub steps: Option<BTreeMap<i64, Vec<PointSet>>>,
}

impl PointSet {
    /// Elements by their indices in C order, ascending.
    #[must_use]
    pub fn new(dims: Vec<usize>, extents: Vec<i64>, elements: Arc<[i64]>) -> PointSet {
        let mut hull = vec![(i64::MAX, i64::MIN); dims.len()];
        for element in elements.iter() {
            let mut rest = *element;
            for (side, extent) in hull.iter_mut().zip(&extents).rev() {
                let at = rest.rem_euclid((*extent).max(1));
                rest = rest.div_euclid((*extent).max(1));
                *side = (side.0.min(at), side.1.max(at + 1));
            }
        }
        PointSet { dims, extents, elements, hull }
    }
}

/// Who knows where meshes and grids lie.
pub trait PointSource: Send + Sync + std::fmt::Debug {
    /// What of a mesh lies in ranges; `None` where none of them is a coordinate that it has.
    ///
    /// Errors: `NotFound` where its file is gone, `Corrupt` where it is damaged.
    fn region(
        &self,
        mesh: &MeshDecl,
        location: MeshLocation,
        ranges: &[CoordinateRange],
    ) -> Result<Option<MeshRegion>>;

    /// What of the grids of variables lies in ranges: of each of a run's variables that is asked for, `None` where none
    /// of the ranges is a coordinate that it has.
    ///
    /// Errors: `Corrupt` where a coordinate is damaged.
    fn grids(
        &self,
        run: &RunName,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>>;
}
