//! The processes that annotated, as hits name them and queries select them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fieldstone::Id;
use fieldstone::catalog::Writer;
use fieldstone::catalog::query::{Expr, Term, WriterPart};
use fieldstone::catalog::value::{Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::tests;
use crate::errors::invalid;
use crate::sequence::{Room, each, pairs};

/// The process that annotated. Two are equal if their host, number, rank, job and attempt are equal.
#[pyclass(frozen, eq, hash, name = "Writer", module = "fieldstone")]
#[derive(Debug, Clone)]
pub struct PyWriter {
    pub writer: Arc<Writer>,
    pub log: Option<Id>,
}

impl PartialEq for PyWriter {
    fn eq(&self, other: &PyWriter) -> bool {
        self.writer == other.writer
    }
}

impl Hash for PyWriter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.writer.hash(state);
    }
}

#[pymethods]
impl PyWriter {
    /// Its host.
    #[getter]
    fn host(&self) -> &str {
        &self.writer.host
    }

    /// Its process number on the host.
    #[getter]
    fn process(&self) -> u32 {
        self.writer.process
    }

    /// Its rank in the job; None if it has none.
    #[getter]
    fn rank(&self) -> Option<u32> {
        self.writer.rank
    }

    /// The scheduler's name of the job; None without a job.
    #[getter]
    fn job(&self) -> Option<&str> {
        Some(&*self.writer.job).filter(|job| !job.is_empty())
    }

    /// The attempt; None if it has none.
    #[getter]
    fn attempt(&self) -> Option<&str> {
        Some(&*self.writer.attempt).filter(|attempt| !attempt.is_empty())
    }

    /// The unique id of its log; None for unflushed writes of this process.
    #[getter]
    fn log(&self) -> Option<String> {
        self.log.map(|log| log.to_string())
    }

    fn __str__(&self) -> String {
        self.writer.to_string()
    }

    fn __repr__(&self) -> String {
        let mut text = format!("<fieldstone.Writer {}", self.writer);
        if let Some(rank) = self.rank() {
            text += &format!(" rank {rank}");
        }
        for (what, name) in [("job", self.job()), ("attempt", self.attempt())] {
            name.iter().for_each(|name| text += &format!(" {what} {name}"));
        }
        text + ">"
    }
}

/// The condition of `writer=`: a name, a test of it, a hit's writer, a dict of parts, or a list of these.
pub fn expr(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    nested(value, 0, &mut Room::new())
}

fn nested(value: &Bound<'_, PyAny>, depth: usize, room: &mut Room) -> PyResult<Expr> {
    room.take(depth, "writer")?;
    if let Ok(writer) = value.cast::<PyWriter>() {
        return Ok(this(&writer.get().writer));
    }
    if value.is_instance_of::<PyDict>() {
        let parts = pairs(value, |part, test| {
            let word: String = part.extract()?;
            let Some((_, part)) = WriterPart::WORDS.iter().find(|(known, _)| *known == word) else {
                let words = WriterPart::WORDS.map(|(known, _)| known).join(", ");
                return Err(invalid(format!("a writer has no part {word:?}"), &format!("it has {words}")));
            };
            let test = tests::test_or_pattern(&test, &format!("writer[{word:?}]"))?;
            Ok(Expr::Term(Term::Writer(*part, test)))
        });
        return parts.map(Expr::All);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return each(value, |item| nested(&item, depth + 1, room)).map(Expr::Any);
    }
    Ok(Expr::Term(Term::Writer(WriterPart::Name, tests::test_or_pattern(value, "writer")?)))
}

/// Exactly this process.
fn this(writer: &Writer) -> Expr {
    let text = |part, text: &str| {
        let test = Test::Equal(Value::Text(text.to_owned()));
        (part, if text.is_empty() { Test::Not(Box::new(Test::Exists)) } else { test })
    };
    let rank =
        writer.rank.map_or(Test::Not(Box::new(Test::Exists)), |rank| Test::Equal(Value::UInt(rank.into())));
    let parts = [
        text(WriterPart::Name, &writer.to_string()),
        text(WriterPart::Job, &writer.job),
        text(WriterPart::Attempt, &writer.attempt),
        (WriterPart::Rank, rank),
    ];
    Expr::All(parts.map(|(part, test)| Expr::Term(Term::Writer(part, test))).into())
}
