//! Agreement of declarations: a repeated declaration must equal the existing one, and fields must not
//! contradict it.

use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{Annotate, Coordinate, RunDecl, VariableDecl};

use crate::registry::variable_text;

/// Whether a tag of type `tag` takes values of type `kind`, if they are exact there.
pub fn takes(tag: ValueType, kind: ValueType) -> bool {
    use ValueType as T;
    tag == kind
        || matches!(
            (kind, tag),
            (_, T::Json)
                | (T::Int, T::Float | T::UInt)
                | (T::UInt, T::Float | T::Int)
                | (T::IntRange, T::FloatRange)
        )
}

/// Whether two values are equal; NaN equals NaN.
fn same(a: &Value, b: &Value) -> bool {
    a.kind() == b.kind() && a.order(b).is_eq()
}

fn same_pairs(a: &[(String, Value)], b: &[(String, Value)]) -> bool {
    a.len() == b.len() && contains(a, b)
}

/// Whether `a` has all pairs of `b`.
fn contains(a: &[(String, Value)], b: &[(String, Value)]) -> bool {
    b.iter().all(|(name, value)| a.iter().any(|(other, known)| other == name && same(known, value)))
}

fn same_option(a: &Option<Value>, b: &Option<Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The first difference between a run and a repeated declaration of it; absent parts do not count.
pub fn run_difference(there: &RunDecl, again: &RunDecl) -> Option<String> {
    if let Some((name, _)) =
        again.params.iter().find(|pair| !contains(&there.params, std::slice::from_ref(pair)))
    {
        return Some(format!("parameter '{name}'"));
    }
    let differs = [
        (again.job.is_some() && again.job != there.job, "job"),
        (again.notes.is_some() && again.notes != there.notes, "note"),
        (again.grid.is_some() && !same_option(&again.grid, &there.grid), "grid"),
        (again.annotate != Annotate::All && again.annotate != there.annotate, "rule for who may annotate it"),
        (again.if_exists.is_some() && again.if_exists != there.if_exists, "rule for existing fields"),
        (again.outside.is_some() && !same_option(&again.outside, &there.outside), "place of its data"),
    ];
    differs.iter().find(|(differs, _)| *differs).map(|(_, what)| (*what).to_owned())
}

/// The first difference between a variable and a repeated declaration of it.
pub fn variable_difference(there: &VariableDecl, again: &VariableDecl) -> Option<String> {
    let text = |shape: &Option<Vec<u64>>| shape.as_ref().map_or("none".into(), |s| format!("{s:?}"));
    let mut coords = (there.coords.clone(), again.coords.clone());
    coords.0.sort_by_key(|(dim, _)| *dim);
    coords.1.sort_by_key(|(dim, _)| *dim);
    let same_coords = coords.0.len() == coords.1.len()
        && coords.0.iter().zip(&coords.1).all(|((d, a), (e, b))| d == e && same_coordinate(a, b));
    let differs = [
        (there.dtype != again.dtype, "type".to_owned()),
        (there.shape != again.shape, format!("shape: {}, not {}", text(&there.shape), text(&again.shape))),
        (there.dims != again.dims, format!("dimensions: {}", there.dims.join(", "))),
        (!same_pairs(&there.attrs, &again.attrs), "attributes".to_owned()),
        (!same_coords, "coordinates".to_owned()),
        (there.decomposition != again.decomposition, "decomposition".to_owned()),
        (!same_option(&there.finders, &again.finders), "finders".to_owned()),
    ];
    differs.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

/// The first contradiction between a declaration and existing fields.
pub fn field_difference(fields: &VariableDecl, decl: &VariableDecl) -> Option<String> {
    if let (Some(a), Some(b)) = (fields.dtype, decl.dtype)
        && a.to_native() != b.to_native()
    {
        return Some(format!("type: its fields are {a}"));
    }
    match (&fields.shape, &decl.shape) {
        (Some(a), Some(b)) if a != b => Some(format!("shape: its fields have {a:?}")),
        _ => None,
    }
}

fn same_coordinate(a: &Coordinate, b: &Coordinate) -> bool {
    match (a, b) {
        (Coordinate::Uniform { first: a, spacing: x }, Coordinate::Uniform { first: b, spacing: y }) => {
            a.to_bits() == b.to_bits() && x.to_bits() == y.to_bits()
        }
        (Coordinate::Rectilinear(a), Coordinate::Rectilinear(b)) => a == b,
        (Coordinate::Other(a), Coordinate::Other(b)) => a == b,
        _ => false,
    }
}

/// Refuses a declaration whose parts contradict each other.
pub fn check_variable(decl: &VariableDecl) -> Result<()> {
    let wrong =
        |why: String| Err(Error::invalid(format!("variable {}: {why}", variable_text(&decl.variable))));
    let Some(shape) = &decl.shape else {
        return match decl.coords.is_empty() && decl.decomposition.is_none() {
            true => Ok(()),
            false => wrong("coordinates and a decomposition need a shape".into()),
        };
    };
    if let Some(extent) = shape.iter().find(|extent| i64::try_from(**extent).is_err()) {
        return wrong(format!("a dimension cannot have {extent} elements"));
    }
    if !decl.dims.is_empty() && decl.dims.len() != shape.len() {
        return wrong(format!("{} names for {} dimensions", decl.dims.len(), shape.len()));
    }
    if let Some((_, name)) = decl.dims.iter().enumerate().find(|(i, name)| decl.dims[..*i].contains(name)) {
        return wrong(format!("two dimensions are named '{name}'"));
    }
    if decl.decomposition.as_ref().is_some_and(|pieces| pieces.len() != shape.len() || pieces.contains(&0)) {
        return wrong("the decomposition needs an extent of at least 1 in each dimension".into());
    }
    for (i, (dim, coordinate)) in decl.coords.iter().enumerate() {
        let Some(extent) = shape.get(*dim as usize) else {
            return wrong(format!("there are coordinates for dimension {dim} of {}", shape.len()));
        };
        if decl.coords[..i].iter().any(|(other, _)| other == dim) {
            return wrong(format!("dimension {dim} has coordinates twice"));
        }
        match coordinate {
            Coordinate::Uniform { first, spacing } => {
                if !first.is_finite() || !spacing.is_finite() || *spacing == 0.0 {
                    return wrong(format!(
                        "coordinates from {first} with a spacing of {spacing} are not valid"
                    ));
                }
            }
            Coordinate::Rectilinear(at) => {
                let rising = at.windows(2).all(|two| two[0] < two[1]);
                let falling = at.windows(2).all(|two| two[0] > two[1]);
                if at.len() as u64 != *extent || !(rising || falling) || at.iter().any(|x| !x.is_finite()) {
                    return wrong(format!(
                        "coordinates of dimension {dim} must be {extent} finite numbers that increase or decrease"
                    ));
                }
            }
            Coordinate::Other(_) => {}
        }
    }
    Ok(())
}
