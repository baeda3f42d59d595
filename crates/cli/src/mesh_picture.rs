//! A field on an unstructured mesh, as it is drawn: where its values stand, and what of the mesh the helper draws.

use fieldstone::Session;
use fieldstone::arrays::{MeshArray, NodeRows, StoredMesh};
use fieldstone::catalog::MeshLocation;
use fieldstone::{FieldKey, Result, Store};
use serde_json::{Value, json};

use crate::elements::Axis;

/// The elements of a mesh that a field's values belong to.
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
    coordinates: Vec<Vec<f64>>,
    labels: Vec<String>,
    rows: Option<(MeshArray, NodeRows)>,
}

impl OnMesh {
    /// The mesh of the key's variable, if it was declared on one and the array has its extent.
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

    /// The points to draw.
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
        let attrs = &self.mesh.info().attrs;
        let on_sphere = attrs.iter().any(|(name, _)| name == "sphere_radius");
        let words = if on_sphere { ["longitude", "latitude", "z"] } else { ["x", "y", "z"] };
        Ok(MeshShapes {
            location: self.location,
            coordinates: self.mesh.coordinates()?,
            labels: words.map(str::to_owned).to_vec(),
            rows: rows.flatten(),
        })
    }
}

impl MeshShapes {
    /// The position of each value, across and down: a node, or the middle of the nodes of an edge, face or volume. Of
    /// three coordinates it takes the two with the largest range.
    pub fn points(&self) -> (Axis, Axis) {
        let reach = |values: &[f64]| {
            let (least, greatest) = values
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(*value), b.max(*value)));
            greatest - least
        };
        let mut axes: Vec<usize> = (0..self.coordinates.len()).collect();
        if axes.len() == 3 {
            let shortest =
                (0..3).min_by(|a, b| reach(&self.coordinates[*a]).total_cmp(&reach(&self.coordinates[*b])));
            axes.retain(|axis| Some(*axis) != shortest);
        }
        let point = |axis: usize| {
            let nodes = &self.coordinates[axis];
            let values: Vec<f64> = match (&self.rows, self.location) {
                (Some((_, rows)), MeshLocation::Edge | MeshLocation::Face | MeshLocation::Volume) => rows
                    .iter()
                    .map(|row| row.iter().map(|node| nodes[*node as usize]).sum::<f64>() / row.len() as f64)
                    .collect(),
                _ => nodes.clone(),
            };
            Axis { label: self.labels[axis].clone(), shape: vec![values.len()], values }
        };
        (point(axes[0]), point(axes[1]))
    }

    /// The keywords of `plot` for it, and the bytes of its arrays in their order.
    pub fn request(&self) -> (Value, Vec<Value>, Vec<Vec<u8>>) {
        let (mut coords, mut parts) = (Vec::new(), Vec::new());
        for ((axis, label), values) in ["x", "y", "z"].iter().zip(&self.labels).zip(&self.coordinates) {
            coords.push(json!({"name": axis, "dtype": "<f8", "shape": [values.len()], "label": label}));
            parts.push(values.iter().flat_map(|value| value.to_le_bytes()).collect());
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
