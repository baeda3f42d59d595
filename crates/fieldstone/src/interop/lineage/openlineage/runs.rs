//! A run of OpenLineage, from all its known events.
//!
//! The rows of a run are a function of the set of its events: they do not depend on files, ingests, order or
//! repetition. So the job has a version at each event time, with the facts of that time's events, which add up when
//! they are read ([`described`](fieldstone_graph::described)). A relation also has a version at each event time, which
//! lasts to the last known event: whichever event was put first, the versions end up the same. The first has the
//! properties. If a new event changes existing versions, they are put again, and replace those at the same stamps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_graph::described::SOURCE;

use super::{Change, DataMention, Event, FACETS, STATE, Scalars};
use crate::graph::{Relation, Vertex};
use crate::interop::lineage::openlineage_own::OwnExecution;
use crate::interop::lineage::props::{PropList, Span, moment, put_execution, relation};
use crate::interop::lineage::{GraphRows, RelationPut, VertexName, VertexPut};

/// The source in properties of imported events.
const OPENLINEAGE: &str = "openlineage";
/// The types of a version's events, sorted and separated by commas.
const TYPES: &str = "event";
/// Types of events that end a run.
const ENDS: [&str; 3] = ["COMPLETE", "FAIL", "ABORT"];

/// Properties by name; of equal names the greater value counts, so that the order of events does not matter.
type Facets = BTreeMap<String, Value>;

/// The known events of a run.
#[derive(Debug, Clone, Default)]
pub struct RunEvents {
    /// By time: types of the events, and their facts about run and job.
    events: BTreeMap<u64, (BTreeSet<String>, Facets)>,
    /// Its inputs and outputs: whether written, and the data set.
    data: BTreeMap<(bool, VertexName), DataUse>,
    /// The job that contains it, and the stamp of that relation in the graph.
    parents: BTreeMap<VertexName, Option<u64>>,
    /// The execution in our own export, from the newest event.
    own: Option<(u64, OwnExecution)>,
    /// Relations in such an export, by type, ends and stamp.
    exact: BTreeMap<(VertexName, Arc<str>, VertexName, Option<u64>), RelationPut>,
}

/// A run's use of a data set.
#[derive(Debug, Clone, Default)]
struct DataUse {
    facets: Facets,
    /// Whether it was read or written as a whole, from the first event to the last.
    plain: bool,
    /// Times of its replacement, or, for data read just before one, of that.
    changes: BTreeSet<u64>,
    /// Stamps of the graph's versions.
    known: BTreeSet<u64>,
}

impl RunEvents {
    /// Whether our own export describes it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event) {
        let Event { time, kind, parent, facets, data, own, exact, .. } = event;
        let (kinds, of_time) = self.events.entry(time).or_default();
        kinds.extend(Some(kind).filter(|kind| !kind.is_empty()));
        merge(of_time, &facets);
        if let Some(parent) = parent {
            self.parents.entry(VertexName::new("job", &parent)).or_default();
        }
        if let Some(own) = own.filter(|_| self.own.as_ref().is_none_or(|(known, _)| *known <= time)) {
            self.own = Some((time, own));
        }
        for put in exact {
            self.exact.insert((put.source.clone(), put.kind.clone(), put.target.clone(), put.time), put);
        }
        for DataMention { written, vertex, facets, change } in data {
            let of_it = self.data.entry((written, vertex)).or_default();
            merge(&mut of_it.facets, &facets);
            of_it.plain |= matches!(change, Change::None | Change::Replaced);
            of_it.changes.extend((change != Change::None).then_some(time));
        }
    }

    /// Takes the graph's versions and relations of it.
    pub fn remember(&mut self, versions: &[Vertex], relations: &[Relation]) {
        for version in versions.iter().filter(|version| !version.deleted) {
            let text = |name: &str| match version.props.iter().find(|(known, _)| known == name) {
                Some((_, Value::Text(text))) => Some(text.as_str()),
                _ => None,
            };
            if text(SOURCE) != Some(OPENLINEAGE) {
                continue;
            }
            let (kinds, of_time) = self.events.entry(version.stamp).or_default();
            kinds.extend(text(TYPES).into_iter().flat_map(|all| all.split(',')).map(str::to_owned));
            let derived = |name: &str| [SOURCE, TYPES, "start", "end", "state"].contains(&name);
            let facets: Scalars = version.props.iter().filter(|(name, _)| !derived(name)).cloned().collect();
            merge(of_time, &facets);
        }
        for relation in relations.iter().filter(|relation| !relation.deleted) {
            match (relation.kind.as_str(), relation.reverse) {
                ("read" | "write", false) => self.remember_use(relation),
                (_, true) if self.parents.contains_key(&relation.far) => {
                    let known = self.parents.entry(relation.far.clone()).or_default();
                    *known = Some(known.map_or(relation.stamp, |known| known.min(relation.stamp)));
                }
                _ => {}
            }
        }
    }

    fn remember_use(&mut self, relation: &Relation) {
        let written = relation.kind == "write";
        let of_it = self.data.entry((written, relation.far.clone())).or_default();
        let get = |name: &str| relation.props.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let replaces = get("replaces") == Some(&Value::Bool(true));
        let is_removal = matches!(get(STATE), Some(Value::Text(state)) if is_removal(state));
        let facets = relation.props.iter().filter(|(name, _)| name != "replaces" && name != "bytes");
        merge(&mut of_it.facets, &facets.cloned().collect());
        of_it.known.insert(relation.stamp);
        if !written && is_removal {
            of_it.changes.insert(relation.stamp.saturating_add(1));
        } else {
            of_it.changes.extend(replaces.then_some(relation.stamp));
            of_it.plain |= !(replaces && is_removal);
        }
    }

    /// From the first event to the last; without an end if there is only one time, and it does not end the run.
    fn span(&self) -> Option<Span> {
        let (first, last) = (*self.events.keys().next()?, *self.events.keys().next_back()?);
        Some(Span { begin: first, end: (last > first || self.end().is_some()).then_some(last) })
    }

    /// The time of its beginning: of START, else of its first event.
    fn start(&self) -> Option<u64> {
        let of_start = self.events.iter().find(|(_, (kinds, _))| kinds.contains("START"));
        of_start.or(self.events.iter().next()).map(|(time, _)| *time)
    }

    /// The time and type of its end.
    fn end(&self) -> Option<(u64, &str)> {
        let ends = |kinds: &'_ BTreeSet<String>| ENDS.into_iter().filter(|end| kinds.contains(*end)).max();
        self.events.iter().rev().find_map(|(time, (kinds, _))| Some((*time, ends(kinds)?)))
    }

    /// Adds the rows of the run.
    pub fn put(&self, job: &VertexName, rows: &mut GraphRows) -> Result<()> {
        let Some(span) = self.span() else { return Ok(()) };
        rows.relations.extend(self.exact.values().cloned());
        let vertex = self.own.as_ref().map_or(job, |(_, own)| &own.vertex);
        match &self.own {
            Some((_, own)) => {
                let begin = self.start().unwrap_or(span.begin);
                put_own(rows, own, Span { begin, end: self.end().map(|(end, _)| end) })?;
            }
            None => self.put_versions(vertex, rows)?,
        }
        let parents = self.parents.iter().filter(|_| self.own.is_none());
        for (parent, known) in parents {
            let span = Span { begin: known.unwrap_or(span.begin), ..span };
            rows.relations.push(relation("contains", parent, vertex, span));
        }
        for ((written, data), of_it) in &self.data {
            let replaced = self.data.get(&(true, data.clone())).map(|own| &own.changes);
            let kind = if *written { "write" } else { "read" };
            let mut all = match written {
                true => of_it.writes(span, self.events.keys()),
                false => of_it.reads(span, self.events.keys(), replaced.into_iter().flatten()),
            };
            // A version without an event of its own is a part of the rest, and has no facts.
            for stamp in &of_it.known {
                all.entry(*stamp).or_insert(UseVersion {
                    end: span.end,
                    says: Says::Nothing,
                    replaces: false,
                });
            }
            for (begin, version) in all {
                let mut put = relation(kind, vertex, data, Span { begin, end: version.end });
                put.props = of_it.props(*written, &version).props()?;
                rows.relations.push(put);
            }
        }
        Ok(())
    }

    /// A version for each event time.
    fn put_versions(&self, vertex: &VertexName, rows: &mut GraphRows) -> Result<()> {
        for (time, (kinds, facets)) in &self.events {
            let mut props = PropList::of_source(OPENLINEAGE);
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            props.set_some(TYPES, (!kinds.is_empty()).then(|| Value::Text(kinds.join(","))));
            bounded(facets, &mut props);
            props.set_some("start", self.start().and_then(moment));
            if let Some((_, state)) = self.end().filter(|(end, _)| end == time) {
                props.set_some("end", moment(*time));
                props.set("state", Value::Text(state.to_owned()));
            }
            let (vertex, props) = (vertex.clone(), props.props()?);
            rows.vertices.push(VertexPut { vertex, fixed: None, props, time: Some(*time) });
        }
        Ok(())
    }
}

/// The facts that a version of a relation has about the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// None: another version has them.
    Nothing,
    /// Only its change.
    State,
    /// All known facts.
    All,
}

/// A version of a relation to be put.
struct UseVersion {
    end: Option<u64>,
    says: Says,
    replaces: bool,
}

impl UseVersion {
    /// A version at an event time; the first of these has the facts.
    fn at(time: u64, span: Span, says: Says) -> UseVersion {
        let says = if time == span.begin { says } else { Says::Nothing };
        UseVersion { end: span.end, says, replaces: false }
    }
}

impl DataUse {
    /// The versions of the relation of a run that read the data set, by their stamps. `times`: those of its events;
    /// `replaced`: when it replaced the data set.
    fn reads<'a>(
        &self,
        span: Span,
        times: impl Iterator<Item = &'a u64>,
        replaced: impl Iterator<Item = &'a u64>,
    ) -> BTreeMap<u64, UseVersion> {
        let just_before = |change: &u64, says| {
            let before = change.saturating_sub(1);
            (before, UseVersion { end: Some(before), says, replaces: false })
        };
        let mut all: BTreeMap<u64, UseVersion> = BTreeMap::new();
        if self.plain {
            // If it replaced a data set in place, it also read it before that.
            all.extend(replaced.map(|change| just_before(change, Says::Nothing)));
            all.extend(times.map(|time| (*time, UseVersion::at(*time, span, Says::All))));
        }
        all.extend(self.changes.iter().map(|change| just_before(change, Says::State)));
        all
    }

    /// The versions of the relation of a run that wrote the data set.
    fn writes<'a>(&self, span: Span, times: impl Iterator<Item = &'a u64>) -> BTreeMap<u64, UseVersion> {
        let mut all = BTreeMap::new();
        if self.plain {
            let says = if self.changes.is_empty() { Says::All } else { Says::Nothing };
            all.extend(times.map(|time| (*time, UseVersion::at(*time, span, says))));
        }
        for change in &self.changes {
            let says = if self.changes.last() == Some(change) { Says::All } else { Says::State };
            all.insert(*change, UseVersion { end: span.end, says, replaces: true });
        }
        all
    }

    fn props(&self, written: bool, version: &UseVersion) -> PropList {
        let mut props = PropList::default();
        if version.says == Says::All {
            bounded(&self.facets, &mut props);
            let size = ["outputStatistics.size", "inputStatistics.size"].map(|name| self.facets.get(name));
            if let Some(bytes @ (Value::Int(_) | Value::UInt(_))) = size.into_iter().flatten().next() {
                props.set("bytes", bytes.clone());
            }
            props.remove(STATE);
        }
        // These words identify relations that were not a write of the whole, or a read just before.
        let state = self.facets.get(STATE).filter(|state| match state {
            Value::Text(state) if is_removal(state) => !self.plain || !written,
            _ => written,
        });
        let kept = version.says == Says::State || (version.says == Says::All && written);
        props.set_some(STATE, state.filter(|_| kept).cloned());
        if version.replaces {
            props.set("replaces", Value::Bool(true));
        }
        props
    }
}

/// Whether a state means that a data set was removed, or now belongs to another name.
fn is_removal(state: &str) -> bool {
    ["DROP", "RENAME"].iter().any(|word| state.eq_ignore_ascii_case(word))
}

/// Puts an execution that our own export describes, with its times, if it had any.
fn put_own(rows: &mut GraphRows, own: &OwnExecution, span: Span) -> Result<()> {
    let (mut begun, mut ended) = (PropList::default(), PropList::default());
    let has = |name: &str| own.props.iter().any(|(known, _)| known == name);
    for (name, value) in own.props.iter().filter(|(name, _)| !matches!(name.as_str(), "start" | "end")) {
        let late = matches!(name.as_str(), "exit" | "signal" | "error" | "state");
        let list = if late { &mut ended } else { &mut begun };
        list.set_whole(name, value.clone());
    }
    if span.end.is_none() {
        begun.merge(&ended);
    }
    if has("start") {
        return put_execution(rows, &own.vertex, span, begun, &ended);
    }
    begun.merge(&ended);
    if begun.len() > 0 {
        let props = begun.props()?;
        let time = Some(span.begin);
        rows.vertices.push(VertexPut { vertex: own.vertex.clone(), fixed: None, props, time });
    }
    Ok(())
}

/// Adds properties; of two values of one name the greater counts.
fn merge(into: &mut Facets, facets: &Scalars) {
    for (name, value) in facets {
        if into.get(name).is_none_or(|held| held.order(value).is_lt()) {
            into.insert(name.clone(), value.clone());
        }
    }
}

/// Sets properties; those of facets only up to the limit.
fn bounded(facets: &Facets, props: &mut PropList) {
    // Names with a dot come from facets; an event's own facts are always kept.
    let (more, own): (Vec<_>, Vec<_>) = facets.iter().partition(|(name, _)| name.contains('.'));
    let kept = own.into_iter().chain(more.into_iter().take(FACETS));
    kept.for_each(|(name, value)| props.set(name, value.clone()));
}
