//! The points of grids of a store's variables, for queries by coordinates: from coordinates declared along dimensions,
//! and from fields that are coordinates of others.
//!
//! A range of coordinates is matched, in this order, against the coordinates along a variable's own dimensions, the
//! points of its GRIB grid, the variables in its attribute `coordinates` (CF, chapter 5), and all variables of its run
//! that only have dimensions of the variable: those of its group first, and none on other levels of an adaptive mesh. A
//! coordinate with the dimension along which the variable is split applies step by step ([`moving`]).
//!
//! Invariants:
//! * a coordinate's field is read once, and the elements of a grid in ranges are computed once, however many variables
//!   share it; both are cached up to [`KEPT`] bytes and [`MOST_KEPT`] entries each, the latest first;
//! * a field's version identifies its cached data, so that a newer one is read again;
//! * if fields of further keywords have coordinates of their own, an element of one of them counts as one of the
//!   variable.

mod moving;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fieldstone_catalog::engine::{CoordinateRange, GridRegion, PointSet, VariableRow};
use fieldstone_core::geometry::CoordinateAxis;
use fieldstone_core::packing::Packing;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::sync::Mutex;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Result, amr};
use fieldstone_format::catalog::{Coordinate, RunName, VariableDecl, VariableName};
use fieldstone_store::Field;
use fieldstone_store::api::{EntryId, FieldAccess, RetrieveOptions};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use self::moving::Stepped;
use super::grib_points::points_of;
use crate::interop::grib::GRID;
use crate::unpacked::packing_of;

/// Cached bytes of coordinates, and of elements, and the number of entries of each.
const KEPT: usize = 128 << 20;
const MOST_KEPT: usize = 1024;
/// Maximum number of points of one grid that are examined.
const MOST_POINTS: i64 = 1 << 28;

/// Coordinates, decoded.
#[derive(Debug)]
struct Coordinates {
    values: Vec<f64>,
    digest: u128,
}

impl Coordinates {
    fn new(values: Vec<f64>) -> Coordinates {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Coordinates { digest: xxh3_128(&bytes), values }
    }
}

/// The entries last used, the latest first.
#[derive(Debug)]
struct Latest<K, T>(Mutex<VecDeque<(K, Arc<T>, usize)>>);

impl<K, T> Default for Latest<K, T> {
    fn default() -> Self {
        Latest(Mutex::default())
    }
}

impl<K: PartialEq, T> Latest<K, T> {
    fn find(&self, key: &K) -> Option<Arc<T>> {
        let mut known = self.0.lock();
        let entry = known.iter().position(|(own, ..)| own == key).and_then(|at| known.remove(at))?;
        let found = entry.1.clone();
        known.push_front(entry);
        Some(found)
    }

    fn keep(&self, key: K, value: Arc<T>, bytes: usize) {
        let mut known = self.0.lock();
        known.push_front((key, value, bytes));
        known.truncate(MOST_KEPT);
        let mut sum = 0;
        let too_many = known.iter().skip(1).position(|(.., bytes)| {
            sum += bytes;
            sum > KEPT
        });
        if let Some(at) = too_many {
            known.truncate(at + 1);
        }
    }
}

/// The source of coordinates.
#[derive(Debug, PartialEq)]
enum CoordinateKey {
    /// A version of a field, and the version of the variable that defines its packing.
    Field { key: Vec<u8>, entry: EntryId, version: i64 },
    /// The latitudes (0) or longitudes (1) of a GRIB grid.
    Grid(String, usize),
}

/// Cached grids of one store.
#[derive(Debug, Default)]
pub struct KnownGrids {
    coordinates: Latest<CoordinateKey, Coordinates>,
    /// Elements of grids, by the inputs of their computation.
    elements: Latest<u128, PointSet>,
}

/// A coordinate of a variable: the variable's dimensions along which it lies, and the source of its values.
struct GridAxis<'a> {
    axis: CoordinateAxis,
    dims: Vec<usize>,
    values: CoordinateSource<'a>,
}

enum CoordinateSource<'a> {
    /// Declared along a dimension of this extent.
    Declared(&'a Coordinate, u64),
    /// In fields of a variable.
    Fields(Arc<Vec<ReadField>>),
    /// In different fields at each step.
    Steps(Stepped<'a>),
}

/// Further keywords of a field, and its values.
type ReadField = (String, Arc<Coordinates>);

/// The fields of a variable, with their further keywords.
#[derive(Default)]
struct FieldsOf {
    /// The fields without a step, read.
    whole: Arc<Vec<ReadField>>,
    /// The fields of each step.
    steps: Arc<FieldsBySteps>,
}

type FieldsBySteps = BTreeMap<i64, Vec<(String, Field)>>;

/// Ranges whose coordinates share dimensions, with the extents of these.
struct Together<'m, 'a> {
    dims: Vec<usize>,
    extents: Vec<i64>,
    members: Vec<(&'m GridAxis<'a>, (f64, f64))>,
}

/// One query on the variables of a run.
pub struct RunGrids<'a> {
    known: &'a KnownGrids,
    fields: &'a dyn FieldAccess,
    run: &'a RunName,
    by_name: HashMap<&'a str, &'a VariableDecl>,
    /// By requested name: the variables with that name.
    called: HashMap<&'a str, Vec<&'a VariableDecl>>,
    /// Coordinates by the variable that has them.
    read: HashMap<&'a VariableName, Arc<FieldsOf>>,
    /// The dimension along which each variable of a file is split; `None` until it is needed.
    leading: Option<HashMap<String, String>>,
}

impl KnownGrids {
    /// The regions of the grids of a run's variables that lie in ranges; see
    /// [`PointSource::grids`](fieldstone_catalog::engine::PointSource::grids).
    pub fn regions<'a>(
        &'a self,
        fields: &'a dyn FieldAccess,
        run: &'a RunName,
        variables: &'a [VariableRow],
        asked: &[bool],
        ranges: &'a [CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        let mut by_name: HashMap<&str, &VariableDecl> = HashMap::new();
        for row in variables {
            by_name.entry(&row.decl.variable.name).or_insert(&row.decl);
        }
        let (called, read) = (HashMap::new(), HashMap::new());
        let mut of_run = RunGrids { known: self, fields, run, by_name, called, read, leading: None };
        for (name, ..) in ranges {
            let is_called = |row: &&VariableRow| of_run.described(&row.decl.variable.name).is_called(name);
            let mut all: Vec<&VariableDecl> =
                variables.iter().filter(is_called).map(|row| &row.decl).collect();
            all.sort_by(|a, b| a.variable.cmp(&b.variable));
            of_run.called.insert(name, all);
        }
        let both = variables.iter().zip(asked);
        both.map(|(row, asked)| if *asked { of_run.region(&row.decl, ranges) } else { Ok(None) }).collect()
    }
}

impl<'a> RunGrids<'a> {
    fn region(
        &mut self,
        variable: &'a VariableDecl,
        ranges: &[CoordinateRange],
    ) -> Result<Option<GridRegion>> {
        let Some(shape) = &variable.shape else { return Ok(None) };
        let extents: Vec<i64> = shape.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect();
        let mut axes = Vec::with_capacity(ranges.len());
        for (name, ..) in ranges {
            axes.push(self.axis(variable, name)?);
        }
        let decided: Vec<bool> = axes.iter().map(Option::is_some).collect();
        if !decided.contains(&true) {
            return Ok(None);
        }
        // Ranges whose coordinates share a dimension are matched together.
        let mut groups: Vec<(BTreeSet<usize>, Vec<usize>)> = Vec::new();
        for (at, axis) in axes.iter().enumerate() {
            let Some(axis) = axis else { continue };
            let mut merged = (axis.dims.iter().copied().collect::<BTreeSet<_>>(), vec![at]);
            let (with, apart): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|(dims, _)| !dims.is_disjoint(&merged.0));
            with.into_iter().for_each(|(dims, members)| {
                merged.0.extend(dims);
                merged.1.extend(members);
            });
            groups = apart;
            groups.push(merged);
        }
        let (mut sets, mut moving) = (Vec::with_capacity(groups.len()), Vec::new());
        for (dims, members) in groups {
            let dims: Vec<usize> = dims.into_iter().collect();
            let extents: Vec<i64> = dims.iter().filter_map(|dim| extents.get(*dim).copied()).collect();
            let members: Vec<(&GridAxis<'_>, (f64, f64))> = members
                .iter()
                .filter_map(|at| Some((axes.get(*at)?.as_ref()?, ranges.get(*at)?)))
                .map(|(axis, (_, low, high))| (axis, (*low, *high)))
                .collect();
            match members.iter().any(|(axis, _)| matches!(axis.values, CoordinateSource::Steps(_))) {
                true => moving.push(Together { dims, extents, members }),
                false => sets.push(self.elements(&dims, &extents, &members)?),
            }
        }
        match moving.is_empty() {
            true => Ok(Some(GridRegion { decided, sets, steps: None })),
            false => Ok(Some(self.moving(decided, sets, &moving)?)),
        }
    }

    /// The coordinate of a variable with this name.
    fn axis(&mut self, variable: &'a VariableDecl, name: &str) -> Result<Option<GridAxis<'a>>> {
        for (dim, coordinate) in &variable.coords {
            let dim = usize::try_from(*dim).unwrap_or(usize::MAX);
            let Some(own) = variable.dims.get(dim).filter(|own| !own.is_empty()) else { continue };
            let Some(extent) = variable.shape.as_ref().and_then(|shape| shape.get(dim)) else { continue };
            let beside = self.beside(&variable.variable.name, own);
            let axis = self.described(beside.map_or(own, |beside| &beside.variable.name));
            if axis.is_called(name) && is_mapped(coordinate, *extent) {
                let values = CoordinateSource::Declared(coordinate, *extent);
                return Ok(Some(GridAxis { axis, dims: vec![dim], values }));
            }
        }
        if let Some(Value::Text(grid)) = attr(variable, GRID)
            && let Some(axis) = self.of_grib(variable, grid, name)?
        {
            return Ok(Some(axis));
        }
        let named = attr(variable, "coordinates");
        let words = match named {
            Some(Value::Text(text)) => text.split_whitespace().collect(),
            _ => Vec::new(),
        };
        let own = variable.variable.name.as_str();
        let mut candidates: Vec<&'a VariableDecl> =
            words.into_iter().filter_map(|word| self.beside(own, word)).collect();
        candidates.retain(|other| self.described(&other.variable.name).is_called(name));
        // For files that name none; the nearest first, then by name, so that the answer is always the same.
        let mut others: Vec<&'a VariableDecl> =
            self.called.get(name).into_iter().flatten().copied().collect();
        others.retain(|other| is_on_level_of(own, &other.variable.name));
        others.sort_by_key(|other| groups_between(own, &other.variable.name));
        candidates.extend(others);
        for other in candidates.into_iter().filter(|other| other.variable.name != own) {
            let found = match common_dims(other, variable) {
                Some(dims) => {
                    let fields = self.whole_fields(other)?;
                    match fields.is_empty() {
                        false => Some((dims, CoordinateSource::Fields(fields))),
                        true => self.of_steps(other, variable)?.map(|steps| (dims, steps)),
                    }
                }
                None => self.slices(other, variable)?,
            };
            if let Some((dims, values)) = found {
                let axis = self.described(&other.variable.name);
                return Ok(Some(GridAxis { axis, dims, values }));
            }
        }
        Ok(None)
    }

    /// The latitudes or longitudes of the points of a GRIB grid.
    fn of_grib(&self, variable: &VariableDecl, grid: &str, name: &str) -> Result<Option<GridAxis<'a>>> {
        let axes = [("latitude", "degrees_north"), ("longitude", "degrees_east")]
            .map(|(name, units)| CoordinateAxis::new(name, name, units));
        let Some(which) = axes.iter().position(|axis| axis.is_called(name)) else { return Ok(None) };
        let key = |which: usize| CoordinateKey::Grid(grid.to_owned(), which);
        if self.known.coordinates.find(&key(which)).is_none() {
            let Some(request) = self.request_for(&variable.variable.name) else { return Ok(None) };
            // A grid without points, such as a spectral one, is cached, too, so that it is not looked up again.
            let Some(points) = points_of(self.fields, &request, grid)? else { return Ok(None) };
            for (which, values) in points.into_iter().enumerate() {
                let bytes = 8 * values.len();
                self.known.coordinates.keep(key(which), Arc::new(Coordinates::new(values)), bytes);
            }
        }
        let dims = (0..variable.shape.as_ref().map_or(0, Vec::len)).collect();
        let [latitude, longitude] = axes;
        let axis = if which == 0 { latitude } else { longitude };
        let values = self.known.coordinates.find(&key(which)).filter(|known| !known.values.is_empty());
        Ok(values.map(|values| GridAxis {
            axis,
            dims,
            values: CoordinateSource::Fields(Arc::new(vec![(String::new(), values)])),
        }))
    }

    /// A request for the fields of a variable.
    fn request_for(&self, variable: &str) -> Option<Request> {
        let schema = self.fields.schema();
        let role = schema.roles_of_run(&self.run.project, &self.run.name).ok()?.variable.clone()?;
        let mut request = Request::new();
        for (keyword, value) in schema.pairs_of(&self.run.project, &self.run.name).ok()? {
            request.set(&*keyword, Values::list([value]));
        }
        request.set(&*role, Values::list([variable]));
        Some(request)
    }

    /// The variable that a name means next to another one: in its group, or in an enclosing one.
    fn beside(&self, own: &str, word: &str) -> Option<&'a VariableDecl> {
        let mut group = own;
        loop {
            group = group.rsplit_once('/').map_or("", |(outer, _)| outer);
            let path = if group.is_empty() { word.to_owned() } else { format!("{group}/{word}") };
            if let Some(found) = self.by_name.get(path.as_str()) {
                return Some(found);
            }
            if group.is_empty() {
                return None;
            }
        }
    }

    /// The kind of the coordinate of a name, by the attributes of the variable with that name.
    fn described(&self, path: &str) -> CoordinateAxis {
        let decl = self.by_name.get(path);
        let text = |name: &str| match decl.and_then(|decl| attr(decl, name)) {
            Some(Value::Text(text)) => text.trim(),
            _ => "",
        };
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        CoordinateAxis::new(name, text("standard_name"), text("units"))
    }

    /// The values of a variable's fields without a step; none if they are not numbers, or have another shape.
    fn whole_fields(&mut self, variable: &'a VariableDecl) -> Result<Arc<Vec<ReadField>>> {
        Ok(self.fields_of(variable)?.whole.clone())
    }

    /// The fields of a variable by their steps.
    fn stepped_fields(&mut self, variable: &'a VariableDecl) -> Result<Arc<FieldsBySteps>> {
        Ok(self.fields_of(variable)?.steps.clone())
    }

    fn fields_of(&mut self, variable: &'a VariableDecl) -> Result<Arc<FieldsOf>> {
        if let Some(read) = self.read.get(&variable.variable) {
            return Ok(read.clone());
        }
        let schema = self.fields.schema();
        let roles = schema.roles_of_run(&self.run.project, &self.run.name).cloned().unwrap_or_default();
        let (mut fields, mut steps) = (Vec::new(), FieldsBySteps::new());
        if let Some(request) = self.request_for(&variable.variable.name) {
            let all = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
            for field in self.fields.retrieve(&request, &all)?.iter() {
                let field = field?;
                let key = field.key()?;
                let step = roles.step.as_deref().and_then(|step| key.get(step));
                if field.shape()? != variable.shape {
                    continue;
                }
                let known = |name: &str| {
                    let mut named =
                        roles.run.iter().chain(&roles.variable).chain(&roles.project).chain(&roles.step);
                    named.any(|keyword| **keyword == *name)
                };
                let others: Vec<String> = key
                    .iter()
                    .filter(|(name, value)| !known(name) && !value.is_absent())
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                match step.map(|step| step.text().parse()) {
                    None => fields.push((others.join(","), field)),
                    Some(Ok(step)) => steps.entry(step).or_default().push((others.join(","), field)),
                    Some(Err(_)) => {}
                }
            }
        }
        let whole = Arc::new(self.read_all(variable, &fields)?);
        let found = Arc::new(FieldsOf { whole, steps: Arc::new(steps) });
        self.read.insert(&variable.variable, found.clone());
        Ok(found)
    }

    /// The values of fields of one variable.
    fn read_all(&self, variable: &VariableDecl, fields: &[(String, Field)]) -> Result<Vec<ReadField>> {
        let mut found = Vec::new();
        for (others, field) in fields {
            let values = self.coordinates(variable, field, fields.len() > 1)?;
            found.extend(values.map(|values| (others.clone(), values)));
        }
        Ok(found)
    }

    /// The values of a field; if the variable has several, each with the packing of its own file.
    fn coordinates(
        &self,
        variable: &VariableDecl,
        field: &Field,
        several: bool,
    ) -> Result<Option<Arc<Coordinates>>> {
        let Some(dtype) = field.dtype()? else { return Ok(None) };
        let (id, version) = (field.id(), variable.variable.version);
        let key = CoordinateKey::Field { key: id.key.to_vec(), entry: id.entry, version };
        if let Some(known) = self.known.coordinates.find(&key) {
            return Ok(Some(known));
        }
        // An incomplete coordinate has no place yet.
        if !field.is_complete()? {
            return Ok(None);
        }
        let bytes = field.read()?;
        let own = if several { packing_of(self.fields, &field.key()?, dtype) } else { None };
        let packing = own.unwrap_or_else(|| Packing::of(dtype, |name| attr(variable, name)));
        let Ok(values) = packing.decode(dtype, &bytes) else { return Ok(None) };
        let values = Arc::new(Coordinates::new(values));
        self.known.coordinates.keep(key, values.clone(), 8 * values.values.len());
        Ok(Some(values))
    }

    /// The elements along dimensions whose coordinates lie in all ranges.
    fn elements(
        &self,
        dims: &[usize],
        extents: &[i64],
        members: &[(&GridAxis<'_>, (f64, f64))],
    ) -> Result<PointSet> {
        // Fields with equal further keywords belong together.
        let first = members.iter().find_map(|(axis, _)| match &axis.values {
            CoordinateSource::Fields(fields) => Some(fields.clone()),
            CoordinateSource::Declared(..) | CoordinateSource::Steps(_) => None,
        });
        let alternatives: Vec<Option<&str>> = match &first {
            None => vec![None],
            Some(fields) => fields.iter().map(|(others, _)| Some(others.as_str())).collect(),
        };
        let mut all: Option<PointSet> = None;
        for others in alternatives {
            let values = members.iter().map(|(axis, range)| {
                let values = match &axis.values {
                    CoordinateSource::Declared(coordinate, extent) => {
                        AxisValues::Declared(coordinate, *extent)
                    }
                    // Coordinates that vary by step were turned into fields of one step.
                    CoordinateSource::Steps(_) => return None,
                    CoordinateSource::Fields(fields) => {
                        let own = fields.iter().find(|(own, _)| Some(own.as_str()) == others);
                        AxisValues::Read(&own.or(fields.first().filter(|_| fields.len() == 1))?.1)
                    }
                };
                Some((*axis, *range, values))
            });
            let Some(values) = values.collect::<Option<Vec<_>>>() else { continue };
            let found = self.known.elements_of(dims, extents, &values)?;
            all = Some(match all {
                None => (*found).clone(),
                Some(all) => {
                    let both: BTreeSet<i64> =
                        all.elements.iter().chain(found.elements.iter()).copied().collect();
                    PointSet::new(all.dims, all.extents, both.into_iter().collect())
                }
            });
        }
        Ok(all.unwrap_or_else(|| PointSet::new(dims.to_vec(), extents.to_vec(), Arc::from([]))))
    }
}

/// The values of one coordinate.
#[derive(Clone, Copy)]
enum AxisValues<'v> {
    Declared(&'v Coordinate, u64),
    Read(&'v Coordinates),
}

impl AxisValues<'_> {
    /// Adds the identity of the values.
    fn hash(&self, hasher: &mut Xxh3Default) {
        match self {
            AxisValues::Declared(Coordinate::Uniform { first, spacing }, extent) => {
                (0u8, first.to_bits(), spacing.to_bits(), extent).hash(hasher);
            }
            AxisValues::Declared(Coordinate::Rectilinear(values), _) => {
                1u8.hash(hasher);
                values.iter().for_each(|value| hasher.write(&value.to_le_bytes()));
            }
            AxisValues::Declared(Coordinate::Other(name), _) => (2u8, name).hash(hasher),
            AxisValues::Read(values) => (3u8, values.digest).hash(hasher),
        }
    }

    fn get(&self) -> Cow<'_, [f64]> {
        match self {
            AxisValues::Declared(Coordinate::Uniform { first, spacing }, extent) => {
                (0..*extent).map(|i| first + i as f64 * spacing).collect::<Vec<_>>().into()
            }
            AxisValues::Declared(Coordinate::Rectilinear(values), _) => values.into(),
            AxisValues::Declared(Coordinate::Other(_), _) => Cow::Borrowed(&[]),
            AxisValues::Read(values) => (&values.values).into(),
        }
    }
}

type Ranged<'v> = (&'v GridAxis<'v>, (f64, f64), AxisValues<'v>);

impl KnownGrids {
    fn elements_of(&self, dims: &[usize], extents: &[i64], members: &[Ranged<'_>]) -> Result<Arc<PointSet>> {
        let mut hasher = Xxh3Default::new();
        (dims, extents).hash(&mut hasher);
        for (axis, (low, high), values) in members {
            let circular = (axis.axis.is_longitude(), axis.axis.is_in_radians());
            (&axis.dims, circular, low.to_bits(), high.to_bits()).hash(&mut hasher);
            values.hash(&mut hasher);
        }
        let key = hasher.digest128();
        if let Some(known) = self.elements.find(&key) {
            return Ok(known);
        }
        let points = extents.iter().fold(1i64, |all, extent| all.saturating_mul(*extent));
        if points > MOST_POINTS {
            return Err(Code::Shape
                .error(format!("a grid of {points} points is too large to search by coordinates"))
                .with_hint("give element ranges, as in box=z:50:100"));
        }
        // For each coordinate: the elements in its range, and the stride of its index along each dimension.
        let masks: Vec<(Vec<bool>, Vec<usize>)> = members
            .iter()
            .map(|(axis, range, values)| {
                let mask = axis.axis.within(*range, &values.get());
                let stride = |dim: &usize| {
                    let place = axis.dims.iter().position(|own| own == dim)?;
                    let inner = axis.dims.iter().skip(place + 1);
                    let extent =
                        |own: &usize| dims.iter().position(|d| d == own).and_then(|at| extents.get(at));
                    Some(inner.filter_map(extent).fold(1, |all, n| all * usize::try_from(*n).unwrap_or(1)))
                };
                (mask, dims.iter().map(|dim| stride(dim).unwrap_or(0)).collect())
            })
            .collect();
        let lies_in = |element: &i64| {
            let mut rest = *element;
            let mut at = vec![0usize; extents.len()];
            for (at, extent) in at.iter_mut().zip(extents).rev() {
                *at = usize::try_from(rest % extent).unwrap_or(0);
                rest /= extent;
            }
            masks.iter().all(|(mask, strides)| {
                let own: usize = at.iter().zip(strides).map(|(at, stride)| at * stride).sum();
                mask.get(own) == Some(&true)
            })
        };
        let elements: Arc<[i64]> = (0..points).filter(lies_in).collect();
        let bytes = 8 * elements.len();
        let found = Arc::new(PointSet::new(dims.to_vec(), extents.to_vec(), elements));
        self.elements.keep(key, found.clone(), bytes);
        Ok(found)
    }
}

/// By how many groups another variable lies further out; the maximum if its group does not enclose the own one.
fn groups_between(own: &str, other: &str) -> usize {
    let group = |name: &str| name.rsplit_once('/').map_or(0, |(group, _)| group.len() + 1);
    match own.get(..group(other)) {
        Some(around) if other.starts_with(around) => {
            own.bytes().skip(group(other)).filter(|b| *b == b'/').count()
        }
        _ => usize::MAX,
    }
}

/// Whether another variable is on the own level of an adaptive mesh, or on none.
fn is_on_level_of(own: &str, other: &str) -> bool {
    let level = |name| amr::split(name).map(|(level, _)| level);
    level(other).is_none_or(|other| level(own) == Some(other))
}

fn attr<'d>(decl: &'d VariableDecl, name: &str) -> Option<&'d Value> {
    decl.attrs.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Whether a coordinate has a value for each element of a dimension.
fn is_mapped(coordinate: &Coordinate, extent: u64) -> bool {
    match coordinate {
        Coordinate::Uniform { .. } => i64::try_from(extent).is_ok_and(|extent| extent <= MOST_POINTS),
        Coordinate::Rectilinear(values) => values.len() as u64 == extent,
        Coordinate::Other(_) => false,
    }
}

/// The dimensions of a variable along which a coordinate lies, if it has no others and the same extents.
fn common_dims(coordinate: &VariableDecl, variable: &VariableDecl) -> Option<Vec<usize>> {
    let (shape, own) = (coordinate.shape.as_ref()?, variable.shape.as_ref()?);
    if coordinate.dims.len() != shape.len() {
        return None;
    }
    let place = |(dim, extent): (&String, &u64)| {
        let at = variable.dims.iter().position(|name| name == dim)?;
        (own.get(at) == Some(extent)).then_some(at)
    };
    coordinate.dims.iter().zip(shape).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_of_the_own_group_are_the_nearest() {
        let own = "level_1/gas/rho";
        let others = ["level_1/gas/x", "level_1/x", "x", "level_1/dust/x", "ocean/x", "level_1/gas/b/x"];
        assert_eq!(
            others.map(|other| groups_between(own, other)),
            [0, 1, 2, usize::MAX, usize::MAX, usize::MAX]
        );
        assert_eq!(others.map(|other| groups_between("rho", other))[2], 0);
        for (own, other, is) in [
            ("level_1/rho", "level_1/x", true),
            ("level_1/rho", "level_0/x", false),
            ("level_1/rho", "x", true),
            ("rho", "level_0/x", false),
            ("ocean/rho", "land/x", true),
        ] {
            assert_eq!(is_on_level_of(own, other), is, "{own} and {other}");
        }
    }
}
