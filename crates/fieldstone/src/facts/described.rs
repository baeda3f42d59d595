//! The description of an array besides its values: names of its dimensions, attributes, coordinates. For a field of an
//! ingested netCDF file it comes from the file's header (the field `@header` of the same run, `spec/netcdf-header.md`),
//! for any other from its run's declarations.

use fieldstone_catalog::query::{Expr, NameTest, Query, Term};
use fieldstone_core::dtype::DType;
use fieldstone_core::elements::as_floats;
use fieldstone_core::geometry::{CoordinateAxis, IndexBox};
use fieldstone_core::key::FieldKey;
use fieldstone_core::packing::Packing;
use fieldstone_core::value::Value;
use fieldstone_store::api::{FieldAccess, FieldStore};
use serde_json::Value as Json;

use super::coordinates::{Coordinates, Direction, since, with_unit};
use crate::catalog::{Coordinate, RunName, VariableDecl};
use crate::interop::ingest::HEADER;
use crate::unpacked::{attributes, beside, header_of, variable_of};
use crate::{Session, Store};

/// An array, described.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its name.
    name: String,
    /// Names of its dimensions, outermost first; for a split variable without the first.
    pub dims: Vec<String>,
    /// Its attributes, in their order.
    pub attrs: Vec<(String, Value)>,
    coords: Coords,
}

#[derive(Debug, Clone)]
enum Coords {
    /// Coordinates are in other fields of the run, which the header describes.
    File(Json),
    /// Declared coordinates, with their dimensions.
    Declared(Vec<(u32, Coordinate)>),
}

impl Described {
    /// The description of a field; `None` for a field without one.
    pub fn of(store: &Store, key: &FieldKey) -> Option<Described> {
        Described::of_file(store, key).or_else(|| Described::of_run(store, key))
    }

    /// The description from the header of the netCDF file that the key's run was ingested from. `None` if in doubt that
    /// it was.
    fn of_file(store: &dyn FieldStore, key: &FieldKey) -> Option<Described> {
        let name = key.get("variable")?.text().into_owned();
        let header = header_of(&beside(store, key, HEADER)?)?;
        let found = Described::in_header(&header, &name)?;
        Some(Described { coords: Coords::File(header), ..found })
    }

    /// A variable's description in a header, without its coordinates.
    fn in_header(header: &Json, path: &str) -> Option<Described> {
        let facts = variable_of(header, path)?;
        let own = facts["name"].as_str()?.to_owned();
        let dims = facts["dims"].as_array()?.iter().filter_map(|dim| Some(dim.as_str()?.to_owned()));
        let dims = dims.skip(usize::from(facts["split"] == true)).collect();
        let attrs = attributes(facts);
        Some(Described { name: own, dims, attrs, coords: Coords::Declared(Vec::new()) })
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

    /// The packing of its elements.
    pub fn packing(&self, dtype: DType) -> Packing {
        Packing::of(dtype, |name| self.attr(name))
    }

    /// Whether it belongs to a netCDF file or a Dataset, whose steps have dates as times.
    pub fn is_of_file(&self) -> bool {
        matches!(self.coords, Coords::File(_))
    }

    /// Its long name, else its standard name or its own, as words.
    pub fn name(&self) -> String {
        let name = self.text("long_name").map(str::trim).filter(|name| !name.is_empty());
        let name = name.or_else(|| self.text("standard_name")).unwrap_or(&self.name);
        if name.contains(' ') { name.to_owned() } else { name.replace('_', " ") }
    }

    /// Its unit; empty for none.
    pub fn units(&self) -> &str {
        self.text("units").map(str::trim).unwrap_or_default()
    }

    /// Its long name with its unit.
    pub fn label(&self) -> String {
        with_unit(&self.name(), self.units())
    }

    /// Its role as a coordinate.
    fn axis(&self) -> CoordinateAxis {
        CoordinateAxis::new(&self.name, self.text("standard_name").unwrap_or_default(), self.units())
    }

    /// Part of the coordinate along a dimension, by the dimension's number, if there is one.
    pub fn coordinates(
        &self,
        store: &Store,
        key: &FieldKey,
        dim: usize,
        start: u64,
        count: u64,
    ) -> Option<Coordinates> {
        let own = self.dims.get(dim);
        let found = match &self.coords {
            Coords::File(header) => file_coordinates(store, key, header, own?, &[start], &[count])?,
            Coords::Declared(coords) => {
                let coordinate = coords.iter().find(|(own, _)| *own as usize == dim).map(|(_, one)| one)?;
                let at = |i: u64| match coordinate {
                    Coordinate::Uniform { first, spacing } => Some(first + i as f64 * spacing),
                    Coordinate::Rectilinear(values) => values.get(usize::try_from(i).ok()?).copied(),
                    Coordinate::Other(_) => None,
                };
                let values = (start..start.checked_add(count)?).map(at).collect::<Option<Vec<f64>>>()?;
                let name = own.map(String::as_str).unwrap_or_default();
                Coordinates::new(&CoordinateAxis::new(name, "", ""), name, None, vec![values.len()], values)
            }
        };
        found.values.iter().all(|value| value.is_finite()).then_some(found)
    }

    /// Longitudes and latitudes of each element along these dimensions, for the box of `start` and `count`: those of a
    /// curvilinear grid, or of points. NaN if the file has none.
    pub fn places(
        &self,
        store: &Store,
        key: &FieldKey,
        dims: &[usize],
        (start, count): (&[u64], &[u64]),
    ) -> Option<(Coordinates, Coordinates)> {
        let Coords::File(header) = &self.coords else { return None };
        let variable = key.get("variable")?.text().into_owned();
        let path = variable.rsplit_once('/').map_or("", |(path, _)| path);
        let group = header["groups"].as_array()?.iter().find(|group| group["path"] == path)?;
        let along: Vec<&str> =
            dims.iter().map(|dim| self.dims.get(*dim).map(String::as_str)).collect::<Option<_>>()?;
        let stands_there = |facts: &&Json| {
            let own = facts["dims"].as_array().into_iter().flatten().map(Json::as_str);
            facts["split"] != true && own.eq(along.iter().map(|dim| Some(*dim)))
        };
        let others = group["variables"].as_array()?.iter().filter(stands_there);
        let paths = others.filter_map(|facts| {
            let name = facts["name"].as_str()?;
            Some(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
        });
        let axes: Vec<(String, CoordinateAxis)> = paths
            .filter_map(|path| Some((path.clone(), Described::in_header(header, &path)?.axis())))
            .collect();
        let find = |is: fn(&CoordinateAxis) -> bool| {
            // Several grids may share dimensions: the attribute `coordinates` names the variable's own.
            let listed = self.text("coordinates").unwrap_or_default();
            let is_listed =
                |path: &str| listed.split_whitespace().any(|name| path.rsplit('/').next() == Some(name));
            let all = axes.iter().filter(|(_, axis)| is(axis));
            let (path, _) = all.clone().find(|(path, _)| is_listed(path)).or_else(|| all.clone().next())?;
            file_coordinates(store, key, header, path, start, count)
        };
        let (lon, lat) = (find(CoordinateAxis::is_longitude)?, find(CoordinateAxis::is_latitude)?);
        let known = |axis: &Coordinates| axis.values.iter().filter(|value| value.is_finite()).count();
        (2 * known(&lon).min(known(&lat)) > lon.values.len()).then_some((lon, lat))
    }

    /// The time of all fields of a file, in seconds since 1970, if it has a time without a dimension.
    pub fn time(&self, store: &Store, key: &FieldKey) -> Option<f64> {
        let Coords::File(header) = &self.coords else { return None };
        let root = header["groups"].as_array()?.iter().find(|group| group["path"] == "")?;
        let scalars =
            root["variables"].as_array()?.iter().filter(|facts| facts["dims"] == Json::Array(Vec::new()));
        let mut times = scalars.filter_map(|facts| {
            let found = Described::in_header(header, facts["name"].as_str()?)?;
            (found.text("standard_name") == Some("time") || found.name == "time").then_some(found)
        });
        let found = file_coordinates(store, key, header, &times.next()?.name, &[], &[])?;
        found.values.first().copied().filter(|time| found.direction == Direction::Time && time.is_finite())
    }
}

/// The declared time of a key's step: for a file in seconds since 1970.
pub fn time_of(store: &Store, key: &FieldKey) -> Option<f64> {
    let schema = store.schema();
    let ((project, run), step) = (schema.run_of(key)?, schema.step_of(key)?);
    let terms =
        [Term::Project(NameTest::Is(project)), Term::Run(NameTest::Is(run)), Term::Step(vec![(step, step)])];
    let query = Query { expr: Expr::All(terms.map(Expr::Term).into()), ..Query::all() };
    store.catalog().steps(&query).ok()?.first()?.time.filter(|time| time.is_finite())
}

/// Part of a coordinate variable of a file.
fn file_coordinates(
    store: &dyn FieldStore,
    key: &FieldKey,
    header: &Json,
    path: &str,
    start: &[u64],
    count: &[u64],
) -> Option<Coordinates> {
    let field = beside(store, key, path)?;
    let (dtype, shape) = (field.dtype().ok()??, field.shape().ok()??);
    let inside = IndexBox::new(start.to_vec(), count.to_vec(), &shape).ok()?;
    let mut values = as_floats(dtype, &field.read_box(Some(&inside)).ok()?).ok()?;
    let coordinate = Described::in_header(header, path)?;
    coordinate.packing(dtype).undo(&mut values);
    let shape = count.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
    let positive = coordinate.text("positive");
    let found = Coordinates::new(&coordinate.axis(), &coordinate.name(), positive, shape, values);
    let Some((length, begin)) = since(&found.units, coordinate.text("calendar")) else { return Some(found) };
    let values = found.values.iter().map(|value| begin + value * length).collect();
    Some(Coordinates { direction: Direction::Time, units: String::new(), values, ..found })
}
