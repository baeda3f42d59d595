//! Lineage through other stores: from a commit that was read from another store, it continues upstream in that store's
//! graph.
//!
//! A reader of another store records its URL; the other store learns nothing of its readers, and may be read-only. So
//! an upstream walk goes from store to store, and a downstream walk stays (G-62).
//!
//! Invariants:
//! * other stores are opened read-only, and count only if their id is the one that the commit names;
//! * the walk continues from a commit in its own store, once for each time that it reaches the commit with fewer hops:
//!   so stores that read each other do not loop;
//! * `depth` and `limit` apply to all stores together;
//! * a store that cannot be reached or read is named with the reason, and is not an error;
//! * the limits of the session hold in all stores.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::VertexName;
use fieldstone_graph::dossier::Dossier;
use fieldstone_graph::read::{Relation, Versions};
use fieldstone_graph::trace::{Lineage, Step, TraceOptions, Way};

use super::{LineageSubject, Tracer};
use crate::Session;
use crate::{Mode, OpenOptions, Store};

/// Another store that a lineage leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageStore {
    /// Its id.
    pub id: Id,
    /// Its URL when it was read; `None` if it is not recorded.
    pub url: Option<String>,
    /// Number of its commits in the lineage.
    pub commits: u64,
    /// Why the lineage does not continue there; `None` if it does.
    pub left: Option<String>,
}

impl Tracer<'_> {
    /// The lineage of a subject, upstream also through other stores, and these stores by their ids.
    pub fn trace_across(
        &self,
        subject: &LineageSubject,
        options: &TraceOptions,
    ) -> Result<(Lineage, Vec<LineageStore>)> {
        self.go_on(self.trace(subject, options)?, options)
    }

    /// The same, with all that these stores record of its vertices.
    pub fn dossier_across(
        &self,
        subject: &LineageSubject,
        options: &TraceOptions,
    ) -> Result<(Dossier, Vec<LineageStore>)> {
        let own = self.dossier(subject, options)?;
        let (lineage, stores) = self.go_on(own.lineage.clone(), options)?;
        if stores.is_empty() {
            return Ok((own, stores));
        }
        Ok((self.around_across(&lineage, &stores, options.at)?, stores))
    }

    /// Continues a lineage of this store in other stores.
    fn go_on(&self, found: Lineage, options: &TraceOptions) -> Result<(Lineage, Vec<LineageStore>)> {
        if options.way == Way::Down {
            return Ok((found, Vec::new()));
        }
        let mut walk = WalkAcross {
            own: *self,
            id: self.store.backend().id(),
            options: TraceOptions { way: Way::Up, ..*options },
            done: HashMap::new(),
            others: BTreeMap::new(),
        };
        let lineage = walk.follow(found)?;
        Ok((lineage, walk.stores()))
    }

    /// The records of this store and others for the vertices of a lineage. A store that no longer exists adds nothing.
    pub fn around_across(
        &self,
        lineage: &Lineage,
        stores: &[LineageStore],
        at: Option<u64>,
    ) -> Result<Dossier> {
        let mut all = self.store.graph().around(lineage, at, self.session)?;
        for other in stores.iter().filter(|other| other.left.is_none()) {
            let Some(url) = &other.url else { continue };
            let around = |store: Store| store.graph().around(lineage, at, &self.session_in(&store));
            match open(url, other.id).and_then(around) {
                Ok(more) => add(&mut all, more),
                Err(error) if is_of_limits(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(all)
    }

    /// A session with the limits of this one, for reads of another store.
    fn session_in(&self, other: &Store) -> Session {
        let mut session = Session::default();
        if let Some(cancel) = self.session.cancel() {
            session = session.cancelled_by(cancel.clone());
        }
        if let Some(deadline) = self.session.deadline() {
            // Each store has a clock of its own: only the remaining time is the same for both.
            let now = |store: &Store| store.backend().env().clock.monotonic();
            session = session.until(now(other).saturating_add(deadline.saturating_sub(now(self.store))));
        }
        session
    }
}

/// Whether a read ended at the limits of its session, and not because of its store.
fn is_of_limits(error: &Error) -> bool {
    matches!(error.code(), Code::Cancelled | Code::DeadlinePassed)
}

/// Opens another store; WrongStore if a different store is in its place.
fn open(url: &str, id: Id) -> Result<Store> {
    let store = crate::open(url, &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?;
    match store.backend().id() == id {
        true => Ok(store),
        false => Err(Code::WrongStore.error(format!("{url} now holds another store"))),
    }
}

/// Adds the records of another store. If several stores record the same fact, the first one counts.
fn add(all: &mut Dossier, more: Dossier) {
    for (vertex, own) in more.props {
        let known = all.props.entry(vertex).or_default();
        let new: Vec<_> =
            own.into_iter().filter(|(name, _)| known.iter().all(|(other, _)| other != name)).collect();
        known.extend(new);
    }
    for (mine, others) in [(&mut all.runs, more.runs), (&mut all.jobs, more.jobs)] {
        let known: BTreeSet<(VertexName, VertexName)> =
            mine.iter().map(|edge| (edge.near.clone(), edge.far.clone())).collect();
        mine.extend(
            others.into_iter().filter(|edge| !known.contains(&(edge.near.clone(), edge.far.clone()))),
        );
    }
    all.users.extend(more.users);
}

/// Known facts of another store.
#[derive(Debug)]
struct OtherStore {
    /// Its possible URLs.
    urls: BTreeSet<String>,
    /// The store, once it is open.
    store: Option<Store>,
    url: Option<String>,
    left: Option<String>,
    commits: BTreeSet<VertexName>,
}

/// A walk through several stores.
struct WalkAcross<'a> {
    own: Tracer<'a>,
    id: Id,
    options: TraceOptions,
    /// Commits from which the walk has continued in their own stores, with the hops to them.
    done: HashMap<VertexName, u32>,
    others: BTreeMap<Id, OtherStore>,
}

/// Commits to continue from, by their stores.
type Pending = BTreeMap<Id, Vec<Step>>;

impl WalkAcross<'_> {
    /// Continues from the lineage in the walk's own store.
    fn follow(&mut self, found: Lineage) -> Result<Lineage> {
        let mut pending = self.pending(self.id, &found)?;
        let mut all = Gathered::of(found);
        while let Some((id, starts)) = pending.pop_first() {
            // A later store may have led there with fewer hops.
            let starts: Vec<Step> =
                starts.into_iter().filter(|step| self.done.get(&step.name) == Some(&step.depth)).collect();
            let left = self.options.limit.saturating_sub(all.depths.len());
            if starts.is_empty() {
                continue;
            }
            if left == 0 {
                all.lineage.truncated = true;
                break;
            }
            let options = TraceOptions { limit: left.saturating_add(starts.len()), ..self.options };
            let Some(part) = self.trace_in(id, &starts, &options)? else { continue };
            for (id, more) in self.pending(id, &part)? {
                pending.entry(id).or_default().extend(more);
            }
            all.add(part);
        }
        Ok(all.finish())
    }

    /// Continues in one store. An error of another store is noted.
    fn trace_in(&mut self, id: Id, starts: &[Step], options: &TraceOptions) -> Result<Option<Lineage>> {
        if id == self.id {
            return self.own.store.graph().trace_on(starts, options, self.own.session);
        }
        let Some(other) = self.others.get_mut(&id) else { return Ok(None) };
        if other.store.is_none() {
            other.left = other.urls.is_empty().then(|| "its location is not recorded".to_owned());
            for url in &other.urls {
                match open(url, id) {
                    Ok(store) => {
                        (other.store, other.url, other.left) = (Some(store), Some(url.clone()), None);
                        break;
                    }
                    Err(error) => (other.url, other.left) = (Some(url.clone()), Some(error.to_string())),
                }
            }
        }
        let Some(store) = &other.store else { return Ok(None) };
        match store.graph().trace_on(starts, options, &self.own.session_in(store)) {
            Ok(found) => Ok(found),
            Err(error) if is_of_limits(&error) => Err(error),
            Err(error) => {
                other.left = Some(error.to_string());
                Ok(None)
            }
        }
    }

    /// Commits of other stores in one store's lineage, if they are new or nearer.
    fn pending(&mut self, within: Id, found: &Lineage) -> Result<Pending> {
        let urls = urls(found);
        // Of moved and copied fields the lineage came along.
        let carried = found.edges.iter().filter(|edge| within == self.id && edge.kind == "write");
        let carried: HashSet<&VertexName> = carried.map(|edge| &edge.far).collect();
        let mut pending = Pending::new();
        for step in found.vertices.iter().filter(|step| &*step.name.kind == "commit") {
            let Some(commit) = CommitId::parse(&step.name.id) else { continue };
            if commit.store != within && carried.contains(&step.name) {
                continue;
            }
            if commit.store != within && commit.store != self.id {
                self.note(commit.store, step, &urls, within)?;
            }
            let nearer = self.done.get(&step.name).is_none_or(|known| step.depth < *known);
            if !nearer {
                continue;
            }
            self.done.insert(step.name.clone(), step.depth);
            // The walk in the commit's own store has already continued from it.
            if commit.store != within && self.options.depth.is_none_or(|most| step.depth < most) {
                pending.entry(commit.store).or_default().push(step.clone());
            }
        }
        Ok(pending)
    }

    /// Records a commit of another store, and the store's possible URLs.
    fn note(
        &mut self,
        id: Id,
        step: &Step,
        urls: &HashMap<&VertexName, BTreeSet<&str>>,
        within: Id,
    ) -> Result<()> {
        let new = OtherStore {
            urls: BTreeSet::new(),
            store: None,
            url: None,
            left: None,
            commits: BTreeSet::new(),
        };
        let other = self.others.entry(id).or_insert(new);
        other.commits.insert(step.name.clone());
        other.urls.extend(urls.get(&step.name).into_iter().flatten().map(|url| (*url).to_owned()));
        if other.urls.is_empty() && within == self.id {
            // If the walk begins at the commit itself, it meets no reader of it on the way up.
            let Tracer { store, session } = self.own;
            let readers =
                store.graph().edges(&step.name, Some("wasReadBy"), Versions::NOW, Some(1), session)?;
            other.urls.extend(readers.iter().filter_map(url).map(str::to_owned));
        }
        Ok(())
    }

    /// The other stores, with the result of visiting each.
    fn stores(self) -> Vec<LineageStore> {
        let one = |(id, other): (Id, OtherStore)| {
            let url = other.url.or_else(|| other.urls.first().cloned());
            LineageStore { id, url, commits: other.commits.len() as u64, left: other.left }
        };
        self.others.into_iter().map(one).collect()
    }
}

/// The URL of the store that a read names.
fn url(read: &Relation) -> Option<&str> {
    read.props.iter().find_map(|(name, value)| match value {
        Value::Text(url) if name == "store" => Some(url.as_str()),
        _ => None,
    })
}

/// URLs of the stores of commits, from the relations of their readers.
fn urls(found: &Lineage) -> HashMap<&VertexName, BTreeSet<&str>> {
    let mut urls: HashMap<&VertexName, BTreeSet<&str>> = HashMap::new();
    for read in found.edges.iter().filter(|edge| edge.kind == "read" && &*edge.far.kind == "commit") {
        urls.entry(&read.far).or_default().extend(url(read));
    }
    urls
}

/// The identity of a relation that several stores have.
type Identity = (String, VertexName, VertexName, u64, u32);

fn identity(edge: &Relation) -> Identity {
    (edge.kind.clone(), edge.near.clone(), edge.far.clone(), edge.stamp, edge.user)
}

/// The combined results of all stores.
struct Gathered {
    lineage: Lineage,
    depths: HashMap<VertexName, u32>,
    known: BTreeSet<Identity>,
}

impl Gathered {
    fn of(lineage: Lineage) -> Gathered {
        let depths = lineage.vertices.iter().map(|step| (step.name.clone(), step.depth)).collect();
        let known = lineage.edges.iter().map(identity).collect();
        Gathered { lineage, depths, known }
    }

    fn add(&mut self, part: Lineage) {
        for Step { name, depth } in part.vertices {
            let known = self.depths.entry(name).or_insert(depth);
            *known = (*known).min(depth);
        }
        for edge in part.edges {
            if self.known.insert(identity(&edge)) {
                self.lineage.edges.push(edge);
            }
        }
        self.lineage.reverses.extend(part.reverses);
        self.lineage.truncated |= part.truncated;
    }

    fn finish(self) -> Lineage {
        let Gathered { mut lineage, depths, .. } = self;
        let mut vertices: Vec<Step> = depths.into_iter().map(|(name, depth)| Step { name, depth }).collect();
        let root = lineage.root.clone();
        vertices.sort_by(|a, b| (a.name != root, a.depth, &a.name).cmp(&(b.name != root, b.depth, &b.name)));
        lineage.vertices = vertices;
        let edges = &mut lineage.edges;
        edges.sort_by(|a, b| (a.stamp, &a.near, &a.kind, &a.far).cmp(&(b.stamp, &b.near, &b.kind, &b.far)));
        lineage
    }
}
