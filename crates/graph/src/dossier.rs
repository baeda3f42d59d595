//! A lineage with everything known about it: properties of its vertices, the users who ran its executions,
//! and their jobs.
//!
//! A trace gives relations by cause. To show or share a lineage one needs more, which does not move the time
//! of a walk: users, the job of a process that took part on its own, and the properties of each vertex. All
//! of it is read from one state, and so from one moment (G-40).
//!
//! Deleted vertices have their last properties: a removed file still has a size, and its job a name.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::Result;
use fieldstone_core::value::{Value, parse_moment};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

pub use crate::described::Properties;
use crate::described::described;
use crate::read::Relation;
use crate::state::{END, EdgeVersion, GraphState, VertexVersion, standing};
use crate::trace::{Lineage, TraceOptions, trace};

/// Whether vertices of a type are executions.
pub fn is_execution(kind: &str) -> bool {
    matches!(kind, "job" | "process")
}

/// A lineage, and the known facts about its vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Dossier {
    /// The lineage.
    pub lineage: Lineage,
    /// Static and other properties, of all vertices that have any, including the users and jobs around the
    /// lineage.
    pub props: BTreeMap<VertexName, Properties>,
    /// From users to the executions that they ran; without properties.
    pub runs: Vec<Relation>,
    /// From jobs that are not in the lineage to processes that are; without properties.
    pub jobs: Vec<Relation>,
    /// Names of users, by uid.
    pub users: BTreeMap<String, String>,
}

impl Dossier {
    /// A property of a vertex.
    pub fn prop(&self, vertex: &VertexName, name: &str) -> Option<&Value> {
        let of_it = self.props.get(vertex)?;
        of_it.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The name of a user, or else the id.
    pub fn user<'a>(&'a self, id: &'a str) -> &'a str {
        self.users.get(id).map_or(id, String::as_str)
    }

    /// The vertices of the lineage, then jobs around it; no users.
    pub fn vertices(&self) -> impl Iterator<Item = &VertexName> {
        let around: BTreeSet<&VertexName> = self.jobs.iter().map(|edge| &edge.near).collect();
        self.lineage.vertices.iter().map(|step| &step.name).chain(around)
    }

    /// The relations of the lineage, then those around it, including those of users.
    pub fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.lineage.edges.iter().chain(&self.jobs).chain(&self.runs)
    }
}

/// The dossier of a vertex. NotFound if nothing names it.
pub fn dossier(
    state: &GraphState,
    root: &VertexName,
    options: &TraceOptions,
    named: &dyn Fn(u32) -> String,
    limits: &mut Limits,
) -> Result<Dossier> {
    around(state, trace(state, root, options, limits)?, options.at, named, limits)
}

/// The dossier of a lineage at a moment.
pub fn around(
    state: &GraphState,
    lineage: Lineage,
    at: Option<u64>,
    named: &dyn Fn(u32) -> String,
    limits: &mut Limits,
) -> Result<Dossier> {
    let at = at.unwrap_or(END);
    let inside: BTreeSet<&VertexName> = lineage.vertices.iter().map(|step| &step.name).collect();
    let mut jobs = Vec::new();
    // A process may have taken part without its job being in the lineage; its user is known through the job.
    for process in inside.iter().filter(|name| &*name.kind == "process") {
        limits.step()?;
        let owned = newest(state, process, "contains", at)?;
        jobs.extend(owned.into_iter().filter(|edge| !inside.contains(&edge.near)));
    }
    let executions = inside.iter().copied().filter(|name| is_execution(&name.kind));
    let executions: BTreeSet<&VertexName> = executions.chain(jobs.iter().map(|edge| &edge.near)).collect();
    let mut runs = Vec::new();
    for execution in &executions {
        limits.step()?;
        runs.extend(newest(state, execution, "run", at)?);
    }
    let mut users = BTreeMap::new();
    for id in runs.iter().map(|edge| &*edge.near.id) {
        let name = id.parse().map_or_else(|_| id.to_owned(), named);
        users.insert(id.to_owned(), name);
    }
    let mut props = BTreeMap::new();
    let ran = runs.iter().map(|edge| &edge.near);
    for vertex in inside.iter().copied().chain(executions.iter().copied()).chain(ran) {
        // Several relations may lead to one vertex.
        if !props.contains_key(vertex) {
            limits.step()?;
            let own = properties(state, vertex, at)?;
            props.insert(vertex.clone(), own);
        }
    }
    props.retain(|_, own: &mut Properties| !own.is_empty());
    Ok(Dossier { lineage, props, runs, jobs, users })
}

/// Relations of a type that lead to a vertex, each from its source and in its newest version until a moment;
/// without their properties, which are stored at the source: that may be a user with a million other
/// relations.
pub fn newest(state: &GraphState, vertex: &VertexName, kind: &str, at: u64) -> Result<Vec<Relation>> {
    let mut relations = Vec::new();
    for edge in state.edges(VertexPlace::of(vertex), &|known, reverse| known == kind && reverse)? {
        let standing = standing(&edge.versions, at, EdgeVersion::facts);
        let Some(version) = standing.first().copied() else { continue };
        relations.push(Relation {
            kind: kind.to_owned(),
            near: state.name(edge.far)?,
            far: vertex.clone(),
            reverse: false,
            props: Vec::new(),
            stamp: version.stamp,
            time: i64::try_from(version.stamp).unwrap_or(i64::MAX),
            until: version.until,
            user: version.user,
            deleted: false,
            archived: None,
        });
    }
    Ok(relations)
}

/// A relation seen from its source.
pub fn turned(relation: Relation, kind: &str) -> Relation {
    if !relation.reverse {
        return relation;
    }
    Relation { kind: kind.to_owned(), near: relation.far, far: relation.near, reverse: false, ..relation }
}

/// Static and other properties of a vertex, in their last state until a moment.
fn properties(state: &GraphState, vertex: &VertexName, at: u64) -> Result<Properties> {
    let versions = state.vertex_versions(VertexPlace::of(vertex))?;
    let mut shown = standing(&versions, at, VertexVersion::facts);
    // A deleted vertex has its last properties.
    if shown.is_empty() {
        shown = versions.iter().filter(|version| !version.deleted && version.stamp <= at).collect();
    }
    let fixed = shown.iter().find_map(|version| version.fixed.as_ref());
    let mut all = fixed.map(|props| props.pairs()).transpose()?.unwrap_or_default();
    let own = described(&shown)?;
    all.retain(|(name, _)| own.iter().all(|(other, _)| name != other));
    all.extend(own);
    if is_execution(&vertex.kind) {
        for (_, value) in all.iter_mut().filter(|(name, _)| matches!(name.as_str(), "start" | "end")) {
            *value = moment(value);
        }
    }
    Ok(all)
}

/// Converts a time into a moment: a number is seconds, milliseconds, microseconds or nanoseconds since 1970,
/// by its size; a text must be in the form of RFC 3339. Other values stay unchanged.
fn moment(value: &Value) -> Value {
    const SECOND: i64 = 1_000_000_000;
    let whole = |n: i64| {
        let unit = match n.unsigned_abs() {
            0..100_000_000_000 => SECOND,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        n.checked_mul(unit)
    };
    let found = match value {
        Value::Int(n) => whole(*n),
        Value::UInt(n) => i64::try_from(*n).ok().and_then(whole),
        Value::Float(x) if x.abs() < 1e11 => {
            let fraction = ((x - x.trunc()) * SECOND as f64).round() as i64;
            whole(x.trunc() as i64).and_then(|n| n.checked_add(fraction))
        }
        Value::Float(x) if x.abs() < 9e18 => whole(x.trunc() as i64),
        Value::Text(text) => parse_moment(text),
        _ => None,
    };
    found.map_or_else(|| value.clone(), Value::DateTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_moments_however_they_are_given() {
        let noon = Value::DateTime(1_795_262_400_500_000_000);
        for value in [
            Value::Float(1_795_262_400.5),
            Value::Int(1_795_262_400_500),
            Value::UInt(1_795_262_400_500_000),
            Value::Int(1_795_262_400_500_000_000),
            Value::Text("2026-11-21T12:00:00.5Z".into()),
            noon.clone(),
        ] {
            assert_eq!(moment(&value), noon, "{value}");
        }
        assert_eq!(moment(&Value::Int(7)), Value::DateTime(7_000_000_000));
        for other in [Value::Text("noon".into()), Value::Bool(true), Value::Float(f64::NAN)] {
            assert_eq!(moment(&other).to_string(), other.to_string());
        }
    }
}
