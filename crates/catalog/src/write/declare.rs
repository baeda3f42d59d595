//! Declarations of runs, variables, steps and tags, each checked against the known ones.
//!
//! A declaration that equals the existing one writes nothing; a different one is a Conflict whose message
//! names both. Writers that do not see each other may still contradict each other; then the older declaration
//! counts, and [`Catalog::conflicts`](crate::live::Catalog::conflicts) names the other.

use std::collections::BTreeMap;

use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{Record, RunDecl, RunName, StepDecl, VariableDecl, VariableName};
use fieldstone_journal::Session;

use super::agreement::{check_variable, field_difference, run_difference, variable_difference};
use crate::engine::Tables;
use crate::query::{RunInfo, VariableInfo};
use crate::registry::{Registry, run_row, run_text, variable_text};

/// Declares a run.
pub fn create_run(registry: &Registry, mut run: RunDecl, exist_ok: bool, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    if run.created == 0 {
        run.created = registry.store.env.clock.now();
    }
    Record::Runs(vec![run.clone()]).check()?;
    let _declaring = registry.declaring();
    let (known, owner) = registry.run_and_owner(session, &run.run)?;
    if let Some(known) = known.filter(|known| known.declared) {
        let text = run_text(&run.run);
        if !exist_ok {
            return Err(Code::RunExists
                .error(format!("the run {text} exists already"))
                .with_hint("allow an existing run with exist_ok, or choose another name"));
        }
        return match run_difference(&known.decl, &run) {
            None => Ok(()),
            Some(what) => Err(Code::RunDiffers
                .error(format!("the run {text} exists with another {what}"))
                .with_hint("choose another name, or store values that change as attributes")),
        };
    }
    registry.claim_run(session, &run.run, owner)?;
    registry.reader.pending.emit(session, vec![Record::Runs(vec![run.clone()])])?;
    let first = Some(registry.store.user(session));
    registry.declarations().cache_run(session.key(), RunInfo { decl: run, declared: true, first }, true);
    Ok(())
}

/// Declares variables of a run.
pub fn create_variables(
    registry: &Registry,
    run: &RunName,
    variables: Vec<VariableDecl>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    for variable in &variables {
        check_variable(variable)?;
    }
    Record::Variables(run.clone(), variables.clone()).check()?;
    let _declaring = registry.declaring();
    registry.need_run(session, run)?;
    let names: Vec<VariableName> = variables.iter().map(|decl| decl.variable.clone()).collect();
    let mut there = registry.find_variables(session, run, &names)?;
    let mut fresh: Vec<VariableDecl> = Vec::new();
    for decl in variables {
        if let Some(known) = there.get(&decl.variable) {
            let difference = match known.declared {
                true => variable_difference(&known.decl, &decl),
                false => field_difference(&known.decl, &decl),
            };
            if let Some(what) = difference {
                let (name, run) = (variable_text(&decl.variable), run_text(run));
                return Err(Code::VariableDiffers
                    .error(format!("variable {name} of run {run} has another {what}"))
                    .with_hint("repeat its declaration, or declare another version"));
            }
            if known.declared {
                continue;
            }
        }
        let info = VariableInfo { run: run.clone(), decl: decl.clone(), declared: true };
        there.insert(decl.variable.clone(), info);
        fresh.push(decl);
    }
    if fresh.is_empty() {
        return Ok(());
    }
    declare_variables(registry, session, run, fresh)
}

/// Declares variables that do not exist, or exist only through their fields.
pub(super) fn declare_variables(
    registry: &Registry,
    session: &Session,
    run: &RunName,
    fresh: Vec<VariableDecl>,
) -> Result<()> {
    registry.need_own(session, run)?;
    let record = Record::Variables(run.clone(), fresh.clone());
    record.check()?;
    registry.reader.pending.emit(session, vec![record])?;
    let mut known = registry.declarations();
    for decl in fresh {
        known.cache_variable(session.key(), VariableInfo { run: run.clone(), decl, declared: true }, true);
    }
    Ok(())
}

/// Declares steps of a run.
pub fn create_steps(
    registry: &Registry,
    run: &RunName,
    steps: Vec<StepDecl>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Steps(run.clone(), steps.clone()).check()?;
    let _declaring = registry.declaring();
    registry.need_run(session, run)?;
    let (Some(first), Some(last)) =
        (steps.iter().map(|s| s.number).min(), steps.iter().map(|s| s.number).max())
    else {
        return Ok(());
    };
    let mut there: BTreeMap<i64, Option<f64>> = BTreeMap::new();
    registry.reader.look(registry.visibility(session), &mut |tables| {
        there.clear();
        if let Some(row) = run_row(tables, run)? {
            there.extend(tables.steps(row.id, first..=last)?.into_iter().map(|row| (row.step, row.time)));
        }
        Ok(())
    })?;
    let mut fresh = Vec::new();
    for step in steps {
        let known = registry.declarations().step(session.key(), run, step.number);
        let known = known.or_else(|| there.get(&step.number).copied());
        match (known, step.time) {
            (Some(Some(a)), Some(b)) if a.to_bits() != b.to_bits() => {
                return Err(Code::StepDiffers
                    .error(format!("step {} of run {} has time {a}, not {b}", step.number, run_text(run)))
                    .with_hint("a step has one time: declare another step"));
            }
            // A declaration that exists already, or says less than the existing one.
            (Some(Some(_)), _) => {}
            (_, time) => {
                there.insert(step.number, time);
                fresh.push(step);
            }
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    registry.need_own(session, run)?;
    for step in &fresh {
        registry.declarations().cache_step(session.key(), run, step.number, step.time);
    }
    registry.reader.pending.emit(session, vec![Record::Steps(run.clone(), fresh)])
}
