//! Adding attributes: their run and variables must exist, and they must agree with those.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeBatch, Record, RunName, VariableName, check_batch, split_batch};
use fieldstone_journal::Session;

use super::validate;
use crate::query::VariableInfo;
use crate::registry::{Lookup, Registry};

/// A run, and variables with their shapes, to which attributes may be added.
struct StandsOn {
    run: RunName,
    variables: Vec<VariableName>,
    shapes: Vec<Option<Vec<u64>>>,
}

impl StandsOn {
    fn is_of(&self, batch: &AttributeBatch) -> bool {
        self.run == batch.run && self.variables == batch.variables
    }
}

/// Adds the attributes of one call.
pub fn annotate(registry: &Registry, batch: AttributeBatch, session: &Session) -> Result<()> {
    annotate_all(registry, vec![batch], session)
}

/// Adds attributes of several tags, one batch after another; equal targets are looked up once.
pub fn annotate_all(registry: &Registry, batches: Vec<AttributeBatch>, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    let mut known: Option<StandsOn> = None;
    for mut batch in batches.into_iter().filter(|batch| batch.rows > 0) {
        batch.values = validate::values(&batch.tag, batch.values)?;
        if !batch.keywords.is_empty() {
            let columns = std::mem::take(&mut batch.keywords);
            let run = &batch.run;
            batch.keywords = registry
                .store
                .journal
                .schema()
                .make(|schema| validate::keywords(schema, run, columns.clone()))?;
        }
        check_batch(&batch)?;
        let place = match known.take().filter(|known| known.is_of(&batch)) {
            Some(known) => known,
            None => stands_on(registry, session, &batch)?,
        };
        if !batch.variables.is_empty() {
            validate::boxes(&batch, &place.shapes)?;
        }
        known = Some(place);
        registry.note_tag(session, &batch)?;
        if batch.rows == 1 && !batch.continues {
            registry.reader.pending.buffer(session, batch);
            continue;
        }
        let parts = split_batch(batch);
        registry.reader.pending.emit(session, parts.into_iter().map(Record::Attributes).collect())?;
    }
    Ok(())
}

/// The targets of a batch: a run that the caller may annotate, and existing variables.
fn stands_on(registry: &Registry, session: &Session, batch: &AttributeBatch) -> Result<StandsOn> {
    let annotate = registry.need_run(session, &batch.run)?;
    registry.need_annotate(session, &batch.run, annotate)?;
    let shapes = if batch.variables.is_empty() { Vec::new() } else { shapes(registry, session, batch)? };
    Ok(StandsOn { run: batch.run.clone(), variables: batch.variables.clone(), shapes })
}

/// Shapes of a batch's variables; NotFound if one does not exist.
fn shapes(registry: &Registry, session: &Session, batch: &AttributeBatch) -> Result<Vec<Option<Vec<u64>>>> {
    let known: Vec<Lookup<Option<Vec<u64>>>> = {
        let known = registry.declarations();
        batch.variables.iter().map(|name| known.shape(session.key(), &batch.run, name)).collect()
    };
    let mut asked: HashMap<VariableName, VariableInfo> = HashMap::new();
    if known.iter().any(|look| !matches!(look, Lookup::Hit(_))) {
        asked = registry.find_variables(session, &batch.run, &batch.variables)?;
    }
    let mut shapes = Vec::with_capacity(known.len());
    for (name, look) in batch.variables.iter().zip(known) {
        match (look, asked.remove(name)) {
            (_, Some(info)) => shapes.push(info.decl.shape),
            (Lookup::Hit(shape), None) => shapes.push(shape),
            _ => match registry.archived_variable(session, &batch.run, name)? {
                Some(info) => shapes.push(info.decl.shape),
                None => return Err(registry.no_variable(session, &batch.run, name)),
            },
        }
    }
    Ok(shapes)
}
