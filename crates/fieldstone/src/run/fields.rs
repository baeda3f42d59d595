//! Arrays of a run's variables: writes them as declared, and reads them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::element_count;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_store::Field;
use fieldstone_store::api::{ArchiveOptions, Compression, FieldAccess, IfExists, ReadOptions, Value};

use super::Run;
use crate::catalog::query::{Expr, NameTest, Term};
use crate::catalog::{Query, VariableInfo};
use crate::finders::{self, Finder, Piece};
use crate::steps::{common_steps, entries};

/// An array in memory, in C order.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    data: &'a [u8],
    dtype: DType,
    shape: &'a [u64],
}

impl<'a> Array<'a> {
    /// An array of these elements; Invalid if the number of bytes is wrong.
    pub fn new(data: &'a [u8], dtype: DType, shape: &'a [u64]) -> Result<Array<'a>> {
        let expected = element_count(shape)?.checked_mul(dtype.size() as u64);
        if expected != Some(data.len() as u64) {
            let shown = shape_text(shape);
            return Err(Error::invalid(format!("{} bytes are not an array {shown} of {dtype}", data.len())));
        }
        Ok(Array { data, dtype, shape })
    }
}

/// Options of [`Run::write`].
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The start of the piece; if absent, the array is the whole variable.
    pub start: Option<Vec<u64>>,
    /// Extents of the chunks; if absent, chosen by size.
    pub chunks: Option<Vec<u64>>,
    /// Compression; if absent, the store's.
    pub compression: Option<Compression>,
    /// How to treat an existing field; if absent, as the run says, or else the store.
    pub if_exists: Option<IfExists>,
}

/// Whether the attributes of a variable define a packing of its elements.
fn is_packed(variable: &VariableInfo) -> bool {
    variable.decl.attrs.iter().any(|(name, _)| name == "scale_factor" || name == "add_offset")
}

/// A shape as Python writes it.
fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        shape => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl Run {
    /// Archives an array as a variable at a step: the whole, or the piece that begins at `start`. Visible after a
    /// flush.
    ///
    /// The array has the declared element type (in either byte order) and, without `start`, the declared shape; Invalid
    /// otherwise. An undeclared variable gets the type and shape of its first array. If it was declared with finders,
    /// the features that they find in the array are annotated in the same commit.
    pub fn write(
        &self,
        variable: &str,
        step: Option<i64>,
        array: Array<'_>,
        options: &WriteOptions,
    ) -> Result<()> {
        let known = self.store.catalog().variable_to_write(&self.name, variable, &self.session)?;
        let swapped = self.as_declared(&array, variable, known.as_deref())?;
        let dtype = known.as_ref().and_then(|known| known.decl.dtype).unwrap_or(array.dtype);
        let array = Array { data: &swapped, dtype, ..array };
        let declared = known.as_ref().and_then(|known| known.decl.finders.as_ref());
        let finders = declared.map(Finder::parse).transpose()?.unwrap_or_default();
        if !finders.is_empty() {
            finders::check_dtype(array.dtype)?;
        }
        let shape = known.as_ref().and_then(|known| known.decl.shape.as_deref());
        let value = self.value(variable, &array, options.start.as_deref(), shape)?;
        let key = self.store.catalog().key_of(&self.name, Some(variable), step)?;
        let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        // Regions that an earlier write left need not lie where the new ones do.
        let again =
            finders.iter().any(|finder| matches!(finder, Finder::Region { .. })) && self.holds(&key)?;
        let archive = ArchiveOptions {
            session: self.session.clone(),
            compression: options.compression,
            chunks: options.chunks.clone(),
            if_exists: match options.if_exists {
                Some(if_exists) => Some(if_exists),
                None => self.store.catalog().if_exists_of(&self.name, &self.session)?,
            },
            ..ArchiveOptions::default()
        };
        self.store.archive(&key, value, &archive)?;
        let Some(known) = known.filter(|_| !finders.is_empty()) else { return Ok(()) };
        let origin = vec![0; array.shape.len()];
        let piece = Piece {
            run: &self.name,
            variable: &known.decl.variable,
            step,
            data: array.data,
            dtype: array.dtype,
            start: options.start.as_deref().unwrap_or(&origin),
            count: array.shape,
        };
        finders::annotate(self.store.catalog(), &piece, &finders, again, &self.session).map(drop)
    }

    /// The bytes in the declared byte order; Invalid for another element type.
    fn as_declared<'a>(
        &self,
        array: &Array<'a>,
        variable: &str,
        known: Option<&VariableInfo>,
    ) -> Result<Cow<'a, [u8]>> {
        let declared = known.and_then(|known| known.decl.dtype).unwrap_or(array.dtype);
        if array.dtype == declared {
            return Ok(Cow::Borrowed(array.data));
        }
        if array.dtype.to_native() == declared.to_native() {
            let mut data = array.data.to_vec();
            declared.swap_bytes(&mut data);
            return Ok(Cow::Owned(data));
        }
        Err(Error::invalid(format!(
            "the array has dtype {}, variable {variable} of run {} {}",
            array.dtype.name(),
            self.name.name,
            declared.name()
        ))
        .with_hint(match known.is_some_and(is_packed) {
            true => {
                format!("it is packed: give the rounded (array - add_offset) / scale_factor as '{declared}'")
            }
            false => format!("give array.astype('{declared}')"),
        }))
    }

    /// The value to archive: the whole array, or a piece of the declared shape.
    fn value<'a>(
        &self,
        variable: &str,
        array: &Array<'a>,
        start: Option<&'a [u64]>,
        declared: Option<&'a [u64]>,
    ) -> Result<Value<'a>> {
        let Array { data, dtype, shape } = *array;
        let run = &self.name.name;
        match (start, declared) {
            (Some(start), Some(whole)) => Ok(Value::Piece { data, dtype, start, count: shape, shape: whole }),
            (Some(_), None) => Err(Error::invalid(format!(
                "variable {variable} of run {run} has no shape to take a piece of"
            ))
            .with_hint(format!("declare it: run.create_variable('{variable}', dtype, shape)"))),
            (None, Some(whole)) if whole != shape => {
                let turned = shape.iter().rev().eq(whole);
                let (given, whole) = (shape_text(shape), shape_text(whole));
                Err(Error::invalid(format!(
                    "the array has shape {given}, variable {variable} of run {run} {whole}"
                ))
                .with_hint(match turned {
                    true => "is it transposed? give array.T",
                    false => "give start=, the place where the piece begins",
                }))
            }
            (None, _) => Ok(Value::Array { data, dtype, shape }),
        }
    }

    fn holds(&self, key: &[(&str, &str)]) -> Result<bool> {
        match self.store.get(key, &ReadOptions { session: self.session.clone() }) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The field of a variable at a step.
    pub fn read(&self, variable: &str, step: Option<i64>) -> Result<Field> {
        let key = self.store.catalog().key_of(&self.name, Some(variable), step)?;
        let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.store.get(&key, &ReadOptions { session: self.session.clone() })
    }

    /// The newest complete step: each of these variables has a field there, all fields are complete, and no two come
    /// from different attempts of a job. `None` if there is none.
    ///
    /// Without `variables`, the declared ones, or, if none was declared, those of the run's fields; variables whose
    /// only fields have no step are left out.
    pub fn last_step(&self, variables: Option<&[String]>) -> Result<Option<i64>> {
        let variables = match variables {
            Some(variables) => variables.to_vec(),
            None => self.stepped()?,
        };
        if variables.is_empty() {
            return Ok(None);
        }
        Ok(common_steps(&self.store, &self.name, &variables, &self.session)?.last().copied())
    }

    /// Variables that have a field at each step.
    fn stepped(&self) -> Result<Vec<String>> {
        let expr = Expr::All(vec![
            Expr::Term(Term::Run(NameTest::Is(self.name.name.clone()))),
            Expr::Term(Term::Project(NameTest::Is(self.name.project.clone()))),
        ]);
        let query = Query { expr, session: self.session.clone(), ..Query::all() };
        let known = self.store.catalog().variables(&query)?;
        let any_declared = known.iter().any(|variable| variable.declared);
        let known = known.into_iter().filter(|variable| variable.declared || !any_declared);
        let names: BTreeSet<String> = known.map(|variable| variable.decl.variable.name).collect();
        let mut stepped = Vec::with_capacity(names.len());
        for name in names {
            let fixed = entries(&self.store, &self.name, &name, &self.session)?.next().is_none() && {
                let key = self.store.catalog().key_of(&self.name, Some(&name), None)?;
                let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                self.holds(&key)?
            };
            if !fixed {
                stepped.push(name);
            }
        }
        Ok(stepped)
    }
}
