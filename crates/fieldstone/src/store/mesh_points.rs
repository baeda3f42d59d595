//! The points of a store's meshes, for queries by coordinates: read once from their files, and cached.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::mesh::{Mesh, MeshPoints, check_declared};
use fieldstone_catalog::engine::{CoordinateRange, MeshRegion};
use fieldstone_core::Result;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::sync::Mutex;
use fieldstone_format::catalog::{MeshDecl, MeshLocation};

/// Bytes of cached coordinates; the last mesh stays whatever its size.
const KEPT: usize = 256 << 20;

/// The points of one location of a mesh, and their dimension.
#[derive(Debug)]
pub struct LocatedMesh {
    checksum: Vec<u8>,
    location: MeshLocation,
    dimension: String,
    points: MeshPoints,
}

/// The entries last used, the latest first.
#[derive(Debug, Default)]
pub struct KnownPoints(Mutex<VecDeque<Arc<LocatedMesh>>>);

impl KnownPoints {
    fn find(&self, mesh: &MeshDecl, location: MeshLocation) -> Option<Arc<LocatedMesh>> {
        let mut known = self.0.lock();
        let is_it = |one: &Arc<LocatedMesh>| one.location == location && one.checksum == mesh.checksum;
        let found = known.iter().position(is_it).and_then(|at| known.remove(at))?;
        known.push_front(found.clone());
        Some(found)
    }

    /// The points of a mesh of the store in the folder `root`.
    ///
    /// Errors: `NotFound` if its file is missing, `Corrupt` if it is damaged or another one.
    pub fn located(
        &self,
        disk: &Arc<dyn Disk>,
        root: &Path,
        mesh: &MeshDecl,
        location: MeshLocation,
    ) -> Result<Arc<LocatedMesh>> {
        if let Some(known) = self.find(mesh, location) {
            return Ok(known);
        }
        let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
        let opened = Mesh::open(&team, &**disk, &root.join(&mesh.path), mesh.sums.as_ref())?;
        check_declared(&opened, mesh)?;
        let located = Arc::new(LocatedMesh {
            checksum: mesh.checksum.clone(),
            location,
            dimension: opened.dimension(location),
            points: opened.points(location)?,
        });
        opened.close()?;
        self.keep(located.clone());
        Ok(located)
    }

    fn keep(&self, located: Arc<LocatedMesh>) {
        let mut known = self.0.lock();
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

impl LocatedMesh {
    /// The part of it that lies in ranges; `None` if it has none of their coordinates.
    pub fn region(&self, ranges: &[CoordinateRange]) -> Option<MeshRegion> {
        self.points.within(ranges).map(|(decided, elements)| MeshRegion {
            dimension: self.dimension.clone(),
            decided,
            elements: elements.into(),
        })
    }
}
