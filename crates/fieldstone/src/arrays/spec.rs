//! The declaration of a group, its record in the catalog, and the layout of its files.

use std::fmt::Write;

use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::sets::{SetDecl, check_attr};
use fieldstone_array::distributed::group::GroupSpec;
use fieldstone_array::distributed::plan::Method;
use fieldstone_core::compression::Compression;
use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, MeshLocation, StorageOrder, VariableDecl, VariableName,
};
use fieldstone_format::netcdf::Attrs;

use super::attributes::netcdf_attrs;

/// The level of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LevelChoice {
    /// As declared before, else the level that pays.
    #[default]
    Auto,
    /// This one.
    Is(Level),
}

impl LevelChoice {
    /// Level 1, 2 or 3.
    ///
    /// Errors: `Invalid` for another number.
    pub fn number(level: u64) -> Result<LevelChoice> {
        Level::from_number(level).map(LevelChoice::Is).ok_or_else(|| {
            Code::Option
                .error(format!("{level} is not a level of a group"))
                .with_hint("1: a file per set and step; 2: a file per set; 3: a file per group; or \"auto\"")
        })
    }
}

/// A set of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct SetOptions {
    /// Its name: the variable of the run.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Global extents; the first may be `None`: it varies by step, as the sum of the ranks' parts.
    pub shape: Vec<Option<u64>>,
    /// Names of its dimensions, or nothing; an absent name derives from the extent.
    pub dims: Vec<Option<String>>,
    /// Attributes.
    pub attrs: Vec<(String, Value)>,
    /// The fill of unwritten elements: the bytes of one element, in this machine's byte order.
    pub fill: Option<Vec<u8>>,
}

impl SetOptions {
    /// A set of elements of a type, of this shape.
    pub fn new(name: &str, dtype: DType, shape: &[u64]) -> SetOptions {
        SetOptions {
            name: name.to_owned(),
            dtype,
            shape: shape.iter().map(|len| Some(*len)).collect(),
            dims: Vec::new(),
            attrs: Vec::new(),
            fill: None,
        }
    }

    /// Names of its dimensions.
    pub fn dims<'d>(mut self, dims: impl IntoIterator<Item = &'d str>) -> SetOptions {
        self.dims = dims.into_iter().map(|dim| Some(dim.to_owned())).collect();
        self
    }

    /// One more attribute.
    pub fn attr(mut self, name: &str, value: impl Into<Value>) -> SetOptions {
        self.attrs.push((name.to_owned(), value.into()));
        self
    }
}

/// Declaration of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupOptions {
    /// Its sets.
    pub sets: Vec<SetOptions>,
    /// How its steps are spread over files.
    pub level: LevelChoice,
    /// How elements reach the files.
    pub method: Method,
    /// The order of an array's elements in a file.
    pub order: StorageOrder,
    /// Attributes of all its sets, and of its files; a set's own attribute takes precedence.
    pub attrs: Vec<(String, Value)>,
    /// The mesh of the values, by name: sets take their first extent from it.
    pub mesh: Option<String>,
    /// The mesh's location that has the values.
    pub location: Option<MeshLocation>,
    /// Extents of chunks, if arrays are in the store's logs.
    pub chunks: Option<Vec<u64>>,
    /// Compression of the chunks: `none`, `zstd` or `zstd:LEVEL`; if absent, the store's.
    pub compression: Option<String>,
    /// Hints for opening its files, besides the job's. The catalog does not keep them: each job gives its own.
    pub hints: Hints,
}

impl GroupOptions {
    /// A group of these sets, with default options.
    pub fn new(sets: impl IntoIterator<Item = SetOptions>) -> GroupOptions {
        GroupOptions {
            sets: sets.into_iter().collect(),
            level: LevelChoice::Auto,
            method: Method::Auto,
            order: StorageOrder::C,
            attrs: Vec::new(),
            mesh: None,
            location: None,
            chunks: None,
            compression: None,
            hints: Hints::default(),
        }
    }

    /// All options that must be equal on all ranks, one line for each part.
    pub(super) fn lines(&self, name: &str) -> String {
        let mut text = format!("declares group {name}");
        let GroupOptions { sets, level, method, order, attrs, mesh, location, chunks, compression, hints } =
            self;
        let _ = write!(text, "\ndeclares group {name} on mesh {mesh:?}, location {location:?}");
        let _ = write!(text, "\ndeclares group {name} with level {level:?}, method {}, ", method.word());
        let _ = write!(text, "order {}, {} sets and attrs {attrs:?}", order.name(), sets.len());
        let _ = write!(text, "\ndeclares group {name} with chunks {chunks:?}, compression {compression:?}");
        let _ = write!(text, "\ndeclares group {name} with hints {hints}");
        for set in sets {
            let SetOptions { name, dtype, shape, dims, attrs, fill } = set;
            let shape: Vec<String> = shape.iter().map(extent).collect();
            let _ =
                write!(text, "\ndeclares set {name} of {} and shape ({})", dtype.name(), shape.join(", "));
            let _ = write!(text, "\ndeclares set {name} with dims {dims:?}, attrs {attrs:?}, fill {fill:?}");
        }
        text
    }

    /// Its record in the catalog.
    pub(super) fn record(&self, name: &str, level: Level, layout: ArrayLayout) -> Result<ArrayGroup> {
        let sets = self.sets.iter().map(SetOptions::record).collect::<Result<_>>()?;
        match layout {
            ArrayLayout::Files => self.check_for_files()?,
            ArrayLayout::Fields => self.check_for_fields()?,
        }
        Ok(ArrayGroup {
            name: name.to_owned(),
            level: level.number() as u8,
            layout,
            method: self.method.word().to_owned(),
            order: self.order,
            mesh: self.mesh.clone(),
            location: self.location,
            chunks: self.chunks.clone(),
            compression: self.compression.clone(),
            attrs: self.attrs.clone(),
            sets,
        })
    }

    fn check_for_files(&self) -> Result<()> {
        for (attr, _) in &self.attrs {
            check_attr(attr)?;
        }
        for set in &self.sets {
            let checked = set.attrs.iter().try_for_each(|(attr, _)| check_attr(attr));
            checked.map_err(|error| error.context(format_args!("set {}", set.name)))?;
        }
        match (&self.chunks, &self.compression) {
            (None, None) => Ok(()),
            _ => Err(Code::Option
                .error("netCDF's classic files have neither chunks nor compression")
                .with_hint("open the job with layout=\"fields\"")),
        }
    }

    fn check_for_fields(&self) -> Result<()> {
        if self.method == Method::View {
            return Err(Code::Option
                .error(
                    "method \"view\" is an MPI-IO call on a file, but the arrays of this job are not in files",
                )
                .with_hint("give auto, direct or exchange"));
        }
        if let LevelChoice::Is(level) = self.level {
            return Err(Code::Option
                .error(format!("level {} for a group whose arrays are not in files", level.number()))
                .with_hint("leave it out, or open the job with layout=\"files\""));
        }
        if let Some(compression) = &self.compression {
            Compression::parse(compression)?;
        }
        let Some(chunks) = &self.chunks else { return Ok(()) };
        match self.sets.iter().find(|set| set.shape.len() != chunks.len() || chunks.contains(&0)) {
            None => Ok(()),
            Some(set) => Err(Code::ShapeMismatch
                .error(format!("chunks {chunks:?} for set {} of {} dimensions", set.name, set.shape.len()))
                .with_hint(
                    "give each dimension an extent of at least 1; put sets of other dimensions into another group",
                )),
        }
    }
}

fn extent(len: &Option<u64>) -> String {
    len.map_or("None".to_owned(), |len| len.to_string())
}

impl SetOptions {
    fn record(&self) -> Result<ArraySet> {
        let dims: Vec<String> = self.dims.iter().map(|dim| dim.clone().unwrap_or_default()).collect();
        if !dims.is_empty() && dims.len() != self.shape.len() {
            return Err(Code::ShapeMismatch
                .error(format!(
                    "set {} has {} names of dimensions for {} extents",
                    self.name,
                    dims.len(),
                    self.shape.len()
                ))
                .with_hint("give each dimension a name, or none of them"));
        }
        let fill = self.fill.as_deref().map(|bytes| fill_value(self.dtype, bytes));
        Ok(ArraySet {
            variable: VariableName { name: self.name.clone(), version: 0 },
            dtype: self.dtype.to_native(),
            shape: self.shape.clone(),
            dims,
            fill: fill.transpose().map_err(|error| error.context(format_args!("set {}", self.name)))?,
            attrs: self.attrs.clone(),
            pattern: BasicPattern::Regular,
            view: String::new(),
        })
    }
}

/// The attributes of a set: its group's and its own, which take precedence.
pub(super) fn shared_attrs(group: &[(String, Value)], own: &[(String, Value)]) -> Vec<(String, Value)> {
    let is_shared = |(name, _): &&(String, Value)| own.iter().all(|(other, _)| other != name);
    group.iter().filter(is_shared).chain(own).cloned().collect()
}

/// Settles the attributes of a set that is declared again: an omitted attribute keeps its value. Earlier releases
/// declared sets without the attributes of their group: such a set stays unchanged.
pub(super) fn take_attrs(set: &mut ArraySet, group: &[(String, Value)], known: &ArraySet) {
    let is_known =
        set.attrs.len() == known.attrs.len() && set.attrs.iter().all(|one| known.attrs.contains(one));
    set.attrs = match set.attrs.is_empty() || is_known {
        true => known.attrs.clone(),
        false => shared_attrs(group, &set.attrs),
    };
}

/// One element as a value of the catalog. A type without such a value is kept as bytes, little-endian.
fn fill_value(dtype: DType, bytes: &[u8]) -> Result<Value> {
    if bytes.len() != dtype.size() {
        let (given, size) = (bytes.len(), dtype.size());
        return Err(Code::DtypeMismatch.error(format!("the fill has {given} bytes, an element {size}")));
    }
    let mut wide = [0; 8];
    let word = bytes.len().min(8);
    let mut little = bytes.to_vec();
    if cfg!(target_endian = "big") {
        dtype.to_native().swap_bytes(&mut little);
    }
    wide[..word].copy_from_slice(&little[..word]);
    let bits = u64::from_le_bytes(wide);
    Ok(match (dtype.kind(), dtype.size()) {
        (DTypeKind::Bool, _) => Value::Bool(bits != 0),
        (DTypeKind::UInt, _) => Value::UInt(bits),
        (DTypeKind::Int, size) => {
            let unused = 64 - 8 * size as u32;
            Value::Int((bits << unused) as i64 >> unused)
        }
        (DTypeKind::Float, 4) => Value::Float(f64::from(f32::from_bits(bits as u32))),
        (DTypeKind::Float, 8) => Value::Float(f64::from_bits(bits)),
        _ => Value::Bytes(little),
    })
}

/// The bytes of one element in this machine's order, from a value that [`fill_value`] made.
fn fill_bytes(dtype: DType, value: &Value) -> Option<Vec<u8>> {
    let mut little = match (value, dtype.size()) {
        (Value::Bool(b), _) => vec![u8::from(*b)],
        (Value::UInt(n), size) => n.to_le_bytes().get(..size)?.to_vec(),
        (Value::Int(n), size) => n.to_le_bytes().get(..size)?.to_vec(),
        (Value::Float(x), 4) => (*x as f32).to_le_bytes().to_vec(),
        (Value::Float(x), 8) => x.to_le_bytes().to_vec(),
        (Value::Bytes(bytes), _) => bytes.clone(),
        _ => return None,
    };
    if cfg!(target_endian = "big") {
        dtype.to_native().swap_bytes(&mut little);
    }
    Some(little).filter(|bytes| bytes.len() == dtype.size())
}

/// The layout of a group's files, from the catalog. If the first dimension varies fastest, files have the dimensions in
/// reverse, as with netCDF's Fortran interface.
pub(super) fn files_of(group: &ArrayGroup) -> Result<GroupSpec> {
    let level = Level::from_number(group.level.into())
        .ok_or_else(|| Error::corrupt(format!("group {} has level {}", group.name, group.level)))?;
    let sets: Vec<SetDecl> = group.sets.iter().map(|set| set_decl(set, group)).collect::<Result<_>>()?;
    let reversed = group.order == StorageOrder::Fortran;
    let name = group.name.clone();
    match group.layout {
        ArrayLayout::Files => {
            Ok(GroupSpec { name, level: Some(level), sets, attrs: netcdf_attrs(&group.attrs)?, reversed })
        }
        ArrayLayout::Fields => {
            sets.iter().try_for_each(|set| set.dims(set.is_varying().then_some(0)).map(drop))?;
            Ok(GroupSpec { name, level: None, sets, attrs: Attrs::default(), reversed })
        }
    }
}

fn set_decl(set: &ArraySet, group: &ArrayGroup) -> Result<SetDecl> {
    let order = group.order;
    let name = &set.variable.name;
    let fill =
        match &set.fill {
            Some(value) => Some(fill_bytes(set.dtype, value).ok_or_else(|| {
                Error::corrupt(format!("set {name} is declared with a fill of another type"))
            })?),
            None => None,
        };
    let named = |dim: &String| Some(dim.clone()).filter(|dim| !dim.is_empty());
    let mut dims: Vec<Option<String>> = set.dims.iter().map(named).collect();
    dims.resize(set.shape.len(), None);
    let mut shape = set.shape.clone();
    if order == StorageOrder::Fortran {
        if shape.first().is_some_and(Option::is_none) {
            return Err(Code::Shape
                .error(format!(
                    "set {name}: an unlimited extent must be the first one, which order F puts last in files"
                ))
                .with_hint("give it order=\"C\""));
        }
        shape.reverse();
        dims.reverse();
    }
    let attrs = match group.layout {
        ArrayLayout::Files => {
            netcdf_attrs(&set.attrs).map_err(|error| error.context(format_args!("set {name}")))?
        }
        ArrayLayout::Fields => Attrs::default(),
    };
    Ok(SetDecl { name: name.clone(), dtype: set.dtype, shape, dims, attrs, fill })
}

/// The run's variables for the sets of a group.
pub(super) fn variables_of(group: &ArrayGroup) -> Result<Vec<VariableDecl>> {
    let variable = |set: &ArraySet| {
        let decl = set_decl(set, group)?;
        let extent = decl.is_varying().then_some(0);
        let dims = match group.layout {
            ArrayLayout::Files => decl.variable(extent)?.dims,
            ArrayLayout::Fields => decl.dims(extent)?,
        };
        // Parts of complex numbers and bytes of strings are dimensions in the file, but not of the field.
        let dims = dims.into_iter().take(decl.shape.len()).map(|(name, _)| name).collect();
        Ok(VariableDecl {
            variable: set.variable.clone(),
            dtype: Some(set.dtype),
            shape: decl.shape.iter().copied().collect(),
            dims,
            attrs: set.attrs.clone(),
            coords: Vec::new(),
            decomposition: None,
            finders: None,
        })
    };
    group.sets.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_comes_back_from_the_catalog_as_it_was() {
        for (dtype, bytes) in [
            ("f8", f64::NAN.to_ne_bytes().to_vec()),
            ("f4", (-1.5f32).to_ne_bytes().to_vec()),
            ("i2", (-7i16).to_ne_bytes().to_vec()),
            ("u8", u64::MAX.to_ne_bytes().to_vec()),
            ("b1", vec![1]),
            ("c16", [2f64.to_ne_bytes(), 2f64.to_ne_bytes()].concat()),
            ("S3", b"abc".to_vec()),
        ] {
            let dtype = DType::parse(dtype).unwrap();
            let value = fill_value(dtype, &bytes).unwrap();
            assert_eq!(fill_bytes(dtype, &value), Some(bytes), "{dtype} {value:?}");
        }
        assert!(fill_value(DType::F8, &[0; 4]).is_err());
        assert_eq!(fill_bytes(DType::F8, &Value::Text("x".into())), None);
    }
}
