//! Partitions: each rank's part of an unstructured mesh, by a vector that assigns a rank to each node.
//!
//! A mesh has nodes, by number, and edges, which come in shares. A rank gets the edges with an end among its own
//! nodes, and as ghosts the nodes at their other ends; [`Partition`] documents their order. An edge belongs to the
//! rank of its first end.
//!
//! | module | what it does |
//! |---|---|
//! | [`source`] | sources of edges |
//! | `shares` | contiguous shares of lists |
//! | [`vector`] | vectors: complete, in shares or as a formula |
//! | `hilbert`, `metis` | vectors that are computed here, and those in files |
//! | `direct`, `ring` | the two methods of distributing edges |
//! | `picked` | edges on their way, and the part that a rank builds from them |
//! | `number_set` | numbers of nodes or edges, each with its index |
//! | `update` | updates of ghosts from their owners |
//! | [`checksum`] | checksums that do not depend on the division into shares |
//! | [`history`] | partitions stored in files |
//!
//! Invariants: the result depends only on the edges, the vector and the number of ranks: both methods, all forms of
//! the vector and both kinds of history give equal results. A failure on one rank fails all, in the same call.
//!
//! ```
//! use fieldstone_array::distributed::partition::source::EdgeArrays;
//! use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
//! use fieldstone_array::distributed::partition::{PartitionSettings, partition};
//! use fieldstone_core::env::comm::{Team, single::SingleComm};
//! use std::sync::Arc;
//! # fn main() -> fieldstone_core::Result<()> {
//! # let disk = fieldstone_core::env::sim::SimWorld::memory().disk;
//! let team = Team::new(Arc::new(SingleComm::new(disk)));
//! // A triangle of nodes 1, 2 and 3.
//! let mut edges = EdgeArrays { first: &[1, 2, 3], second: &[2, 3, 1] };
//! let vector = NodeRanks::new(&team, &Vector::Block, Some(3))?;
//! let settings = PartitionSettings { base: 1, ..PartitionSettings::default() };
//! let part = partition(&team, &mut edges, &vector, &settings)?;
//! assert_eq!((part.nodes(), part.ends()), (&[0, 1, 2][..], &[[0, 1], [1, 2], [2, 0]][..]));
//! # Ok(()) }
//! ```

use std::path::Path;
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::{Code, Result};

pub mod checksum;
mod direct;
mod hilbert;
pub mod history;
mod metis;
mod number_set;
mod picked;
mod ring;
mod shares;
pub mod source;
mod update;
pub mod vector;

pub use hilbert::Coordinates;

use self::checksum::ContentSum;
use self::number_set::NumberSet;
use self::picked::LocalMesh;
use self::shares::Starts;
use self::source::{EdgeSource, Numbering};
use self::update::UpdatePlan;
use self::vector::NodeRanks;
use super::agreed::alike;
use super::view::View;
use fieldstone_format::partition::words::{Word, narrow};

/// The step of collectives here, except those of updates and of stored partitions.
const STEP: &str = "partition";
/// Minimum number of edges or nodes of a rank moved in a round, even if the buffer is smaller.
const FEWEST: u64 = 256;

/// The way in which edges get to the ranks of their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionMethod {
    /// Each edge is sent only to the ranks of its ends.
    #[default]
    Direct,
    /// All edges pass all ranks, and each takes its own, as in the paper.
    Ring,
}

impl PartitionMethod {
    /// The name by which users choose it.
    pub fn word(self) -> &'static str {
        match self {
            PartitionMethod::Direct => "direct",
            PartitionMethod::Ring => "ring",
        }
    }

    /// The method with this name.
    ///
    /// Errors: `Invalid`, with the valid names.
    pub fn parse(word: &str) -> Result<PartitionMethod> {
        match word {
            "direct" => Ok(PartitionMethod::Direct),
            "ring" => Ok(PartitionMethod::Ring),
            _ => Err(Code::Option
                .error(format!("{word:?} is not a method of partitioning"))
                .with_hint("give direct or ring")),
        }
    }
}

/// Settings for making a partition; equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionSettings {
    /// The number of the first node in the edges: 0 or 1.
    pub base: u64,
    /// The method of distributing edges.
    pub method: PartitionMethod,
    /// Bytes that a rank may use for moving edges.
    pub buffer: u64,
}

impl Default for PartitionSettings {
    fn default() -> PartitionSettings {
        PartitionSettings { base: 0, method: PartitionMethod::Direct, buffer: 64 << 20 }
    }
}

/// The origin of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionSource {
    /// Computed from all edges.
    Computed,
    /// Built from edges sorted by node, which an earlier run stored.
    Edges,
    /// Read as an earlier run completed it.
    Parts,
}

impl PartitionSource {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            PartitionSource::Computed => "computed",
            PartitionSource::Edges => "edges",
            PartitionSource::Parts => "parts",
        }
    }
}

/// The key of a partition: it depends on the mesh and the vector, not on the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionKey {
    /// Checksum of the mesh.
    pub mesh: ContentSum,
    /// Checksum of the vector.
    pub vector: ContentSum,
    /// Number of nodes of the mesh.
    pub nodes: u64,
    /// Number of edges of the mesh.
    pub edges: u64,
    /// Number of ranks for which it is partitioned.
    pub ranks: u32,
}

/// One rank's part of a mesh. See the module's documentation.
#[derive(Debug)]
pub struct Partition {
    key: PartitionKey,
    source: PartitionSource,
    nodes: Arc<[i64]>,
    owned: usize,
    /// The owner of each ghost.
    ghost_ranks: Vec<u32>,
    edges: Arc<[i64]>,
    owned_edges: usize,
    ends: Vec<[u32; 2]>,
    plan: OnceLock<UpdatePlan>,
    read: u64,
}

impl Partition {
    fn new(
        (key, source): (PartitionKey, PartitionSource),
        mesh: LocalMesh,
        ghost_ranks: Vec<u32>,
    ) -> Partition {
        let LocalMesh { nodes, owned, edges, owned_edges, ends, .. } = mesh;
        let plan = OnceLock::new();
        Partition { key, source, nodes, owned, ghost_ranks, edges, owned_edges, ends, plan, read: 0 }
    }

    /// Global numbers of the nodes: own ones ascending, then ghosts ascending.
    pub fn nodes(&self) -> &[i64] {
        &self.nodes
    }

    /// The number of this rank's own nodes.
    pub fn owned(&self) -> usize {
        self.owned
    }

    /// The rank of each ghost, in the order of [`nodes`](Partition::nodes).
    pub fn ghost_ranks(&self) -> &[u32] {
        &self.ghost_ranks
    }

    /// Global numbers of all edges with an own end: those whose first end is own, ascending, then the others,
    /// ascending.
    pub fn edges(&self) -> &[i64] {
        &self.edges
    }

    /// The number of edges with an own first end.
    pub fn owned_edges(&self) -> usize {
        self.owned_edges
    }

    /// The ends of each edge, as indices in [`nodes`](Partition::nodes).
    pub fn ends(&self) -> &[[u32; 2]] {
        &self.ends
    }

    /// This rank's view of an array at the nodes.
    pub fn node_view(&self) -> View {
        View::irregular(self.nodes.clone(), Some(self.owned as u64), Some(0))
    }

    /// This rank's view of an array at the edges.
    pub fn edge_view(&self) -> View {
        View::irregular(self.edges.clone(), Some(self.owned_edges as u64), Some(0))
    }

    /// The origin of the partition.
    pub fn source(&self) -> PartitionSource {
        self.source
    }

    /// Bytes that this rank read from a file of a stored partition.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// The key of the partition.
    pub fn key(&self) -> PartitionKey {
        self.key
    }
}

/// Collective: this rank's part of the mesh with all ranks' `edges`.
///
/// Errors: `Invalid`, with rank, position and value, for an end that is not a node; `Conflict` if arguments differ;
/// any error of a rank's source. All ranks raise the same.
pub fn partition(
    team: &Team,
    edges: &mut dyn EdgeSource,
    vector: &NodeRanks<'_>,
    settings: &PartitionSettings,
) -> Result<Partition> {
    let PartitionSettings { base, method, buffer } = *settings;
    let checked = match base {
        0 | 1 => Ok(format!("base {base}, method {}, buffer {buffer}", method.word())),
        _ => Err(Code::Option.error(format!("edges count nodes from {base}")).with_hint("give base 0 or 1")),
    };
    alike(team, STEP, checked, "use equal settings for a partition on all ranks")?;
    let starts = Starts::new(team, edges.count())?;
    let owned = vector.owned(team, buffer)?;
    let numbering = Numbering { start: starts.of(team.rank()).start, nodes: vector.nodes, base };
    let shares = Shares { source: edges, starts: &starts, numbering };
    match narrow(vector.nodes) {
        true => finish::<u32>(team, shares, vector, owned, (method, buffer)),
        false => finish::<u64>(team, shares, vector, owned, (method, buffer)),
    }
}

/// The edges of all ranks, as this one sees them.
struct Shares<'a> {
    source: &'a mut dyn EdgeSource,
    starts: &'a Starts,
    numbering: Numbering,
}

fn finish<W: Word>(
    team: &Team,
    shares: Shares<'_>,
    vector: &NodeRanks<'_>,
    owned: NumberSet,
    (method, buffer): (PartitionMethod, u64),
) -> Result<Partition> {
    let edges = shares.starts.total();
    let (picked, sum) = match method {
        PartitionMethod::Direct => direct::distribute::<W>(team, shares, vector, buffer)?,
        PartitionMethod::Ring => ring::distribute::<W>(team, shares, &owned, buffer)?,
    };
    let mesh = checksum::total(team, STEP, sum, [vector.nodes, edges])?;
    let key =
        PartitionKey { mesh, vector: vector.sum(), nodes: vector.nodes, edges, ranks: vector.ranks as u32 };
    let local = team.agree(STEP, picked.assemble::<W>(owned, vector.nodes))?;
    let ghost_ranks = vector.of_set(team, Ok(&local.ghosts))?;
    Ok(Partition::new((key, PartitionSource::Computed), local, ghost_ranks))
}

/// Collective: opens a file for reading, lets all ranks read, and closes it. `read` must agree on its result.
fn with_file<T>(team: &Team, path: &Path, read: impl FnOnce(&TeamFile) -> Result<T>) -> Result<T> {
    let file = team.open(STEP, path, FileMode::Read)?;
    match read(&file) {
        Ok(found) => file.close(STEP, Ok(())).map(|()| found),
        Err(error) => {
            file.give_up();
            Err(error.context(path.display()))
        }
    }
}

/// Collective: the checksum of a mesh alone, in one pass over each rank's share.
///
/// Errors: as for [`partition`].
pub fn mesh_checksum(team: &Team, edges: &mut dyn EdgeSource, nodes: u64, base: u64) -> Result<ContentSum> {
    let starts = Starts::new(team, edges.count())?;
    let numbering = Numbering { start: starts.of(team.rank()).start, nodes, base };
    let mut sum_share = || -> Result<u128> {
        let (count, mut sum) = (starts.of(team.rank()).count() as u64, 0u128);
        let (mut at, mut piece) = (0, source::EdgePiece::default());
        while at < count {
            let some = (count - at).min(1 << 16);
            piece = piece.read(edges, at, some as usize, numbering)?;
            sum = sum.wrapping_add(piece.sum());
            at += some;
        }
        Ok(sum)
    };
    let sum = team.agree(STEP, sum_share())?;
    checksum::total(team, STEP, sum, [nodes, starts.total()])
}
