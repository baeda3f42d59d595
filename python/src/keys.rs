//! Keys in Python: immutable mappings from keyword to canonical text.
//!
//! A listing makes millions of keys, and neighbours are similar: an [`Interner`] shares the keywords of keys that
//! have the same ones, and the text of values that do not change from one key to the next.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fieldstone::{FieldKey, KeyValue, KeywordType, Level, Schema, Typed};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::sequence::Several;

/// The keywords of a key, shared by all keys with the same ones.
pub struct Shape {
    names: Vec<Py<PyString>>,
    kinds: Vec<KeywordType>,
    /// A view of the distinct names, which `keys()` returns.
    view: Py<PyAny>,
    distinct: usize,
}

/// The key of a field: an immutable mapping from keyword to canonical text.
///
/// Keys compare by keyword and value, are hashable, and sort in typed order ("2" before "10" if the schema says
/// Integer). ``dict(key)`` is a plain dict; ``key.typed`` has int, float and date values.
#[pyclass(frozen, mapping, name = "Key", module = "fieldstone")]
pub struct Key {
    pub key: FieldKey,
    /// The number of levels that count.
    depth: usize,
    shape: Arc<Shape>,
    values: Vec<Py<PyString>>,
}

/// Keyword and value of each present value, level by level.
fn present(levels: &[Arc<Level>]) -> impl Iterator<Item = (&Arc<str>, &KeyValue)> {
    let all = levels.iter().flat_map(|level| level.names.iter().zip(&level.values));
    all.filter(|(_, value)| !value.is_absent())
}

impl Key {
    fn levels(&self) -> &[Arc<Level>] {
        &self.key.levels[..self.depth]
    }

    /// Keyword and value of each present value, outermost first.
    pub fn pairs(&self) -> impl Iterator<Item = (&Arc<str>, &KeyValue)> {
        present(self.levels())
    }

    /// The value of a keyword at its deepest level, as in `FieldKey::get`.
    fn find(&self, py: Python<'_>, keyword: &Bound<'_, PyAny>) -> PyResult<Option<&Py<PyString>>> {
        if let Some(place) = self.shape.names.iter().rposition(|name| name.is(keyword)) {
            return Ok(Some(&self.values[place]));
        }
        let Ok(keyword) = keyword.cast::<PyString>() else { return Ok(None) };
        let keyword = keyword.to_str()?;
        for (name, value) in self.shape.names.iter().zip(&self.values).rev() {
            if name.to_str(py)? == keyword {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn text(&self) -> String {
        let mut key = self.key.clone();
        let empty = Arc::new(Level { names: Arc::from([]), values: Vec::new() });
        key.levels[self.depth..].fill(empty);
        let mut text = key.to_string();
        text.truncate(text.len() - 2 * (key.levels.len() - self.depth));
        text
    }
}

#[pymethods]
impl Key {
    fn __getitem__(&self, py: Python<'_>, keyword: &Bound<'_, PyAny>) -> PyResult<Py<PyString>> {
        match self.find(py, keyword)? {
            Some(value) => Ok(value.clone_ref(py)),
            None => Err(PyKeyError::new_err(keyword.clone().unbind())),
        }
    }

    fn __len__(&self) -> usize {
        self.shape.distinct
    }

    fn __contains__(&self, py: Python<'_>, keyword: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(py, keyword)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.shape.view.bind(py).try_iter()?.into_any())
    }

    /// The keywords of the key, in the schema's order.
    fn keys(&self, py: Python<'_>) -> Py<PyAny> {
        self.shape.view.clone_ref(py)
    }

    /// The values, in the order of the keywords.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dict(py)?.call_method0("values")
    }

    /// (keyword, value) pairs.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dict(py)?.call_method0("items")
    }

    /// The value of a keyword, or `default` if the key does not have it.
    #[pyo3(signature = (keyword, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        keyword: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let found = self.find(py, keyword)?.map(|value| value.clone_ref(py).into_any());
        Ok(found.or(default))
    }

    /// A plain dict of typed values: int, float, datetime.date or str, by the schema's types.
    #[getter]
    fn typed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let rows = self.shape.names.iter().zip(&self.shape.kinds);
        for ((name, kind), (_, value)) in rows.zip(self.pairs()) {
            match kind.typed(value) {
                Typed::Absent => {}
                Typed::Int(i) => dict.set_item(name, i)?,
                Typed::Float(x) => dict.set_item(name, x)?,
                Typed::Text(text) => dict.set_item(name, &*text)?,
                Typed::Date { y, m, d } => dict.set_item(name, date_class(py)?.call1((y, m, d))?)?,
            }
        }
        Ok(dict)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.pairs().for_each(|pair| pair.hash(&mut hasher));
        hasher.finish()
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Option<bool>> {
        if let Ok(other) = other.cast::<Key>() {
            let other = other.get();
            let same = self.pairs().eq(other.pairs());
            let order = if same { Ordering::Equal } else { self.levels().cmp(other.levels()) };
            return Ok(Some(op.matches(order)));
        }
        if !matches!(op, CompareOp::Eq | CompareOp::Ne) || !other.hasattr("keys")? {
            return Ok(None);
        }
        let equal = match other.cast::<PyDict>() {
            Ok(other) => self.dict(py)?.eq(other)?,
            Err(_) => self.dict(py)?.eq(py.get_type::<PyDict>().call1((other,))?)?,
        };
        Ok(Some(equal == matches!(op, CompareOp::Eq)))
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("Key({})", self.text())
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "key", slf)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let mut levels = Vec::new();
        for level in self.levels() {
            let rows: Vec<_> = level.names.iter().zip(&level.values).collect();
            let rows = rows.into_iter().map(|(name, value)| {
                let value = match value {
                    KeyValue::Absent => py.None().into_bound(py),
                    KeyValue::Int(i) => i.into_pyobject(py)?.into_any(),
                    KeyValue::Real(x, text) => (x, &**text).into_pyobject(py)?.into_any(),
                    KeyValue::Span { start, end, text } => {
                        (start, end, &**text).into_pyobject(py)?.into_any()
                    }
                    KeyValue::Text(text) => PyString::new(py, text).into_any(),
                };
                (&**name, value).into_pyobject(py)
            });
            levels.push(PyTuple::new(py, rows.collect::<PyResult<Vec<_>>>()?)?);
        }
        let kinds: Vec<&str> = self.shape.kinds.iter().map(|kind| kind.name()).collect();
        let restore = py.get_type::<Key>().getattr("_restore")?;
        Ok((restore, (PyTuple::new(py, levels)?, PyTuple::new(py, kinds)?).into_pyobject(py)?))
    }

    /// Supports unpickling.
    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        levels: Several<Several<(String, Bound<'_, PyAny>)>>,
        kinds: Several<String>,
    ) -> PyResult<Key> {
        let wrong = || PyValueError::new_err("not a pickled key");
        let depth = levels.0.len();
        let mut parts = levels.0.into_iter().map(|level| -> PyResult<Arc<Level>> {
            let (names, values): (Vec<Arc<str>>, Vec<_>) =
                level.0.into_iter().map(|(name, value)| (name.into(), value)).unzip();
            let values = values.iter().map(restore_value).collect::<PyResult<_>>()?;
            Ok(Arc::new(Level { names: names.into(), values }))
        });
        let mut next = || {
            let empty = || Ok(Arc::new(Level { names: Arc::from([]), values: Vec::new() }));
            parts.next().unwrap_or_else(empty)
        };
        let key: PyResult<FieldKey> = Ok(FieldKey { levels: [next()?, next()?, next()?] });
        if parts.next().is_some() {
            return Err(wrong());
        }
        let kinds: Option<Vec<_>> = kinds.0.iter().map(|kind| KeywordType::parse(kind)).collect();
        let mut interner = Interner::new(None);
        let mut key = interner.key(py, key?, depth)?;
        let kinds = kinds.filter(|kinds| kinds.len() == key.values.len()).ok_or_else(wrong)?;
        let shape = Shape {
            names: key.shape.names.iter().map(|name| name.clone_ref(py)).collect(),
            view: key.shape.view.clone_ref(py),
            kinds,
            distinct: key.shape.distinct,
        };
        key.shape = Arc::new(shape);
        Ok(key)
    }
}

impl Key {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.shape.names.iter().zip(&self.values) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

/// `datetime.date`.
pub fn date_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DATE.import(py, "datetime", "date")
}

fn restore_value(value: &Bound<'_, PyAny>) -> PyResult<KeyValue> {
    if value.is_none() {
        return Ok(KeyValue::Absent);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(KeyValue::Text(crate::errors::utf8(text)?.into()));
    }
    if let Ok((start, end, text)) = value.extract::<(i64, i64, String)>() {
        return Ok(KeyValue::Span { start, end, text: text.into() });
    }
    if let Ok((number, text)) = value.extract::<(f64, String)>() {
        return Ok(KeyValue::Real(number, text.into()));
    }
    Ok(KeyValue::Int(value.extract()?))
}

/// Levels with more keywords are not shared: one bit of a word marks each absent keyword.
const MAX_SHARED: usize = 64;
/// The number of shapes kept; a store has few.
const MAX_SHAPES: usize = 16;

/// Makes keys; neighbours share equal parts.
pub struct Interner {
    schema: Option<Schema>,
    shapes: Vec<KnownShape>,
    /// The levels of the last key.
    last: [Option<LastLevel>; 3],
}

struct KnownShape {
    levels: Vec<Arc<Level>>,
    absent: [u64; 3],
    shape: Arc<Shape>,
}

struct LastLevel {
    level: Arc<Level>,
    absent: u64,
    /// The texts of present values.
    texts: Vec<Py<PyString>>,
}

impl KnownShape {
    fn is(&self, levels: &[Arc<Level>], absent: [u64; 3]) -> bool {
        let same = |(a, b): (&Arc<Level>, &Arc<Level>)| Arc::ptr_eq(&a.names, &b.names) || a.names == b.names;
        self.absent == absent && self.levels.len() == levels.len() && self.levels.iter().zip(levels).all(same)
    }
}

impl Interner {
    /// For keys of a store with this schema; without a schema, types are text.
    pub fn new(schema: Option<Schema>) -> Interner {
        Interner { schema, shapes: Vec::new(), last: [None, None, None] }
    }

    /// The Python key of the first `depth` levels.
    pub fn key(&mut self, py: Python<'_>, key: FieldKey, depth: usize) -> PyResult<Key> {
        let depth = depth.min(key.levels.len());
        let levels = &key.levels[..depth];
        let mut absent = [0; 3];
        let mut values = Vec::with_capacity(levels.iter().map(|level| level.values.len()).sum());
        for (place, level) in levels.iter().enumerate() {
            absent[place] = self.level(py, place, level, &mut values);
        }
        let shape = self.shape(py, levels, absent)?;
        Ok(Key { key, depth, shape, values })
    }

    /// Adds the texts of a level; returns the bits of its absent keywords.
    fn level(
        &mut self,
        py: Python<'_>,
        place: usize,
        level: &Arc<Level>,
        values: &mut Vec<Py<PyString>>,
    ) -> u64 {
        let last = &mut self.last[place];
        // Neighbours in a listing share their levels, so comparing pointers suffices to reuse the texts.
        if last.as_ref().is_none_or(|last| !Arc::ptr_eq(&last.level, level)) {
            *last = Some(LastLevel::new(py, level, last.take()));
        }
        let Some(last) = last else { return 0 };
        values.extend(last.texts.iter().map(|text| text.clone_ref(py)));
        last.absent
    }

    fn shape(&mut self, py: Python<'_>, levels: &[Arc<Level>], absent: [u64; 3]) -> PyResult<Arc<Shape>> {
        if let Some(known) = self.shapes.iter().rev().find(|known| known.is(levels, absent)) {
            return Ok(known.shape.clone());
        }
        let shape = Arc::new(self.new_shape(py, levels)?);
        if levels.iter().all(|level| level.names.len() <= MAX_SHARED) {
            if self.shapes.len() == MAX_SHAPES {
                self.shapes.remove(0);
            }
            self.shapes.push(KnownShape { levels: levels.to_vec(), absent, shape: shape.clone() });
        }
        Ok(shape)
    }

    fn new_shape(&self, py: Python<'_>, levels: &[Arc<Level>]) -> PyResult<Shape> {
        let (mut names, mut kinds) = (Vec::new(), Vec::new());
        let unique = PyDict::new(py);
        for (name, _) in present(levels) {
            let text = PyString::intern(py, name);
            unique.set_item(&text, py.None())?;
            names.push(text.unbind());
            let kind = self.schema.as_ref().and_then(|schema| schema.type_of(name));
            kinds.push(kind.unwrap_or(KeywordType::Text));
        }
        let distinct = unique.len();
        Ok(Shape { names, kinds, distinct, view: unique.call_method0("keys")?.unbind() })
    }
}

impl LastLevel {
    /// The texts of a level; values equal to those in the same place of `before` reuse its text.
    fn new(py: Python<'_>, level: &Arc<Level>, before: Option<LastLevel>) -> LastLevel {
        let mut absent = 0;
        let mut texts = Vec::with_capacity(level.values.len());
        let (old, mut old_texts) = match &before {
            Some(before) => (&before.level.values[..], before.texts.iter()),
            None => (&[][..], [].iter()),
        };
        for (i, value) in level.values.iter().enumerate() {
            // Only present values have a text.
            let old = old.get(i).filter(|old| !old.is_absent());
            let old = old.and_then(|old| Some((old, old_texts.next()?)));
            if value.is_absent() {
                absent |= 1u64.checked_shl(i as u32).unwrap_or(0);
                continue;
            }
            texts.push(match old {
                Some((old, text)) if old == value => text.clone_ref(py),
                _ => PyString::new(py, &value.text()).unbind(),
            });
        }
        LastLevel { level: level.clone(), absent, texts }
    }
}
