//! Attributes from another store, and removals in a store that has handed its attributes over.
//!
//! The other store has checked its attributes: a variable need not exist here, as long as nothing here
//! contradicts it. Invariant: a removal names each attribute or declaration by its place in the logs, so that
//! newer ones stay.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{
    AttributeBatch, AttributeId, Record, Removal, RunName, check_batch, split_batch,
};
use fieldstone_journal::Session;

use super::delete::IDS;
use super::validate;
use crate::engine::DeclarationRow;
use crate::registry::Registry;

/// Adds attributes of another store. Conflict if a variable is declared with another shape here.
pub fn carry(registry: &Registry, batch: AttributeBatch, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    check_batch(&batch)?;
    if let Some(info) = registry.find_run(session, &batch.run)? {
        registry.need_annotate(session, &batch.run, info.decl.annotate)?;
    }
    if batch.boxes.is_some() {
        let known = registry.find_variables(session, &batch.run, &batch.variables)?;
        let shape = |name| known.get(name).and_then(|info| info.decl.shape.clone());
        let shapes: Vec<Option<Vec<u64>>> = batch.variables.iter().map(shape).collect();
        validate::boxes(&batch, &shapes).map_err(|e| {
            Code::VariableDiffers
                .error(format!("an attribute does not fit the declarations of this store: {}", e.message()))
                .with_hint("copy into another store, or under another name")
        })?;
    }
    registry.note_tag(session, &batch)?;
    registry.reader.pending.emit(session, split_batch(batch).into_iter().map(Record::Attributes).collect())
}

/// Removes attributes of a run, each with the user who wrote it. Denied if another user wrote one, in a run
/// that the caller does not own.
pub fn remove_attributes(
    registry: &Registry,
    run: &RunName,
    attributes: &[(AttributeId, u32)],
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    let me = registry.store.user(session);
    if let Some((_, user)) = attributes.iter().find(|(_, user)| *user != me)
        && registry.run_owner(session, run)? != Some(me)
    {
        let name = registry.store.user_name(*user);
        return Err(Code::AttributeOwned
            .error(format!("an attribute to remove from run '{}' belongs to {name}", run.name))
            .with_hint(format!("ask {name}, or copy instead of moving")));
    }
    let ids: Vec<AttributeId> = attributes.iter().map(|(id, _)| *id).collect();
    remove_written(registry, run, &ids, session)
}

/// Removes declarations of a run, by their places in the logs. Denied if another user owns it.
pub fn remove_declarations(
    registry: &Registry,
    run: &RunName,
    rows: &[DeclarationRow],
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    registry.need_own(session, run)?;
    let ids: Vec<AttributeId> = rows.iter().map(|row| row.id).collect();
    remove_written(registry, run, &ids, session)
}

/// Writes existing declarations again, so that they survive a removal of the older ones.
pub fn declare_again(
    registry: &Registry,
    run: &RunName,
    records: Vec<Record>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    records.iter().try_for_each(Record::check)?;
    registry.need_own(session, run)?;
    registry.reader.pending.emit(session, records)
}

fn remove_written(registry: &Registry, run: &RunName, ids: &[AttributeId], session: &Session) -> Result<()> {
    if ids.iter().any(|id| id.writer.is_none()) {
        return Err(Error::conflict(format!("an entry to remove from run '{}' is not flushed", run.name))
            .with_hint("flush the store, then move"));
    }
    let records = ids.chunks(IDS).map(|ids| Record::Remove(vec![Removal::Attributes(ids.to_vec())]));
    registry.reader.pending.emit(session, records.collect())?;
    registry.declarations().note_deletion(session.key());
    Ok(())
}
