//! Sets of cells as boxes of their variables, for the catalog.

use std::sync::Arc;

use fieldstone_array::distributed::mesh::image::dimension;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{Boxes, CellSets, Column, MeshLocation, VariableDecl, VariableName};

use super::{Run, Target};

/// The facts of a variable that cells need.
struct CellVariable {
    name: String,
    shape: Vec<i64>,
    /// The dimension of the cells.
    along: usize,
}

impl CellVariable {
    fn of(decl: &VariableDecl) -> Result<CellVariable> {
        let name = decl.variable.name.clone();
        let Some(shape) = decl.shape.as_ref().filter(|shape| !shape.is_empty()) else {
            return Err(Code::Shape
                .error(format!("variable '{name}' has cells, but no declared extents"))
                .with_hint("declare the variable with its shape, or a group on a mesh"));
        };
        let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        Ok(CellVariable { along: mesh_dimension(decl).unwrap_or(0), name, shape })
    }

    /// Refuses cells that the variable lacks.
    fn check(&self, set: &[i64], row: usize) -> Result<()> {
        let count = self.shape[self.along];
        let row = if row > 0 { format!(", row {row}") } else { String::new() };
        let wrong = |why: String| Err(Error::invalid(format!("variable '{}'{row}: {why}", self.name)));
        if let Some(twice) = set.windows(2).find(|two| two[0] == two[1]) {
            return wrong(format!("cell {} is given twice", twice[0]));
        }
        match set.iter().find(|cell| !(0..count).contains(*cell)) {
            Some(cell) => {
                wrong(format!("there is no cell {cell}: there are {count} along dimension {}", self.along))
            }
            None if set.is_empty() => wrong("an attribute needs at least one cell".into()),
            None => Ok(()),
        }
    }
}

/// The dimension with the name of the variable's mesh.
fn mesh_dimension(decl: &VariableDecl) -> Option<usize> {
    let text = |wanted: &str| {
        decl.attrs.iter().find_map(|(name, value)| match value {
            Value::Text(text) if name == wanted => Some(text.as_str()),
            _ => None,
        })
    };
    let word = text("location")?;
    let all = [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
    let location = all.into_iter().find(|location| location.name() == word)?;
    let wanted = dimension(text("mesh")?, location);
    decl.dims.iter().position(|own| *own == wanted)
}

/// The boxes of a target: given ones, or the smallest that hold its cells.
pub(super) fn boxes_of(run: &Run, on: &Target, rows: usize) -> Result<Option<Boxes>> {
    let Some(sets) = &on.cells else { return Ok(on.boxes.clone()) };
    if on.variables.is_empty() {
        return Err(Error::invalid("cells need a variable").with_hint("give variable="));
    }
    let known = |name: &VariableName| {
        let found = run.store.catalog().variable(&run.name, &name.name, Some(name.version), &run.session)?;
        CellVariable::of(&found.decl)
    };
    let variables = on.variables.iter().map(known).collect::<Result<Vec<_>>>()?;
    let first = &variables[0];
    if let Some(other) =
        variables.iter().find(|other| (other.shape.len(), other.along) != (first.shape.len(), first.along))
    {
        return Err(Error::invalid(format!(
            "the cells of variables '{}' and '{}' lie along different dimensions",
            first.name, other.name
        ))
        .with_hint("annotate them in separate calls"));
    }
    let of_row = |row: usize| match &on.variable {
        Some(Column::Each(each)) => each.get(row).and_then(|index| variables.get(*index as usize)),
        Some(Column::One(index)) => variables.get(*index as usize),
        None => variables.first(),
    };
    let each_row = sets.len() > 1 || matches!(on.variable, Some(Column::Each(_)));
    let (rank, along) = (first.shape.len(), first.along);
    let mut boxes = Boxes {
        rank,
        start: Vec::new(),
        count: Vec::new(),
        cells: Some(CellSets { dim: along, sets: Vec::new() }),
    };
    for row in 0..if each_row { rows } else { 1 } {
        let Some(set) = sets.get(if sets.len() == 1 { 0 } else { row }) else { break };
        let variable = of_row(row).ok_or_else(|| Error::invalid(format!("row {row} names no variable")))?;
        variable.check(set, row)?;
        push(&mut boxes, variable, set);
    }
    Ok(Some(boxes))
}

/// Adds the smallest box that holds a set of cells which [`CellVariable::check`] passed.
fn push(boxes: &mut Boxes, variable: &CellVariable, set: &Arc<[i64]>) {
    for (dim, extent) in variable.shape.iter().enumerate() {
        let (first, count) = match (dim == variable.along, set.first(), set.last()) {
            (true, Some(first), Some(last)) => (*first, last - first + 1),
            _ => (0, *extent),
        };
        boxes.start.push(first);
        boxes.count.push(count);
    }
    if let Some(cells) = &mut boxes.cells {
        cells.sets.push(set.clone());
    }
}
