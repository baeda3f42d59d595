//! Data outside of the store that were moved: a record says where they lie from now on, in place of the declaration.

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{Record, RunName};
use fieldstone_journal::Session;

use crate::live::inner::Inner;

impl Inner {
    /// Says where data of declared runs lie from now on. Denied, and nothing is said, where one run is another's.
    pub fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()> {
        self.journal.check_writable()?;
        Record::Moved(moved.clone()).check()?;
        let _declaring = self.declaring();
        let mut known = Vec::with_capacity(moved.len());
        for (run, outside) in &moved {
            match self.find_run(session, run)? {
                Some(mut info) => {
                    info.decl.outside = Some(outside.clone());
                    known.push(info);
                }
                None => return Err(self.no_run(session, &run.name, &super::shown::run_text(run))),
            }
        }
        for (run, _) in &moved {
            if let Some(owner) = self.run_owner(session, run)?.filter(|owner| *owner != self.user(session)) {
                return Err(self.owned_by(run, owner));
            }
        }
        for (run, _) in &moved {
            self.need_own(session, run)?;
        }
        self.emit(session, Record::Moved(moved).split())?;
        let mut declarations = self.declarations();
        known.into_iter().for_each(|info| declarations.cache_run(session.key(), info, true));
        Ok(())
    }
}
