//! How a run goes: a record says so, the newest one counts.

use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{Record, RunName, RunState};
use fieldstone_journal::Session;

use super::shown::run_text;
use crate::live::inner::Inner;

impl Inner {
    /// Says how a declared run goes. Denied where it is another's.
    pub fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()> {
        self.journal.check_writable()?;
        let records = Record::States(vec![(run.clone(), state.clone())]);
        records.check()?;
        let _declaring = self.declaring();
        let Some(mut info) = self.find_run(session, run)? else {
            return Err(self.no_run(session, &run.name, &run_text(run)));
        };
        if !info.declared {
            return Err(Code::RunNotFound
                .error(format!("run {} is named by fields alone, and has no state", run_text(run)))
                .with_hint("declare it with create_run"));
        }
        if let Some(owner) = self.run_owner(session, run)?.filter(|owner| *owner != self.user(session)) {
            return Err(self.owned_by(run, owner));
        }
        self.need_own(session, run)?;
        self.emit(session, records.split())?;
        info.decl.state = Some(state);
        self.declarations().cache_run(session.key(), info, true);
        Ok(())
    }
}
