//! The administrator: a backup, which shows what a reader of the store sees, and keeps showing it.

use std::path::Path;

use fieldstone::prelude::*;
use fieldstone::{Code, Mode, Request, Result, Session, Store};
use fieldstone_core::env::Env;
use fieldstone_journal::journal::{Journal, JournalOptions};

use crate::look::Look;
use crate::process::text;
use crate::simulation::{ADMIN, Checked, ROOT, Simulation, options};

/// The folder of the backup.
const BACKUP: &str = "/backup/s";

/// Makes a backup, or brings it up to date: it then shows what a reader sees. If files show late, a look may lack something.
pub fn back_up(simulation: &mut Simulation) -> Checked {
    if simulation.staleness.is_some() {
        return Ok(());
    }
    let env = simulation.world.process(ADMIN);
    let how = JournalOptions { url: ROOT.to_owned(), must_exist: true, ..JournalOptions::default() };
    let made = Journal::open(env.clone(), Path::new(ROOT), how)
        .and_then(|source| source.back_up((&env, Path::new(BACKUP)), false, &mut |_| Ok(())));
    match made {
        Ok(report) => simulation.note(|| format!("a backup takes {} files", report.files)),
        // A log whose writer was cut off may have lost what nobody acknowledged.
        Err(error) if error.code() == Code::LogShortened && simulation.failures > 0 => return Ok(()),
        Err(error) => return Err(format!("a backup fails: {}", text(&error))),
    }
    let look = look(&simulation.world.process(ADMIN))
        .map_err(|error| format!("the backup cannot be read: {}", text(&error)))?;
    let is_purged = simulation.purges > 0;
    simulation
        .model
        .explain(None, |state| look.is_of(state, is_purged))
        .map_err(|why| format!("the backup shows wrong {why}"))?;
    simulation.backup = Some(look);
    Ok(())
}

/// The backup shows what it showed when it was made, and is whole.
pub fn check(simulation: &Simulation) -> Checked {
    let Some(before) = &simulation.backup else { return Ok(()) };
    let env = simulation.world.process(ADMIN);
    let wrong = |error: fieldstone::Error| format!("the backup cannot be read: {}", text(&error));
    let now = look(&env).map_err(wrong)?;
    if !now.is_left_of(before, false) {
        return Err(format!("the backup is not what it was: {now:?}, {before:?}"));
    }
    let report = open(&env).and_then(|store| store.verify(&Request::new())).map_err(wrong)?;
    match report.ok() {
        true => Ok(()),
        false => Err(format!("the backup is damaged: {:?}", report.damaged)),
    }
}

fn open(env: &Env) -> Result<Store> {
    fieldstone::open_in(env.clone(), BACKUP, Path::new(BACKUP), &options(Mode::Read, "", None))
}

fn look(env: &Env) -> Result<Look> {
    Look::at(&open(env)?, &Session::default(), true, true)
}
