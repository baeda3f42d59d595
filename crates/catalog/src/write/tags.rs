//! Tags: the tags of a name, and the choice of the one for a value.
//!
//! A name, a version, a type and a unit identify a tag. An annotation that gives the name alone means one of
//! its tags:
//!
//! * one of the value's type, or one that accepts it; a number that no number tag of the name accepts gets a
//!   version of its own;
//! * in one unit: if the name has several, the one that this handle declared, else the one without a unit.
//!   Otherwise the call is a Conflict, so that no value gets a unit that its writer did not mean.

use std::collections::BTreeSet;

use fieldstone_core::value::ValueType;
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{Record, TagDecl};
use fieldstone_journal::Session;

use super::agreement::takes;
use crate::query::TagInfo;
use crate::registry::{Registry, free_version};

/// Declares tags; returns them as they are shown.
pub fn create_tags(registry: &Registry, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>> {
    registry.store.journal.access().check_writable()?;
    Record::Tags(tags.clone()).check()?;
    let _declaring = registry.declaring();
    let mut shown = Vec::with_capacity(tags.len());
    let mut fresh = Vec::new();
    for decl in tags {
        let known = registry.tags_of(session, &decl.name)?;
        if let Some(tag) = known.iter().find(|tag| tag.decl == decl) {
            shown.push(tag.clone());
            continue;
        }
        let tag = TagInfo { version: free_version(&known, decl.version), decl };
        registry.declarations().cache_tag(session.key(), tag.clone(), true);
        fresh.push(tag.decl.clone());
        shown.push(tag);
    }
    if !fresh.is_empty() {
        registry.reader.pending.emit(session, vec![Record::Tags(fresh)])?;
    }
    Ok(shown)
}

/// The tag for values of a type.
pub fn tag_for(
    registry: &Registry,
    session: &Session,
    name: &str,
    version: Option<i64>,
    kind: ValueType,
) -> Result<TagDecl> {
    let known = registry.tags_of(session, name)?;
    let asked = |tag: &&TagInfo| version.is_none_or(|version| tag.version == version);
    let mut tags: Vec<&TagInfo> = known.iter().filter(asked).collect();
    let fits = |tag: &TagInfo| takes(tag.decl.kind, kind) || (is_number(tag.decl.kind) && is_number(kind));
    if tags.iter().any(|tag| fits(tag)) {
        tags.retain(|tag| fits(tag));
        let unit = unit_of(registry, session, name, &tags)?;
        tags.retain(|tag| tag.decl.unit == unit);
    }
    // The type itself before one that accepts it, the newest version before others.
    tags.sort_by_key(|tag| (tag.decl.kind != kind, !takes(tag.decl.kind, kind), -tag.version));
    let decl = |version, unit: &str| TagDecl { name: name.to_owned(), version, kind, unit: unit.to_owned() };
    Ok(match tags.first() {
        // Numbers continue as numbers: the first may have been whole, as 0, and the next not, as 0.5.
        Some(tag) if version.is_none() && !takes(tag.decl.kind, kind) && fits(tag) => decl(0, &tag.decl.unit),
        // The check of the values themselves comes later, with an error that can name them.
        Some(tag) => tag.decl.clone(),
        None => decl(version.unwrap_or(0), ""),
    })
}

/// The unit that a name alone means, among the tags that accept a value.
fn unit_of(registry: &Registry, session: &Session, name: &str, tags: &[&TagInfo]) -> Result<String> {
    let units: BTreeSet<&str> = tags.iter().map(|tag| tag.decl.unit.as_str()).collect();
    if let (1, Some(unit)) = (units.len(), units.first()) {
        return Ok((*unit).to_owned());
    }
    let declared = registry.declarations().declared_units(session.key(), name);
    let mut own = declared.iter().filter(|unit| units.contains(unit.as_str()));
    match (own.next(), own.next(), units.contains("")) {
        (Some(unit), None, _) => Ok(unit.clone()),
        (None, _, true) => Ok(String::new()),
        _ => {
            let shown: Vec<String> = units.iter().map(|unit| format!("'{unit}'")).collect();
            Err(Code::Conflict
                .error(format!("tag '{name}' is declared in units {}", shown.join(" and ")))
                .with_hint("choose one: unit=, --unit, or the tag that create_tag returned"))
        }
    }
}

fn is_number(kind: ValueType) -> bool {
    matches!(kind, ValueType::Int | ValueType::UInt | ValueType::Float)
}
