//! One field: its entry in a list, its versions, its content, and the tags of its attributes.

use fieldstone_catalog::query::{Aggregate, By, Expr, NameTest, Query, Term};
use fieldstone_core::Result;
use fieldstone_core::geometry::Scalar;
use fieldstone_core::request::{Request, Values};
use fieldstone_store::Field;
use fieldstone_store::api::{Extremes, FieldAccess, FieldStore, ListEntry, ListOptions};

use super::content::Content;
use crate::Store;
use crate::unpacked::unpack;

/// Maximum length of a field that is read for its extremes.
const READ_MAX: u64 = 256 << 20;

/// The facts of one field.
#[derive(Debug, Clone)]
pub struct FieldFacts {
    /// Its entry, with the extremes of its unpacked elements.
    pub entry: ListEntry,
    /// Extents of its chunks; `None` for opaque bytes.
    pub chunks: Option<Vec<u64>>,
    /// Its kind, its attributes and its first values.
    pub content: Content,
    /// Its versions, newest first.
    pub versions: Vec<ListEntry>,
    /// Tags of its attributes, each with their number.
    pub tags: Vec<Aggregate>,
}

impl FieldFacts {
    /// The facts of a field from a list's `entry`. In a strict field unwritten pieces are an error.
    pub fn of(store: &Store, mut entry: ListEntry, field: &Field) -> Result<FieldFacts> {
        let content = Content::of(store, field)?;
        entry.summary = meant(&entry, field, &content)?;
        let versions = versions(store, &entry)?;
        let tags = match store.catalog().has_records()? {
            true => tagged(store, &entry)?,
            false => Vec::new(),
        };
        Ok(FieldFacts { entry, chunks: field.chunks(), content, versions, tags })
    }
}

/// Extremes of the unpacked elements: from the index, or from the field if the index only has a fill value.
fn meant(entry: &ListEntry, field: &Field, content: &Content) -> Result<Option<Extremes>> {
    let (Some(stored), Some(packing), Some(dtype)) = (&entry.summary, &content.packing, entry.dtype) else {
        return Ok(entry.summary);
    };
    let known = unpack(packing, stored);
    if known.missing.is_some() || !entry.complete || entry.nbytes > READ_MAX {
        return Ok(Some(known));
    }
    let values = packing.decode(dtype, &field.read()?)?;
    let there = || values.iter().copied().filter(|value| !value.is_nan());
    let missing = values.len() as u64 - there().count() as u64;
    let ends = [there().reduce(f64::min), there().reduce(f64::max)].map(|end| end.map(Scalar::Float));
    Ok(Some(Extremes { min: ends[0], max: ends[1], missing: Some(missing) }))
}

/// Tags of a field's attributes, each with their number.
fn tagged(store: &Store, entry: &ListEntry) -> Result<Vec<Aggregate>> {
    let schema = store.schema();
    let (Some((project, run)), Some(variable)) = (schema.run_of(&entry.key), schema.variable_of(&entry.key))
    else {
        return Ok(Vec::new());
    };
    let mut terms = vec![
        Term::Run(NameTest::Is(run)),
        Term::Project(NameTest::Is(project)),
        Term::Variable(NameTest::Is(variable.into_owned())),
    ];
    terms.extend(schema.step_of(&entry.key).map(|step| Term::Step(vec![(step, step)])));
    let query = Query { expr: Expr::All(terms.into_iter().map(Expr::Term).collect()), ..Query::all() };
    store.catalog().aggregate(&query, &[By::Tag])
}

/// The versions of the entry's own key, newest first. As a request, the key may also select longer keys.
fn versions(store: &dyn FieldStore, entry: &ListEntry) -> Result<Vec<ListEntry>> {
    let mut request = Request::new();
    for (name, value) in entry.key.iter() {
        request.set(&**name, Values::list([value.text()]));
    }
    let options = ListOptions { masked: true, ..ListOptions::default() };
    let all = store.list(&request, &options)?;
    all.filter(|other| other.as_ref().map_or(true, |other| other.key == entry.key)).collect()
}
