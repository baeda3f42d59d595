//! Parses requests and keys from Python.
//!
//! In a request, a text that contains `/`, or is `*`, follows the MARS grammar; any other text, and every element of
//! a list, is one literal value. In a key, every text is one literal value.

use fieldstone::{ABSENT, Item, Request, Values};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyRange, PySlice, PyString, PyTuple, PyType,
};

use crate::errors::{Raise, Refuse, invalid, utf8};
use crate::keys::Key;
use crate::sequence::{self, each, is_mapping, pairs};

const REQUESTS: &str =
    "a request is MARS text, a mapping of keywords to values, a Request, or a list of these";
const KEYS: &str =
    "a key is a mapping of keywords to one value each, or text such as run=a,variable=t,step=6";

/// A request: a selection of fields.
///
/// ``Request("run=a,step=0/to/24/by/6")``, ``Request({"run": "a"})``, ``Request(run="a", step=[0, 6])``. Unnamed
/// keywords are free; ``?*`` is any value (keys that have the keyword), ``!*`` no value (keys that lack it). A ``*``
/// among other characters makes a pattern, but not in quotes or in a list. ``str(request)`` is its MARS text, which
/// parses back to the request.
#[pyclass(frozen, eq, hash, name = "Request", module = "fieldstone")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyRequest(pub Request);

#[pymethods]
impl PyRequest {
    #[new]
    #[pyo3(signature = (request=None, /, **keywords))]
    fn new(request: Option<&Bound<'_, PyAny>>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyRequest> {
        let mut read = match request {
            Some(request) => one_request(request)?.ok_or_else(|| wrong_request(request))?,
            None => Request::new(),
        };
        for (keyword, values) in from_mapping(keywords.map(|k| k.as_any()))?.iter() {
            read.set(keyword, values.clone());
        }
        Ok(PyRequest(read))
    }

    /// Parses a MARS request file: each request begins with a verb, and inherits unnamed keywords from the previous
    /// request with that verb; ``keyword=off`` drops one.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn parse_many(text: &str) -> PyResult<Vec<PyRequest>> {
        Ok(Request::parse_many(text).or_raise()?.into_iter().map(PyRequest).collect())
    }

    /// The file for the answer (``target="output.grib"``), or None.
    #[getter]
    fn target(&self) -> Option<&str> {
        self.0.target()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let text = self.0.to_string();
        match text.char_indices().nth(200) {
            Some((cut, _)) => format!("Request('{}…')", &text[..cut]),
            None => format!("Request('{text}')"),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (py.get_type::<PyRequest>(), (self.0.to_string(),))
    }
}

/// The requests in an argument: one, or a list. An absent argument selects everything.
pub fn requests(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Request>> {
    let Some(argument) = argument else { return Ok(vec![Request::new()]) };
    if let Ok(text) = argument.cast::<PyString>() {
        let all = Request::parse_many(utf8(text)?).or_raise()?;
        return Ok(if all.is_empty() { vec![Request::new()] } else { all });
    }
    if let Some(request) = one_request(argument)? {
        return Ok(vec![request]);
    }
    if !argument.is_instance_of::<PyList>() && !argument.is_instance_of::<PyTuple>() {
        return Err(wrong_request(argument));
    }
    let mut all = Vec::new();
    for element in argument.try_iter()? {
        let element = element?;
        all.push(one_request(&element)?.ok_or_else(|| wrong_request(&element))?);
    }
    match all.is_empty() {
        true => Err(invalid("the list of requests is empty", "the request {} selects everything")),
        false => Ok(all),
    }
}

/// These requests, each restricted to the fields that another request selects. Such a request serves one call: its
/// text does not hold the restriction, so it must not be shown or sent elsewhere.
#[pyfunction]
#[pyo3(name = "_within")]
pub fn within(request: Option<&Bound<'_, PyAny>>, bound: &Bound<'_, PyAny>) -> PyResult<Vec<PyRequest>> {
    let bound = one_request(bound)?.ok_or_else(|| wrong_request(bound))?;
    Ok(requests(request)?.into_iter().map(|request| PyRequest(request.within(bound.clone()))).collect())
}

fn wrong_request(found: &Bound<'_, PyAny>) -> PyErr {
    invalid(format!("{} is not a request", type_name(found)), REQUESTS)
}

fn one_request(argument: &Bound<'_, PyAny>) -> PyResult<Option<Request>> {
    if let Ok(text) = argument.cast::<PyString>() {
        return Request::parse(utf8(text)?).or_raise().map(Some);
    }
    if let Ok(request) = argument.cast::<PyRequest>() {
        return Ok(Some(request.get().0.clone()));
    }
    if let Ok(key) = argument.cast::<Key>() {
        return Ok(Some(exactly(
            key.get().pairs().map(|(keyword, value)| (&**keyword, value.text().into_owned())),
        )));
    }
    match is_mapping(argument)? {
        true => from_mapping(Some(argument)).map(Some),
        false => Ok(None),
    }
}

/// The request that names one key exactly.
pub fn exactly<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> Request {
    let mut request = Request::new();
    for (keyword, value) in pairs {
        request.set(keyword, Values::list([value]));
    }
    request
}

fn from_mapping(mapping: Option<&Bound<'_, PyAny>>) -> PyResult<Request> {
    let mut request = Request::new();
    let Some(mapping) = mapping else { return Ok(request) };
    pairs(mapping, |keyword, values| {
        let keyword = keyword_of(&keyword)?;
        let keyword = utf8(&keyword)?;
        if let Some(values) = values_of(keyword, &values)? {
            request.set(keyword, values);
        }
        Ok(())
    })?;
    Ok(request)
}

fn keyword_of<'py>(keyword: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let name = || invalid(format!("a keyword is {}", type_name(keyword)), "keywords are text");
    keyword.cast::<PyString>().cloned().map_err(|_| name())
}

/// The values of one keyword of a request; `None` for Python's None, which leaves the keyword free.
fn values_of(keyword: &str, values: &Bound<'_, PyAny>) -> PyResult<Option<Values>> {
    if values.is_none() {
        return Ok(None);
    }
    if let Ok(text) = values.cast::<PyString>() {
        return grammar(keyword, utf8(text)?).map(Some);
    }
    if let Ok(slice) = values.cast::<PySlice>() {
        return sliced(keyword, slice).map(Some);
    }
    if let Ok(range) = values.cast::<PyRange>() {
        let bound = |name: &str| range.getattr(name)?.extract::<i64>();
        return whole(keyword, bound("start")?, bound("stop")?, bound("step")?).map(Some);
    }
    if let Some(text) = scalar(keyword, values)? {
        return Ok(Some(Values::list([text])));
    }
    let mut items = Vec::new();
    let iterable = !is_mapping(values)? && !is_bytes(values);
    if !iterable {
        return Err(wrong_value(keyword, values));
    }
    let elements = values.try_iter().or_refuse(values.py(), || wrong_value(keyword, values))?;
    each(elements.as_any(), |element| {
        if let Ok(range) = element.cast::<PyRange>() {
            if let Some(Values::List(more)) = values_of(keyword, range.as_any())? {
                items.extend(more);
            }
            return Ok(());
        }
        items.push(Item::One(match element.cast::<PyString>() {
            Ok(text) => utf8(text)?.to_owned(),
            Err(_) => scalar(keyword, &element)?.ok_or_else(|| wrong_value(keyword, &element))?,
        }));
        Ok(())
    })?;
    if items.is_empty() {
        return Err(invalid(
            format!("{keyword} has an empty list of values"),
            &format!("leave out {keyword} to accept any value"),
        ));
    }
    Ok(Some(Values::List(items)))
}

/// Parses a text in a request's mapping: by the grammar if it contains grammar characters.
fn grammar(keyword: &str, text: &str) -> PyResult<Values> {
    match text {
        "*" => return Ok(Values::Any),
        "?*" => return Ok(Values::Present),
        ABSENT => return Ok(Values::Absent),
        _ => {}
    }
    if !text.contains(['/', '*']) {
        return Ok(Values::list([text]));
    }
    let read = Request::parse(&format!("{keyword}={text}")).or_raise()?;
    let mut pairs = read.iter();
    match (pairs.next(), pairs.next()) {
        (Some((found, values)), None) if found == keyword => Ok(values.clone()),
        _ => Err(invalid(
            format!("the values {text:?} of {keyword} continue with another keyword"),
            "give each keyword its own entry; put a value that holds / or * in a list, as [value]",
        )),
    }
}

fn sliced(keyword: &str, slice: &Bound<'_, PySlice>) -> PyResult<Values> {
    let bound = |name: &str| -> PyResult<Option<i64>> {
        let bound = slice.getattr(name)?;
        if bound.is_none() {
            return Ok(None);
        }
        let number = as_index(&bound)?.filter(|_| !bound.is_instance_of::<PyBool>());
        number.map(Some).ok_or_else(|| {
            invalid(
                format!("{keyword} has a slice of {}: slices are for integers, and half-open", type_name(&bound)),
                &format!("write the text '{keyword}=A/to/B/by/C', which accepts dates and times and includes both ends"),
            )
        })
    };
    match (bound("start")?, bound("stop")?, bound("step")?) {
        (None, None, None) => Ok(Values::Any),
        (start, Some(stop), step) => whole(keyword, start.unwrap_or(0), stop, step.unwrap_or(1)),
        _ => Err(invalid(
            format!("{keyword} has a slice without an end"),
            &format!("give the end, or take the existing values from axes(request)[{keyword:?}]"),
        )),
    }
}

/// The whole numbers from `start` up to but excluding `stop`.
fn whole(keyword: &str, start: i64, stop: i64, step: i64) -> PyResult<Values> {
    let too_far = || invalid(format!("{keyword}: the range exceeds 64 bits"), "ask for less");
    let span = i128::from(stop) - i128::from(start);
    if step == 0 || span == 0 || (span > 0) != (step > 0) {
        return Err(invalid(
            format!("{keyword}: the range from {start} to {stop} by {step} is empty"),
            "a Python range excludes its stop",
        ));
    }
    let count = (span.abs() - 1) / i128::from(step).abs();
    let last = i64::try_from(i128::from(start) + count * i128::from(step)).map_err(|_| too_far())?;
    Ok(Values::List(vec![match count {
        0 => Item::One(start.to_string()),
        _ => Item::Range { from: start.to_string(), to: last.to_string(), by: Some(step.to_string()) },
    }]))
}

fn wrong_value(keyword: &str, found: &Bound<'_, PyAny>) -> PyErr {
    invalid(
        format!("{keyword} has {} as a value", type_name(found)),
        "values are text, whole numbers, floats, dates and times, or lists and ranges of these",
    )
}

pub fn type_name(found: &Bound<'_, PyAny>) -> String {
    if found.is_none() {
        return "None".to_owned();
    }
    let name = found.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string());
    match name.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) {
        true => format!("an {name}"),
        false => format!("a {name}"),
    }
}

fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>()
}

fn as_index(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    value.extract::<i64>().if_it_is(value.py())
}

/// The text of a value that is not text; `None` if it is not a single value.
fn scalar(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = value.py();
    if value.is_instance_of::<PyBool>() || value.get_type().name().is_ok_and(|n| n == "bool" || n == "bool_")
    {
        return Err(invalid(
            format!("{keyword} has a bool as a value"),
            "keys have no bools: write 0 and 1, or text",
        ));
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(Some(value.str()?.to_str()?.to_owned()));
    }
    let types = Types::get(py)?;
    // datetime is a subclass of date, so it comes first.
    if value.is_instance(types.datetime.bind(py))? {
        let midnight = value.call_method0("time")?.eq(types.time.bind(py).call0()?)?;
        return match midnight {
            true => strftime(value, "%Y%m%d").map(Some),
            false => Err(invalid(
                format!("{keyword}={value} is a date with a time of day"),
                "give the date and the time under separate keywords, as value.date() and value.time()",
            )),
        };
    }
    if value.is_instance(types.date.bind(py))? {
        return strftime(value, "%Y%m%d").map(Some);
    }
    if value.is_instance(types.time.bind(py))? {
        let whole = value.getattr("second")?.eq(0)? && value.getattr("microsecond")?.eq(0)?;
        return match whole {
            true => strftime(value, "%H%M").map(Some),
            false => {
                Err(invalid(format!("{keyword}={value} has seconds"), "times of keys are hours and minutes"))
            }
        };
    }
    if value.is_instance(types.decimal.bind(py))? {
        return Ok(Some(value.str()?.to_str()?.to_owned()));
    }
    if !crate::data::is_numpy_scalar(value)? {
        return Ok(None);
    }
    match value.getattr("dtype")?.getattr("kind")?.extract::<String>()?.as_str() {
        "i" | "u" | "f" => Ok(Some(value.str()?.to_str()?.to_owned())),
        "M" => {
            let exact = value.call_method1("astype", ("M8[us]",))?.call_method0("item")?;
            if exact.is_none() {
                return Err(invalid(format!("{keyword} has a missing date (NaT)"), "leave it out"));
            }
            scalar(keyword, &exact)
        }
        "U" => Ok(Some(value.str()?.to_str()?.to_owned())),
        // An array of no dimension stands for its element.
        _ => Ok(None),
    }
}

/// Formats a date with at least four digits of the year: strftime's `%Y` gives fewer before the year 1000.
fn strftime(value: &Bound<'_, PyAny>, format: &str) -> PyResult<String> {
    let text = value.call_method1("strftime", (format,))?.extract::<String>()?;
    Ok(if format.starts_with("%Y") { format!("{text:0>8}") } else { text })
}

struct Types {
    date: Py<PyType>,
    datetime: Py<PyType>,
    time: Py<PyType>,
    decimal: Py<PyType>,
}

impl Types {
    fn get(py: Python<'_>) -> PyResult<&Types> {
        static TYPES: PyOnceLock<Types> = PyOnceLock::new();
        TYPES.get_or_try_init(py, || {
            let of = |module: &str, name: &str| -> PyResult<Py<PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?.unbind())
            };
            Ok(Types {
                date: of("datetime", "date")?,
                datetime: of("datetime", "datetime")?,
                time: of("datetime", "time")?,
                decimal: of("decimal", "Decimal")?,
            })
        })
    }
}

/// A key as the caller gave it; texts stay in Python's memory.
pub struct KeyText<'py> {
    pairs: Vec<(Text<'py>, Text<'py>)>,
}

enum Text<'py> {
    Python(Bound<'py, PyString>),
    Rust(String),
}

impl Text<'_> {
    fn as_str(&self) -> PyResult<&str> {
        match self {
            Text::Python(text) => utf8(text),
            Text::Rust(text) => Ok(text),
        }
    }
}

impl<'py> KeyText<'py> {
    /// Reads a mapping with one value per keyword, a Key, a Request or text. `None` and `!*` mean absent.
    pub fn new(key: &Bound<'py, PyAny>) -> PyResult<KeyText<'py>> {
        let mut pairs = Vec::with_capacity(8);
        if let Ok(dict) = key.cast::<PyDict>() {
            // Collects all items first: reading one may run the program's code, which may change the dict.
            let items: Vec<_> = dict.iter().collect();
            for (keyword, value) in items {
                add_pair(&mut pairs, &keyword, value)?;
            }
        } else if let Ok(key) = key.cast::<Key>() {
            let own = key
                .get()
                .pairs()
                .map(|(k, v)| (Text::Rust(k.to_string()), Text::Rust(v.text().into_owned())));
            pairs.extend(own);
        } else if is_mapping(key)? {
            sequence::pairs(key, |keyword, value| add_pair(&mut pairs, &keyword, value))?;
        } else {
            let request =
                one_request(key)?.ok_or_else(|| invalid(format!("{} is not a key", type_name(key)), KEYS))?;
            let single = request.single_pairs().or_raise()?;
            pairs.extend(single.into_iter().map(|(k, v)| (Text::Rust(k), Text::Rust(v))));
        }
        Ok(KeyText { pairs })
    }

    /// Keyword and value, in the form that the store takes.
    pub fn pairs(&self) -> PyResult<Vec<(&str, &str)>> {
        self.pairs.iter().map(|(keyword, value)| Ok((keyword.as_str()?, value.as_str()?))).collect()
    }
}

fn add_pair<'py>(
    pairs: &mut Vec<(Text<'py>, Text<'py>)>,
    keyword: &Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
) -> PyResult<()> {
    if value.is_none() {
        return Ok(());
    }
    let keyword = keyword_of(keyword)?;
    let value = match value.cast_into::<PyString>() {
        Ok(text) if utf8(&text)? == ABSENT => return Ok(()),
        Ok(text) => Text::Python(text),
        Err(other) => {
            let value = other.into_inner();
            let name = utf8(&keyword)?;
            Text::Rust(scalar(name, &value)?.ok_or_else(|| {
                invalid(
                    format!("{name} has {}, but a key needs one value", type_name(&value)),
                    "archive and get take one value per keyword; retrieve and list take lists",
                )
            })?)
        }
    };
    pairs.push((Text::Python(keyword), value));
    Ok(())
}

/// The single request that `stats` takes.
pub fn single_request(request: Option<&Bound<'_, PyAny>>) -> PyResult<Request> {
    let mut requests = requests(request)?;
    match (requests.pop(), requests.is_empty()) {
        (Some(request), true) => Ok(request),
        _ => Err(invalid("stats takes one request", "ask for each request separately")),
    }
}
