//! Columns, each in its most compact form, with their conversion to Arrow and Python.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, TimestampNanosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, TimeUnit};
use fieldstone::{DType, FieldLocation, KeyValue, KeywordType, Typed};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::values::ValueColumn;
use crate::errors::Raise;
use crate::listing::time_object;

/// Each row's index into the distinct texts, and these texts.
pub type Texts<'py> = (Bound<'py, PyAny>, Vec<Option<Arc<str>>>);

/// One column.
pub enum Column {
    /// Values of a keyword: codes into the distinct values, typed by the keyword.
    Keyword { codes: Vec<u32>, distinct: Vec<KeyValue>, kind: KeywordType, form: Form },
    /// Texts, as codes into the distinct texts; `None` if absent.
    Text { codes: Vec<u32>, distinct: Vec<Option<Arc<str>>> },
    /// Unsigned numbers.
    Count(Vec<Option<u64>>),
    /// Numbers, in double precision.
    Number(Vec<Option<f64>>),
    /// True or false.
    Flag(Vec<bool>),
    /// Nanoseconds since 1970, UTC.
    Time(Vec<i64>),
    /// Extents.
    Shape(Vec<Option<Arc<[u64]>>>),
    /// Files and offsets.
    FieldLocation(Vec<Option<FieldLocation>>),
    /// Signed integers.
    Int(Vec<Option<i64>>),
    /// Lists of integers: row i has `values[offsets[i]..offsets[i + 1]]`; an empty list is absent.
    Ints { offsets: Vec<u64>, values: Vec<i64> },
    /// Values of metadata.
    Value(ValueColumn),
}

/// The output form of a keyword's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All values are integers.
    Whole,
    /// All values are numbers.
    Float,
    /// All values are dates.
    Date,
    /// Canonical text.
    Text,
}

impl Form {
    /// The narrowest form that fits all values. Absent values fit every form.
    pub fn of<'v>(kind: KeywordType, values: impl Iterator<Item = &'v KeyValue>) -> Form {
        let mut form = None;
        for value in values {
            let own = match kind.typed(value) {
                Typed::Absent => continue,
                Typed::Int(_) => Form::Whole,
                Typed::Float(_) => Form::Float,
                Typed::Date { .. } => Form::Date,
                Typed::Text(_) => return Form::Text,
            };
            form = match (form, own) {
                (None, own) => Some(own),
                (Some(before), own) if before == own => Some(own),
                (Some(Form::Whole | Form::Float), Form::Whole | Form::Float) => Some(Form::Float),
                _ => return Form::Text,
            };
        }
        form.unwrap_or(Form::Text)
    }
}

impl Column {
    /// A keyword's column, in the narrowest form that fits its values.
    pub fn keyword(codes: Vec<u32>, distinct: Vec<KeyValue>, kind: KeywordType) -> Column {
        // A value of an outer level does not count if a deeper level of the same keyword hides it.
        let mut used = vec![false; distinct.len()];
        codes.iter().for_each(|code| used[*code as usize] = true);
        let form =
            Form::of(kind, distinct.iter().zip(&used).filter(|(_, used)| **used).map(|(value, _)| value));
        Column::Keyword { codes, distinct, kind, form }
    }

    /// Its type in Arrow.
    pub fn data_type(&self) -> DataType {
        match self {
            Column::Keyword { form: Form::Whole, .. } => DataType::Int64,
            Column::Keyword { form: Form::Date, .. } => DataType::Date32,
            Column::Keyword { form: Form::Float, .. } | Column::Number(_) => DataType::Float64,
            Column::Keyword { .. } | Column::Text { .. } | Column::FieldLocation(_) => DataType::Utf8,
            Column::Count(_) => DataType::UInt64,
            Column::Flag(_) => DataType::Boolean,
            Column::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Column::Shape(_) => DataType::List(Arc::new(Field::new_list_field(DataType::UInt64, true))),
            Column::Int(_) => DataType::Int64,
            Column::Ints { .. } => DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
            Column::Value(values) => values.data_type(),
        }
    }

    /// A column of the same type without a row.
    pub fn emptied(self) -> Column {
        match self {
            Column::Keyword { distinct, kind, form, .. } => {
                Column::Keyword { codes: Vec::new(), distinct, kind, form }
            }
            Column::Text { .. } => Column::Text { codes: Vec::new(), distinct: Vec::new() },
            Column::Count(_) => Column::Count(Vec::new()),
            Column::Number(_) => Column::Number(Vec::new()),
            Column::Flag(_) => Column::Flag(Vec::new()),
            Column::Time(_) => Column::Time(Vec::new()),
            Column::Shape(_) => Column::Shape(Vec::new()),
            Column::FieldLocation(_) => Column::FieldLocation(Vec::new()),
            Column::Int(_) => Column::Int(Vec::new()),
            Column::Ints { .. } => Column::Ints { offsets: vec![0], values: Vec::new() },
            Column::Value(values) => Column::Value(values.emptied()),
        }
    }

    /// Approximate bytes in memory.
    pub fn nbytes(&self) -> usize {
        match self {
            Column::Keyword { codes, distinct, .. } => codes.len() * 4 + distinct.len() * 40,
            Column::Text { codes, distinct } => codes.len() * 4 + distinct.len() * 40,
            Column::Count(values) => size_of_val(&values[..]),
            Column::Number(values) => size_of_val(&values[..]),
            Column::Flag(values) => size_of_val(&values[..]),
            Column::Time(values) => size_of_val(&values[..]),
            Column::Shape(values) => size_of_val(&values[..]),
            Column::FieldLocation(values) => size_of_val(&values[..]),
            Column::Int(values) => size_of_val(&values[..]),
            Column::Ints { offsets, values } => size_of_val(&offsets[..]) + size_of_val(&values[..]),
            Column::Value(values) => values.nbytes(),
        }
    }

    /// Rows `start..end` as an Arrow array.
    pub fn array(&self, start: usize, end: usize) -> ArrayRef {
        match self {
            Column::Keyword { codes, distinct, kind, form } => {
                keyword_array(&codes[start..end], distinct, *kind, *form)
            }
            Column::Text { codes, distinct } => {
                let mut texts = StringBuilder::new();
                for code in &codes[start..end] {
                    texts.append_option(distinct[*code as usize].as_deref());
                }
                Arc::new(texts.finish())
            }
            Column::Count(values) => Arc::new(UInt64Array::from_iter(values[start..end].iter().copied())),
            Column::Number(values) => Arc::new(Float64Array::from_iter(values[start..end].iter().copied())),
            Column::Flag(values) => Arc::new(BooleanArray::from(values[start..end].to_vec())),
            Column::Time(values) => {
                Arc::new(TimestampNanosecondArray::from(values[start..end].to_vec()).with_timezone("UTC"))
            }
            Column::Shape(values) => {
                let mut lists = ListBuilder::new(UInt64Builder::new());
                for shape in &values[start..end] {
                    lists.append_option(shape.as_ref().map(|shape| shape.iter().map(|n| Some(*n))));
                }
                Arc::new(lists.finish())
            }
            Column::FieldLocation(values) => {
                let mut texts = StringBuilder::new();
                for place in &values[start..end] {
                    texts.append_option(place.as_ref().map(FieldLocation::to_string));
                }
                Arc::new(texts.finish())
            }
            Column::Int(values) => Arc::new(Int64Array::from_iter(values[start..end].iter().copied())),
            Column::Ints { offsets, values } => int_lists(&offsets[start..=end], values),
            Column::Value(values) => values.array(start, end),
        }
    }

    /// All values as a numpy array, if none is absent and numpy has the type: numbers, booleans and nanoseconds; an
    /// absent number is NaN.
    pub fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        fn made<'py, const N: usize, T: Copy + Sync>(
            py: Python<'py>,
            dtype: DType,
            cells: &[T],
            bytes: impl Fn(T) -> [u8; N] + Send + Sync,
        ) -> PyResult<Option<Bound<'py, PyAny>>> {
            crate::data::new_array(py, dtype, &[cells.len() as u64], |out| {
                for (out, cell) in out.chunks_exact_mut(N).zip(cells) {
                    out.copy_from_slice(&bytes(*cell));
                }
                Ok(())
            })
            .map(Some)
        }
        match self {
            Column::Number(cells) => {
                made(py, DType::F8, cells, |cell: Option<f64>| cell.unwrap_or(f64::NAN).to_ne_bytes())
            }
            Column::Int(cells) if cells.iter().all(Option::is_some) => {
                made(py, DType::I8, cells, |cell: Option<i64>| cell.unwrap_or_default().to_ne_bytes())
            }
            Column::Count(cells) if cells.iter().all(Option::is_some) => {
                let u8s = DType::parse("u8").or_raise()?;
                made(py, u8s, cells, |cell: Option<u64>| cell.unwrap_or_default().to_ne_bytes())
            }
            Column::Flag(cells) => made(py, DType::BOOL, cells, |cell: bool| [u8::from(cell)]),
            Column::Time(cells) => made(py, DType::I8, cells, |cell: i64| cell.to_ne_bytes()),
            Column::Value(values) => match values.numbers() {
                Some(cells) => made(py, DType::F8, &cells, |cell: f64| cell.to_ne_bytes()),
                None => match values.whole() {
                    Some(cells) => made(py, DType::I8, &cells, |cell: i64| cell.to_ne_bytes()),
                    None => Ok(None),
                },
            },
            _ => Ok(None),
        }
    }

    /// Texts as each row's index into the distinct texts; `None` for other columns.
    pub fn coded<'py>(&self, py: Python<'py>) -> PyResult<Option<Texts<'py>>> {
        let Column::Text { codes, distinct } = self else { return Ok(None) };
        let places = crate::data::new_array(py, DType::I4, &[codes.len() as u64], |out| {
            for (out, code) in out.chunks_exact_mut(4).zip(codes) {
                out.copy_from_slice(&(*code as i32).to_ne_bytes());
            }
            Ok(())
        })?;
        Ok(Some((places, distinct.clone())))
    }

    /// One value for Python; None if absent.
    pub fn value<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Column::Keyword { codes, distinct, kind, form } => {
                let value = &distinct[codes[row] as usize];
                match (form, kind.typed(value)) {
                    (_, Typed::Absent) => py.None().into_bound_py_any(py),
                    (Form::Text, _) => value.text().into_bound_py_any(py),
                    (Form::Float, Typed::Int(i)) => (i as f64).into_bound_py_any(py),
                    (_, Typed::Int(i)) => i.into_bound_py_any(py),
                    (_, Typed::Float(x)) => x.into_bound_py_any(py),
                    (_, Typed::Date { y, m, d }) => crate::keys::date_class(py)?.call1((y, m, d)),
                    (_, Typed::Text(text)) => text.into_bound_py_any(py),
                }
            }
            Column::Text { codes, distinct } => {
                distinct[codes[row] as usize].as_deref().into_bound_py_any(py)
            }
            Column::Count(values) => values[row].into_bound_py_any(py),
            Column::Number(values) => values[row].into_bound_py_any(py),
            Column::Flag(values) => values[row].into_bound_py_any(py),
            Column::Time(values) => time_object(py, values[row]),
            Column::Shape(values) => match &values[row] {
                Some(shape) => Ok(PyTuple::new(py, shape.iter())?.into_any()),
                None => py.None().into_bound_py_any(py),
            },
            Column::FieldLocation(values) => {
                values[row].as_ref().map(FieldLocation::to_string).into_bound_py_any(py)
            }
            Column::Int(values) => values[row].into_bound_py_any(py),
            Column::Ints { offsets, values } => match offsets[row] as usize..offsets[row + 1] as usize {
                none if none.is_empty() => py.None().into_bound_py_any(py),
                some => Ok(PyTuple::new(py, &values[some])?.into_any()),
            },
            Column::Value(values) => values.value(py, row),
        }
    }
}

/// Builds lists from the elements between neighbouring offsets.
fn int_lists(offsets: &[u64], values: &[i64]) -> ArrayRef {
    let mut lists =
        ListBuilder::new(Int64Builder::with_capacity((offsets[offsets.len() - 1] - offsets[0]) as usize));
    for ends in offsets.windows(2) {
        let list = &values[ends[0] as usize..ends[1] as usize];
        lists.values().append_slice(list);
        lists.append(!list.is_empty());
    }
    Arc::new(lists.finish())
}

fn keyword_array(codes: &[u32], distinct: &[KeyValue], kind: KeywordType, form: Form) -> ArrayRef {
    // Decodes each distinct value once, then looks up the rows.
    let at = |code: &u32| *code as usize;
    match form {
        Form::Whole => {
            let values: Vec<Option<i64>> = distinct
                .iter()
                .map(|value| match kind.typed(value) {
                    Typed::Int(i) => Some(i),
                    _ => None,
                })
                .collect();
            Arc::new(Int64Array::from_iter(codes.iter().map(|code| values[at(code)])))
        }
        Form::Float => {
            let values: Vec<Option<f64>> = distinct
                .iter()
                .map(|value| match kind.typed(value) {
                    Typed::Int(i) => Some(i as f64),
                    Typed::Float(x) => Some(x),
                    _ => None,
                })
                .collect();
            Arc::new(Float64Array::from_iter(codes.iter().map(|code| values[at(code)])))
        }
        Form::Date => {
            let values: Vec<Option<i32>> = distinct
                .iter()
                .map(|value| match kind.typed(value) {
                    Typed::Date { y, m, d } => Some(days_since_1970(y, m, d)),
                    _ => None,
                })
                .collect();
            Arc::new(Date32Array::from_iter(codes.iter().map(|code| values[at(code)])))
        }
        Form::Text => {
            let mut texts = StringBuilder::new();
            for code in codes {
                let value = &distinct[at(code)];
                texts.append_option((!value.is_absent()).then(|| value.text()));
            }
            Arc::new(texts.finish())
        }
    }
}

/// Days from 1970-01-01 to a Gregorian date. Counts whole 400-year cycles of years that begin in March, which puts
/// the leap day last.
fn days_since_1970(year: i32, month: u8, day: u8) -> i32 {
    let (month, day) = (i32::from(month), i32::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}
