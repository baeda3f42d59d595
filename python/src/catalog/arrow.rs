//! Reads columns from Arrow through the PyCapsule interface, sharing the memory of pyarrow, polars, DuckDB and
//! others.
//!
//! This file and `data.rs` hold the module's only `unsafe` code: it takes C structures out of capsules, as
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html> specifies. A capsule of that name
//! holds a valid structure; taking the structure leaves a released one in its place, so that it is freed once.

use std::ptr::NonNull;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, make_array};
use arrow_schema::{DataType, TimeUnit};
use fieldstone::catalog::value::Value;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::columns::{Cells, absent};
use crate::errors::invalid;

const DAY: i64 = 86_400_000_000_000;

/// The column that an Arrow object holds; `None` if the object is not an Arrow one.
pub fn cells(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Cells>> {
    // An error of the other library describes that library's data, so the caller gets it as invalid input.
    let lent = |name: &str| {
        object.call_method0(name).map_err(|error| match error.is_instance_of::<PyException>(object.py()) {
            true => invalid(format!("{what} cannot be read as Arrow: {error}"), "give values of one type"),
            false => error,
        })
    };
    let arrays = if object.hasattr("__arrow_c_array__")? {
        let both = lent("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        vec![array(&both.get_item(0)?.cast_into()?, &both.get_item(1)?.cast_into()?, what)?]
    } else if object.hasattr("__arrow_c_stream__")? {
        stream(&lent("__arrow_c_stream__")?.cast_into()?, what)?
    } else {
        return Ok(None);
    };
    let mut parts = Vec::with_capacity(arrays.len());
    let mut before = 0;
    for array in arrays {
        if let Some(row) =
            array.logical_nulls().and_then(|nulls| (0..array.len()).find(|i| nulls.is_null(*i)))
        {
            return Err(absent(what, before + row));
        }
        before += array.len();
        parts.push(part(&array, what)?);
    }
    Ok(Some(joined(parts)))
}

/// Reads a structure out of a capsule and leaves `empty` in its place.
fn take<T>(capsule: &Bound<'_, PyCapsule>, name: &'static std::ffi::CStr, empty: T) -> PyResult<T> {
    let place: NonNull<T> = capsule.pointer_checked(Some(name))?.cast();
    // SAFETY: a capsule of this name points to a valid structure of this type, which no one else uses while we hold
    // the interpreter's lock; we leave a released structure in its place, so that it is freed once.
    Ok(unsafe { place.replace(empty) })
}

/// Refuses extension types: storing only their storage would lose their meaning.
fn check_plain(schema: &FFI_ArrowSchema, what: &str) -> PyResult<()> {
    let metadata = schema.metadata().map_err(|e| invalid(format!("{what}: {e}"), "give numpy arrays"))?;
    if let Some(name) = metadata.get("ARROW:extension:name") {
        return Err(invalid(
            format!("{what} is an Arrow array of the extension type {name}, which is not a metadata value"),
            "cast it to an equivalent plain type: text, a number, a timestamp",
        ));
    }
    schema.children().chain(schema.dictionary()).try_for_each(|child| check_plain(child, what))
}

fn array(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>, what: &str) -> PyResult<ArrayRef> {
    let schema = take(schema, c"arrow_schema", FFI_ArrowSchema::empty())?;
    check_plain(&schema, what)?;
    let array = take(array, c"arrow_array", FFI_ArrowArray::empty())?;
    imported(array, &schema)
}

fn imported(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<ArrayRef> {
    // SAFETY: both come from one exporter, which guarantees that the array matches the schema.
    let data = unsafe { from_ffi(array, schema) };
    data.map(make_array)
        .map_err(|e| invalid(format!("the Arrow array cannot be read: {e}"), "give numpy arrays"))
}

fn stream(capsule: &Bound<'_, PyCapsule>, what: &str) -> PyResult<Vec<ArrayRef>> {
    let mut stream = take(capsule, c"arrow_array_stream", FFI_ArrowArrayStream::empty())?;
    let failed = || invalid("the Arrow stream ended with an error", "give numpy arrays");
    let (Some(get_schema), Some(get_next)) = (stream.get_schema(), stream.get_next()) else {
        return Err(failed());
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is valid and ours; the callback fills the structure or returns an error.
    if unsafe { get_schema(&raw mut stream, &raw mut schema) } != 0 {
        return Err(failed());
    }
    check_plain(&schema, what)?;
    let mut arrays = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        if unsafe { get_next(&raw mut stream, &raw mut array) } != 0 {
            return Err(failed());
        }
        if array.is_released() {
            return Ok(arrays);
        }
        arrays.push(imported(array, &schema)?);
    }
}

fn numbers<T: ArrowPrimitiveType, U>(array: &ArrayRef, from: impl Fn(T::Native) -> U) -> Vec<U> {
    let numbers: &PrimitiveArray<T> = array.as_primitive();
    numbers.values().iter().map(|number| from(*number)).collect()
}

fn moments<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef, unit: i64, what: &str) -> PyResult<Cells> {
    let cells = numbers::<T, _>(array, |count| count.checked_mul(unit));
    let cells: Option<Vec<i64>> = cells.into_iter().collect();
    cells.map(Cells::Time).ok_or_else(|| {
        invalid(
            format!("{what} has a time outside the range of nanoseconds since 1970"),
            "give years 1678 to 2261",
        )
    })
}

/// Converts one array.
fn part(array: &ArrayRef, what: &str) -> PyResult<Cells> {
    let texts = |texts: Vec<Option<&str>>| {
        Cells::Text(texts.into_iter().map(|text| text.unwrap_or_default().to_owned()).collect())
    };
    let bytes = |all: Vec<Option<&[u8]>>| {
        Cells::Any(all.into_iter().map(|bytes| Value::Bytes(bytes.unwrap_or_default().to_vec())).collect())
    };
    Ok(match array.data_type() {
        DataType::Boolean => Cells::Bool(array.as_boolean().values().iter().collect()),
        DataType::Int8 => Cells::Int(numbers::<Int8Type, _>(array, i64::from)),
        DataType::Int16 => Cells::Int(numbers::<Int16Type, _>(array, i64::from)),
        DataType::Int32 => Cells::Int(numbers::<Int32Type, _>(array, i64::from)),
        DataType::Int64 => Cells::Int(numbers::<Int64Type, _>(array, |n| n)),
        DataType::UInt8 => Cells::Int(numbers::<UInt8Type, _>(array, i64::from)),
        DataType::UInt16 => Cells::Int(numbers::<UInt16Type, _>(array, i64::from)),
        DataType::UInt32 => Cells::Int(numbers::<UInt32Type, _>(array, i64::from)),
        DataType::UInt64 => Cells::UInt(numbers::<UInt64Type, _>(array, |n| n)),
        DataType::Float32 => Cells::Float(numbers::<Float32Type, _>(array, f64::from)),
        DataType::Float64 => Cells::Float(numbers::<Float64Type, _>(array, |n| n)),
        DataType::Utf8 => texts(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => texts(array.as_string_view().iter().collect()),
        DataType::Binary => bytes(array.as_binary::<i32>().iter().collect()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => bytes(array.as_binary_view().iter().collect()),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => moments::<TimestampSecondType>(array, 1_000_000_000, what)?,
            TimeUnit::Millisecond => moments::<TimestampMillisecondType>(array, 1_000_000, what)?,
            TimeUnit::Microsecond => moments::<TimestampMicrosecondType>(array, 1_000, what)?,
            TimeUnit::Nanosecond => moments::<TimestampNanosecondType>(array, 1, what)?,
        },
        DataType::Date32 => Cells::Time(numbers::<Date32Type, _>(array, |days| i64::from(days) * DAY)),
        DataType::Date64 => moments::<Date64Type>(array, 1_000_000, what)?,
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => dictionary::<Int8Type>(array, what)?,
            DataType::Int16 => dictionary::<Int16Type>(array, what)?,
            DataType::Int32 => dictionary::<Int32Type>(array, what)?,
            DataType::Int64 => dictionary::<Int64Type>(array, what)?,
            DataType::UInt8 => dictionary::<UInt8Type>(array, what)?,
            DataType::UInt16 => dictionary::<UInt16Type>(array, what)?,
            DataType::UInt32 => dictionary::<UInt32Type>(array, what)?,
            _ => dictionary::<UInt64Type>(array, what)?,
        },
        DataType::List(_) => lists(array.as_list::<i32>().iter(), what)?,
        DataType::LargeList(_) => lists(array.as_list::<i64>().iter(), what)?,
        DataType::FixedSizeList(..) => lists(array.as_fixed_size_list().iter(), what)?,
        DataType::Null => Cells::Any(Vec::new()),
        other => {
            return Err(invalid(
                format!("{what} is an Arrow array of {other}, which is not a metadata value"),
                "give bools, numbers, texts, bytes, timestamps, or lists of these",
            ));
        }
    })
}

fn lists(arrays: impl Iterator<Item = Option<ArrayRef>>, what: &str) -> PyResult<Cells> {
    let lists = arrays.map(|array| match array {
        Some(array) => part(&array, what).map(|cells| Value::List(cells.singly())),
        None => Ok(Value::List(Vec::new())),
    });
    Ok(Cells::Any(lists.collect::<PyResult<_>>()?))
}

/// Converts a dictionary array: to codes if the distinct values are texts, otherwise value by value.
fn dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef, what: &str) -> PyResult<Cells> {
    let coded = array.as_dictionary::<K>();
    let places: Vec<usize> = coded.keys_iter().map(|place| place.unwrap_or_default()).collect();
    Ok(match part(coded.values(), what)? {
        Cells::Text(words) => Cells::Coded(places.into_iter().map(|place| place as u32).collect(), words),
        cells => {
            let distinct = cells.singly();
            Cells::Any(places.into_iter().map(|place| distinct[place].clone()).collect())
        }
    })
}

/// Concatenates the chunks of one column.
fn joined(parts: Vec<Cells>) -> Cells {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else { return Cells::Any(Vec::new()) };
    for part in parts {
        all = match (all, part) {
            (Cells::Bool(mut all), Cells::Bool(more)) => {
                all.extend(more);
                Cells::Bool(all)
            }
            (Cells::Int(mut all), Cells::Int(more)) => {
                all.extend(more);
                Cells::Int(all)
            }
            (Cells::UInt(mut all), Cells::UInt(more)) => {
                all.extend(more);
                Cells::UInt(all)
            }
            (Cells::Float(mut all), Cells::Float(more)) => {
                all.extend(more);
                Cells::Float(all)
            }
            (Cells::Text(mut all), Cells::Text(more)) => {
                all.extend(more);
                Cells::Text(all)
            }
            (Cells::Time(mut all), Cells::Time(more)) => {
                all.extend(more);
                Cells::Time(all)
            }
            (Cells::Coded(mut all, mut words), Cells::Coded(more, others)) => {
                let first = words.len() as u32;
                all.extend(more.into_iter().map(|code| code + first));
                words.extend(others);
                Cells::Coded(all, words)
            }
            (all, part) => {
                let mut all = all.singly();
                all.extend(part.singly());
                Cells::Any(all)
            }
        };
    }
    all
}
