//! A variable of an open container: its properties, and the transfer of its elements to and from numpy arrays.

use std::sync::{Arc, Mutex, PoisonError};

use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone::container::{Container, NcType, Selection, VarInfo, VarRef};
use fieldstone::{Code, DType, Error, Result};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::data::{Data, NewArray, Target};
use crate::errors::{Raise, code_of, exception, invalid};
use crate::sequence::Several;

/// Start, count and stride as Python gives them.
pub type Numbers = Option<Vec<u64>>;
/// The same as an argument.
pub type Asked = Option<Several<u64>>;

/// A container and the number of its mode changes; a change invalidates what was known of a variable before.
pub struct Shared {
    pub container: Container,
    pub changes: AtomicU64,
}

impl Shared {
    /// This rank's result before it takes part in a call. An error here reaches the other ranks, which are already in
    /// the collective call. Ranks hold a container open together, so no rank waits on a closed one.
    pub fn ready<T>(&self, py: Python<'_>, collective: bool, found: PyResult<T>) -> PyResult<T> {
        let Err(raised) = found else { return found };
        if !collective || py.detach(|| self.container.is_closed()) {
            return Err(raised);
        }
        let (error, is_ours) = told(py, &raised);
        let agreed = py.detach(|| self.container.fail(error));
        Err(if is_ours { exception(agreed) } else { raised })
    }
}

/// An exception as an error that can be sent to other ranks, and whether it is one of Fieldstone's.
pub fn told(py: Python<'_>, raised: &PyErr) -> (Error, bool) {
    let value = raised.value(py);
    let parts = || -> PyResult<(String, String, String, Option<String>)> {
        Ok((
            value.getattr("code")?.extract()?,
            value.getattr("kind")?.extract()?,
            value.getattr("message")?.extract()?,
            value.getattr("hint")?.extract()?,
        ))
    };
    let class = py.import("fieldstone.errors").and_then(|module| module.getattr("Error"));
    let is_ours = class.and_then(|class| value.is_instance(&class)).unwrap_or(false);
    match parts() {
        Ok((code, kind, message, hint)) if is_ours => {
            let error = code_of(Some(&code), &kind).error(message);
            (hint.into_iter().fold(error, Error::with_hint), true)
        }
        // Such as MemoryError.
        _ => {
            let lacks = raised.is_instance_of::<PyMemoryError>(py);
            let code = if lacks { Code::OutOfMemory } else { Code::Invalid };
            (code.error(raised.to_string()), false)
        }
    }
}

/// A variable; its properties are looked up when needed, and again after a change of mode.
#[pyclass(frozen, name = "_Var", module = "fieldstone._native")]
pub struct PyVar {
    file: Arc<Shared>,
    name: String,
    /// The number that its definition returned.
    defined: Option<VarRef>,
    known: Mutex<Option<(u64, Arc<VarInfo>)>>,
}

impl PyVar {
    /// A newly defined variable.
    pub fn defined(file: &Arc<Shared>, name: &str, defined: VarRef) -> PyVar {
        PyVar { file: file.clone(), name: name.to_owned(), defined: Some(defined), known: Mutex::new(None) }
    }

    /// A variable found in the container.
    pub fn found(file: &Arc<Shared>, info: VarInfo) -> PyVar {
        let name = info.name.clone();
        let known = Mutex::new(Some((file.changes.load(Ordering::Acquire), Arc::new(info))));
        PyVar { file: file.clone(), name, defined: None, known }
    }

    /// Its current properties. They are not cached in define mode, when attributes may still be added.
    pub fn info(&self) -> Result<Arc<VarInfo>> {
        let container = &self.file.container;
        let seen = self.file.changes.load(Ordering::Acquire);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, info)) = &*known
            && *when == seen
            && !container.is_defining()
            && !container.is_closed()
        {
            return Ok(info.clone());
        }
        let info = Arc::new(match self.defined {
            Some(defined) => container.var_of(defined)?,
            None => container.var(&self.name)?,
        });
        *known = Some((seen, info.clone()));
        Ok(info)
    }

    /// Its container.
    pub fn container(&self) -> &Container {
        &self.file.container
    }

    /// Its container, with the count of mode changes.
    pub fn shared(&self) -> &Shared {
        &self.file
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.name
    }

    /// Its number for `put_att`.
    pub fn number(&self) -> Result<VarRef> {
        match self.defined {
            Some(defined) => Ok(defined),
            None => self.file.container.var_ref(&self.name),
        }
    }

    /// The current lengths of its dimensions: records may have been added since the lookup.
    pub fn lens(&self) -> Result<Vec<u64>> {
        let info = self.info()?;
        let mut lens = info.shape();
        if info.is_record()
            && !self.file.container.is_defining()
            && let Some(first) = lens.first_mut()
        {
            *first = self.file.container.numrecs()?;
        }
        Ok(lens)
    }
}

/// The dtype of a type, in native byte order.
pub fn dtype_of(ty: NcType) -> Result<DType> {
    DType::parse(ty.numpy()).map(DType::to_native)
}

/// The netCDF type of an array from Python.
pub fn type_of_array(dtype: DType, name: &str) -> PyResult<NcType> {
    let text = dtype.to_string();
    NcType::from_numpy(&text).ok_or_else(|| {
        invalid(format!("variable {name}: netCDF has no type for dtype {text}"), "convert the array")
    })
}

fn box_of((start, count, stride): (Asked, Asked, Asked)) -> (Numbers, Numbers, Numbers) {
    (start.map(Several::all), count.map(Several::all), stride.map(Several::all))
}

/// The box that a call selects: without `count`, `start` extends to the end.
pub fn selection(
    name: &str,
    lens: &[u64],
    start: Numbers,
    count: Numbers,
    stride: Numbers,
) -> Result<Selection> {
    let rank = lens.len();
    for (what, given) in [("start", &start), ("count", &count), ("stride", &stride)] {
        if let Some(given) = given
            && given.len() != rank
        {
            return Err(Code::Box
                .error(format!(
                    "variable {name}: {} numbers as {what}, but it has {rank} dimensions",
                    given.len()
                ))
                .with_hint("give one number for each dimension"));
        }
    }
    let start = start.unwrap_or_else(|| vec![0; rank]);
    let count = count.unwrap_or_else(|| {
        let left = |axis: usize| {
            let left = lens[axis].saturating_sub(start[axis]);
            left.div_ceil(stride.as_ref().map_or(1, |s| s[axis].max(1)))
        };
        (0..rank).map(left).collect()
    });
    Ok(Selection { start, count, stride: stride.unwrap_or_default() })
}

/// The count for an array written without one: leading dimensions of length 1 are added.
pub fn count_of(name: &str, shape: &[u64], rank: usize) -> Result<Vec<u64>> {
    let missing = rank.checked_sub(shape.len()).ok_or_else(|| {
        let given = shape.len();
        Code::ShapeMismatch
            .error(format!("variable {name}: an array of {given} dimensions for a variable of {rank}"))
            .with_hint("give an array of its shape, or count=")
    })?;
    Ok(std::iter::repeat_n(1, missing).chain(shape.iter().copied()).collect())
}

/// Checks that an array has as many elements as a box.
pub fn check_size(name: &str, shape: &[u64], count: &[u64]) -> Result<()> {
    let product = |lens: &[u64]| lens.iter().try_fold(1_u64, |all, n| all.checked_mul(*n));
    match product(shape) == product(count) {
        true => Ok(()),
        false => Err(Code::ShapeMismatch
            .error(format!("variable {name}: an array of shape {shape:?} for a box of {count:?} elements"))
            .with_hint("give an array with as many elements as the box")),
    }
}

/// A new array for a box to read. If memory runs out, the header may be damaged and claim more than the file holds,
/// in which case the error says so.
pub fn array_of<'py>(
    py: Python<'py>,
    container: &Container,
    (info, chosen): (&VarInfo, &Selection),
    ty: NcType,
) -> PyResult<NewArray<'py>> {
    let made = NewArray::new(py, dtype_of(ty).or_raise()?, &chosen.count);
    if made.is_err() {
        py.detach(|| container.elements().check_held(info, chosen)).or_raise()?;
    }
    made
}

#[pymethods]
impl PyVar {
    /// Its path.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its type, as numpy's text.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(py.detach(|| self.info()).or_raise()?.ty.numpy())
    }

    /// Paths of its dimensions.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let info = py.detach(|| self.info()).or_raise()?;
        PyTuple::new(py, info.dims.iter().map(|dim| &dim.name))
    }

    /// The current lengths of its dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, py.detach(|| self.lens()).or_raise()?)
    }

    /// Whether it grows along the record dimension.
    #[getter]
    fn is_record(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.info()).or_raise()?.is_record())
    }

    /// Offset of its first byte, and bytes from one record to the next (0 without records).
    #[getter]
    fn place(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let info = py.detach(|| self.info()).or_raise()?;
        Ok((info.begin, info.record_stride))
    }

    fn put(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        chosen: &Bound<'_, PyAny>,
        collective: bool,
    ) -> PyResult<()> {
        let found = self.puts(py, values, chosen);
        let (data, memory, info, chosen) = self.file.ready(py, collective, found)?;
        let bytes = data.bytes();
        if is_nothing(&info, &data) {
            return py.detach(|| self.file.container.elements().put_many(&[], collective)).or_raise();
        }
        py.detach(|| self.file.container.elements().put(&info, &chosen, bytes, memory, collective)).or_raise()
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        chosen: &Bound<'py, PyAny>,
        collective: bool,
        dtype: Option<&str>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.gets(py, chosen, dtype, into);
        let (info, chosen, memory, mut filled) = self.file.ready(py, collective, found)?;
        let out = filled.bytes();
        py.detach(|| self.file.container.elements().get(&info, &chosen, out, memory, collective))
            .or_raise()?;
        Ok(filled.done())
    }
}

/// Whether the argument is an empty array for a scalar: no box of a scalar is empty, so this marks a rank that has
/// nothing to write.
fn is_nothing(info: &VarInfo, data: &Data<'_>) -> bool {
    info.dims.is_empty() && data.bytes().is_empty()
}

/// The inputs of a put: elements, their type, the variable and its box.
type Puts<'py> = (Data<'py>, NcType, Arc<VarInfo>, Selection);
/// The inputs of a get: the variable, its box, the type of the elements, their destination.
type Gets<'py> = (Arc<VarInfo>, Selection, NcType, Filled<'py>);

/// The destination of elements: a new array, or the caller's.
pub enum Filled<'py> {
    New(NewArray<'py>),
    Given(Target<'py>, Bound<'py, PyAny>),
}

impl<'py> Filled<'py> {
    /// The bytes to write.
    pub fn bytes(&mut self) -> &mut [u8] {
        match self {
            Filled::New(array) => array.bytes(),
            Filled::Given(target, _) => target.bytes(),
        }
    }

    /// The finished array.
    pub fn done(self) -> Bound<'py, PyAny> {
        match self {
            Filled::New(array) => array.done(),
            Filled::Given(_, into) => into,
        }
    }
}

/// Checks everything that can be wrong on this rank alone, before the ranks meet.
impl PyVar {
    fn puts<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        chosen: &Bound<'py, PyAny>,
    ) -> PyResult<Puts<'py>> {
        let (start, count, stride) = box_of(chosen.extract()?);
        let data = Data::new(values)?;
        let (dtype, shape) = data.array.clone().ok_or_else(|| invalid("no array", "give an array"))?;
        let memory = type_of_array(dtype, &self.name)?;
        let info = py.detach(|| self.info()).or_raise()?;
        if is_nothing(&info, &data) {
            return Ok((data, memory, info, Selection::default()));
        }
        let rank = info.dims.len();
        let count = count.map_or_else(|| count_of(&self.name, &shape, rank), Ok).or_raise()?;
        check_size(&self.name, &shape, &count).or_raise()?;
        let chosen = selection(&self.name, &vec![0; rank], start, Some(count), stride).or_raise()?;
        Ok((data, memory, info, chosen))
    }

    fn gets<'py>(
        &self,
        py: Python<'py>,
        chosen: &Bound<'py, PyAny>,
        dtype: Option<&str>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Gets<'py>> {
        let (start, count, stride) = box_of(chosen.extract()?);
        let (info, lens) = py.detach(|| Ok((self.info()?, self.lens()?))).or_raise()?;
        let chosen = selection(&self.name, &lens, start, count, stride).or_raise()?;
        let memory = match dtype {
            None => info.ty,
            Some(text) => NcType::from_numpy(text)
                .ok_or_else(|| invalid(format!("{text} is not a type"), "such as f4"))?,
        };
        let filled = match into {
            None => Filled::New(array_of(py, &self.file.container, (&info, &chosen), memory)?),
            Some(into) => {
                let shape: Vec<u64> = into.getattr("shape")?.extract()?;
                check_size(&self.name, &shape, &chosen.count).or_raise()?;
                Filled::Given(Target::new(&into)?, into)
            }
        };
        Ok((info, chosen, memory, filled))
    }
}
