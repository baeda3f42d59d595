//! Random records of a small graph, in which many of them interact.

use fieldstone_core::value::Value;
use fieldstone_format::graph::{
    Archive, EdgeType, Props, Record, RelationRow, TypeDecl, Version, VertexName, VertexRow,
};
use fieldstone_testkit::Random;

/// One of a few vertices.
pub fn vertex(dice: &mut Random) -> VertexName {
    let kind = *dice.pick(&["job", "file", "x"]);
    VertexName::new(kind, &dice.below(4).to_string())
}

fn version(dice: &mut Random) -> Version {
    let stamp = 1 + dice.below(12);
    Version { stamp, time: stamp as i64 + dice.below(2) as i64, deleted: dice.one_in(5) }
}

/// No properties, one, or the flag that it replaces.
pub fn props(dice: &mut Random) -> Props {
    match dice.below(4) {
        0 => Props::of([("n", &Value::Int(dice.below(3) as i64))]).unwrap(),
        1 => Props::of([("replaces", &Value::Bool(dice.one_in(2)))]).unwrap(),
        _ => Props::default(),
    }
}

/// A version of a vertex.
pub fn vertex_row(dice: &mut Random) -> VertexRow {
    let version = version(dice);
    let fixed = (!version.deleted && dice.one_in(3)).then(|| props(dice));
    let props = if version.deleted { Props::default() } else { props(dice) };
    VertexRow { vertex: vertex(dice), version, fixed, props }
}

/// A version of a relation.
pub fn relation_row(dice: &mut Random) -> RelationRow {
    let version = version(dice);
    let until = (!version.deleted && dice.one_in(4)).then(|| version.stamp + dice.below(4));
    let props = if version.deleted { Props::default() } else { props(dice) };
    let kind = *dice.pick(&["read", "write", "own"]);
    RelationRow { kind: kind.into(), source: vertex(dice), target: vertex(dice), version, until, props }
}

fn types(dice: &mut Random) -> Record {
    let name = *dice.pick(&["own", "derives"]);
    let reverse = *dice.pick(&["owned", "derived"]);
    let edge = EdgeType { name: name.into(), reverse: reverse.into(), ..EdgeType::default() };
    Record::Types(vec![TypeDecl::Edge(edge)])
}

/// Marks of versions that may be there.
fn stubs(dice: &mut Random) -> Record {
    let archive = Archive { before: dice.below(12), url: "/cold".into() };
    let mut version = version(dice);
    version.deleted = false;
    if dice.one_in(2) {
        let fixed = dice.one_in(2).then(Props::default);
        let row = VertexRow { vertex: vertex(dice), version, fixed, props: Props::default() };
        return Record::ArchivedVertices(archive, vec![row]);
    }
    let until = dice.one_in(3).then_some(version.stamp + 2);
    let row = RelationRow { version, props: Props::default(), until, ..relation_row(dice) };
    Record::ArchivedRelations(archive, vec![row])
}

/// A record of a few rows.
pub fn record(dice: &mut Random) -> Record {
    let n = 1 + dice.below(4);
    match dice.below(7) {
        0 => types(dice),
        6 => stubs(dice),
        1 | 2 => Record::Vertices((0..n).map(|_| vertex_row(dice)).collect()),
        _ => Record::Relations((0..n).map(|_| relation_row(dice)).collect()),
    }
}
