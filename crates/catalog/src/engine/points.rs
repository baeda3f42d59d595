//! Ranges of coordinates on the meshes that variables stand on.
//!
//! The index knows which variable stands on which mesh; where a mesh lies somebody else knows, who has its file: a
//! [`PointSource`].

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::catalog::{MeshDecl, MeshLocation};

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

/// Who knows where meshes lie.
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
}
