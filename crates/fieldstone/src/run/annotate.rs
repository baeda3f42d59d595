//! Attributes of a run.

use fieldstone_core::Result;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::catalog::{AttributeBatch, Column, TagDecl, Values};

use super::cells::boxes_of;
use super::{Run, Target};
use crate::catalog::TagInfo;

/// A tag as a call names it.
#[derive(Debug, Clone)]
pub enum TagRef {
    /// By name, and version where one is given. Made with the type of the values where nobody declared it.
    Name(String, Option<i64>),
    /// As it was declared.
    Declared(TagDecl),
}

impl From<&str> for TagRef {
    fn from(name: &str) -> TagRef {
        TagRef::Name(name.to_owned(), None)
    }
}

impl From<(&str, i64)> for TagRef {
    fn from((name, version): (&str, i64)) -> TagRef {
        TagRef::Name(name.to_owned(), Some(version))
    }
}

impl From<&TagInfo> for TagRef {
    fn from(tag: &TagInfo) -> TagRef {
        TagRef::Declared(tag.decl.clone())
    }
}

/// The type of a value as it was given: lists and maps are json.
fn kind_of(value: &Value) -> ValueType {
    match value {
        Value::List(_) | Value::Map(_) => ValueType::Json,
        value => value.kind(),
    }
}

/// How rows belong to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Each is one.
    One,
    /// All are one.
    Many,
    /// All belong to the one before.
    More,
}

impl Run {
    /// The tag that a call means, for values of this kind.
    pub fn tag(&self, tag: TagRef, kind: ValueType) -> Result<TagDecl> {
        match tag {
            TagRef::Name(name, version) => self.store.catalog().tag_for(&name, version, kind, &self.session),
            TagRef::Declared(tag) => Ok(tag),
        }
    }

    /// Takes one attribute: a value under a tag, on a target. Annotating the same target again is a correction: the
    /// newer value counts. Visible to this process at once, to all at flush.
    pub fn annotate(&self, tag: impl Into<TagRef>, value: impl Into<Value>, on: &Target) -> Result<()> {
        let value = value.into();
        let tag = self.tag(tag.into(), kind_of(&value))?;
        let value = value.fits(tag.kind).unwrap_or(value);
        self.annotate_one(tag.clone(), Values::of(tag.kind, vec![value]), on)
    }

    /// Takes one attribute whose value is of the tag's type already.
    pub fn annotate_one(&self, tag: TagDecl, value: Values, on: &Target) -> Result<()> {
        on.check_single()?;
        self.take(tag, value, true, on, Call::One)
    }

    /// Takes many attributes of one tag, by columns. All rows are kept, also several on one target. One call is all
    /// or nothing. `values` has one a row; a single value is one for all.
    pub fn annotate_many(&self, tag: impl Into<TagRef>, values: Values, on: &Target) -> Result<()> {
        let kind = match &values {
            Values::Bool(_) => ValueType::Bool,
            Values::Int(_) => ValueType::Int,
            Values::UInt(_) => ValueType::UInt,
            Values::Float(_) => ValueType::Float,
            Values::Text(_) => ValueType::Text,
            Values::Any(values) => values.first().map_or(ValueType::Json, kind_of),
        };
        let tag = self.tag(tag.into(), kind)?;
        let one_value = values.len() == 1;
        self.annotate_rows(tag, values, one_value, on)
    }

    /// The same with a tag that is known; `one_value`: the only value is one for all rows.
    pub fn annotate_rows(&self, tag: TagDecl, values: Values, one_value: bool, on: &Target) -> Result<()> {
        self.take(tag, values, one_value, on, Call::Many)
    }

    /// Rows that go on with the call before: they replace none of its attributes.
    pub fn annotate_more(&self, tag: TagDecl, values: Values, on: &Target) -> Result<()> {
        self.take(tag, values, false, on, Call::More)
    }

    fn take(&self, tag: TagDecl, values: Values, one_value: bool, on: &Target, call: Call) -> Result<()> {
        let rows = on.rows_with((!one_value).then(|| values.len()))?.unwrap_or(1);
        let batch = AttributeBatch {
            keywords: on.keywords.clone(),
            run: self.name.clone(),
            tag,
            rows,
            step: on.step.clone(),
            variables: on.variables.clone(),
            variable: on.variable.clone().unwrap_or(Column::One(0)),
            boxes: boxes_of(self, on, rows)?,
            values,
            one_value,
            continues: call == Call::More,
            singles: call == Call::One,
        };
        self.store.catalog().annotate(batch, &self.session)
    }
}
