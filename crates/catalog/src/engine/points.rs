//! Ranges of coordinates on the meshes that variables stand on.
//!
//! The index knows which variable stands on which mesh; where a mesh lies somebody else knows, who has its file: a
//! [`PointSource`].

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{MeshDecl, MeshLocation, VariableName};

use super::RunId;
use super::index::Index;

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

impl Index {
    /// From now on regions in coordinates are looked for on meshes, too.
    pub fn set_points(&mut self, source: Arc<dyn PointSource>) {
        self.points = Some(source);
    }

    pub(super) fn regions_of(
        &mut self,
        run: RunId,
        ranges: &[CoordinateRange],
    ) -> Result<Vec<(Vec<VariableName>, MeshRegion)>> {
        let Some(source) = self.points.clone() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for group in self.groups_of(run)? {
            let (Some(name), Some(location)) = (&group.mesh, group.location) else { continue };
            let mesh = self.mesh_named(name)?.ok_or_else(|| {
                Error::not_found(format!(
                    "the group '{}' stands on the mesh '{name}', which is gone",
                    group.name
                ))
            })?;
            if let Some(region) = source.region(&mesh, location, ranges)? {
                found.push((group.sets.into_iter().map(|set| set.variable).collect(), region));
            }
        }
        Ok(found)
    }
}
