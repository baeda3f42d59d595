//! Executions as users see them: a job with its processes is one, a process without a job is one (G-41).
//!
//! A unit read, wrote and executed whatever its members did, each vertex once. So a job of a thousand ranks that wrote
//! one file has one line in a script and one arrow in a picture.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::value::Value;
use fieldstone_graph::dossier::{Dossier, is_execution};
use fieldstone_graph::read::Relation;

use super::{VertexName, outcome};

/// A unit's use of one vertex: all relations of one type between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Contact {
    /// The data, or the program.
    pub data: VertexName,
    /// Stamp at which it began.
    pub begin: u64,
    /// Stamp at which it ended.
    pub end: u64,
    /// Number of relations, counting versions.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: Option<i64>,
    /// Fields of a commit, for all of them.
    pub fields: Option<i64>,
    /// The request of the last read.
    pub request: Option<String>,
    /// The checksum recorded last.
    pub checksum: Option<String>,
    /// Whether the last of them replaced earlier content.
    pub replaces: bool,
}

/// A job with its processes, or a process without a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The job, or the process.
    pub name: VertexName,
    /// Processes of the job that took part.
    pub parts: Vec<VertexName>,
    /// Users who ran it.
    pub users: BTreeSet<VertexName>,
    /// Its recorded beginning, else its first relation.
    pub begin: u64,
    /// Data it read.
    pub reads: Vec<Contact>,
    /// Data it wrote.
    pub writes: Vec<Contact>,
    /// Programs it executed.
    pub programs: Vec<Contact>,
}

/// A text property of a relation.
pub fn text<'a>(edge: &'a Relation, name: &str) -> Option<&'a str> {
    edge.props.iter().find(|(known, _)| known == name).and_then(|(_, value)| match value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// A count among the properties of a relation.
pub fn number(edge: &Relation, name: &str) -> Option<i64> {
    edge.props.iter().find(|(known, _)| known == name).and_then(|(_, value)| match value {
        Value::Int(n) => Some(*n),
        Value::UInt(n) => i64::try_from(*n).ok(),
        _ => None,
    })
}

/// Whether a relation replaced earlier content.
pub fn replaces(edge: &Relation) -> bool {
    edge.props.iter().any(|(name, value)| name == "replaces" && *value == Value::Bool(true))
}

/// The end of a relation; its beginning if none is recorded.
pub fn end(edge: &Relation) -> u64 {
    edge.until.unwrap_or(edge.stamp).max(edge.stamp)
}

impl Contact {
    fn add(
        all: &mut Vec<Contact>,
        at: &mut BTreeMap<(String, VertexName, VertexName), usize>,
        edge: &Relation,
        unit: &VertexName,
    ) {
        let key = (edge.kind.clone(), unit.clone(), edge.far.clone());
        let place = *at.entry(key).or_insert(all.len());
        if place == all.len() {
            let (data, begin) = (edge.far.clone(), edge.stamp);
            all.push(Contact {
                data,
                begin,
                end: begin,
                count: 0,
                bytes: None,
                fields: None,
                request: None,
                checksum: None,
                replaces: false,
            });
        }
        let Some(contact) = all.get_mut(place) else { return };
        contact.begin = contact.begin.min(edge.stamp);
        // A program is read when it starts; later changes of its file do not matter.
        let ended = if edge.kind == "exe" { edge.stamp } else { end(edge) };
        contact.end = contact.end.max(ended);
        contact.count += 1;
        for (name, sum) in [("bytes", &mut contact.bytes), ("fields", &mut contact.fields)] {
            if let Some(n) = number(edge, name) {
                *sum = Some(sum.unwrap_or(0).saturating_add(n));
            }
        }
        contact.request = text(edge, "request").map(str::to_owned).or(contact.request.take());
        // Relations come in the order of their stamps.
        contact.checksum = text(edge, "checksum").map(str::to_owned).or(contact.checksum.take());
        contact.replaces = replaces(edge);
    }
}

impl Unit {
    /// The vertices that record its commands: the job, or the processes if the job has none.
    pub fn runners<'a>(&'a self, dossier: &Dossier) -> Vec<&'a VertexName> {
        let says = |vertex: &&VertexName| dossier.prop(vertex, "argv").is_some();
        if says(&&self.name) || !self.parts.iter().any(|part| says(&part)) {
            return vec![&self.name];
        }
        // Running a process also runs the processes that it starts.
        let own = self.parts.iter().filter(says);
        let first = own.clone().filter(|part| dossier.prop(part, "parent").is_none());
        let first: Vec<&VertexName> = first.collect();
        if first.is_empty() { own.collect() } else { first }
    }

    /// A property: the job's, else that of the first process with one.
    pub fn prop<'a>(&self, dossier: &'a Dossier, name: &str) -> Option<&'a Value> {
        let members = std::iter::once(&self.name).chain(&self.parts);
        members.filter_map(|member| dossier.prop(member, name)).next()
    }

    /// A text property, as [`prop`](Unit::prop).
    pub fn text<'a>(&self, dossier: &'a Dossier, name: &str) -> Option<&'a str> {
        match self.prop(dossier, name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Names of the users who ran it, in order.
    pub fn user_names<'a>(&'a self, dossier: &'a Dossier) -> Vec<&'a str> {
        let mut users: Vec<&str> = self.users.iter().map(|user| dossier.user(&user.id)).collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// Its title: its name, else its program's, else its id.
    pub fn title(&self, dossier: &Dossier) -> String {
        if let Some(name) = self.text(dossier, "name").filter(|name| !name.is_empty()) {
            return name.to_owned();
        }
        let first = match self.prop(dossier, "argv") {
            Some(Value::List(words) | Value::Array(words)) => words.first(),
            _ => None,
        };
        match first {
            Some(Value::Text(program)) => program.rsplit('/').next().unwrap_or(program).to_owned(),
            _ => self.name.id.to_string(),
        }
    }

    /// Nanoseconds from its beginning to its end, if both are recorded.
    pub fn duration(&self, dossier: &Dossier) -> Option<i64> {
        match (self.prop(dossier, "start")?, self.prop(dossier, "end")?) {
            (Value::DateTime(start), Value::DateTime(end)) => end.checked_sub(*start).filter(|n| *n >= 0),
            _ => None,
        }
    }

    /// Why it failed: the job's reason, else that of its first failed process.
    pub fn failure(&self, dossier: &Dossier) -> Option<String> {
        let of = |member: &VertexName| outcome::failure(|name| dossier.prop(member, name));
        let says = |name: &str| dossier.prop(&self.name, name).is_some();
        let own = of(&self.name);
        if own.is_some() || ["exit", "signal", "state"].into_iter().any(says) {
            return own;
        }
        self.parts.iter().find_map(of)
    }
}

/// The units of a lineage, by their beginning.
pub fn units(dossier: &Dossier) -> Vec<Unit> {
    let contains = dossier.relations().filter(|edge| edge.kind == "contains");
    let mut job_of: BTreeMap<&VertexName, &VertexName> = BTreeMap::new();
    for edge in contains {
        let job = job_of.entry(&edge.far).or_insert(&edge.near);
        *job = (*job).min(&edge.near);
    }
    let mut all: BTreeMap<&VertexName, Unit> = BTreeMap::new();
    let mut at: [BTreeMap<_, usize>; 3] = Default::default();
    for execution in dossier.vertices().filter(|name| is_execution(&name.kind)) {
        let name = *job_of.get(execution).unwrap_or(&execution);
        let unit = all.entry(name).or_insert_with(|| Unit {
            name: name.clone(),
            parts: Vec::new(),
            users: BTreeSet::new(),
            begin: u64::MAX,
            reads: Vec::new(),
            writes: Vec::new(),
            programs: Vec::new(),
        });
        if execution != name {
            unit.parts.push(execution.clone());
        }
    }
    for edge in &dossier.lineage.edges {
        let name = *job_of.get(&edge.near).unwrap_or(&&edge.near);
        let Some(unit) = all.get_mut(name) else { continue };
        let Unit { name, reads, writes, programs, .. } = unit;
        match edge.kind.as_str() {
            "read" => Contact::add(reads, &mut at[0], edge, name),
            "write" => Contact::add(writes, &mut at[1], edge, name),
            "exe" => Contact::add(programs, &mut at[2], edge, name),
            _ => {}
        }
    }
    for run in &dossier.runs {
        if let Some(unit) = all.get_mut(*job_of.get(&run.far).unwrap_or(&&run.far)) {
            unit.users.insert(run.near.clone());
        }
    }
    let mut units: Vec<Unit> = all.into_values().collect();
    for unit in &mut units {
        unit.parts.sort();
        let start = match unit.prop(dossier, "start") {
            Some(Value::DateTime(start)) => u64::try_from(*start).ok(),
            _ => None,
        };
        let first =
            [&unit.reads, &unit.writes, &unit.programs].into_iter().flatten().map(|contact| contact.begin);
        unit.begin = start.or(first.min()).unwrap_or(u64::MAX);
        for contacts in [&mut unit.reads, &mut unit.writes, &mut unit.programs] {
            contacts.sort_by(|a, b| a.data.cmp(&b.data));
        }
    }
    units.sort_by(|a, b| (a.begin, &a.name).cmp(&(b.begin, &b.name)));
    units
}
