//! Ranges of coordinates on the meshes and grids of variables.
//!
//! The index knows the mesh and the declared coordinates of each variable. A [`PointSource`], which has the
//! files and fields, knows the coordinates of the points.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::catalog::{MeshDecl, MeshLocation, RunName};

use super::VariableRow;

/// A range of coordinates by name: both ends included.
pub type CoordinateRange = (String, f64, f64);

/// The elements of a mesh in ranges of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshRegion {
    /// The dimension of the mesh's elements.
    pub dimension: String,
    /// The ranges that are coordinates of the mesh; the others were not checked.
    pub decided: Vec<bool>,
    /// The elements in all of these, ascending.
    pub elements: Arc<[i64]>,
}

/// Elements of a variable, by their indices along some of its dimensions; every index of the other dimensions
/// belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSet {
    /// The dimensions, by number; empty if a coordinate has one value for the whole variable.
    pub dims: Vec<usize>,
    /// The extents of these dimensions.
    pub extents: Vec<i64>,
    /// Indices in C order over these dimensions, ascending.
    pub elements: Arc<[i64]>,
    /// For each dimension, the first index of an element and one past the last.
    pub hull: Vec<(i64, i64)>,
}

/// The elements of a variable's grid in ranges of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRegion {
    /// The ranges that are coordinates of the grid; the others were not checked.
    pub decided: Vec<bool>,
    /// An element is in all ranges if it is in each set; no two sets share a dimension. If coordinates differ
    /// between steps, the sets hold elements that are in the ranges at any step.
    pub sets: Vec<PointSet>,
    /// If coordinates differ between steps: the sets of each step that has elements in the ranges.
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

/// A source that knows the coordinates of meshes and grids.
pub trait PointSource: Send + Sync + std::fmt::Debug {
    /// The elements of a mesh in ranges; `None` if the mesh has none of these coordinates.
    ///
    /// Errors: `NotFound` if its file is gone, `Corrupt` if it is damaged.
    fn region(
        &self,
        mesh: &MeshDecl,
        location: MeshLocation,
        ranges: &[CoordinateRange],
    ) -> Result<Option<MeshRegion>>;

    /// The elements of variables' grids in ranges, for each requested variable of a run; `None` if the grid
    /// has none of these coordinates.
    ///
    /// Errors: `Corrupt` if a coordinate is damaged.
    fn grids(
        &self,
        run: &RunName,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>>;
}
