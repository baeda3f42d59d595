//! Sets of a group, and their form as netCDF variables.
//!
//! Types that CDF-5 lacks are written as types that it has (`spec/array-files.md`): bool as `byte`, complex numbers
//! with a last dimension `complex` of length two, fixed-size bytes as `char` with a last dimension. Dimensions
//! without names are named after their extents. Nothing is padded or converted to another value: data that cannot be
//! written exactly are refused.

use std::collections::BTreeMap;

use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::names::check_name;
use fieldstone_format::netcdf::{Attrs, NcType, paths};

/// Name of the dimension and the variable of steps.
pub const STEP: &str = "step";
/// Name of the dimension of the two parts of complex numbers.
const COMPLEX: &str = "complex";
const FILL: &str = "_FillValue";
/// The attribute with an element's original type, as xarray writes and reads it.
const DTYPE: &str = "dtype";

/// The declaration of a set in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetDecl {
    /// Its name: a netCDF name, or a path.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Global extents; the first may be `None` if it changes from step to step.
    pub shape: Vec<Option<u64>>,
    /// Names of its dimensions; those without a name are named after their extents.
    pub dims: Vec<Option<String>>,
    /// Attributes.
    pub attrs: Attrs,
    /// The value of unwritten elements: the bytes of one element, in this machine's byte order.
    pub fill: Option<Vec<u8>>,
}

/// A set as a variable of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: NcType,
    /// Names and lengths of its dimensions, without the one of steps.
    pub dims: Vec<(String, u64)>,
    /// Whether the first one is the record dimension of its file: its length varies, and may be 0.
    pub varies: bool,
    /// Attributes.
    pub attrs: Attrs,
    /// Bytes of one step.
    pub bytes: u64,
    /// Size of the bytes swapped together in the file: of one number.
    pub word: usize,
}

impl SetDecl {
    /// Whether its extent may change from step to step.
    pub fn is_varying(&self) -> bool {
        self.shape.first().is_some_and(Option::is_none)
    }

    /// Checks everything that does not depend on its extent. Errors name the set.
    pub fn check(&self) -> Result<()> {
        self.variable(self.is_varying().then_some(0)).map(|_| ())
    }

    /// Names and lengths of its dimensions if it is not in a file: any type, and extents of 0.
    pub fn dims(&self, extent: Option<u64>) -> Result<Vec<(String, u64)>> {
        let dims = self.extents(extent).and_then(|shape| named(&self.dims, &shape, self.is_varying(), true));
        dims.map_err(|error| error.context(format!("set `{}`", self.name)))
    }

    /// The variable that holds it; `extent` is the first extent, if that varies.
    pub fn variable(&self, extent: Option<u64>) -> Result<SetVariable> {
        self.as_variable(extent).map_err(|error| error.context(format!("set `{}`", self.name)))
    }

    fn as_variable(&self, extent: Option<u64>) -> Result<SetVariable> {
        paths::check_path(&self.name)?;
        if self.name == STEP {
            return Err(Code::Name
                .error(format!("`{STEP}` is the variable with the numbers of steps in each file"))
                .with_hint("choose another name"));
        }
        let shape = self.extents(extent)?;
        if self.dims.len() != shape.len() {
            let (dims, shape) = (self.dims.len(), shape.len());
            return Err(
                Code::ShapeMismatch.error(format!("{dims} names of dimensions for {shape} dimensions"))
            );
        }
        let (ty, last, attr) = external(self.dtype)?;
        let mut attrs = Attrs::default();
        for attr in self.attrs.iter() {
            check_name(attr.name)?;
            attrs.push(attr.name, attr.ty, attr.value);
        }
        for (name, value) in attr.iter().map(|value| (DTYPE, *value)) {
            if attrs.find(name).is_some() {
                return Err(taken(name));
            }
            attrs.push(name, NcType::Char, value.as_bytes());
        }
        if let Some(fill) = &self.fill {
            push_fill(&mut attrs, ty, self.dtype, fill)?;
        }
        let varies = self.is_varying();
        let mut dims = named(&self.dims, &shape, varies, false)?;
        dims.extend(last);
        let count = dims.iter().try_fold(1u64, |count, (_, len)| count.checked_mul(*len));
        let bytes =
            count.and_then(|count| count.checked_mul(ty.size() as u64)).filter(|n| *n <= i64::MAX as u64);
        let bytes = bytes.ok_or_else(|| Code::TooLarge.error("a step of it has more than 2^63 bytes"))?;
        Ok(SetVariable { name: self.name.clone(), ty, dims, varies, attrs, bytes, word: ty.size() })
    }

    fn extents(&self, extent: Option<u64>) -> Result<Vec<u64>> {
        let wrong = |text: &str| Err(Code::ShapeMismatch.error(text));
        if self.shape.iter().skip(1).any(Option::is_none) {
            return wrong("only the first extent may be left open");
        }
        match (self.shape.first(), extent) {
            (Some(None), Some(extent)) => {
                Ok([extent].into_iter().chain(self.shape.iter().skip(1).flatten().copied()).collect())
            }
            (Some(None), None) => wrong("its first extent is not known"),
            _ => Ok(self.shape.iter().flatten().copied().collect()),
        }
    }
}

/// Refuses an attribute that a set's type or fill writes.
///
/// Errors: `Invalid`, with the name of the attribute.
pub fn check_attr(name: &str) -> Result<()> {
    if [FILL, DTYPE].contains(&name) { Err(taken(name)) } else { Ok(()) }
}

fn taken(name: &str) -> Error {
    Code::Name
        .error(format!("the set's type and fill write the attribute `{name}`"))
        .with_hint("leave it out of attrs; fill= gives _FillValue")
}

/// The external type of elements, a last dimension, and the value of the attribute `dtype`.
type External = (NcType, Option<(String, u64)>, Option<&'static str>);

fn external(dtype: DType) -> Result<External> {
    let plain = |ty| Ok((ty, None, None));
    match (dtype.kind(), dtype.size()) {
        (DTypeKind::Bool, _) => Ok((NcType::Byte, None, Some("bool"))),
        (DTypeKind::Int, 1) => plain(NcType::Byte),
        (DTypeKind::Int, 2) => plain(NcType::Short),
        (DTypeKind::Int, 4) => plain(NcType::Int),
        (DTypeKind::Int, 8) => plain(NcType::Int64),
        (DTypeKind::UInt, 1) => plain(NcType::UByte),
        (DTypeKind::UInt, 2) => plain(NcType::UShort),
        (DTypeKind::UInt, 4) => plain(NcType::UInt),
        (DTypeKind::UInt, 8) => plain(NcType::UInt64),
        (DTypeKind::Float, 4) => plain(NcType::Float),
        (DTypeKind::Float, 8) => plain(NcType::Double),
        (DTypeKind::Complex, 8) => Ok((NcType::Float, Some((COMPLEX.into(), 2)), Some("complex64"))),
        (DTypeKind::Complex, 16) => Ok((NcType::Double, Some((COMPLEX.into(), 2)), Some("complex128"))),
        (DTypeKind::Bytes, 1) => plain(NcType::Char),
        (DTypeKind::Bytes, n) => Ok((NcType::Char, Some((format!("string{n}"), n as u64)), None)),
        _ => Err(Code::Dtype
            .error(format!("netCDF's CDF-5 has no type for elements of {}", dtype.name()))
            .with_hint("write another type, or use layout=\"fields\"")),
    }
}

fn push_fill(attrs: &mut Attrs, ty: NcType, dtype: DType, fill: &[u8]) -> Result<()> {
    if attrs.find(FILL).is_some() {
        return Err(taken(FILL));
    }
    if fill.len() != dtype.size() {
        let (given, size) = (fill.len(), dtype.size());
        return Err(Code::DtypeMismatch.error(format!("a fill of {given} bytes for elements of {size}")));
    }
    // A netCDF fill is one value, so both parts of a complex number must equal it.
    let value = &fill[..ty.size()];
    if fill.chunks(ty.size()).any(|part| part != value) {
        return Err(Code::Dtype
            .error("netCDF cannot represent a fill whose parts differ")
            .with_hint("give one whose parts are equal, such as NaN and NaN"));
    }
    let mut value = value.to_vec();
    if cfg!(target_endian = "little") {
        value.reverse();
    }
    attrs.push(FILL, ty, &value);
    Ok(())
}

/// The dimensions of one variable: with the given names, else `n64`, and `n64_2` for a second of 64; `n` for one that
/// varies. `empty`: extents may be 0.
fn named(given: &[Option<String>], shape: &[u64], varies: bool, empty: bool) -> Result<Vec<(String, u64)>> {
    let mut alike: BTreeMap<u64, u32> = BTreeMap::new();
    let mut dims: Vec<(String, u64)> = Vec::with_capacity(shape.len() + 1);
    for (i, (name, len)) in given.iter().zip(shape).enumerate() {
        if *len == 0 && !empty && !(varies && i == 0) {
            return Err(Code::Shape
                .error(format!("extent {i} is 0, which netCDF does not support"))
                .with_hint("leave the set out while it is empty, or give None as its first extent"));
        }
        let name = match name {
            None if varies && i == 0 => "n".to_owned(),
            Some(name) => {
                check_name(name)?;
                if name == STEP || dims.iter().any(|(other, _)| other == name) {
                    return Err(Code::Name
                        .error(format!(
                            "the dimension `{name}` cannot occur twice in a variable, or be that of the \
                             steps"
                        ))
                        .with_hint("give each dimension another name"));
                }
                name.clone()
            }
            None => {
                let nth = alike.entry(*len).and_modify(|n| *n += 1).or_insert(1);
                if *nth == 1 { format!("n{len}") } else { format!("n{len}_{nth}") }
            }
        };
        dims.push((name, *len));
    }
    Ok(dims)
}

/// Checks that sets can be in one file: no two sets of one name, and no dimension with two lengths.
pub fn check_together(sets: &[SetDecl]) -> Result<()> {
    let mut lens: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for (i, set) in sets.iter().enumerate() {
        if sets[..i].iter().any(|other| other.name == set.name) {
            return Err(Code::Name.error(format!("two sets are called `{}`", set.name)));
        }
        if set.is_varying() {
            set.check()?;
            continue;
        }
        for (dim, len) in set.variable(None)?.dims {
            let (first, of) = *lens.entry(dim.clone()).or_insert((len, &set.name));
            if first != len {
                return Err(Code::ShapeMismatch
                    .error(format!("dimension `{dim}` is {first} in set `{of}` and {len} in `{}`", set.name))
                    .with_hint("give dimensions of different lengths different names"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, dtype: &str, shape: &[u64]) -> SetDecl {
        SetDecl {
            name: name.into(),
            dtype: DType::parse(dtype).unwrap(),
            shape: shape.iter().map(|len| Some(*len)).collect(),
            dims: vec![None; shape.len()],
            attrs: Attrs::default(),
            fill: None,
        }
    }

    #[test]
    fn what_netcdf_has_no_type_for_becomes_what_it_has_or_is_refused() {
        let shown = |dtype: &str| {
            let variable = set("a", dtype, &[4, 4]).variable(None).unwrap();
            let dims: Vec<String> = variable.dims.iter().map(|(name, len)| format!("{name}={len}")).collect();
            let said =
                variable.attrs.find("dtype").map(|attr| String::from_utf8_lossy(attr.value).into_owned());
            (variable.ty.name(), dims.join(" "), said, variable.bytes)
        };
        assert_eq!(shown("<f8"), ("double", "n4=4 n4_2=4".into(), None, 128));
        assert_eq!(shown("|b1"), ("byte", "n4=4 n4_2=4".into(), Some("bool".into()), 16));
        assert_eq!(shown("<c8"), ("float", "n4=4 n4_2=4 complex=2".into(), Some("complex64".into()), 128));
        assert_eq!(shown("|S3"), ("char", "n4=4 n4_2=4 string3=3".into(), None, 48));
        for dtype in ["<f2", "<U3", "<M8[ns]"] {
            let error = set("a", dtype, &[4]).check().unwrap_err();
            assert!(error.message().contains("set `a`: netCDF's CDF-5 has no type"), "{}", error.message());
        }
    }

    #[test]
    fn a_fill_is_an_attribute_of_the_files_type_and_order() {
        let mut decl = set("a", "<c16", &[2]);
        decl.fill = Some([1.5f64.to_ne_bytes(), 1.5f64.to_ne_bytes()].concat());
        let fill = decl.variable(None).unwrap().attrs.find(FILL).map(|attr| attr.value.to_vec());
        assert_eq!(fill, Some(1.5f64.to_be_bytes().to_vec()));
        decl.fill = Some([1.5f64.to_ne_bytes(), 2.5f64.to_ne_bytes()].concat());
        assert!(decl.variable(None).unwrap_err().message().contains("parts differ"));
        decl.fill = Some(vec![0; 3]);
        assert!(decl.variable(None).unwrap_err().message().contains("a fill of 3 bytes for elements of 16"));
    }

    #[test]
    fn names_and_extents_that_no_file_can_hold_are_refused() {
        let says = |sets: &[SetDecl]| check_together(sets).unwrap_err().message().to_owned();
        let mut other = set("b", "<f4", &[5]);
        (other.dims[0], other.attrs) = (Some("x".into()), Attrs::default());
        let mut first = set("a", "<f4", &[4]);
        first.dims[0] = Some("x".into());
        assert!(says(&[first.clone(), other]).contains("dimension `x` is 4 in set `a` and 5 in `b`"));
        assert!(says(&[first.clone(), first.clone()]).contains("two sets are called `a`"));
        assert!(says(&[set("step", "<f4", &[4])]).contains("numbers of steps"));
        assert!(says(&[set("a/", "<f4", &[4])]).contains("empty part"));
        first.dims[0] = Some(STEP.into());
        assert!(says(&[first.clone()]).contains("dimension `step`"));
        first.dims.clear();
        assert!(says(&[first]).contains("0 names of dimensions for 1"));
        assert!(says(&[set("a", "<f8", &[u64::MAX, 2])]).contains("more than 2^63 bytes"));
        let mut open = set("a", "<f8", &[3, 2]);
        open.shape[1] = None;
        assert!(says(&[open]).contains("only the first extent"));
        let mut varying = set("a", "<f8", &[3, 2]);
        varying.shape[0] = None;
        check_together(std::slice::from_ref(&varying)).unwrap();
        assert_eq!(varying.variable(Some(7)).unwrap().bytes, 7 * 2 * 8);
    }
}
