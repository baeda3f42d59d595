//! The class `Test`, which `fst.above` and the like make.

use fieldstone::catalog::value::{Glob, Size, Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use super::chain::{Chain, Joint};
use super::values;
use crate::errors::{Raise, invalid};
use crate::sequence::each;

/// A test of a value, name, time or extent: one term of a query applies it.
///
/// Made by ``fieldstone.above(x)``, ``at_least``, ``below``, ``at_most``, ``between``, ``equal``,
/// ``isin``, ``contains``, ``glob`` and ``exists``. ``a & b``, ``a | b`` and ``~a`` combine them, and
/// ``above(1).below(5)`` is ``above(1) & below(5)``.
#[pyclass(frozen, name = "Test", module = "fieldstone")]
#[derive(Clone)]
pub struct PyTest(Chain<Test>);

impl PyTest {
    /// The test that this object represents.
    pub fn test(&self) -> Test {
        self.0.made()
    }

    fn and(&self, test: Test) -> PyResult<PyTest> {
        self.0.joined(Joint::All, &Chain::of(test)?).map(PyTest)
    }
}

/// The value that a test compares with.
fn value(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    if object.is_instance_of::<PySlice>() {
        return Err(no_slice(what));
    }
    values::infer(object, what)
}

/// Rejects a slice for values that are not integers.
pub fn no_slice(what: &str) -> PyErr {
    invalid(
        format!("{what} is a slice; Python slices are for integers only, and half-open"),
        "give fst.between(a, b), which includes both ends",
    )
}

/// The test in an argument: a `Test`, a list of accepted values, or one value.
pub fn test(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Test> {
    if let Ok(test) = object.cast::<PyTest>() {
        return Ok(test.get().test());
    }
    match value(object, what)? {
        Value::List(values) => Ok(Test::IsIn(values)),
        value => Ok(Test::Equal(value)),
    }
}

/// Like [`test`], but text with `*`, `?` or `[` is a pattern, as in names.
pub fn test_or_pattern(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Test> {
    let test = test(object, what)?;
    Ok(match &test {
        Test::Equal(Value::Text(text)) if !object.is_instance_of::<PyTest>() && Glob::is_pattern(text) => {
            Test::Typed(text.clone())
        }
        _ => test,
    })
}

#[pymethods]
impl PyTest {
    /// A test that every value passes.
    #[new]
    fn new() -> PyResult<PyTest> {
        Chain::of(Test::All(Vec::new())).map(PyTest)
    }

    /// And greater than `x`.
    fn above(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::Above(value(x, "x")?))
    }

    /// And at least `x`.
    fn at_least(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::AtLeast(value(x, "x")?))
    }

    /// And less than `x`.
    fn below(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::Below(value(x, "x")?))
    }

    /// And at most `x`.
    fn at_most(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::AtMost(value(x, "x")?))
    }

    /// And from `a` to `b`, both included; a range value must overlap them.
    fn between(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::Between(value(a, "a")?, value(b, "b")?))
    }

    /// And equal to `x`.
    fn equal(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::Equal(value(x, "x")?))
    }

    /// And equal to one of `xs`.
    fn isin(&self, xs: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        let mut size = Size::default();
        let xs = each(xs, |x| {
            size = size.beside(Size::ONE);
            size.check().or_raise()?;
            value(&x, "an element of xs")
        });
        self.and(Test::IsIn(xs?))
    }

    /// And a range that contains `x`, a text with the substring `x`, or an array with the element `x`.
    fn contains(&self, x: &Bound<'_, PyAny>) -> PyResult<PyTest> {
        self.and(Test::Contains(value(x, "x")?))
    }

    /// And a text that matches `pattern`: ``*``, ``?``, ``[…]``; case matters.
    fn glob(&self, pattern: &str) -> PyResult<PyTest> {
        self.and(Test::Glob(pattern.to_owned()))
    }

    /// And any value exists, even NaN.
    fn exists(&self) -> PyResult<PyTest> {
        self.and(Test::Exists)
    }

    fn __and__(&self, other: &Bound<'_, PyTest>) -> PyResult<PyTest> {
        self.0.joined(Joint::All, &other.get().0).map(PyTest)
    }

    fn __or__(&self, other: &Bound<'_, PyTest>) -> PyResult<PyTest> {
        self.0.joined(Joint::Any, &other.get().0).map(PyTest)
    }

    fn __invert__(&self) -> PyResult<PyTest> {
        self.0.not().map(PyTest)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<fieldstone.Test {}>", text(py, &self.test())?))
    }
}

/// A test as Python writes it, without `fst.`; for a chain, its first test.
fn text(py: Python<'_>, test: &Test) -> PyResult<String> {
    const SHOWN: usize = 20;
    let shown = |value: &Value| -> PyResult<String> { Ok(values::object(py, value)?.repr()?.to_string()) };
    let joined = |tests: &[Test], sign: &str| -> PyResult<String> {
        let shown = tests.iter().take(SHOWN);
        let mut texts = shown.map(|test| text(py, test)).collect::<PyResult<Vec<_>>>()?;
        if tests.len() > SHOWN {
            texts.push("…".to_owned());
        }
        Ok(format!("({})", texts.join(sign)))
    };
    Ok(match test {
        Test::Exists => "exists()".to_owned(),
        Test::Above(x) => format!("above({})", shown(x)?),
        Test::AtLeast(x) => format!("at_least({})", shown(x)?),
        Test::Below(x) => format!("below({})", shown(x)?),
        Test::AtMost(x) => format!("at_most({})", shown(x)?),
        Test::Between(a, b) => format!("between({}, {})", shown(a)?, shown(b)?),
        Test::Equal(x) => format!("equal({})", shown(x)?),
        Test::IsIn(xs) => {
            let xs = xs.iter().take(5).map(shown).collect::<PyResult<Vec<_>>>()?;
            format!("isin([{}])", xs.join(", "))
        }
        Test::Contains(x) => format!("contains({})", shown(x)?),
        Test::Glob(pattern) | Test::Typed(pattern) => {
            format!("glob({})", PyTuple::new(py, [pattern])?.get_item(0)?.repr()?)
        }
        Test::All(tests) if tests.is_empty() => "anything".to_owned(),
        Test::All(tests) => joined(tests, " & ")?,
        Test::Any(tests) => joined(tests, " | ")?,
        Test::Not(test) => format!("~{}", text(py, test)?),
    })
}
