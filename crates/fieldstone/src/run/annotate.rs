//! Attributes of a run.

use fieldstone_core::Result;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::catalog::{AttributeBatch, Column, TagDecl, Values};

use super::cells::boxes_of;
use super::{Run, Target};
use crate::catalog::TagInfo;

/// A tag as an argument of a call.
#[derive(Debug, Clone)]
pub enum TagRef {
    /// By name, with a version if given. An undeclared tag is made with the type of the values.
    Name(String, Option<i64>),
    /// A declared tag.
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

/// The type of a given value: lists and maps are json.
fn kind_of(value: &Value) -> ValueType {
    match value {
        Value::List(_) | Value::Map(_) => ValueType::Json,
        value => value.kind(),
    }
}

/// How rows form calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Each row is one call.
    One,
    /// All rows are one call.
    Many,
    /// All rows belong to the previous call.
    More,
}

impl Run {
    /// The tag of a call, for values of this kind.
    pub fn tag(&self, tag: TagRef, kind: ValueType) -> Result<TagDecl> {
        match tag {
            TagRef::Name(name, version) => self.store.catalog().tag_for(&name, version, kind, &self.session),
            TagRef::Declared(tag) => Ok(tag),
        }
    }

    /// Adds one attribute: a value under a tag, on a target. Annotating the same target again corrects it: the newer
    /// value counts. This process sees it at once, all others after a flush.
    pub fn annotate(&self, tag: impl Into<TagRef>, value: impl Into<Value>, on: &Target) -> Result<()> {
        let value = value.into();
        let tag = self.tag(tag.into(), kind_of(&value))?;
        let value = value.fits(tag.kind).unwrap_or(value);
        self.annotate_one(tag.clone(), Values::of(tag.kind, vec![value]), on)
    }

    /// Adds one attribute whose value already has the tag's type.
    pub fn annotate_one(&self, tag: TagDecl, value: Values, on: &Target) -> Result<()> {
        on.check_single()?;
        self.take(tag, value, true, on, Call::One)
    }

    /// Adds many attributes of one tag, by columns. All rows are kept, even several on one target. A call succeeds as a
    /// whole or not at all. `values` has one value per row; a single value applies to all.
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

    /// The same with a known tag; `one_value`: the only value applies to all rows.
    pub fn annotate_rows(&self, tag: TagDecl, values: Values, one_value: bool, on: &Target) -> Result<()> {
        self.take(tag, values, one_value, on, Call::Many)
    }

    /// Rows that continue the previous call: they replace none of its attributes.
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
