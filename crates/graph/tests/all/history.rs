//! Random histories: the puts of each user, row by row, in several segments; and the puts that count at a
//! moment.

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_format::graph::{Archive, Props, Record, RelationRow, Version, VertexName, VertexRow};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_graph::segment::{CommitOrder, Rows, build};
use fieldstone_graph::state::GraphState;
use fieldstone_testkit::Random;

/// Begin, end, the time when one of the ends was deleted, row.
pub type Standing<'a> = (u64, u64, u64, &'a RelationRow);

/// The puts, row by row.
#[derive(Default)]
pub struct History {
    pub relations: Vec<(RelationRow, u32)>,
    pub vertices: Vec<(VertexRow, u32)>,
    /// Marks of some of them, each with the time when it became known.
    pub stubs: Vec<(Record, u32, u64)>,
}

/// One of a few vertices of these types.
pub fn vertex(dice: &mut Random, kinds: &[&str]) -> VertexName {
    let kind: &str = dice.pick::<&str>(kinds);
    VertexName::new(kind, &dice.below(3).to_string())
}

/// The property `n`, or none.
fn number(dice: &mut Random) -> Props {
    let n = Value::Int(dice.below(4) as i64);
    if n == Value::Int(0) { Props::default() } else { Props::of([("n", &n)]).unwrap() }
}

impl History {
    /// A few relations and deletions, of two users, each at a time of its own.
    pub fn random(dice: &mut Random) -> History {
        History::at(dice, (1..40).collect())
    }

    /// The same, but two things may happen at once.
    pub fn crowded(dice: &mut Random) -> History {
        let stamps = (0..40).map(|_| 1 + dice.below(3)).collect();
        History::at(dice, stamps)
    }

    /// The same, with content moved to one of two stores.
    pub fn stubbed(self, dice: &mut Random) -> History {
        let mut stubs = Vec::new();
        let archive = |dice: &mut Random| {
            let url = *dice.pick(&["/cold", "/colder"]);
            (Archive { before: dice.below(3), url: url.into() }, 1 + dice.below(3))
        };
        for (row, user) in self.relations.iter().filter(|(row, _)| !row.version.deleted) {
            if dice.one_in(4) {
                let props = if row.props.replaces() { Props::replacing() } else { Props::default() };
                let ((archive, since), row) = (archive(dice), RelationRow { props, ..row.clone() });
                stubs.push((Record::ArchivedRelations(archive, vec![row]), *user, since));
            }
        }
        for (row, user) in self.vertices.iter().filter(|(row, _)| !row.version.deleted) {
            if dice.one_in(2) {
                let fixed = dice.one_in(3).then(Props::default);
                let row = VertexRow { props: Props::default(), fixed, ..row.clone() };
                let (archive, since) = archive(dice);
                stubs.push((Record::ArchivedVertices(archive, vec![row]), *user, since));
            }
        }
        History { stubs, ..self }
    }

    fn at(dice: &mut Random, mut stamps: Vec<u64>) -> History {
        let mut history = History::default();
        for _ in 0..5 + dice.below(30) {
            let stamp = stamps.remove(dice.index(stamps.len()));
            let user = 1 + u32::from(dice.one_in(6));
            let version = Version { stamp, time: 0, deleted: dice.one_in(9) };
            if (version.deleted && dice.one_in(2)) || dice.one_in(9) {
                let vertex = vertex(dice, &["file", "job"]);
                let props = if version.deleted { Props::default() } else { number(dice) };
                history.vertices.push((VertexRow { vertex, version, fixed: None, props }, user));
                continue;
            }
            let (kind, source, target) = match dice.below(9) {
                0 => ("contains", vertex(dice, &["job"]), vertex(dice, &["process"])),
                1 => ("exe", vertex(dice, &["job"]), vertex(dice, &["file"])),
                2..5 => ("read", vertex(dice, &["job", "process"]), vertex(dice, &["file"])),
                _ => ("write", vertex(dice, &["job", "process"]), vertex(dice, &["file"])),
            };
            let replaces = kind == "write" && !version.deleted && dice.one_in(3);
            let props =
                if replaces { Props::of([("replaces", &Value::Bool(true))]).unwrap() } else { number(dice) };
            let longest = *dice.pick(&[6, 30]);
            let until = (!version.deleted && dice.one_in(3)).then(|| stamp + dice.below(longest));
            let row = RelationRow { kind: kind.into(), source, target, version, until, props };
            history.relations.push((row, user));
        }
        history
    }

    /// Its rows, each in one of `parts` parts.
    pub fn parts(&self, dice: &mut Random, parts: usize) -> Vec<Rows> {
        let mut all: Vec<Rows> = (0..parts).map(|_| Rows::default()).collect();
        let relations = self.relations.iter();
        let relations = relations.map(|(row, user)| (Record::Relations(vec![row.clone()]), *user, 1));
        let vertices = self.vertices.iter();
        let vertices = vertices.map(|(row, user)| (Record::Vertices(vec![row.clone()]), *user, 1));
        for (record, user, since) in relations.chain(vertices).chain(self.stubs.iter().cloned()) {
            let commit = CommitOrder { known: CommitKnown { since, stamp: since }, user };
            all[dice.index(parts)].add(commit, &record.encode()).unwrap();
        }
        all
    }

    /// A state with its segments.
    pub fn state(&self, dice: &mut Random) -> GraphState {
        let parts = self.parts(dice, 2);
        GraphState::of(
            parts.iter().filter(|part| !part.is_empty()).map(|part| Arc::new(build(part).unwrap())).collect(),
        )
    }

    /// Puts that count at a moment: begin, end, the time when one of the ends was deleted, row.
    pub fn standing(&self, at: u64) -> Vec<Standing<'_>> {
        let mut standing = Vec::new();
        for (row, user) in self.relations.iter().filter(|(row, _)| !row.version.deleted) {
            let stamp = row.version.stamp;
            let later = |version: &Version, by: u32| {
                version.deleted && by == *user && (stamp..=at).contains(&version.stamp)
            };
            let same = |other: &RelationRow| {
                (&other.kind, &other.source, &other.target) == (&row.kind, &row.source, &row.target)
            };
            let deleted = self.relations.iter().any(|(other, by)| same(other) && later(&other.version, *by));
            if stamp > at || deleted {
                continue;
            }
            let ended = self.vertices.iter().filter(|(other, by)| {
                [&row.source, &row.target].contains(&&other.vertex) && later(&other.version, *by)
            });
            let ended = ended.map(|(other, _)| other.version.stamp).min().unwrap_or(u64::MAX);
            standing.push((stamp, row.until.unwrap_or(stamp).min(ended), ended, row));
        }
        standing
    }

    /// The newest put of a vertex that counts at a moment.
    pub fn vertex(&self, vertex: &VertexName, at: u64) -> Option<&VertexRow> {
        let own = || self.vertices.iter().filter(|(row, _)| row.vertex == *vertex && row.version.stamp <= at);
        let holds = |(row, user): &&(VertexRow, u32)| {
            let since = |(other, by): &(VertexRow, u32)| {
                other.version.deleted && by == user && other.version.stamp >= row.version.stamp
            };
            !row.version.deleted && !own().any(since)
        };
        own().filter(holds).max_by_key(|(row, _)| row.version.stamp).map(|(row, _)| row)
    }
}
