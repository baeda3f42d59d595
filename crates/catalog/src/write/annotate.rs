//! Taking attributes: what they stand on must be there, and they must agree with it.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeBatch, Record, RunName, VariableDecl, VariableName};
use fieldstone_format::keys::KeyDecoder;
use fieldstone_journal::Session;

use super::declaration_cache::Lookup;
use super::validate;
use crate::live::inner::Inner;
use crate::query::{TagInfo, VariableInfo};
use crate::view::roles::place_of;

/// A run, and variables with their shapes, that attributes may stand on.
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

impl Inner {
    /// Takes attributes of one call.
    pub fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        self.annotate_all(vec![batch], session)
    }

    /// Takes attributes of several tags, one after another; what they stand on is looked up once where it is the same.
    pub fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()> {
        self.journal.check_writable()?;
        let mut known: Option<StandsOn> = None;
        for mut batch in batches.into_iter().filter(|batch| batch.rows > 0) {
            batch.values = validate::values(&batch.tag, batch.values)?;
            if !batch.keywords.is_empty() {
                let columns = std::mem::take(&mut batch.keywords);
                let run = &batch.run;
                batch.keywords =
                    self.journal.by_schema(|schema| validate::keywords(schema, run, columns.clone()))?;
            }
            batch.check()?;
            let place = match known.take().filter(|known| known.is_of(&batch)) {
                Some(known) => known,
                None => self.stands_on(session, &batch)?,
            };
            if !batch.variables.is_empty() {
                validate::boxes(&batch, &place.shapes)?;
            }
            known = Some(place);
            self.note_tag(session, &batch)?;
            if batch.rows == 1 && !batch.continues {
                self.buffer_attribute(session, batch)?;
                continue;
            }
            let parts = batch.split();
            self.emit(session, parts.into_iter().map(Record::Attributes).collect())?;
        }
        Ok(())
    }

    /// What a batch stands on: a run that the caller may annotate, and variables that are there.
    fn stands_on(&self, session: &Session, batch: &AttributeBatch) -> Result<StandsOn> {
        let annotate = self.need_run(session, &batch.run)?;
        self.need_annotate(session, &batch.run, annotate)?;
        let shapes = if batch.variables.is_empty() { Vec::new() } else { self.shapes(session, batch)? };
        Ok(StandsOn { run: batch.run.clone(), variables: batch.variables.clone(), shapes })
    }

    /// Shapes of a batch's variables; NotFound for one that is not there.
    fn shapes(&self, session: &Session, batch: &AttributeBatch) -> Result<Vec<Option<Vec<u64>>>> {
        let known: Vec<Lookup<Option<Vec<u64>>>> = {
            let known = self.declarations();
            batch.variables.iter().map(|name| known.shape(session.key(), &batch.run, name)).collect()
        };
        let mut asked: HashMap<VariableName, VariableInfo> = HashMap::new();
        if known.iter().any(|look| !matches!(look, Lookup::Hit(_))) {
            asked = self.find_variables(session, &batch.run, &batch.variables)?;
        }
        let mut shapes = Vec::with_capacity(known.len());
        for (name, look) in batch.variables.iter().zip(known) {
            match (look, asked.remove(name)) {
                (_, Some(info)) => shapes.push(info.decl.shape),
                (Lookup::Hit(shape), None) => shapes.push(shape),
                _ => match self.archived_variable(session, &batch.run, name)? {
                    Some(info) => shapes.push(info.decl.shape),
                    None => return Err(self.no_variable(session, &batch.run, name)),
                },
            }
        }
        Ok(shapes)
    }

    /// A variable that only fields name which this process archived and did not flush: it will be there with the
    /// attributes, which are of the same commit.
    fn archived_variable(
        &self,
        session: &Session,
        run: &RunName,
        name: &VariableName,
    ) -> Result<Option<VariableInfo>> {
        let schema = self.journal.schema();
        let place = (run, Some(name));
        let outside = session.within(None);
        let sessions = [&outside, session];
        let mut decoder = KeyDecoder::new();
        for session in &sessions[..if session.transaction().is_some() { 2 } else { 1 }] {
            for (key, array) in self.journal.pending_arrays(session) {
                let found = place_of(&schema, &decoder.decode(&key)?);
                if found.as_ref().map(|found| (&found.run, found.variable.as_ref())) != Some(place) {
                    continue;
                }
                let (dtype, shape) = array.unzip();
                let decl = VariableDecl { dtype, shape, ..VariableDecl::named(name.clone()) };
                let info = VariableInfo { run: run.clone(), decl, declared: false };
                self.declarations().cache_variable(session.key(), info.clone(), true);
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    /// Remembers the tag of a batch, which declares it.
    pub(super) fn note_tag(&self, session: &Session, batch: &AttributeBatch) -> Result<()> {
        if self.declarations().has_tag(session.key(), &batch.tag) {
            return Ok(());
        }
        let known = self.tags_of(session, &batch.tag.name)?;
        if known.iter().any(|tag| tag.decl == batch.tag) {
            return Ok(());
        }
        let version = super::tags::free_version(&known, batch.tag.version);
        self.declarations().cache_tag(session.key(), TagInfo { decl: batch.tag.clone(), version }, true);
        Ok(())
    }
}
