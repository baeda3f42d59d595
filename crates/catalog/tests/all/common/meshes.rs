//! Meshes and grids of a [`World`](super::world::World). A dimension named `lat` is a mesh, and its elements
//! have a coordinate, `pole`, that neither rises nor falls. Dimensions named `x` and `y` have a coordinate
//! along both, `ring`.

use std::sync::Arc;

use fieldstone_catalog::engine::{
    CoordinateRange, GridRegion, MeshRegion, PointSet, PointSource, VariableRow,
};
use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_format::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, MeshDecl, MeshLocation, RunName, StorageOrder,
    VariableDecl,
};

/// The name of the coordinate.
pub const COORDINATE: &str = "pole";
const DIMENSION: &str = "lat";

/// The coordinate of an element.
pub fn pole(element: i64) -> f64 {
    (element * 7 % 13) as f64 / 2.0
}

/// The mesh dimension of a variable, and its extent.
pub fn dimension(decl: &VariableDecl) -> Option<(usize, u64)> {
    let dim = decl.dims.iter().position(|name| name == DIMENSION)?;
    Some((dim, *decl.shape.as_ref()?.get(dim)?))
}

/// The elements of a mesh of this extent in a range.
pub fn elements(extent: u64, low: f64, high: f64) -> Vec<i64> {
    (0..extent as i64).filter(|element| (low..=high).contains(&pole(*element))).collect()
}

fn name_of(extent: u64) -> String {
    format!("mesh{extent}")
}

pub fn mesh(extent: u64) -> MeshDecl {
    let counts = [extent, 0, 0, 0];
    MeshDecl {
        name: name_of(extent),
        checksum: vec![extent as u8; 16],
        path: "m".into(),
        counts,
        attrs: Vec::new(),
        sums: None,
    }
}

/// The group of a variable on a mesh.
pub fn group(decl: &VariableDecl, extent: u64) -> ArrayGroup {
    let set = ArraySet {
        variable: decl.variable.clone(),
        dtype: DType::F8,
        shape: decl.shape.iter().flatten().map(|extent| Some(*extent)).collect(),
        dims: decl.dims.clone(),
        fill: None,
        attrs: Vec::new(),
        pattern: BasicPattern::Irregular,
        view: String::new(),
    };
    ArrayGroup {
        name: format!("{}.{}", decl.variable.name, decl.variable.version),
        level: 3,
        layout: ArrayLayout::Files,
        method: "auto".into(),
        order: StorageOrder::C,
        mesh: Some(name_of(extent)),
        location: Some(MeshLocation::Node),
        chunks: None,
        compression: None,
        attrs: Vec::new(),
        sets: vec![set],
    }
}

/// The elements of a mesh in ranges.
pub fn region(extent: u64, ranges: &[CoordinateRange]) -> Option<MeshRegion> {
    let decided: Vec<bool> = ranges.iter().map(|(name, ..)| name == COORDINATE).collect();
    let inside = |element: &i64| {
        ranges
            .iter()
            .filter(|range| range.0 == COORDINATE)
            .all(|(_, low, high)| (*low..=*high).contains(&pole(*element)))
    };
    let elements: Arc<[i64]> = (0..extent as i64).filter(inside).collect();
    decided.contains(&true).then(|| MeshRegion { dimension: DIMENSION.into(), decided, elements })
}

/// The name of the coordinate along two dimensions.
pub const RING: &str = "ring";

/// The coordinate of an element along these two dimensions.
pub fn ring(first: i64, second: i64) -> f64 {
    ((first * 5 + second * 3) % 11) as f64 / 2.0
}

/// The two dimensions of a variable with that coordinate, the outer one first, and their extents.
pub fn ring_dims(decl: &VariableDecl) -> Option<[(usize, i64); 2]> {
    let at = |name: &str| decl.dims.iter().position(|dim| dim == name);
    let (x, y) = (at("x")?, at("y")?);
    let shape = decl.shape.as_ref()?;
    let extent = |dim: usize| Some((dim, i64::try_from(*shape.get(dim)?).ok()?));
    Some([extent(x.min(y))?, extent(x.max(y))?])
}

/// The elements of a grid in ranges.
pub fn grid(decl: &VariableDecl, ranges: &[CoordinateRange]) -> Option<GridRegion> {
    let [(outer, rows), (inner, columns)] = ring_dims(decl)?;
    let decided: Vec<bool> = ranges.iter().map(|(name, ..)| name == RING).collect();
    let inside = |element: &i64| {
        let at = ring(element / columns, element % columns);
        ranges.iter().filter(|range| range.0 == RING).all(|(_, low, high)| (*low..=*high).contains(&at))
    };
    let elements: Arc<[i64]> = (0..rows * columns).filter(inside).collect();
    let sets = vec![PointSet::new(vec![outer, inner], vec![rows, columns], elements)];
    decided.contains(&true).then_some(GridRegion { decided, sets, steps: None })
}

/// The elements of several grids in ranges.
pub fn grids(
    variables: &[VariableRow],
    asked: &[bool],
    ranges: &[CoordinateRange],
) -> Vec<Option<GridRegion>> {
    let one = |(row, asked): (&VariableRow, &bool)| asked.then(|| grid(&row.decl, ranges)).flatten();
    variables.iter().zip(asked).map(one).collect()
}

/// A source of these points.
#[derive(Debug)]
pub struct Source;

impl PointSource for Source {
    fn region(
        &self,
        mesh: &MeshDecl,
        _: MeshLocation,
        ranges: &[CoordinateRange],
    ) -> Result<Option<MeshRegion>> {
        Ok(region(mesh.counts[0], ranges))
    }
    fn grids(
        &self,
        _: &RunName,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        Ok(grids(variables, asked, ranges))
    }
}
