//! The ranks' parts of a mesh: each has a contiguous share of nodes, edges, faces and volumes, in rank order.
//!
//! Invariants: an entry of a row is a valid node, or a missing one after all others; rows have at least as many nodes
//! as their kind requires (2, 3, 4); the checksum depends on nodes and rows, not on which rank holds them, how wide
//! the rows in memory are, from which number nodes count, or what marks a missing one.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Result};
use fieldstone_format::content_sum::{BYTES, ContentSum};
use fieldstone_format::netcdf::Attrs;

use super::image::{SHAPES, check_mesh_name};
use super::{MeshArray, STEP};
use crate::distributed::agreed::alike;

/// One coordinate of this rank's nodes.
#[derive(Debug, Clone)]
pub struct MeshCoordinate<'a> {
    /// One value for each node.
    pub values: &'a [f64],
    /// Attributes, such as `standard_name` and `units`; equal on all ranks.
    pub attrs: Attrs,
}

/// This rank's edges, faces or volumes: a row of nodes for each.
#[derive(Debug, Clone, Copy)]
pub struct MeshRows<'a> {
    /// Number of entries in a row.
    pub width: usize,
    /// The rows, one after another.
    pub nodes: &'a [i64],
}

/// This rank's part of a mesh.
#[derive(Debug, Clone)]
pub struct MeshContent<'a> {
    /// The mesh's name: names in the file begin with it.
    pub name: &'a str,
    /// x and y, or x, y and z.
    pub coordinates: Vec<MeshCoordinate<'a>>,
    /// Edges.
    pub edges: Option<MeshRows<'a>>,
    /// Faces.
    pub faces: Option<MeshRows<'a>>,
    /// Volumes; the nodes of each in UGRID's order.
    pub volumes: Option<MeshRows<'a>>,
    /// The number of the first node: 0 or 1.
    pub base: i64,
    /// The value that marks a missing node, in addition to -1.
    pub fill: Option<i64>,
    /// Attributes of the mesh, such as `long_name`; equal on all ranks.
    pub attrs: Attrs,
}

/// The kinds of rows, each with its minimum number of nodes.
pub(super) const KINDS: [(MeshArray, usize); 3] =
    [(MeshArray::Edges, 2), (MeshArray::Faces, 3), (MeshArray::Volumes, 4)];

/// The sizes of a mesh, combined from all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measures {
    /// Of nodes, edges, faces and volumes: the numbers on lower ranks, and on all.
    pub before: [u64; 4],
    pub total: [u64; 4],
    /// Maximum number of nodes of an edge, face and volume.
    pub widths: [u64; 3],
    /// Whether the number of its nodes determines the shape of each volume.
    pub has_shapes: bool,
    pub checksum: [u8; BYTES],
}

impl<'a> MeshContent<'a> {
    fn rows_of(&self, array: MeshArray) -> Option<MeshRows<'a>> {
        match array {
            MeshArray::Edges => self.edges,
            MeshArray::Faces => self.faces,
            MeshArray::Volumes => self.volumes,
            MeshArray::X | MeshArray::Y | MeshArray::Z => None,
        }
    }

    /// Number of rows of one kind on this rank.
    fn row_count(&self, array: MeshArray) -> Result<u64> {
        let Some(MeshRows { width, nodes }) = self.rows_of(array) else { return Ok(0) };
        match (nodes.len(), width) {
            (0, _) => Ok(0),
            (len, 1..) if len.is_multiple_of(width) => Ok((len / width) as u64),
            (len, width) => {
                Err(Code::Shape
                    .error(format!("{len} entries of {} do not form rows of {width}", array.word())))
            }
        }
    }

    /// The nodes of each row of one kind, counted from 0, without missing ones. The rows were checked before.
    pub(super) fn rows(
        &self,
        array: MeshArray,
    ) -> impl Iterator<Item = impl Iterator<Item = i64> + Clone + use<'a>> {
        let rows = self.rows_of(array).unwrap_or(MeshRows { width: 1, nodes: &[] });
        let (base, fill) = (self.base, self.fill);
        rows.nodes.chunks(rows.width.max(1)).map(move |row| {
            row.iter().take_while(move |node| !is_missing(**node, fill)).map(move |node| node - base)
        })
    }

    /// Checks everything that does not depend on other ranks; returns the facts that must be equal on all, as text.
    fn said(&self) -> Result<String> {
        check_mesh_name(self.name)?;
        let words = ["x", "y", "z"];
        let count = self.coordinates.len();
        if !(2..=3).contains(&count) {
            return Err(Code::Shape
                .error(format!("nodes have {count} coordinates"))
                .with_hint("give x and y, or x, y and z"));
        }
        let nodes = self.coordinates[0].values.len();
        for (coordinate, word) in self.coordinates.iter().zip(words) {
            if coordinate.values.len() != nodes {
                let len = coordinate.values.len();
                return Err(
                    Code::ShapeMismatch.error(format!("{nodes} nodes have an x, but {len} have a {word}"))
                );
            }
        }
        if ![0, 1].contains(&self.base) {
            return Err(Code::Option
                .error(format!("base is {}", self.base))
                .with_hint("nodes count from 0 or 1"));
        }
        let attrs = |attrs: &Attrs| {
            let all = attrs.iter().map(|attr| format!("{}={}", attr.name, attr.value.escape_ascii()));
            all.collect::<Vec<_>>().join(" ")
        };
        let coordinates: Vec<String> = self.coordinates.iter().map(|one| attrs(&one.attrs)).collect();
        let (name, base, fill, own) = (self.name, self.base, self.fill, attrs(&self.attrs));
        Ok(format!(
            "the mesh `{name}` with {count} coordinates {coordinates:?}, base {base}, fill {fill:?}, {own:?}"
        ))
    }

    /// Checks the rows of one kind; returns the maximum number of nodes, and whether all have a shape with a name.
    fn check_rows(&self, array: MeshArray, least: usize, nodes: u64) -> Result<(u64, bool)> {
        let Some(rows) = self.rows_of(array) else { return Ok((0, true)) };
        let (mut widest, mut has_shapes) = (0, true);
        let limit = i64::try_from(nodes).unwrap_or(i64::MAX);
        for (number, row) in rows.nodes.chunks(rows.width.max(1)).enumerate() {
            let count = row.iter().take_while(|node| !is_missing(**node, self.fill)).count();
            let at = |place: usize| format!("{}[{number}, {place}]", array.word());
            for (place, node) in row.iter().enumerate() {
                let is_inside = node.checked_sub(self.base).is_some_and(|node| (0..limit).contains(&node));
                if place < count && !is_inside {
                    let (first, last) = (self.base, limit - 1 + self.base);
                    return Err(Code::Value
                        .error(format!("{} is {node}, but nodes are {first} to {last}", at(place)))
                        .with_hint(
                            "a connectivity has nodes of the whole mesh, or -1 for none; see base and fill",
                        ));
                }
                if place > count && !is_missing(*node, self.fill) {
                    return Err(Code::Value
                        .error(format!("{} is {node}, but {} is missing", at(place), at(count)))
                        .with_hint("in a row, missing nodes come after all others"));
                }
            }
            if count < least || (array == MeshArray::Edges && count > 2) {
                let (word, bound) = (array.word(), if count < least { "at least" } else { "at most" });
                return Err(Code::Value.error(format!(
                    "row {number} of {word} has {count} nodes; {word} have {bound} {least}"
                )));
            }
            widest = widest.max(count as u64);
            has_shapes &= SHAPES.iter().any(|(nodes, _)| *nodes == count as u64);
        }
        Ok((widest, has_shapes))
    }

    /// This rank's part of the checksum.
    fn sum(&self, (before, total): (&[u64; 4], &[u64; 4]), is_first: bool) -> ContentSum {
        let mut sum = ContentSum::new();
        if is_first {
            put_head(&mut sum, total, self.coordinates.len() as u64);
        }
        for (array, coordinate) in (1..).zip(&self.coordinates) {
            for (node, value) in (before[0]..).zip(coordinate.values) {
                sum.add(array, node, &value.to_be_bytes());
            }
        }
        let mut item = Vec::new();
        for (place, (array, _)) in KINDS.into_iter().enumerate() {
            for (number, row) in (before[place + 1]..).zip(self.rows(array)) {
                put_row(&mut sum, place, number, row, &mut item);
            }
        }
        sum
    }
}

/// Adds array 0 of the checksum: one item, with the four counts and the number of coordinates. Arrays 1 to 3 are the
/// coordinates, with big-endian items.
pub(super) fn put_head(sum: &mut ContentSum, counts: &[u64; 4], coordinates: u64) {
    let words: Vec<u8> = counts.iter().copied().chain([coordinates]).flat_map(u64::to_le_bytes).collect();
    sum.add(0, 0, &words);
}

/// Adds a row to one of the arrays 4 to 6 of the checksum: edges, faces and volumes. An item has the nodes of a row,
/// 8 bytes each.
pub(super) fn put_row(
    sum: &mut ContentSum,
    kind: usize,
    number: u64,
    row: impl Iterator<Item = i64>,
    item: &mut Vec<u8>,
) {
    item.clear();
    row.for_each(|node| item.extend(node.to_le_bytes()));
    sum.add(4 + kind as u64, number, item);
}

fn is_missing(node: i64, fill: Option<i64>) -> bool {
    node == -1 || fill == Some(node)
}

impl Measures {
    /// Collective: checks the parts of all ranks, and measures them.
    pub fn new(team: &Team, content: Result<&MeshContent<'_>>) -> Result<Measures> {
        let said = content.as_ref().map_err(|error| error.replicate()).and_then(|content| content.said());
        alike(team, STEP, said, "use equal name, coordinates, base, fill and attributes on all ranks")?;
        let content = content?;
        let own = || -> Result<Vec<u64>> {
            let mut own = vec![content.coordinates[0].values.len() as u64];
            for (array, _) in KINDS {
                own.push(content.row_count(array)?);
            }
            Ok(own)
        };
        let sums = team.sums(STEP, own())?;
        let four = |list: &[u64]| list.first_chunk().copied().unwrap_or_default();
        let (before, total): ([u64; 4], [u64; 4]) = (four(&sums.before), four(&sums.total));
        let checked = || -> Result<Vec<u64>> {
            if total[0] == 0 {
                return Err(Code::Shape
                    .error("the mesh has no nodes")
                    .with_hint("give x and y of each node"));
            }
            let mut found = Vec::new();
            let mut unnamed = 0;
            for (array, least) in KINDS {
                let (widest, has_shapes) = content.check_rows(array, least, total[0])?;
                found.push(widest);
                unnamed = u64::from(!has_shapes);
            }
            // Volumes are the last kind.
            found.push(unnamed);
            Ok(found)
        };
        let most = team.max(STEP, checked())?;
        let sum = content.sum((&before, &total), team.rank() == 0);
        let mut whole = ContentSum::new();
        let sums = team.allgather(STEP, Ok(sum.to_bytes().to_vec()))?;
        sums.iter().filter_map(|sum| sum.first_chunk()).for_each(|sum| whole.join(sum));
        let widths = most.first_chunk().copied().unwrap_or_default();
        let has_shapes = total[3] > 0 && most.get(3) == Some(&0);
        Ok(Measures { before, total, widths, has_shapes, checksum: whole.to_bytes() })
    }
}
