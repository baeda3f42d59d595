//! Later changes to a declared run, next to its declaration: its state, and the place of its data outside of
//! the store. The newest record counts.

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{Record, RunName, RunState};
use fieldstone_journal::Session;

use crate::registry::{Registry, run_text};

/// Sets the state of a declared run. Denied if another user owns it.
pub fn set_state(registry: &Registry, run: &RunName, state: RunState, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    let records = Record::States(vec![(run.clone(), state.clone())]);
    records.check()?;
    let _declaring = registry.declaring();
    let mut info = registry.known_run(session, run)?;
    if !info.declared {
        return Err(Code::RunNotFound
            .error(format!("run {} exists only through its fields and has no state", run_text(run)))
            .with_hint("declare it with create_run"));
    }
    registry.refuse_others(session, run)?;
    registry.need_own(session, run)?;
    registry.reader.pending.emit(session, records.split())?;
    info.decl.state = Some(state);
    registry.declarations().cache_run(session.key(), info, true);
    Ok(())
}

/// Records new places for the data of declared runs. Denied, without any effect, if another user owns one of
/// the runs.
pub fn move_outside(registry: &Registry, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Moved(moved.clone()).check()?;
    let _declaring = registry.declaring();
    let mut known = Vec::with_capacity(moved.len());
    for (run, outside) in &moved {
        let mut info = registry.known_run(session, run)?;
        info.decl.outside = Some(outside.clone());
        known.push(info);
    }
    moved.iter().try_for_each(|(run, _)| registry.refuse_others(session, run))?;
    moved.iter().try_for_each(|(run, _)| registry.need_own(session, run))?;
    registry.reader.pending.emit(session, Record::Moved(moved).split())?;
    let mut declarations = registry.declarations();
    known.into_iter().for_each(|info| declarations.cache_run(session.key(), info, true));
    Ok(())
}
