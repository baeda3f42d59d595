//! Puts and deletions: checks them, and turns them into rows.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::graph::{
    Archive, Props, Record, RelationBatch, RelationRow, TextColumn, TypeDecl, Version, VertexName, VertexRow,
    batch_row, encode_batch,
};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::Session;

use super::inner::GraphInner;
use crate::archive::HiddenVersions;
use crate::put::{Deletion, RelationPut, VertexPut};
use crate::read;
use crate::state::{END, EdgeVersion, GraphState, standing};
use crate::vocabulary::Vocabulary;

/// Longest name of a type, bytes.
const KIND_MAX: usize = 255;
/// From this many rows on, columns become records of their own.
const BATCH_LEAST: usize = 4096;
/// Longest id of a vertex in bytes: longer than every path.
const ID_MAX: usize = 1 << 16;

impl GraphInner {
    pub fn define(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()> {
        self.journal.access().check_writable()?;
        let state = self.state(session)?;
        let mut vocabulary = state.vocabulary().clone();
        for declared in &types {
            let (name, names) = names_of(declared);
            if name.is_empty() || names.iter().any(|name| name.is_empty()) {
                return Err(Error::invalid("a type or property has no name"));
            }
            if let TypeDecl::Edge(edge) = declared
                && vocabulary.edge(&edge.name).is_none()
                && state.uses(&edge.reverse)
            {
                let message = format!("relations of the type '{}' exist already", edge.reverse);
                return Err(Code::TypeDiffers
                    .error(message)
                    .with_hint("choose another name for the reverse"));
            }
            vocabulary.declare(declared).map_err(|why| {
                Code::TypeDiffers.error(why).with_hint("repeat its declaration, or choose another name")
            })?;
        }
        self.hand_over_types(types, session)
    }

    fn hand_over_types(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()> {
        if types.is_empty() {
            return Ok(());
        }
        self.process().types.forget();
        self.journal.unflushed().add(vec![Record::Types(types).encode()], session)
    }

    /// Adds versions of another store.
    pub fn take_versions(&self, versions: &HiddenVersions, session: &Session) -> Result<()> {
        self.journal.access().check_writable()?;
        let state = self.state(session)?;
        let vocabulary = state.vocabulary();
        let is_new = |declared: &&TypeDecl| match declared {
            TypeDecl::Vertex(vertex) => vocabulary.vertex(&vertex.name) != Some(vertex),
            TypeDecl::Edge(edge) => vocabulary.edge(&edge.name) != Some(edge),
        };
        let types: Vec<TypeDecl> = versions.types.iter().filter(is_new).cloned().collect();
        if !types.is_empty() {
            self.define(types, session)?;
        }
        let HiddenVersions { vertices, relations, .. } = versions;
        let stamps = vertices.iter().map(|row| row.version.stamp);
        stamps
            .chain(relations.iter().map(|row| row.version.stamp))
            .for_each(|stamp| self.process().stamps.note(stamp));
        self.buffer(session, vertices.clone(), relations.clone());
        Ok(())
    }

    /// Marks versions as moved.
    pub fn put_stubs(&self, archive: &Archive, versions: &HiddenVersions, session: &Session) -> Result<()> {
        self.journal.access().check_writable()?;
        let (vertices, relations) = versions.stubs();
        self.journal.unflushed().add(Record::encode_archived(archive, &vertices, &relations), session)
    }

    /// Adds rows to the next commit of a session.
    fn buffer(&self, session: &Session, vertices: Vec<VertexRow>, relations: Vec<RelationRow>) {
        let rows = (vertices.len() + relations.len()) as u64;
        self.process().buffers.put(self.journal.unflushed(), session, rows, |own| {
            own.vertices.extend(vertices);
            own.relations.extend(relations);
            None
        });
    }

    /// The version of a row with this stamp, or with the present one.
    fn version(&self, time: Option<u64>, deleted: bool) -> Result<Version> {
        let Some(stamp) = time else {
            let (stamp, time) = self.process().stamps.several(1);
            return Ok(Version { stamp, time, deleted });
        };
        if !self.process().stamps.is_believed(stamp) {
            return Err(Error::invalid(format!("the time {stamp} ns is more than a century in the future"))
                .with_hint("times are seconds since 1970, or stamps"));
        }
        // Later puts are newer: they may depend on this one.
        self.process().stamps.note(stamp);
        Ok(Version { stamp, time: stamp as i64, deleted })
    }

    /// Puts vertices and relations: all of them, or none if one is refused.
    pub fn put(
        &self,
        vertices: Vec<VertexPut>,
        relations: Vec<RelationPut>,
        session: &Session,
    ) -> Result<u64> {
        self.journal.access().check_writable()?;
        let vertices = self.vertex_rows(vertices, session)?;
        let relations = self.relation_rows(relations, session)?;
        let last = relations.last().map(|row| row.version.stamp);
        let last = last.or(vertices.last().map(|row| row.version.stamp)).unwrap_or_else(|| self.stamp());
        self.buffer(session, vertices, relations);
        Ok(last)
    }

    /// Puts vertices, and relations given as columns: all of them, or none if one is refused.
    pub fn put_batch(
        &self,
        vertices: Vec<VertexPut>,
        batch: &RelationBatch,
        session: &Session,
    ) -> Result<u64> {
        self.journal.access().check_writable()?;
        if !batch.is_even() {
            return Err(Error::invalid("the columns of relations differ in length"));
        }
        // A few rows are better kept with others for one record. Relations that are refused, or are given by
        // their reverse names, must be looked at one by one.
        if batch.rows < BATCH_LEAST || !self.is_plain(batch, session)? {
            return self.put(vertices, singly(batch)?, session);
        }
        let vertices = self.vertex_rows(vertices, session)?;
        if !vertices.is_empty() {
            self.buffer(session, vertices, Vec::new());
        }
        let (first, time) = self.process().stamps.several(batch.rows as u64);
        let now = |row: usize| Version { stamp: first + row as u64, time, deleted: false };
        let version = |row: usize| match batch.times.as_ref().and_then(|times| times[row]) {
            None => now(row),
            Some(stamp) => Version { stamp, time: stamp as i64, deleted: false },
        };
        let versions: Vec<Version> = (0..batch.rows).map(version).collect();
        batch.times.iter().flatten().flatten().for_each(|stamp| self.process().stamps.note(*stamp));
        let records = encode_batch(batch, &versions);
        self.process().buffers.pass(self.journal.unflushed(), session, batch.rows as u64, records);
        Ok(versions.last().map_or_else(|| self.stamp(), |version| version.stamp))
    }

    /// Whether all relations in columns are given by their types' own names and none is refused.
    fn is_plain(&self, batch: &RelationBatch, session: &Session) -> Result<bool> {
        let mut types = Types { inner: self, session, known: None };
        // Rows of one type, between vertices of the same types, are mostly adjacent.
        let mut last: Option<[&[u8]; 3]> = None;
        for row in 0..batch.rows {
            let own = [&batch.kinds, &batch.source_kinds, &batch.target_kinds].map(|column| column.get(row));
            if last != Some(own) {
                let name = |kind: &TextColumn| Ok(VertexName::new(kind.text(row)?, "x"));
                let (source, target) = (name(&batch.source_kinds)?, name(&batch.target_kinds)?);
                let named = check_name(&source).and_then(|()| check_name(&target));
                let forward = types.forward(batch.kinds.text(row)?.into(), source, target.clone());
                if !matches!((named, forward), (Ok(()), Ok((kind, _, far))) if kind.as_bytes() == own[0] && far == target)
                {
                    return Ok(false);
                }
                last = Some(own);
            }
            let ids = [batch.source_ids.get(row).len(), batch.target_ids.get(row).len()];
            let (time, until) = batch.moments(row);
            let sound = ids.into_iter().all(|id| (1..=ID_MAX).contains(&id))
                && [time, until].into_iter().flatten().all(|stamp| self.process().stamps.is_believed(stamp))
                // Without a time the put is now: whether an earlier end is refused depends on the moment of
                // the put.
                && until.is_none_or(|until| time.is_some_and(|time| until >= time));
            if !sound {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn vertex_rows(&self, vertices: Vec<VertexPut>, session: &Session) -> Result<Vec<VertexRow>> {
        let mut rows = Vec::with_capacity(vertices.len());
        let declared = self.declared_static(&vertices, session)?;
        for VertexPut { vertex, fixed, props, time } in vertices {
            check_name(&vertex)?;
            if let (Some(state), Some(fixed)) = (&declared, &fixed) {
                check_static(state.vocabulary(), &vertex, fixed)?;
            }
            rows.push(VertexRow { vertex, version: self.version(time, false)?, fixed, props });
        }
        Ok(rows)
    }

    /// The declared types, if any of these vertices has static properties.
    fn declared_static(&self, vertices: &[VertexPut], session: &Session) -> Result<Option<Arc<GraphState>>> {
        match vertices.iter().any(|vertex| vertex.fixed.is_some()) {
            true => self.types(session, "").map(Some),
            false => Ok(None),
        }
    }

    fn relation_rows(&self, relations: Vec<RelationPut>, session: &Session) -> Result<Vec<RelationRow>> {
        let mut rows = Vec::with_capacity(relations.len());
        let mut types = Types { inner: self, session, known: None };
        for put in relations {
            check_name(&put.source)?;
            check_name(&put.target)?;
            let (kind, source, target) = types.forward(put.kind, put.source, put.target)?;
            let version = self.version(put.time, false)?;
            if put.until.is_some_and(|until| until < version.stamp) {
                return Err(Error::invalid(format!("the relation {kind} of {source} ends before it begins"))
                    .with_hint("until must not be before time"));
            }
            if put.until.is_some_and(|until| !self.process().stamps.is_believed(until)) {
                return Err(Error::invalid("a relation ends more than a century in the future"));
            }
            rows.push(RelationRow { kind, source, target, version, until: put.until, props: put.props });
        }
        Ok(rows)
    }

    pub fn delete(&self, what: Vec<Deletion>, time: Option<u64>, session: &Session) -> Result<u64> {
        self.journal.access().check_writable()?;
        let state = self.state(session)?;
        let (mut vertices, mut relations) = (Vec::new(), Vec::new());
        let mut last = None;
        for deletion in what {
            let version = self.version(time, true)?;
            last = Some(version.stamp);
            match deletion {
                Deletion::Vertex(vertex) => {
                    self.check_own(&vertex, read::vertex(&state, &vertex, None)?.user)?;
                    let props = Props::default();
                    vertices.push(VertexRow { vertex, version, fixed: None, props });
                }
                Deletion::Relation(kind, source, target) => {
                    let mut types = Types { inner: self, session, known: Some(state.clone()) };
                    let (kind, source, target) = types.forward(kind, source, target)?;
                    let user = last_user(&state, &kind, &source, &target)?;
                    self.check_own(format_args!("the relation {kind} of {source} and {target}"), user)?;
                    let props = Props::default();
                    relations.push(RelationRow { kind, source, target, version, until: None, props });
                }
            }
        }
        self.buffer(session, vertices, relations);
        Ok(last.unwrap_or_else(|| self.stamp()))
    }

    fn check_own(&self, what: impl std::fmt::Display, user: u32) -> Result<()> {
        if user == self.user(&Session::default()) {
            return Ok(());
        }
        Err(Code::RelationOwned
            .error(format!("{what} was put by {}", self.user_name(user)))
            .with_hint("only the user who put a version can delete it; put a version of your own instead"))
    }
}

/// The user who put the valid version of a relation; NotFound if there is none.
fn last_user(state: &GraphState, kind: &str, source: &VertexName, target: &VertexName) -> Result<u32> {
    let (from, to) = (VertexPlace::of(source), VertexPlace::of(target));
    let edges = state.edges(from, &|known, reverse| known == kind && !reverse)?;
    if let Some(edge) = edges.iter().find(|edge| edge.far == to)
        // Relations that ended with one of their ends count, too, so that a wrong relation can be taken back.
        && let Some(version) = standing(&edge.versions, END, EdgeVersion::facts).first()
    {
        return Ok(version.user);
    }
    let message = format!("there is no relation {kind} from {source} to {target}");
    Err(Code::RelationNotFound.error(message).with_hint("`edges` lists the relations of a vertex"))
}

/// The relations in columns, one by one.
fn singly(batch: &RelationBatch) -> Result<Vec<RelationPut>> {
    let put = |row: usize| {
        let (time, until) = batch.moments(row);
        let RelationRow { kind, source, target, props, .. } =
            batch_row(batch, row, Version { stamp: 0, time: 0, deleted: false })?;
        Ok(RelationPut { kind, source, target, props, time, until })
    };
    (0..batch.rows).map(put).collect()
}

/// Looks up types on demand: the reverse names of built-in types are known without a look at the logs.
struct Types<'a> {
    inner: &'a GraphInner,
    session: &'a Session,
    known: Option<Arc<GraphState>>,
}

impl Types<'_> {
    /// A relation as it is written: seen from its source.
    fn forward(
        &mut self,
        kind: Arc<str>,
        source: VertexName,
        target: VertexName,
    ) -> Result<(Arc<str>, VertexName, VertexName)> {
        if kind.trim_start_matches('~').is_empty() || kind.len() > KIND_MAX || kind.contains(char::is_control)
        {
            return Err(Error::invalid("not a valid type of a relation")
                .with_hint("a type is text of at most 255 bytes, without control characters"));
        }
        let builtin = Vocabulary::default();
        let mut direction = builtin.direction(&kind);
        if !direction.reverse && !Vocabulary::is_builtin(&kind) {
            let inner = self.inner;
            if !self
                .known
                .as_ref()
                .is_some_and(|state| inner.process().types.are_said_by(state, &direction.kind))
            {
                self.known = Some(inner.types(self.session, &direction.kind)?);
            }
            if let Some(state) = &self.known {
                direction = state.vocabulary().direction(&kind);
                let (from, to) = if direction.reverse { (&target, &source) } else { (&source, &target) };
                check_ends(state.vocabulary(), &direction.kind, from, to)?;
            }
        }
        Ok(match direction.reverse {
            true => (direction.kind, target, source),
            false => (direction.kind, source, target),
        })
    }
}

fn check_ends(vocabulary: &Vocabulary, kind: &str, source: &VertexName, target: &VertexName) -> Result<()> {
    let Some(edge) = vocabulary.edge(kind) else { return Ok(()) };
    for (declared, end, which) in [(&edge.source, source, "from"), (&edge.target, target, "to")] {
        if let Some(declared) = declared.as_ref().filter(|declared| **declared != *end.kind) {
            return Err(Error::invalid(format!(
                "a relation '{kind}' goes {which} a {declared}, not {which} {end}"
            )));
        }
    }
    Ok(())
}

fn check_name(vertex: &VertexName) -> Result<()> {
    if vertex.kind.is_empty() || vertex.id.is_empty() {
        return Err(
            Error::invalid("a vertex has no type or no id").with_hint("a vertex is a pair (type, id)")
        );
    }
    if vertex.kind.contains(':') || vertex.kind.len() > KIND_MAX || vertex.id.len() > ID_MAX {
        return Err(Error::invalid(format!("'{vertex}' is not a valid name of a vertex"))
            .with_hint("a type has at most 255 bytes and no ':', an id at most 65,536 bytes"));
    }
    Ok(())
}

fn check_static(vocabulary: &Vocabulary, vertex: &VertexName, fixed: &Props) -> Result<()> {
    let Some(declared) = vocabulary.vertex(&vertex.kind) else { return Ok(()) };
    for (name, value) in fixed.pairs()? {
        let Some((_, kind)) = declared.fixed.iter().find(|(known, _)| *known == name) else {
            let message = format!("a {} has no static property '{name}'", vertex.kind);
            return Err(Error::invalid(message).with_hint("declare it, or pass it in props"));
        };
        if value.kind() != *kind && *kind != fieldstone_core::value::ValueType::Json {
            let message = format!("the static property '{name}' of {vertex} is not of type {}", kind.name());
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

fn names_of(declared: &TypeDecl) -> (&str, Vec<&str>) {
    match declared {
        TypeDecl::Vertex(vertex) => {
            let fixed = vertex.fixed.iter().map(|(name, _)| name.as_str());
            (&vertex.name, fixed.chain(vertex.index.iter().chain(&vertex.text).map(String::as_str)).collect())
        }
        TypeDecl::Edge(edge) => {
            let ends = edge.source.iter().chain(&edge.target).chain(&edge.index).map(String::as_str);
            (&edge.name, ends.chain([edge.reverse.as_str()]).collect())
        }
    }
}
