//! Columns of many attributes: one value for all rows, or a numpy array, Arrow array, pandas Series or list with one
//! value per row. Rows of typed columns never become Python objects.

use fieldstone::catalog::Values;
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::{ByteOrder, DType, DTypeKind};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple,
};

use super::values;
use crate::data::{self, Data};
use crate::errors::{Refuse, invalid};
use crate::request::type_name;
use crate::sequence::each;

/// The cells of a column, by type.
pub enum Cells {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    UInt(Vec<u64>),
    Float(Vec<f64>),
    Text(Vec<String>),
    /// Nanoseconds since 1970.
    Time(Vec<i64>),
    /// Texts as indices into the distinct texts.
    Coded(Vec<u32>, Vec<String>),
    Any(Vec<Value>),
}

impl Cells {
    /// Each cell as a value.
    pub fn singly(self) -> Vec<Value> {
        match self {
            Cells::Bool(cells) => cells.into_iter().map(Value::Bool).collect(),
            Cells::Int(cells) => cells.into_iter().map(Value::Int).collect(),
            Cells::UInt(cells) => cells.into_iter().map(Value::UInt).collect(),
            Cells::Float(cells) => cells.into_iter().map(Value::Float).collect(),
            Cells::Text(cells) => cells.into_iter().map(Value::Text).collect(),
            Cells::Time(cells) => cells.into_iter().map(Value::DateTime).collect(),
            Cells::Coded(codes, words) => {
                codes.into_iter().map(|code| Value::Text(words[code as usize].clone())).collect()
            }
            Cells::Any(cells) => cells,
        }
    }

    /// The type of the values as given; for objects, the type that all of them share.
    pub fn kind(&self) -> ValueType {
        match self {
            Cells::Bool(_) => ValueType::Bool,
            Cells::Int(_) => ValueType::Int,
            Cells::UInt(_) => ValueType::UInt,
            Cells::Float(_) => ValueType::Float,
            Cells::Text(_) | Cells::Coded(..) => ValueType::Text,
            Cells::Time(_) => ValueType::DateTime,
            Cells::Any(cells) => kind_of(cells),
        }
    }
}

/// The type that fits all values: float if ints and floats are mixed, json if no common type exists.
fn kind_of(values: &[Value]) -> ValueType {
    let Some(first) = values.first().map(Value::kind) else { return ValueType::Float };
    if values.iter().all(|value| value.kind() == first) {
        return first;
    }
    let number = |value: &Value| matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_));
    match values.iter().all(number) {
        false => ValueType::Json,
        true if values.iter().any(|value| matches!(value, Value::Float(_))) => ValueType::Float,
        true if values.iter().all(|value| value.fits(ValueType::Int).is_some()) => ValueType::Int,
        true => ValueType::UInt,
    }
}

/// Whether an object is one value and not a column. For a tag of arrays, a plain array is one value.
fn is_one(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PyDate>()
        || data::is_numpy_scalar(object)?
        || (object.is_instance_of::<PyTuple>() && object.hasattr("low")?))
}

/// The column that an object holds; `None` if it is one value.
pub fn cells(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Cells>> {
    if values::is_missing(object)? {
        return Err(invalid(format!("{what} is missing"), "leave it out"));
    }
    if is_one(object)? {
        return Ok(None);
    }
    column(object, what).map(Some)
}

fn column(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Cells> {
    if values::is_array(object)? {
        return from_numpy(object, what);
    }
    let module = object.get_type().getattr("__module__")?.extract::<String>().unwrap_or_default();
    if (module == "pandas" || module.starts_with("pandas.")) && object.hasattr("to_numpy")? {
        return from_pandas(object, what);
    }
    if let Some(cells) = super::arrow::cells(object, what)? {
        return Ok(cells);
    }
    if object.is_instance_of::<PyRange>() {
        return from_numpy(&values::asarray(object)?, what);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return objects(object, what);
    }
    if object.hasattr("__array__")? {
        return from_numpy(&values::asarray(object)?, what);
    }
    let items = object.try_iter().or_refuse(object.py(), || {
        invalid(
            format!("{what} is {}, which is not a column", type_name(object)),
            "give one value, a numpy or Arrow array, a pandas Series or a list",
        )
    })?;
    objects(items.as_any(), what)
}

/// Reads a pandas column through numpy, because pandas needs pyarrow to export Arrow, and its export reduces periods,
/// intervals and the like to their storage. Missing values of pandas are missing here, including NaN in object
/// columns, such as text, and NA in nullable columns, such as Int64, which numpy gets as floats with NaN.
fn from_pandas(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Cells> {
    let array = object.call_method0("to_numpy")?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let absent_as = match object.getattr_opt("dtype")? {
        Some(dtype) => dtype.getattr_opt("na_value")?,
        None => None,
    };
    let may_be_absent = match absent_as {
        Some(value) => values::is_missing(&value)?,
        None => false,
    };
    if kind == "O" || may_be_absent {
        let missing = values::asarray(&object.call_method0("isna")?)?;
        if missing.call_method0("any")?.is_truthy()? {
            return Err(absent(what, missing.call_method0("argmax")?.extract()?));
        }
    }
    from_numpy(&array, what)
}

/// A list of objects, each of its own type.
fn objects(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Cells> {
    let mut row = 0;
    let cells = each(object, |item| {
        row += 1;
        match values::is_missing(&item)? {
            true => Err(absent(what, row - 1)),
            false => values::infer(&item, what),
        }
    });
    Ok(narrow(cells?))
}

/// Stores values that share one type as a column of that type.
fn narrow(values: Vec<Value>) -> Cells {
    macro_rules! all {
        ($kind:ident, $make:ident) => {
            if values.iter().all(|value| matches!(value, Value::$kind(_))) {
                let cells = values.into_iter().filter_map(|value| match value {
                    Value::$kind(cell) => Some(cell),
                    _ => None,
                });
                return Cells::$make(cells.collect());
            }
        };
    }
    match values.first() {
        Some(Value::Float(_)) => all!(Float, Float),
        Some(Value::Int(_)) => all!(Int, Int),
        Some(Value::UInt(_)) => all!(UInt, UInt),
        Some(Value::Bool(_)) => all!(Bool, Bool),
        Some(Value::Text(_)) => all!(Text, Text),
        Some(Value::DateTime(_)) => all!(DateTime, Time),
        _ => {}
    }
    Cells::Any(values)
}

/// The error for a missing value.
pub fn absent(what: &str, row: usize) -> PyErr {
    invalid(format!("{what} has no value in row {row}"), "leave out rows without a value")
}

/// Converts elements of `N` bytes from their layout in memory.
fn words<const N: usize, T>(bytes: &[u8], dtype: DType, from: impl Fn([u8; N]) -> T) -> Vec<T> {
    let swapped = !dtype.is_native();
    let read = |chunk: &[u8]| {
        let mut word = [0; N];
        word.copy_from_slice(chunk);
        if swapped {
            word.reverse();
        }
        from(word)
    };
    bytes.chunks_exact(N).map(read).collect()
}

/// Reads a numpy array, whose first dimension counts the rows.
pub fn from_numpy(array: &Bound<'_, PyAny>, what: &str) -> PyResult<Cells> {
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if data::is_masked(array)? {
        let flags = array.py().import("numpy.ma")?.getattr("getmaskarray")?.call1((array,))?;
        let row = flags.call_method0("ravel")?.call_method0("argmax")?.extract::<usize>()?;
        let width = flags.getattr("size")?.extract::<usize>()? / array.len()?.max(1);
        return Err(absent(what, row / width.max(1)));
    }
    if kind == "O" || dimensions > 1 {
        return objects(array, what);
    }
    let array = match &*kind {
        "M" => array.py().import("fieldstone._values")?.getattr("datetimes_ns")?.call1((array,))?,
        "f" if dtype.getattr("itemsize")?.eq(2)? => array.call_method1("astype", ("f4",))?,
        _ => array.clone(),
    };
    let data = Data::new(&array)?;
    let Some((dtype, _)) = data.array else {
        return Err(invalid(format!("{what} is not an array"), "give a list"));
    };
    let (bytes, size) = (data.bytes(), dtype.size());
    Ok(match (dtype.kind(), size) {
        (DTypeKind::Bool, 1) => Cells::Bool(bytes.iter().map(|byte| *byte != 0).collect()),
        (DTypeKind::Int, 1) => Cells::Int(bytes.iter().map(|byte| i64::from(*byte as i8)).collect()),
        (DTypeKind::Int, 2) => Cells::Int(words(bytes, dtype, |w| i64::from(i16::from_ne_bytes(w)))),
        (DTypeKind::Int, 4) => Cells::Int(words(bytes, dtype, |w| i64::from(i32::from_ne_bytes(w)))),
        (DTypeKind::Int, 8) => Cells::Int(words(bytes, dtype, i64::from_ne_bytes)),
        (DTypeKind::UInt, 1) => Cells::Int(bytes.iter().map(|byte| i64::from(*byte)).collect()),
        (DTypeKind::UInt, 2) => Cells::Int(words(bytes, dtype, |w| i64::from(u16::from_ne_bytes(w)))),
        (DTypeKind::UInt, 4) => Cells::Int(words(bytes, dtype, |w| i64::from(u32::from_ne_bytes(w)))),
        (DTypeKind::UInt, 8) => Cells::UInt(words(bytes, dtype, u64::from_ne_bytes)),
        (DTypeKind::Float, 4) => Cells::Float(words(bytes, dtype, |w| f64::from(f32::from_ne_bytes(w)))),
        (DTypeKind::Float, 8) => Cells::Float(words(bytes, dtype, f64::from_ne_bytes)),
        (DTypeKind::DateTime, 8) => {
            let cells = words(bytes, dtype, i64::from_ne_bytes);
            match cells.iter().position(|cell| *cell == i64::MIN) {
                Some(row) => return Err(absent(what, row)),
                None => Cells::Time(cells),
            }
        }
        (DTypeKind::Unicode, _) => {
            let texts = bytes.chunks_exact(size).map(|text| unicode(text, dtype.byte_order(), what));
            Cells::Text(texts.collect::<PyResult<_>>()?)
        }
        (DTypeKind::Bytes, _) => {
            let end = |cell: &[u8]| cell.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let cells = bytes.chunks_exact(size).map(|cell| Value::Bytes(cell[..end(cell)].to_vec()));
            Cells::Any(cells.collect())
        }
        _ => {
            return Err(invalid(
                format!("{what} has dtype {dtype}, which is not a metadata value"),
                "give bools, integers, floats, texts, bytes or datetimes",
            ));
        }
    })
}

/// Decodes numpy's text: four bytes per code point, padded with zeros.
fn unicode(bytes: &[u8], order: ByteOrder, what: &str) -> PyResult<String> {
    let mut text = String::with_capacity(bytes.len() / 4);
    let mut zeros = 0;
    for chunk in bytes.chunks_exact(4) {
        let mut word = [0; 4];
        word.copy_from_slice(chunk);
        let code = match order {
            ByteOrder::Big => u32::from_be_bytes(word),
            _ => u32::from_le_bytes(word),
        };
        if code == 0 {
            zeros += 1;
            continue;
        }
        text.extend(std::iter::repeat_n('\0', zeros));
        zeros = 0;
        text.push(char::from_u32(code).ok_or_else(|| {
            invalid(format!("{what} has text that UTF-8 cannot encode"), "give bytes, or other text")
        })?);
    }
    Ok(text)
}

/// Converts the values of a batch to the tag's type.
pub fn values(cells: Cells, kind: ValueType, what: &str) -> PyResult<Values> {
    let wrong = |row: usize, value: Value| match values::fit(value, kind, what) {
        Err(error) => error,
        Ok(_) => invalid(format!("{what}, row {row}"), "give values of the tag's type"),
    };
    Ok(match (cells, kind) {
        (Cells::Bool(cells), ValueType::Bool) => Values::Bool(cells),
        (Cells::Int(cells), ValueType::Int) => Values::Int(cells),
        (Cells::Time(cells), ValueType::DateTime) => Values::Int(cells),
        (Cells::UInt(cells), ValueType::UInt) => Values::UInt(cells),
        (Cells::Float(cells), ValueType::Float) => Values::Float(cells),
        (Cells::Text(cells), ValueType::Text) => Values::Text(cells),
        (Cells::Coded(codes, words), ValueType::Text) => {
            Values::Text(codes.into_iter().map(|code| words[code as usize].clone()).collect())
        }
        (Cells::Int(cells), ValueType::Float) => {
            let exact = |n: i64| (n as f64) as i128 == i128::from(n);
            match cells.iter().position(|n| !exact(*n)) {
                Some(row) => return Err(wrong(row, Value::Int(cells[row]))),
                None => Values::Float(cells.into_iter().map(|n| n as f64).collect()),
            }
        }
        (Cells::Int(cells), ValueType::UInt) => match cells.iter().position(|n| *n < 0) {
            Some(row) => return Err(wrong(row, Value::Int(cells[row]))),
            None => Values::UInt(cells.into_iter().map(|n| n as u64).collect()),
        },
        (cells, kind) => typed(cells.singly(), kind, what)?,
    })
}

/// Collects values of one type into a column of that type.
pub fn typed(all: Vec<Value>, kind: ValueType, what: &str) -> PyResult<Values> {
    let pair = |value: Value| match (value, kind) {
        (Value::List(ends), ValueType::IntRange | ValueType::FloatRange) if ends.len() == 2 => {
            match (ends[0].fits(ValueType::Float), ends[1].fits(ValueType::Float), &ends[0], &ends[1]) {
                (_, _, Value::Int(a), Value::Int(b)) if kind == ValueType::IntRange => {
                    Value::IntRange(*a, *b)
                }
                (Some(Value::Float(a)), Some(Value::Float(b)), _, _) if kind == ValueType::FloatRange => {
                    Value::FloatRange(a, b)
                }
                _ => Value::List(ends),
            }
        }
        (value, _) => value,
    };
    let all =
        all.into_iter().map(|value| values::fit(pair(value), kind, what)).collect::<PyResult<Vec<_>>>()?;
    Ok(Values::of(kind, all))
}
