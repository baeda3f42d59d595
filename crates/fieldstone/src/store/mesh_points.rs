//! Where the meshes of a store lie, for queries by coordinates: read from their files once, and kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone_array::distributed::mesh::{Mesh, MeshPoints, check_declared};
use fieldstone_catalog::engine::{CoordinateRange, MeshRegion, PointSource};
use fieldstone_core::Result;
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_format::catalog::{MeshDecl, MeshLocation};

use super::composed::Composed;

/// Bytes of coordinates that are kept; the mesh asked for last is kept whatever it takes.
const KEPT: usize = 256 << 20;

/// The points of one location of a mesh, and the dimension along which they stand.
#[derive(Debug)]
struct Located {
    checksum: Vec<u8>,
    location: MeshLocation,
    dimension: String,
    points: MeshPoints,
}

/// What was asked for, the latest first.
#[derive(Debug, Default)]
pub struct KnownPoints(Mutex<VecDeque<Arc<Located>>>);

impl KnownPoints {
    fn find(&self, mesh: &MeshDecl, location: MeshLocation) -> Option<Arc<Located>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Arc<Located>| one.location == location && one.checksum == mesh.checksum;
        let found = known.iter().position(is_it).and_then(|at| known.remove(at))?;
        known.push_front(found.clone());
        Some(found)
    }

    fn keep(&self, located: Arc<Located>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_front(located);
        let mut bytes = 0;
        let too_many = known.iter().skip(1).position(|one| {
            bytes += one.points.nbytes();
            bytes > KEPT
        });
        if let Some(at) = too_many {
            known.truncate(at + 1);
        }
    }
}

impl Composed {
    fn located(&self, mesh: &MeshDecl, location: MeshLocation) -> Result<Arc<Located>> {
        if let Some(known) = self.mesh_points.find(mesh, location) {
            return Ok(known);
        }
        let disk = &self.journal.env().disk;
        let path = self.folder().unwrap_or_default().join(&mesh.path);
        let opened = Mesh::open(&Team::new(Arc::new(SingleComm::new(disk.clone()))), &**disk, &path)?;
        check_declared(&opened, mesh)?;
        let located = Arc::new(Located {
            checksum: mesh.checksum.clone(),
            location,
            dimension: opened.dimension(location),
            points: opened.points(location)?,
        });
        opened.close()?;
        self.mesh_points.keep(located.clone());
        Ok(located)
    }
}

impl PointSource for Composed {
    fn region(
        &self,
        mesh: &MeshDecl,
        location: MeshLocation,
        ranges: &[CoordinateRange],
    ) -> Result<Option<MeshRegion>> {
        let located = self.located(mesh, location)?;
        Ok(located.points.within(ranges).map(|(decided, elements)| MeshRegion {
            dimension: located.dimension.clone(),
            decided,
            elements: elements.into(),
        }))
    }
}
