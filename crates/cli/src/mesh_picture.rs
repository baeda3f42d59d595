//! A field on an unstructured mesh, as it is drawn: where its values stand, and what of the mesh the helper draws.

use fieldstone::Session;
use fieldstone::arrays::{MeshArray, MeshAxis, NodeRows, StoredMesh};
use fieldstone::catalog::MeshLocation;
use fieldstone::facts::{Coordinates, Direction};
use fieldstone::{Error, FieldKey, Result, Store};
use serde_json::{Value, json};

use crate::elements::of_coordinate;

/// The part of a mesh on which a field's values stand.
#[derive(Debug)]
pub struct OnMesh {
    mesh: StoredMesh,
    location: MeshLocation,
    /// Which dimension of the array is the mesh's.
    pub dimension: usize,
}

/// Coordinates of nodes, and rows of nodes that make the shapes to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshShapes {
    location: MeshLocation,
    coordinates: Vec<Coordinates>,
    rows: Option<(MeshArray, NodeRows)>,
}

impl OnMesh {
    /// The mesh on which the key's variable was declared, if the array has its extent.
    pub fn of(store: &Store, key: &FieldKey, shape: &[u64]) -> Result<Option<OnMesh>> {
        let text = |keyword: &str| key.get(keyword).map(|value| value.text().into_owned());
        let (Some(run), Some(variable)) = (text("run"), text("variable")) else { return Ok(None) };
        let name = fieldstone::catalog::RunName { project: text("project").unwrap_or_default(), name: run };
        // A run that the catalog does not know has no groups.
        let run = fieldstone::Run::new(store, name, &Session::default());
        let Ok(Some((mesh, location))) = run.mesh_of(&variable) else { return Ok(None) };
        let mesh = StoredMesh::open(store, &mesh)?;
        let count = mesh.count(location);
        // In Fortran's order the mesh's dimension is the last one.
        let dimension = match (shape.first(), shape.last()) {
            (Some(first), _) if *first == count => 0,
            (_, Some(last)) if *last == count => shape.len() - 1,
            _ => return Ok(None),
        };
        Ok(Some(OnMesh { mesh, location, dimension }))
    }

    /// The box that takes all values at the first index of the other dimensions.
    pub fn region(&self, rank: usize) -> String {
        let part = |d: usize| if d == self.dimension { ":" } else { "0" };
        (0..rank).map(part).collect::<Vec<_>>().join(",")
    }

    /// The shapes that are drawn.
    pub fn shapes(&self) -> Result<MeshShapes> {
        let array = match self.location {
            MeshLocation::Edge => Some(MeshArray::Edges),
            MeshLocation::Face => Some(MeshArray::Faces),
            MeshLocation::Volume => Some(MeshArray::Volumes),
            // Of a mesh in space its skin, else what there is between the nodes.
            MeshLocation::Node => [MeshArray::Volumes, MeshArray::Faces, MeshArray::Edges]
                .into_iter()
                .find(|array| self.mesh.arrays().contains(array)),
        };
        let rows = array.map(|array| Ok(self.mesh.rows(array)?.map(|rows| (array, rows)))).transpose()?;
        let nodes = self.mesh.axes().iter().zip(self.mesh.coordinates()?);
        let coordinates = nodes.map(|(of, values)| coordinate(of, values)).collect();
        Ok(MeshShapes { location: self.location, coordinates, rows: rows.flatten() })
    }

    /// The places of values, across and down: at a node, or in the middle of the nodes of an edge, face or volume. Of
    /// three coordinates the two that reach farthest.
    pub fn points(&self) -> Result<(Coordinates, Coordinates)> {
        let points = self.mesh.points(self.location)?;
        let reach = |axis: &Coordinates| {
            let ends = (f64::INFINITY, f64::NEG_INFINITY);
            let (least, greatest) =
                axis.values.iter().fold(ends, |(a, b), value| (a.min(*value), b.max(*value)));
            greatest - least
        };
        let axes = points.axes.iter().zip(points.values);
        let mut axes: Vec<Coordinates> = axes.map(|(of, values)| coordinate(of, values)).collect();
        if axes.len() == 3
            && let Some(shortest) = (0..3).min_by(|a, b| reach(&axes[*a]).total_cmp(&reach(&axes[*b])))
        {
            axes.remove(shortest);
        }
        let mut axes = axes.into_iter();
        let (Some(x), Some(y)) = (axes.next(), axes.next()) else {
            return Err(Error::invalid("a mesh is drawn that has x and y"));
        };
        Ok((x, y))
    }
}

/// A coordinate of a mesh: a longitude, a latitude, or `x`, `y` or `z`.
fn coordinate(of: &MeshAxis, values: Vec<f64>) -> Coordinates {
    let known = Coordinates::new(&of.axis, &of.axis.name, None, vec![values.len()], values);
    match known.direction.is_on_globe() {
        true => known,
        false => Coordinates { direction: Direction::Other, ..known },
    }
}

impl MeshShapes {
    /// The keywords of `plot` for it, and the bytes of its arrays in their order.
    pub fn request(&self) -> (Value, Vec<Value>, Vec<Vec<u8>>) {
        let (mut coords, mut parts) = (Vec::new(), Vec::new());
        for (name, axis) in ["x", "y", "z"].iter().zip(&self.coordinates) {
            coords.push(of_coordinate(name, axis));
            parts.push(axis.values.iter().flat_map(|value| value.to_le_bytes()).collect());
        }
        let mut mesh = json!({"location": self.location.name()});
        if let Some((array, rows)) = &self.rows {
            mesh["rows"] = array.word().into();
            let count = rows.nodes.len() / rows.width.max(1);
            coords.push(json!({"name": "rows", "dtype": "<i8", "shape": [count, rows.width]}));
            parts.push(rows.nodes.iter().flat_map(|node| node.to_le_bytes()).collect());
        }
        (mesh, coords, parts)
    }
}
