//! Computes which imported rows add something to a graph that has some of them.
//!
//! A vertex or relation has one version per stamp, so two listings of one job meet there. The second one adds to the
//! first: properties by name, the greater of two values of one name, the later end. So the order of imports, the number
//! of files and repetitions do not matter. If another source, or Fieldstone itself, put a version at the same stamp, it
//! stays: the new one takes the next free stamp.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_graph::described::SOURCE;

use crate::Session;
use crate::Store;
use crate::graph::{Props, RelationPut, Versions, VertexName, VertexPut};

/// A second, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Properties by name.
type Pairs = Vec<(String, Value)>;

/// The versions of vertices that add facts to the graph at their times. With `whole`, they replace the existing ones.
pub fn new_vertices(
    store: &Store,
    vertices: Vec<VertexPut>,
    whole: bool,
    transaction: Id,
) -> Result<Vec<VertexPut>> {
    let mut new: Vec<VertexPut> = Vec::with_capacity(vertices.len());
    let mut at: HashMap<(VertexName, u64), usize> = HashMap::new();
    for mut put in vertices {
        let Some(mut time) = put.time else {
            new.push(put);
            continue;
        };
        let versions = store.graph().versions(&put.vertex, &Session::from(transaction))?;
        let mut pairs = put.props.pairs()?;
        let own = source(&pairs).map(str::to_owned);
        let there = |time: u64| {
            let mut of_time = versions.iter().filter(move |known| known.stamp == time && !known.deleted);
            let same = |known: &&crate::graph::Vertex| source(&known.props) == own.as_deref();
            let first = of_time.clone().next();
            of_time.find(same).or(first)
        };
        while own.is_some() && there(time).is_some_and(|known| source(&known.props) != own.as_deref()) {
            time = time.saturating_add(1);
        }
        if let Some(known) = there(time) {
            if own.is_none() {
                continue;
            }
            pairs = if whole { pairs } else { sum(known.props.clone(), pairs) };
            if is_same(&pairs, &known.props) && (put.fixed.is_none() || !known.fixed.is_empty()) {
                continue;
            }
        }
        put.time = Some(time);
        match at.entry((put.vertex.clone(), time)) {
            Entry::Occupied(place) => {
                let before = &mut new[*place.get()];
                before.props = props(&sum(before.props.pairs()?, pairs))?;
                before.fixed = put.fixed.or(before.fixed.take());
            }
            Entry::Vacant(place) => {
                place.insert(new.len());
                put.props = props(&pairs)?;
                new.push(put);
            }
        }
    }
    Ok(new)
}

/// The end and properties of a version of a relation, and its index among the new ones.
type Version = (Option<u64>, Pairs, Option<usize>);

/// The relations that add facts to the graph at their times.
pub fn new_relations(
    store: &Store,
    relations: Vec<RelationPut>,
    whole: bool,
    transaction: Id,
) -> Result<Vec<RelationPut>> {
    type FarEnds = HashMap<(VertexName, u64), Version>;
    let mut known: HashMap<(VertexName, String), FarEnds> = HashMap::new();
    let mut new: Vec<RelationPut> = Vec::with_capacity(relations.len());
    for mut put in relations {
        let at = match known.entry((put.source.clone(), put.kind.to_string())) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let graph = store.graph();
                let there = graph.edges(
                    &put.source,
                    Some(&put.kind),
                    Versions::ALL,
                    None,
                    &Session::from(transaction),
                )?;
                let versions = there.into_iter().filter(|edge| !edge.deleted && edge.archived.is_none());
                let version =
                    |edge: crate::graph::Relation| ((edge.far, edge.stamp), (edge.until, edge.props, None));
                entry.insert(versions.map(version).collect())
            }
        };
        let time = put.time.ok_or_else(|| Error::internal("recorded history without a time"))?;
        let mut pairs = put.props.pairs()?;
        let place = match at.get(&(put.target.clone(), time)) {
            None => None,
            Some((until, before, place)) => {
                if !whole || place.is_some() {
                    put.until = put.until.max(*until);
                    pairs = sum(before.clone(), pairs);
                }
                if put.until == *until && is_same(&pairs, before) {
                    continue;
                }
                *place
            }
        };
        put.props = props(&pairs)?;
        let version = (put.until, pairs, Some(place.unwrap_or(new.len())));
        at.insert((put.target.clone(), time), version);
        match place {
            Some(place) => new[place] = put,
            None => new.push(put),
        }
    }
    Ok(new)
}

/// Relations from jobs in the graph to a Darshan log's record of one of their programs: a log has the number of its
/// job, which is SLURM's if there is one, else a process number. So times must agree, too.
pub fn recorded_jobs(store: &Store, vertices: &[VertexPut]) -> Result<Vec<RelationPut>> {
    let mut relations: Vec<RelationPut> = Vec::new();
    for put in vertices {
        let (Some(Value::Int(number)), Some(Value::DateTime(start))) =
            (put.props.get("number")?, put.props.get("start")?)
        else {
            continue;
        };
        let job = VertexName::new("job", &number.to_string());
        let versions = store.graph().versions(&job, &Session::default())?;
        if versions.is_empty() || relations.iter().any(|known| known.target == put.vertex) {
            continue;
        }
        let Ok(known) = store.graph().vertex(&job, None, &Session::default()) else { continue };
        let time = |name: &str| match known.props.iter().find(|(known, _)| known == name) {
            Some((_, Value::DateTime(time))) => Some(*time),
            _ => None,
        };
        // Both usually have whole seconds.
        let began = time("start").is_some_and(|began| began <= start.saturating_add(SECOND));
        let ended = time("end").is_some_and(|end| end.saturating_add(SECOND) < start);
        if began && !ended {
            let mut relation = RelationPut::new("contains", job, put.vertex.clone());
            relation.time = put.time;
            relations.push(relation);
        }
    }
    Ok(relations)
}

fn props(pairs: &Pairs) -> Result<Props> {
    Props::of(pairs.iter().map(|(name, value)| (name.as_str(), value)))
}

/// The source that properties name.
fn source(pairs: &[(String, Value)]) -> Option<&str> {
    match pairs.iter().find(|(name, _)| name == SOURCE) {
        Some((_, Value::Text(source))) => Some(source),
        _ => None,
    }
}

/// Whether two lists have the same pairs, in any order.
fn is_same(a: &[(String, Value)], b: &[(String, Value)]) -> bool {
    a.len() == b.len() && a.iter().all(|(name, value)| b.iter().any(|(n, v)| n == name && v == value))
}

/// The union of both; of two values of one name the greater, of two maps the union.
fn sum(mut all: Pairs, more: Pairs) -> Pairs {
    for (name, value) in more {
        match all.iter_mut().find(|(known, _)| *known == name) {
            None => all.push((name, value)),
            Some((_, Value::Map(held))) if matches!(value, Value::Map(_)) => {
                if let Value::Map(more) = value {
                    *held = sum(std::mem::take(held), more);
                }
            }
            Some((_, held)) if held.order(&value).is_lt() => *held = value,
            Some(_) => {}
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}
