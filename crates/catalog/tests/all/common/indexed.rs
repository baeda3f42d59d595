//! A [`World`] in an engine: its records applied as one commit, its fields as entries.

use std::sync::Arc;

use fieldstone_catalog::engine::{Database, FieldRow, Index, Wait};
use fieldstone_format::Id;
use fieldstone_journal::feed::Commit;

use super::world::{WRITER, World};

/// The tables of a world on this database, inside one read. Numbers its attributes.
pub fn indexed(db: Box<dyn Database>, store: Id, world: &mut World) -> Index {
    let side: Vec<_> = world.seal().iter().map(|record| record.encode()).collect();
    let mut index = Index::open(db, store).unwrap();
    assert!(index.begin_apply(Wait::Yes).unwrap());
    let commit = Commit {
        writer: WRITER,
        owner: 0,
        sequence: 1,
        stamp: 1,
        time: 0,
        transaction: None,
        order: None,
        side,
    };
    index.apply_commit(&commit).unwrap();
    let field = |held: &super::world::HeldFields| FieldRow {
        user: 0,
        run: world.runs[held.run].run.clone(),
        variable: Some(held.variable.clone()),
        step: Some(held.step),
        sequence: 2,
        time: 0,
        transaction: None,
        removal: false,
        dtype: None,
        shape: None,
    };
    let fields: Vec<FieldRow> = world.held.iter().map(field).collect();
    index.apply_entries(WRITER, &fields).unwrap();
    index.set_watermark(WRITER, 2).unwrap();
    index.end_apply().unwrap();
    index.begin_read().unwrap();
    index.set_points(Arc::new(super::meshes::Source));
    index
}
