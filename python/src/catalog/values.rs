//! Values of metadata between Python and the catalog: the conversion of Python objects, and back.
//!
//! | Python | value |
//! |---|---|
//! | bool, int, float, str, bytes, numpy's scalars | bool, int (uint beyond 2^63 - 1), float, text, bytes |
//! | datetime, date, numpy.datetime64 | datetime |
//! | range of step 1, fst.int_range, fst.float_range | range, both ends included |
//! | numpy array of one dimension | array |
//! | list, tuple; dict | list; map |
//!
//! A tag's type decides ambiguous objects: a pair is a range for a tag of ranges, a list is an array for a tag of
//! arrays.

use fieldstone::catalog::value::{DEPTH, Value, ValueType, too_deep};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyRange, PyString, PyTuple,
};

use crate::errors::{Raise, Refuse, invalid};
use crate::listing::time_object;
use crate::request::type_name;
use crate::sequence::{self, Room, each};

/// Classes that identify values; those of numpy and of dates are looked up once.
struct Classes {
    int_range: Py<PyAny>,
    float_range: Py<PyAny>,
    generic: Py<PyAny>,
    ndarray: Py<PyAny>,
    datetime64: Py<PyAny>,
    date: Py<PyAny>,
    datetime_ns: Py<PyAny>,
    asarray: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let ours = py.import("fieldstone._values")?;
        let numpy = py.import("numpy")?;
        Ok(Classes {
            int_range: ours.getattr("IntRange")?.unbind(),
            float_range: ours.getattr("FloatRange")?.unbind(),
            generic: numpy.getattr("generic")?.unbind(),
            ndarray: numpy.getattr("ndarray")?.unbind(),
            datetime64: numpy.getattr("datetime64")?.unbind(),
            date: py.import("datetime")?.getattr("date")?.unbind(),
            datetime_ns: ours.getattr("datetime_ns")?.unbind(),
            asarray: numpy.getattr("asarray")?.unbind(),
        })
    })
}

/// Whether an object is a numpy array with at least one dimension.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let classes = classes(object.py())?;
    Ok(object.is_instance(classes.ndarray.bind(object.py()))? && !object.getattr("ndim")?.eq(0)?)
}

/// Converts a numpy array, or an object that numpy can convert, to an array.
pub fn asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // An object may convert to a masked array, whose mask `asarray` would drop.
    let lazy = !object.is_instance(classes(object.py())?.ndarray.bind(object.py()))?
        && object.hasattr("__array__")?;
    let object = &if lazy { object.call_method0("__array__")? } else { object.clone() };
    if crate::data::is_masked(object)? {
        return Err(crate::data::masked(&type_name(object)));
    }
    let made = classes(object.py())?.asarray.bind(object.py()).call1((object,));
    // numpy runs out of memory on an object that claims a larger length than it has.
    made.map_err(|error| match error.is_instance_of::<PyMemoryError>(object.py()) {
        true => invalid(
            format!("{} is not an array that fits in memory", type_name(object)),
            "give a numpy array",
        ),
        false => error,
    })
}

/// Nanoseconds since 1970 of a time; text is parsed as ISO 8601.
pub fn nanoseconds(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    classes(object.py())?.datetime_ns.bind(object.py()).call1((object,))?.extract()
}

const TAKEN: &str = "give a bool, number, text, bytes, datetime, range, small array, list or dict";

/// Infers the value of an object. `what` names it in errors.
pub fn infer(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    match read(object, what, 0, &mut Room::new())? {
        Value::Null => {
            let shown = if object.is_none() { "None" } else { "missing" };
            let hint = "leave it out; None is a value inside lists and dicts only";
            Err(invalid(format!("{what} is {shown}"), hint))
        }
        value => Ok(value),
    }
}

/// The value of an object at nesting depth `depth`. Reading stops at [`DEPTH`], so that the stack suffices even if an
/// object contains itself.
fn read(object: &Bound<'_, PyAny>, what: &str, depth: usize, room: &mut Room) -> PyResult<Value> {
    room.take(depth, what)?;
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(number) = object.cast_exact::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if object.is_instance_of::<PyInt>() {
        return int(object, what);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_str().map_err(|_| not_utf8(what))?.to_owned()));
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(Value::Bytes(object.extract()?));
    }
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(Value::Bytes(object.call_method0("tobytes")?.extract()?));
    }
    if let Ok(map) = object.cast::<PyDict>() {
        return pairs(map, what, depth, room).map(Value::Map);
    }
    let (py, classes) = (object.py(), classes(object.py())?);
    if object.is_instance(classes.int_range.bind(py))? {
        let (low, high) = object.extract()?;
        return Ok(Value::IntRange(low, high));
    }
    if object.is_instance(classes.float_range.bind(py))? {
        let (low, high) = object.extract()?;
        return Ok(Value::FloatRange(low, high));
    }
    if object.is_instance_of::<PyRange>() {
        return int_range(object, what);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return each(object, |item| read(&item, what, depth + 1, room)).map(Value::List);
    }
    if is_missing(object)? {
        return Ok(Value::Null);
    }
    if object.is_instance(classes.date.bind(py))? || object.is_instance(classes.datetime64.bind(py))? {
        return nanoseconds(object).map(Value::DateTime);
    }
    if object.is_instance(classes.generic.bind(py))? {
        return scalar(object, what);
    }
    if object.is_instance(classes.ndarray.bind(py))? {
        return array(object, what, depth, room);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(object.extract()?));
    }
    Err(invalid(format!("{what} is {}, which is not a metadata value", type_name(object)), TAKEN))
}

/// Whether an object represents a missing value: None, numpy's masked, NA and NaT of pandas, NaT of numpy. NaN is a
/// number.
pub fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_none() {
        return Ok(true);
    }
    let (py, classes) = (object.py(), classes(object.py())?);
    if object.is_instance(classes.ndarray.bind(py))? {
        return Ok(object.getattr("ndim")?.eq(0)? && crate::data::is_masked(object)?);
    }
    if object.is_instance(classes.datetime64.bind(py))? {
        // Only NaT is not equal to itself here.
        return object.ne(object);
    }
    Ok(["NAType", "NaTType"].contains(&object.get_type().name()?.to_str()?))
}

fn not_utf8(what: &str) -> PyErr {
    invalid(format!("{what} is text that UTF-8 cannot encode"), "give bytes, or text without lone surrogates")
}

fn int(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    if let Ok(small) = object.extract::<i64>() {
        return Ok(Value::Int(small));
    }
    object.extract::<u64>().map(Value::UInt).map_err(|_| {
        invalid(
            format!("{what} is {object}, which does not fit in 64 bits"),
            "give it as text, or as a float",
        )
    })
}

fn int_range(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let part = |name: &str| object.getattr(name)?.extract::<i64>();
    let (start, stop, step) = (part("start")?, part("stop")?, part("step")?);
    if step != 1 || start >= stop {
        let why = if step != 1 { "has a step" } else { "is empty" };
        return Err(invalid(format!("{what}: {object} {why}"), "a range of integers has a first and a last"));
    }
    Ok(Value::IntRange(start, stop - 1))
}

/// Converts one of numpy's scalars.
fn scalar(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let dtype = object.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    let size: usize = dtype.getattr("itemsize")?.extract()?;
    match (&*kind, size) {
        ("b" | "i" | "u" | "f" | "U" | "S", ..=8) | ("U" | "S", _) => {
            let item = object.call_method0("item")?;
            match item.is_instance(classes(object.py())?.generic.bind(object.py()))? {
                true => Err(invalid(format!("{what} is {}, whose item() is none", type_name(object)), TAKEN)),
                false => infer(&item, what),
            }
        }
        _ => Err(invalid(format!("{what} has dtype {dtype}, which is not a metadata value"), TAKEN)),
    }
}

fn array(object: &Bound<'_, PyAny>, what: &str, depth: usize, room: &mut Room) -> PyResult<Value> {
    if crate::data::is_masked(object)? {
        return Err(crate::data::masked(what));
    }
    let dimensions: usize = object.getattr("ndim")?.extract()?;
    match dimensions {
        0 => scalar(&object.get_item(PyTuple::empty(object.py()))?, what),
        1 => {
            let list = object.call_method0("tolist")?;
            if depth >= DEPTH && !list.is_empty()? {
                return Err(too_deep(what)).or_raise();
            }
            let dtype = object.getattr("dtype")?;
            let kind: String = dtype.getattr("kind")?.extract()?;
            let mut place = 0;
            let elements = each(&list, |item| {
                place += 1;
                match &*kind {
                    "M" => Ok(Value::DateTime(nanoseconds(&object.get_item(place - 1)?)?)),
                    "u" => Ok(Value::UInt(item.extract()?)),
                    "b" | "i" | "f" | "U" | "S" => infer(&item, what),
                    "O" => read(&item, what, depth + 1, room),
                    _ => Err(invalid(format!("{what} is an array of dtype {dtype}"), TAKEN)),
                }
            });
            uniform(elements?, what)
        }
        n => Err(invalid(
            format!("{what} is an array of {n} dimensions"),
            "give array.ravel(), or array.tolist() for a tag of type json; large arrays are fields",
        )),
    }
}

/// An array whose elements share one type; integers become floats if others are floats.
fn uniform(elements: Vec<Value>, what: &str) -> PyResult<Value> {
    Value::List(elements).fits(ValueType::Array).ok_or_else(|| {
        invalid(
            format!("{what} is an array of several types, or of a type that is not simple"),
            "give numbers, texts, bools or datetimes of one type, or a list for a tag of type json",
        )
    })
}

/// Keys and values of a dict at nesting depth `depth`.
fn pairs(
    map: &Bound<'_, PyDict>,
    what: &str,
    depth: usize,
    room: &mut Room,
) -> PyResult<Vec<(String, Value)>> {
    sequence::pairs(map.as_any(), |key, value| {
        let key = key
            .cast::<PyString>()
            .map_err(|_| invalid(format!("{what} has {} as a key", type_name(&key)), "keys are text"))?;
        let key = key.to_str().map_err(|_| not_utf8(what))?;
        Ok((key.to_owned(), read(&value, &within(what, key), depth + 1, room)?))
    })
}

/// The name of an item of a dict for errors; a deep name keeps only its beginning.
fn within(what: &str, key: &str) -> String {
    const LONG: usize = 200;
    match what.len() + key.len() > LONG {
        true if what.ends_with('…') => what.to_owned(),
        true => format!("{what}…"),
        false => format!("{what}[{key:?}]"),
    }
}

/// A dict of values, including None.
pub fn with_none(map: &Bound<'_, PyDict>, what: &str) -> PyResult<Vec<(String, Value)>> {
    pairs(map, what, 0, &mut Room::new())
}

/// A dict of values, none of which is None.
pub fn named(map: Option<&Bound<'_, PyDict>>, what: &str) -> PyResult<Vec<(String, Value)>> {
    let all = map.map_or_else(|| Ok(Vec::new()), |map| pairs(map, what, 0, &mut Room::new()))?;
    match all.iter().find(|(_, value)| matches!(value, Value::Null)) {
        Some((key, _)) => Err(invalid(format!("{what}[{key:?}] is None"), "leave it out")),
        None => Ok(all),
    }
}

/// Converts objects for a tag of type `kind`: inferred as by [`infer`], then widened exactly.
pub fn of_kind(object: &Bound<'_, PyAny>, kind: ValueType, what: &str) -> PyResult<Value> {
    let sequence = object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>();
    match kind {
        ValueType::IntRange if sequence => {
            let (low, high) = object.extract().or_refuse(object.py(), || unfit(object, kind, what))?;
            Ok(Value::IntRange(low, high))
        }
        ValueType::FloatRange if sequence => {
            let (low, high) = object.extract().or_refuse(object.py(), || unfit(object, kind, what))?;
            Ok(Value::FloatRange(low, high))
        }
        ValueType::Array if sequence => uniform(each(object, |element| infer(&element, what))?, what),
        _ => fit(infer(object, what)?, kind, what),
    }
}

fn unfit(object: &Bound<'_, PyAny>, kind: ValueType, what: &str) -> PyErr {
    let shown: String = object.repr().map_or_else(|_| type_name(object), |text| text.to_string());
    let shown: String = shown.chars().take(60).collect();
    invalid(
        format!("{what}: {shown} is not a valid {}", kind.name()),
        "give its first and last, both included",
    )
}

/// Converts a value to a type: unchanged, or widened if that is exact.
pub fn fit(value: Value, kind: ValueType, what: &str) -> PyResult<Value> {
    if value.kind() == kind {
        return Ok(value);
    }
    value.fits(kind).ok_or_else(|| {
        let shown: String = value.to_string().chars().take(60).collect();
        invalid(
            format!("{what} is {shown}, {} and not {}", value.kind().name(), kind.name()),
            "give a value of the tag's type, or make another tag (a version) of this type",
        )
    })
}

/// A value as a Python object. A datetime is in UTC; one that `datetime` cannot hold exactly becomes a
/// numpy.datetime64.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Int(number) => number.into_bound_py_any(py),
        Value::UInt(number) => number.into_bound_py_any(py),
        Value::Float(number) => number.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Value::DateTime(moment) if moment % 1000 == 0 => time_object(py, *moment),
        Value::DateTime(moment) => classes(py)?.datetime64.bind(py).call1((*moment, "ns")),
        Value::IntRange(low, high) => classes(py)?.int_range.bind(py).call1((*low, *high)),
        Value::FloatRange(low, high) => classes(py)?.float_range.bind(py).call1((*low, *high)),
        Value::Array(elements) => asarray(&list(py, elements)?),
        Value::List(elements) => list(py, elements),
        Value::Map(pairs) => {
            let map = PyDict::new(py);
            for (key, value) in pairs {
                map.set_item(key, nested(py, value)?)?;
            }
            Ok(map.into_any())
        }
    }
}

fn list<'py>(py: Python<'py>, elements: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let elements = elements.iter().map(|element| nested(py, element));
    Ok(PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// Arrays inside lists and maps become lists.
fn nested<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Array(elements) => list(py, elements),
        value => object(py, value),
    }
}
