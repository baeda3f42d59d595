//! What is known of an array beside its values: names of its dimensions, attributes, coordinates. A field of an
//! ingested netCDF file has them in the file's header (the field `@header` of the same run,
//! `spec/netcdf-header.md`), any other in what its run declares.

use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{Coordinate, RunName, VariableDecl};
use fieldstone::packing::Packing;
use fieldstone::unpacked::{attributes, beside, header_of, variable_of};
use fieldstone::{DType, FieldKey, FieldStore, Store, as_floats};
use serde_json::Value as Json;

use crate::elements::Axis;
use crate::region::Region;

/// An array, described.
#[derive(Debug)]
pub struct Described {
    /// Its name.
    name: String,
    /// Names of its dimensions, outermost first; of a split variable without the first.
    pub dims: Vec<String>,
    /// Its attributes, in their order.
    pub attrs: Vec<(String, Value)>,
    coords: Coords,
}

#[derive(Debug)]
enum Coords {
    /// In fields beside it, which the header describes.
    File(Json),
    /// As declared: dimension and coordinate.
    Declared(Vec<(u32, Coordinate)>),
}

impl Described {
    /// What is known of a field; `None` where nothing is.
    pub fn of(store: &Store, key: &FieldKey) -> Option<Described> {
        Described::of_file(&**store, key).or_else(|| Described::of_run(store, key))
    }

    /// Where the key's run was ingested from a netCDF file. Any doubt means that it was not.
    fn of_file(store: &dyn FieldStore, key: &FieldKey) -> Option<Described> {
        let name = key.get("variable")?.text().into_owned();
        let header = header_of(&beside(store, key, "@header")?)?;
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

    /// Where the key's run declares its variable.
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

    /// What it is, with its unit.
    pub fn label(&self) -> String {
        let name = self.text("long_name").or_else(|| self.text("standard_name")).unwrap_or(&self.name);
        match self.text("units") {
            Some(unit) => format!("{name} ({unit})"),
            None => name.to_owned(),
        }
    }

    /// Part of the coordinate along a dimension, by its number, where there is one.
    pub fn axis(&self, store: &Store, key: &FieldKey, dim: usize, start: u64, count: u64) -> Option<Axis> {
        let axis = match &self.coords {
            Coords::File(header) => file_axis(&**store, key, header, self.dims.get(dim)?, start, count)?,
            Coords::Declared(coords) => {
                let coordinate = coords.iter().find(|(own, _)| *own as usize == dim).map(|(_, one)| one)?;
                let at = |i: u64| match coordinate {
                    Coordinate::Uniform { first, spacing } => Some(first + i as f64 * spacing),
                    Coordinate::Rectilinear(values) => values.get(usize::try_from(i).ok()?).copied(),
                    Coordinate::Other(_) => None,
                };
                let values = (start..start.checked_add(count)?).map(at).collect::<Option<Vec<f64>>>()?;
                let label = self.dims.get(dim).cloned().unwrap_or_default();
                Axis { label, shape: vec![values.len()], values }
            }
        };
        axis.values.iter().all(|value| value.is_finite()).then_some(axis)
    }
}

/// Part of the coordinate variable of a file's dimension.
fn file_axis(
    store: &dyn FieldStore,
    key: &FieldKey,
    header: &Json,
    dim: &str,
    start: u64,
    count: u64,
) -> Option<Axis> {
    let field = beside(store, key, dim)?;
    let (dtype, shape) = (field.dtype().ok()??, field.shape().ok()??);
    let region = Region::parse(&format!("{start}:{}", start.checked_add(count)?)).ok()?;
    let (inside, _) = (shape.len() == 1).then(|| region.within(&shape).ok()).flatten()?;
    let mut values = as_floats(dtype, &field.read_box(Some(&inside)).ok()?).ok()?;
    let coordinate = Described::in_header(header.clone(), dim)?;
    coordinate.packing(dtype).undo(&mut values);
    Some(Axis { label: coordinate.label(), shape: vec![values.len()], values })
}
