//! A column of metadata values: of one type if all values share it, doubles if all are numbers, otherwise JSON text.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampNanosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, TimestampNanosecondArray, UInt64Array};
use arrow_schema::{DataType, Field, TimeUnit};
use fieldstone::catalog::value::{Value, ValueType, moment_text};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::catalog::object;

/// Values, and their output form.
pub struct ValueColumn {
    values: Vec<Value>,
    form: Form,
}

/// The output form of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bool,
    Int,
    UInt,
    Float,
    Text,
    Bytes,
    Time,
    /// Both ends.
    IntRange,
    FloatRange,
    /// Lists of these.
    Bools,
    Ints,
    UInts,
    Floats,
    Texts,
    Times,
    Json,
}

impl Form {
    fn of(value: &Value) -> Option<Form> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Form::Bool,
            Value::Int(_) => Form::Int,
            Value::UInt(_) => Form::UInt,
            Value::Float(_) => Form::Float,
            Value::Text(_) => Form::Text,
            Value::Bytes(_) => Form::Bytes,
            Value::DateTime(_) => Form::Time,
            Value::IntRange(..) => Form::IntRange,
            Value::FloatRange(..) => Form::FloatRange,
            Value::Array(elements) => match elements.first().and_then(Form::of) {
                Some(Form::Bool) => Form::Bools,
                Some(Form::Int) => Form::Ints,
                Some(Form::UInt) => Form::UInts,
                Some(Form::Float) => Form::Floats,
                Some(Form::Text) => Form::Texts,
                Some(Form::Time) => Form::Times,
                _ => return None,
            },
            Value::List(_) | Value::Map(_) => Form::Json,
        })
    }

    /// The form of a type's values.
    fn of_kind(kind: ValueType) -> Form {
        match kind {
            ValueType::Bool => Form::Bool,
            ValueType::Int => Form::Int,
            ValueType::UInt => Form::UInt,
            ValueType::Float => Form::Float,
            ValueType::Text => Form::Text,
            ValueType::Bytes => Form::Bytes,
            ValueType::DateTime => Form::Time,
            ValueType::IntRange => Form::IntRange,
            ValueType::FloatRange => Form::FloatRange,
            ValueType::Array => Form::Floats,
            ValueType::Json => Form::Json,
        }
    }

    /// The common form of two.
    fn with(self, other: Form) -> Form {
        let number = |form| matches!(form, Form::Int | Form::UInt | Form::Float);
        match (self, other) {
            (a, b) if a == b => a,
            (a, b) if number(a) && number(b) => Form::Float,
            _ => Form::Json,
        }
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::UInt(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    }
}

/// A list column; `push` fills each list, and a value that is not an array is absent.
fn lists<B: ArrayBuilder>(values: &[Value], elements: B, push: impl Fn(&mut B, &Value)) -> ArrayRef {
    let mut lists = ListBuilder::new(elements);
    for value in values {
        match value {
            Value::Array(elements) => {
                elements.iter().for_each(|element| push(lists.values(), element));
                lists.append(true);
            }
            Value::IntRange(low, high) => {
                push(lists.values(), &Value::Int(*low));
                push(lists.values(), &Value::Int(*high));
                lists.append(true);
            }
            Value::FloatRange(low, high) => {
                push(lists.values(), &Value::Float(*low));
                push(lists.values(), &Value::Float(*high));
                lists.append(true);
            }
            _ => lists.append(false),
        }
    }
    Arc::new(lists.finish())
}

macro_rules! pick {
    ($kind:ident) => {
        |value: &Value| match value {
            Value::$kind(inner) => Some(*inner),
            _ => None,
        }
    };
}

impl ValueColumn {
    pub fn new(values: Vec<Value>) -> ValueColumn {
        let forms = values.iter().filter_map(Form::of);
        let form = forms.reduce(Form::with).unwrap_or(match values.first() {
            Some(Value::Array(_)) => Form::Floats,
            _ => Form::Json,
        });
        ValueColumn { values, form }
    }

    /// Like `of`, but with this type if no value determines one; `Json` always gives text.
    pub fn of_kind(values: Vec<Value>, kind: Option<ValueType>) -> ValueColumn {
        let mut column = ValueColumn::new(values);
        let said = column.values.iter().any(|value| Form::of(value).is_some());
        match kind {
            Some(ValueType::Json) if column.form != Form::Text => column.form = Form::Json,
            Some(kind) if !said => column.form = Form::of_kind(kind),
            _ => {}
        }
        column
    }

    /// Lists of integers, or of texts.
    pub fn of_lists(values: Vec<Value>, texts: bool) -> ValueColumn {
        ValueColumn { values, form: if texts { Form::Texts } else { Form::Ints } }
    }

    /// A column without rows, of the same type.
    pub fn emptied(self) -> ValueColumn {
        ValueColumn { values: Vec::new(), form: self.form }
    }

    /// All values as floats, if that is their form; an absent value is NaN.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let float = |value| float(value).unwrap_or(f64::NAN);
        (self.form == Form::Float).then(|| self.values.iter().map(float).collect())
    }

    /// All values as integers, if that is their form and none is absent.
    pub fn whole(&self) -> Option<Vec<i64>> {
        match self.form {
            Form::Int => self.values.iter().map(pick!(Int)).collect(),
            _ => None,
        }
    }

    pub fn data_type(&self) -> DataType {
        let list = |kind| DataType::List(Arc::new(Field::new_list_field(kind, true)));
        let time = || DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        match self.form {
            Form::Bool => DataType::Boolean,
            Form::Int => DataType::Int64,
            Form::UInt => DataType::UInt64,
            Form::Float => DataType::Float64,
            Form::Text | Form::Json => DataType::Utf8,
            Form::Bytes => DataType::Binary,
            Form::Time => time(),
            Form::IntRange | Form::Ints => list(DataType::Int64),
            Form::FloatRange | Form::Floats => list(DataType::Float64),
            Form::Bools => list(DataType::Boolean),
            Form::UInts => list(DataType::UInt64),
            Form::Texts => list(DataType::Utf8),
            Form::Times => list(time()),
        }
    }

    pub fn nbytes(&self) -> usize {
        size_of_val(&self.values[..])
    }

    pub fn array(&self, start: usize, end: usize) -> ArrayRef {
        let values = &self.values[start..end];
        let all = values.iter();
        match self.form {
            Form::Bool => Arc::new(BooleanArray::from_iter(all.map(pick!(Bool)))),
            Form::Int => Arc::new(Int64Array::from_iter(all.map(pick!(Int)))),
            Form::UInt => Arc::new(UInt64Array::from_iter(all.map(pick!(UInt)))),
            Form::Float => Arc::new(Float64Array::from_iter(all.map(float))),
            Form::Time => {
                let times = TimestampNanosecondArray::from_iter(all.map(pick!(DateTime)));
                Arc::new(times.with_timezone("UTC"))
            }
            Form::Text => {
                let mut texts = StringBuilder::new();
                for value in all {
                    texts.append_option(if let Value::Text(text) = value { Some(text) } else { None });
                }
                Arc::new(texts.finish())
            }
            Form::Bytes => {
                let mut column = BinaryBuilder::new();
                for value in all {
                    column.append_option(if let Value::Bytes(bytes) = value { Some(bytes) } else { None });
                }
                Arc::new(column.finish())
            }
            Form::IntRange | Form::Ints => {
                let int = |out: &mut Int64Builder, value: &Value| out.append_option(pick!(Int)(value));
                lists(values, Int64Builder::new(), int)
            }
            Form::FloatRange | Form::Floats => {
                lists(values, Float64Builder::new(), |out, value| out.append_option(float(value)))
            }
            Form::Bools => {
                let flag = |out: &mut BooleanBuilder, value: &Value| out.append_option(pick!(Bool)(value));
                lists(values, BooleanBuilder::new(), flag)
            }
            Form::UInts => {
                let int = |out: &mut UInt64Builder, value: &Value| out.append_option(pick!(UInt)(value));
                lists(values, UInt64Builder::new(), int)
            }
            Form::Texts => lists(values, StringBuilder::new(), |out, value| {
                out.append_option(if let Value::Text(text) = value { Some(text) } else { None });
            }),
            Form::Times => {
                let times = TimestampNanosecondBuilder::new().with_timezone("UTC");
                lists(values, times, |out, value| out.append_option(pick!(DateTime)(value)))
            }
            Form::Json => {
                let mut texts = StringBuilder::new();
                for value in all {
                    texts.append_option((!matches!(value, Value::Null)).then(|| json(value)));
                }
                Arc::new(texts.finish())
            }
        }
    }

    /// One value for Python, in the column's type.
    pub fn value<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match (self.form, &self.values[row]) {
            (_, Value::Null) => Ok(py.None().into_bound(py)),
            (Form::Float, value) => float(value).into_bound_py_any(py),
            (Form::Json, value) => json(value).into_bound_py_any(py),
            (_, Value::Array(elements)) => {
                let elements = elements.iter().map(|element| object(py, element));
                Ok(PyTuple::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            (_, value) => object(py, value),
        }
    }
}

/// A value as JSON. For types that JSON lacks: NaN and infinities are spelled as in Python's `json`, bytes are
/// hexadecimal text, times are RFC 3339 text, ranges are their two ends.
fn json(value: &Value) -> String {
    let pair = |low: String, high: String| format!("[{low}, {high}]");
    match value {
        Value::Float(x) if x.is_nan() => "NaN".to_owned(),
        Value::Float(x) if x.is_infinite() => if *x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Value::Bytes(_) => format!("\"{value}\""),
        Value::DateTime(moment) => format!("\"{}\"", moment_text(*moment)),
        Value::IntRange(low, high) => pair(low.to_string(), high.to_string()),
        Value::FloatRange(low, high) => pair(json(&Value::Float(*low)), json(&Value::Float(*high))),
        Value::Array(elements) | Value::List(elements) => {
            format!("[{}]", elements.iter().map(json).collect::<Vec<_>>().join(", "))
        }
        Value::Map(pairs) => {
            let key = |key: &String| Value::Text(key.clone()).to_string();
            let pairs = pairs.iter().map(|(name, value)| format!("{}: {}", key(name), json(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Text(_) => {
            value.to_string()
        }
    }
}
