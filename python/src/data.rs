//! Bytes and arrays between Python and the store, without copies if possible.
//!
//! This file and `catalog/arrow.rs` hold the module's only `unsafe` code. The store borrows the memory of Python
//! objects while the interpreter's lock is released. That is sound under the rule that every extension module relies
//! on: the object stays alive for the whole call, and the caller does not write to it during the call. Memory that we
//! allocate ourselves has no other owner yet.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::Arc;

use fieldstone::{DType, IndexBox, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::errors::{Raise, Refuse, invalid};
use crate::request::type_name;

const TAKEN: &str = "give bytes-like data, or a numpy array (numpy.asarray makes one)";

struct Numpy {
    ndarray: Py<PyType>,
    generic: Py<PyType>,
    dtype: Py<PyType>,
    empty: Py<PyAny>,
    zeros: Py<PyAny>,
    asarray: Py<PyAny>,
    ascontiguousarray: Py<PyAny>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

fn numpy(py: Python<'_>) -> PyResult<&Numpy> {
    NUMPY.get_or_try_init(py, || {
        let module = py.import("numpy")?;
        let class = |name: &str| -> PyResult<Py<PyType>> {
            Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind())
        };
        let function = |name: &str| -> PyResult<Py<PyAny>> { Ok(module.getattr(name)?.unbind()) };
        Ok(Numpy {
            ndarray: class("ndarray")?,
            generic: class("generic")?,
            dtype: class("dtype")?,
            empty: function("empty")?,
            zeros: function("zeros")?,
            asarray: function("asarray")?,
            ascontiguousarray: function("ascontiguousarray")?,
        })
    })
}

/// numpy, if the program has imported it: no array exists without it.
fn numpy_in_use(py: Python<'_>) -> PyResult<Option<&Numpy>> {
    if let Some(numpy) = NUMPY.get(py) {
        return Ok(Some(numpy));
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    match modules.contains("numpy")? {
        true => numpy(py).map(Some),
        false => Ok(None),
    }
}

/// Whether a value is one of numpy's scalars, or an array of no dimension.
pub fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let Some(numpy) = numpy_in_use(py)? else { return Ok(false) };
    Ok(value.is_instance(numpy.generic.bind(py))?
        || value.is_instance(numpy.ndarray.bind(py))? && value.getattr("ndim")?.eq(0)?)
}

/// Whether a value is a numpy array with at least one dimension.
pub fn is_numpy_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(numpy) = numpy_in_use(value.py())? else { return Ok(false) };
    Ok(value.is_instance(numpy.ndarray.bind(value.py()))? && !value.getattr("ndim")?.eq(0)?)
}

/// Whether a value has masked elements. Only subclasses of numpy's array are checked: importing `numpy.ma` takes 10
/// ms.
pub fn is_masked(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    let class = numpy(py)?.ndarray.bind(py);
    if array.get_type().is(class) || !array.is_instance(class)? {
        return Ok(false);
    }
    py.import("numpy.ma")?.getattr("is_masked")?.call1((array,))?.is_truthy()
}

/// The error for masked elements, if values cannot be missing.
pub fn masked(what: &str) -> PyErr {
    invalid(format!("{what} has masked elements, which would be lost"), "give data.filled(value)")
}

/// The numpy dtype of an element type.
pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyAny>> {
    Ok(numpy(py)?.dtype.bind(py).call1((dtype.to_string(),))?.unbind())
}

/// The element type that an argument names: text, a numpy dtype, or a Python type such as `float`.
pub fn parse_dtype(argument: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(text) = argument.cast::<PyString>() {
        return DType::parse(text.to_str()?).or_raise();
    }
    let py = argument.py();
    let dtype = numpy(py)?.dtype.bind(py).call1((argument,)).or_refuse(py, || {
        invalid(format!("{} is not a dtype", type_name(argument)), "write it as numpy does, such as 'f4'")
    })?;
    DType::parse(dtype.getattr("str")?.cast::<PyString>()?.to_str()?).or_raise()
}

/// An object's memory: an address and a length, valid while the owner lives.
#[derive(Clone, Copy)]
struct Memory {
    address: usize,
    len: usize,
}

impl Memory {
    /// SAFETY: the caller keeps the owner of the memory alive for `'a`, and no one writes to it.
    unsafe fn slice<'a>(&self) -> &'a [u8] {
        match self.len {
            0 => &[],
            // SAFETY: the owner guarantees `len` readable bytes; no one writes to them (see above).
            len => unsafe { slice::from_raw_parts(self.address as *const u8, len) },
        }
    }

    /// SAFETY: the caller keeps the owner alive for `'a`, and no one else reads or writes the memory.
    unsafe fn slice_mut<'a>(&self) -> &'a mut [u8] {
        match self.len {
            0 => &mut [],
            // SAFETY: the owner guarantees `len` writable bytes that no one else uses (see above).
            len => unsafe { slice::from_raw_parts_mut(self.address as *mut u8, len) },
        }
    }
}

/// An array as numpy's array interface describes it.
struct Interface {
    memory: Memory,
    read_only: bool,
    contiguous: bool,
    dtype: DType,
    shape: Vec<u64>,
}

fn part<'py>(all: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    all.get_item(name)?.ok_or_else(|| invalid(format!("the array interface lacks {name}"), TAKEN))
}

impl Interface {
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Interface> {
        let py = array.py();
        let all = array.getattr(pyo3::intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
        let (address, read_only) = part(&all, pyo3::intern!(py, "data"))?.extract::<(usize, bool)>()?;
        let shape: Vec<u64> = part(&all, pyo3::intern!(py, "shape"))?.extract()?;
        let dtype = part(&all, pyo3::intern!(py, "typestr"))?;
        let dtype = DType::parse(dtype.cast::<PyString>()?.to_str()?).or_raise()?;
        let bytes = fieldstone::element_count(&shape).or_raise()?.checked_mul(dtype.size() as u64);
        let len = bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| invalid("the array is larger than memory", "archive it in pieces"))?;
        let contiguous = all.get_item(pyo3::intern!(py, "strides"))?.is_none_or(|strides| strides.is_none());
        Ok(Interface { memory: Memory { address, len }, read_only, contiguous, dtype, shape })
    }
}

/// The data that a caller archives: opaque bytes, or an array in C order.
pub struct Data<'py> {
    memory: Memory,
    /// Type and shape of an array.
    pub array: Option<(DType, Vec<u64>)>,
    /// Keeps the memory alive.
    _owner: Owner<'py>,
}

enum Owner<'py> {
    Object(#[allow(dead_code, reason = "held, never read")] Bound<'py, PyAny>),
    Buffer(#[allow(dead_code, reason = "held, never read")] PyUntypedBuffer),
}

impl<'py> Data<'py> {
    /// Takes bytes-like objects as opaque bytes; takes numpy arrays, numpy scalars and convertible objects as arrays.
    /// Copies only arrays that are not in C order.
    pub fn new(data: &Bound<'py, PyAny>) -> PyResult<Data<'py>> {
        let py = data.py();
        if let Ok(bytes) = data.cast_exact::<PyBytes>() {
            let bytes = bytes.as_bytes();
            let memory = Memory { address: bytes.as_ptr() as usize, len: bytes.len() };
            return Ok(Data { memory, array: None, _owner: Owner::Object(data.clone()) });
        }
        if let Some(numpy) = numpy_in_use(py)? {
            let class = numpy.ndarray.bind(py);
            if data.get_type().is(class) {
                return Data::array(numpy, data.clone());
            }
            if data.is_instance(class)? || data.is_instance(numpy.generic.bind(py))? {
                if is_masked(data)? {
                    return Err(masked("the array"));
                }
                return Data::array(numpy, numpy.asarray.bind(py).call1((data,))?);
            }
        }
        if let Ok(buffer) = PyUntypedBuffer::get(data) {
            if !buffer.is_c_contiguous() {
                return Err(invalid("the buffer is not contiguous", "give bytes(data) or a numpy array"));
            }
            let memory = Memory { address: buffer.buf_ptr() as usize, len: buffer.len_bytes() };
            return Ok(Data { memory, array: None, _owner: Owner::Buffer(buffer) });
        }
        if data.hasattr("__array__")? {
            let numpy = numpy(py)?;
            // An object may convert to a masked array, whose mask `asarray` would drop.
            let made = data.call_method0("__array__")?;
            if is_masked(&made)? {
                return Err(masked("the array"));
            }
            return Data::array(numpy, numpy.asarray.bind(py).call1((made,))?);
        }
        let hint = match data.is_instance_of::<PyString>() {
            true => "text must be encoded first: give text.encode()",
            false => TAKEN,
        };
        Err(invalid(format!("{} cannot be archived", type_name(data)), hint))
    }

    fn array(numpy: &Numpy, array: Bound<'py, PyAny>) -> PyResult<Data<'py>> {
        let interface = Interface::of(&array)?;
        let (array, interface) = match interface.contiguous {
            true => (array, interface),
            false => {
                let array = numpy.ascontiguousarray.bind(array.py()).call1((array,))?;
                let interface = Interface::of(&array)?;
                (array, interface)
            }
        };
        let Interface { memory, dtype, shape, .. } = interface;
        Ok(Data { memory, array: Some((dtype, shape)), _owner: Owner::Object(array) })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `_owner` keeps the memory alive as long as `self`; by the rule at the head of this file, the caller
        // does not write to the data during the call.
        unsafe { self.memory.slice() }
    }
}

/// A buffer of the caller to be filled.
pub struct Target<'py> {
    memory: Memory,
    _owner: Owner<'py>,
}

impl<'py> Target<'py> {
    /// Takes writable, contiguous buffers: bytearray, memoryview, array.array, numpy arrays of any type.
    pub fn new(buffer: &Bound<'py, PyAny>) -> PyResult<Target<'py>> {
        let py = buffer.py();
        let writable = "give a writable, contiguous buffer, such as a bytearray or a numpy array";
        if let Some(numpy) = numpy_in_use(py)?
            && buffer.is_instance(numpy.ndarray.bind(py))?
        {
            let interface = Interface::of(buffer)?;
            if interface.read_only || !interface.contiguous {
                return Err(invalid("the array is read-only or not contiguous", writable));
            }
            return Ok(Target { memory: interface.memory, _owner: Owner::Object(buffer.clone()) });
        }
        match PyUntypedBuffer::get(buffer) {
            Ok(view) if !view.readonly() && view.is_c_contiguous() => {
                let memory = Memory { address: view.buf_ptr() as usize, len: view.len_bytes() };
                Ok(Target { memory, _owner: Owner::Buffer(view) })
            }
            _ => Err(invalid(format!("{} cannot be read into", type_name(buffer)), writable)),
        }
    }

    /// The bytes to fill.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `_owner` keeps the memory alive as long as `self` and was checked to be writable; by the rule at
        // the head of this file, no one else uses it during the call.
        unsafe { self.memory.slice_mut() }
    }
}

/// A numpy array of any strides: the memory that its elements span.
pub struct Strided<'py> {
    memory: Memory,
    read_only: bool,
    /// Offset of the first element in it.
    pub origin: usize,
    /// Element type, with its byte order.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<u64>,
    /// Bytes from one element to the next, in each dimension.
    pub strides: Vec<isize>,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Strided<'py> {
    /// Takes numpy arrays and convertible objects; does not copy the elements of an array.
    pub fn new(values: &Bound<'py, PyAny>) -> PyResult<Strided<'py>> {
        let py = values.py();
        let numpy = numpy(py)?;
        if is_masked(values)? {
            return Err(invalid(
                "the array has masked elements, which would be lost",
                "give data.filled(value)",
            ));
        }
        let array = match values.is_instance(numpy.ndarray.bind(py))? {
            true => values.clone(),
            false => numpy.asarray.bind(py).call1((values,))?,
        };
        Strided::of(array)
    }

    /// Takes a writable numpy array.
    pub fn writable(array: &Bound<'py, PyAny>) -> PyResult<Strided<'py>> {
        let writable = "give a writable numpy array";
        if !array.is_instance(numpy(array.py())?.ndarray.bind(array.py()))? {
            return Err(invalid(format!("{} cannot be read into", type_name(array)), writable));
        }
        let found = Strided::of(array.clone())?;
        match found.read_only {
            true => Err(invalid("the array is read-only", writable)),
            false => Ok(found),
        }
    }

    fn of(array: Bound<'py, PyAny>) -> PyResult<Strided<'py>> {
        let Interface { memory, read_only, dtype, shape, .. } = Interface::of(&array)?;
        let strides: Vec<isize> = array.getattr(pyo3::intern!(array.py(), "strides"))?.extract()?;
        // The elements span from the lowest to the highest byte of any of them.
        let (mut low, mut high) = (0isize, dtype.size() as isize);
        for (len, stride) in shape.iter().zip(&strides) {
            let reach = (len.saturating_sub(1) as isize).saturating_mul(*stride);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        let empty = shape.contains(&0);
        let (low, span) = if empty { (0, 0) } else { (low, high.saturating_sub(low) as usize) };
        let memory = Memory { address: memory.address.wrapping_add_signed(low), len: span };
        let origin = low.unsigned_abs();
        Ok(Strided { memory, read_only, origin, dtype, shape, strides, _owner: array })
    }

    /// The bytes that the elements span.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `_owner` is a numpy array, which guarantees every byte from the first to the last of its elements
        // (`of` counts only these) and keeps them alive as long as `self`; see also the rule at the head of this
        // file.
        unsafe { self.memory.slice() }
    }

    /// The numbers of a one-dimensional array of int64, borrowed if they are contiguous. `None` for other arrays.
    pub fn int64s(&self) -> Option<Cow<'_, [i64]>> {
        let (DType::I8, [count], [stride]) = (self.dtype, &self.shape[..], &self.strides[..]) else {
            return None;
        };
        let bytes = self.bytes();
        if *stride == 8 {
            // SAFETY: every bit pattern is an i64; bytes outside aligned elements are left out.
            let (before, numbers, behind) = unsafe { bytes.align_to::<i64>() };
            if before.is_empty() && behind.is_empty() {
                return Some(Cow::Borrowed(numbers));
            }
        }
        let place = |n: u64| self.origin.saturating_add_signed((n as isize).saturating_mul(*stride));
        let number = |n: u64| bytes.get(place(n)..)?.first_chunk().map(|word| i64::from_ne_bytes(*word));
        Some((0..*count).map(|n| number(n).unwrap_or_default()).collect())
    }

    /// The same bytes, for writing.
    pub fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
        if self.read_only {
            return Err(invalid("the array is read-only", "give a writable numpy array"));
        }
        // SAFETY: as in `bytes`; the array is writable, and no one else uses it during the call.
        Ok(unsafe { self.memory.slice_mut() })
    }
}

/// A new `bytes` object of `len` bytes, which `fill` writes with the interpreter's lock released.
pub fn new_bytes<'py>(
    py: Python<'py>,
    len: u64,
    fill: impl FnOnce(&mut [u8]) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    // Python shares the objects of length 0 and 1, so no one may write to them.
    if let 0 | 1 = len {
        let mut few = [0];
        let few = &mut few[..len as usize];
        py.detach(|| fill(few)).or_raise()?;
        return Ok(PyBytes::new(py, few));
    }
    let too_large = || PyMemoryError::new_err(format!("{len} bytes are more than this machine's memory"));
    let size = ffi::Py_ssize_t::try_from(len).map_err(|_| too_large())?;
    // SAFETY: with a null pointer and a size that is not negative this allocates an object, or returns
    // null with an exception set, which `from_owned_ptr_or_err` takes.
    let object =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size))? };
    // SAFETY: the object is a `bytes`, and alive.
    let address = unsafe { ffi::PyBytes_AsString(object.as_ptr()) } as usize;
    let memory = Memory { address, len: len as usize };
    // SAFETY: `object` lives to the end of this function, and until then only this function has it. Its bytes are
    // allocated but uninitialised; every bit pattern is a `u8`, `fill` only writes, and if it fails, the object is
    // dropped without being seen.
    let out = unsafe { memory.slice_mut() };
    py.detach(|| fill(out)).or_raise()?;
    Ok(object.cast_into::<PyBytes>()?)
}

/// Memory of a Rust value that numpy arrays view read-only.
#[pyclass(frozen, name = "_Lent", module = "fieldstone._native")]
pub struct PyLent {
    memory: Memory,
    /// Keeps the memory alive.
    _owner: Arc<dyn Any + Send + Sync>,
}

/// Element types of lists that numpy may view: 8 bytes each, without padding.
pub trait LentElement {}
impl LentElement for i64 {}
impl LentElement for [u32; 2] {}

#[pymethods]
impl PyLent {
    /// Python's buffer protocol.
    ///
    /// SAFETY: only Python may call this, with a `view` that it owns.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Memory { address, len } = slf.get().memory;
        let (py, read_only) = (slf.py(), 1);
        // SAFETY: `view` is the caller's, to be filled in. The memory has `len` bytes, lives as long as `slf`, to
        // which the view takes a reference, and is never written to: the view is marked read-only.
        let done = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address as *mut c_void, len as isize, read_only, flags)
        };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
    }
}

/// A read-only numpy array that views a list in an object and keeps the object alive.
pub fn lent_array<'py, O: Send + Sync + 'static, T: LentElement>(
    py: Python<'py>,
    owner: &Arc<O>,
    list: impl for<'a> Fn(&'a O) -> &'a [T],
    (dtype, shape): (DType, &[u64]),
) -> PyResult<Bound<'py, PyAny>> {
    // The list borrows from the contents of the Arc, which stay in place and cannot change while an Arc is held.
    let list = list(owner);
    let memory = Memory { address: list.as_ptr() as usize, len: size_of_val(list) };
    let lent = Bound::new(py, PyLent { memory, _owner: owner.clone() })?;
    numpy(py)?.ndarray.bind(py).call1((PyTuple::new(py, shape)?, dtype.to_string(), lent))
}

/// A new array in C order, not yet shared, to be written.
pub struct NewArray<'py> {
    array: Bound<'py, PyAny>,
    memory: Memory,
}

impl<'py> NewArray<'py> {
    /// An array with uninitialised elements.
    pub fn new(py: Python<'py>, dtype: DType, shape: &[u64]) -> PyResult<NewArray<'py>> {
        NewArray::made_by(&numpy(py)?.empty, py, dtype, shape)
    }

    /// An array of zeros.
    pub fn zeros(py: Python<'py>, dtype: DType, shape: &[u64]) -> PyResult<NewArray<'py>> {
        NewArray::made_by(&numpy(py)?.zeros, py, dtype, shape)
    }

    fn made_by(make: &Py<PyAny>, py: Python<'py>, dtype: DType, shape: &[u64]) -> PyResult<NewArray<'py>> {
        let shape = PyTuple::new(py, shape)?;
        let array = make.bind(py).call1((shape, dtype.to_string())).inspect_err(|error| {
            if error.is_instance_of::<PyMemoryError>(py) {
                let hint = "hint: read a part of it with start= and count=";
                let _ = error.value(py).call_method1("add_note", (hint,));
            }
        })?;
        let memory = Interface::of(&array)?.memory;
        Ok(NewArray { array, memory })
    }

    /// The bytes to write.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the array is new, so it is in C order, writable and known only to us, and `self` keeps it alive.
        // For its uninitialised bytes see `new_bytes`.
        unsafe { self.memory.slice_mut() }
    }

    /// The finished array.
    pub fn done(self) -> Bound<'py, PyAny> {
        self.array
    }
}

/// A new array that `fill` writes in C order with the interpreter's lock released.
pub fn new_array<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &[u64],
    fill: impl FnOnce(&mut [u8]) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let mut made = NewArray::new(py, dtype, shape)?;
    let out = made.bytes();
    py.detach(|| fill(out)).or_raise()?;
    Ok(made.done())
}

/// The most numbers that an argument may have.
const DIMENSIONS: usize = 1024;

/// The numbers of an argument, one per dimension; a single number stands for one dimension.
pub fn numbers(what: &str, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<u64>>> {
    let Some(argument) = argument.filter(|a| !a.is_none()) else { return Ok(None) };
    let py = argument.py();
    if let Some(number) = argument.extract::<u64>().if_it_is(py)? {
        return Ok(Some(vec![number]));
    }
    let wrong = || {
        let shown = argument.repr().map_or_else(|_| type_name(argument), |text| text.to_string());
        let shown: String = shown.chars().take(60).collect();
        invalid(
            format!("{what}={shown}"),
            "give one whole number of at least 0 per dimension, such as (0, 64)",
        )
    };
    if argument.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    let mut numbers = Vec::new();
    for number in argument.try_iter().or_refuse(py, wrong)? {
        // No array has that many dimensions: the iterable is endless.
        if numbers.len() == DIMENSIONS {
            return Err(wrong());
        }
        numbers.push(number?.extract::<u64>().or_refuse(py, wrong)?);
    }
    Ok(Some(numbers))
}

/// The box of an array that `start` and `count` select; either may be absent.
pub fn box_of(shape: &[u64], start: Option<Vec<u64>>, count: Option<Vec<u64>>) -> PyResult<Option<IndexBox>> {
    if start.is_none() && count.is_none() {
        return Ok(None);
    }
    let start = start.unwrap_or_else(|| vec![0; shape.len()]);
    let count = count.unwrap_or_else(|| {
        shape
            .iter()
            .zip(start.iter().chain(std::iter::repeat(&0)))
            .map(|(n, s)| n.saturating_sub(*s))
            .collect()
    });
    IndexBox::new(start, count, shape).or_raise().map(Some)
}

/// A time value in the unit of a time type, as numpy's scalar.
pub fn time_scalar<'py>(
    py: Python<'py>,
    dtype: DType,
    number: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = numpy(py)?.asarray.bind(py).call1((number, "i8"))?;
    array.call_method1("view", (dtype.to_native().to_string(),))?.get_item(PyTuple::empty(py))
}
