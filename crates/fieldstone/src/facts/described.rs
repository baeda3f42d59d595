//! The description of an array beside its values: names of its dimensions, attributes, coordinates. A field of an
//! ingested netCDF file has them in the file's header (the field `@header` of the same run,
//! `spec/netcdf-header.md`), any other in what its run declares.

use fieldstone_core::dtype::DType;
use fieldstone_core::elements::as_floats;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::key::FieldKey;
use fieldstone_core::packing::Packing;
use fieldstone_core::value::Value;
use fieldstone_store::api::{FieldAccess, FieldStore};
use serde_json::Value as Json;

use crate::catalog::{Coordinate, RunName, VariableDecl};
use crate::interop::ingest::HEADER;
use crate::unpacked::{attributes, beside, header_of, variable_of};
use crate::{Session, Store};

/// Positions along a dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinates {
    /// Their name, with their unit.
    pub label: String,
    /// The positions, all finite.
    pub values: Vec<f64>,
}

/// An array, described.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its name.
    name: String,
    /// Names of its dimensions, outermost first; of a split variable without the first.
    pub dims: Vec<String>,
    /// Its attributes, in their order.
    pub attrs: Vec<(String, Value)>,
    coords: Coords,
}

#[derive(Debug, Clone)]
enum Coords {
    /// In fields beside it, which the header describes.
    File(Json),
    /// As declared: dimension and coordinate.
    Declared(Vec<(u32, Coordinate)>),
}

impl Described {
    /// The description of a field; `None` for a field without one.
    pub fn of(store: &Store, key: &FieldKey) -> Option<Described> {
        Described::of_file(store, key).or_else(|| Described::of_run(store, key))
    }

    /// The description out of the header of the netCDF file that the key's run was ingested from. `None` in any doubt
    /// that it was.
    fn of_file(store: &dyn FieldStore, key: &FieldKey) -> Option<Described> {
        let name = key.get("variable")?.text().into_owned();
        let header = header_of(&beside(store, key, HEADER)?)?;
        Described::in_header(header, &name)
    }

    fn in_header(header: Json, path: &str) -> Option<Described> {
        let facts = variable_of(&header, path)?;
        let own = facts["name"].as_str()?.to_owned();
        let dims = facts["dims"].as_array()?.iter().filter_map(|dim| Some(dim.as_str()?.to_owned()));
        let dims = dims.skip(usize::from(facts["split"] == true)).collect();
        let attrs = attributes(facts);
        Some(Described { name: own, dims, attrs, coords: Coords::File(header) })
    }

    /// The description that the key's run declares for its variable.
    fn of_run(store: &Store, key: &FieldKey) -> Option<Described> {
        let schema = store.schema();
        let (project, name) = schema.run_of(key)?;
        let variable = schema.variable_of(key)?;
        let run = RunName { project, name };
        let info = store.catalog().variable(&run, &variable, None, &Session::default()).ok()?;
        let VariableDecl { dims, attrs, coords, .. } = info.decl;
        let said = !dims.is_empty() || !attrs.is_empty() || !coords.is_empty();
        let name = variable.into_owned();
        said.then_some(Described { name, dims, attrs, coords: Coords::Declared(coords) })
    }

    fn attr(&self, name: &str) -> Option<&Value> {
        self.attrs.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.attr(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How its elements are packed.
    pub fn packing(&self, dtype: DType) -> Packing {
        Packing::of(dtype, |name| self.attr(name))
    }

    /// Its long name, or else its own, with its unit.
    pub fn label(&self) -> String {
        let name = self.text("long_name").or_else(|| self.text("standard_name")).unwrap_or(&self.name);
        match self.text("units") {
            Some(unit) => format!("{name} ({unit})"),
            None => name.to_owned(),
        }
    }

    /// Part of the coordinate along a dimension, by its number, where there is one.
    pub fn coordinates(
        &self,
        store: &Store,
        key: &FieldKey,
        dim: usize,
        start: u64,
        count: u64,
    ) -> Option<Coordinates> {
        let found = match &self.coords {
            Coords::File(header) => file_coordinates(store, key, header, self.dims.get(dim)?, start, count)?,
            Coords::Declared(coords) => {
                let coordinate = coords.iter().find(|(own, _)| *own as usize == dim).map(|(_, one)| one)?;
                let at = |i: u64| match coordinate {
                    Coordinate::Uniform { first, spacing } => Some(first + i as f64 * spacing),
                    Coordinate::Rectilinear(values) => values.get(usize::try_from(i).ok()?).copied(),
                    Coordinate::Other(_) => None,
                };
                let values = (start..start.checked_add(count)?).map(at).collect::<Option<Vec<f64>>>()?;
                let label = self.dims.get(dim).cloned().unwrap_or_default();
                Coordinates { label, values }
            }
        };
        found.values.iter().all(|value| value.is_finite()).then_some(found)
    }
}

/// Part of the coordinate variable of a file's dimension.
fn file_coordinates(
    store: &dyn FieldStore,
    key: &FieldKey,
    header: &Json,
    dim: &str,
    start: u64,
    count: u64,
) -> Option<Coordinates> {
    let field = beside(store, key, dim)?;
    let (dtype, shape) = (field.dtype().ok()??, field.shape().ok()??);
    let inside = IndexBox::new(vec![start], vec![count], &shape).ok()?;
    let mut values = as_floats(dtype, &field.read_box(Some(&inside)).ok()?).ok()?;
    let coordinate = Described::in_header(header.clone(), dim)?;
    coordinate.packing(dtype).undo(&mut values);
    Some(Coordinates { label: coordinate.label(), values })
}
