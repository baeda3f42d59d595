//! Variables declared from the files of their fields, so that a name may come again with other content: each
//! content is a version of the variable.

use std::mem;

use fieldstone_core::Result;
use fieldstone_format::catalog::{RunName, VariableDecl, VariableName};
use fieldstone_journal::Session;

use super::agreement::{check_variable, field_difference, variable_difference};
use super::declare::declare_variables;
use crate::registry::Registry;

/// Declares each variable under its version, or under the next free one if that version has another
/// declaration. A variable that is already declared stays as it is.
pub fn create_versions(
    registry: &Registry,
    run: &RunName,
    mut variables: Vec<VariableDecl>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    for variable in &variables {
        check_variable(variable)?;
    }
    let _declaring = registry.declaring();
    registry.need_run(session, run)?;
    let mut fresh: Vec<VariableDecl> = Vec::new();
    while !variables.is_empty() {
        let names: Vec<VariableName> = variables.iter().map(|decl| decl.variable.clone()).collect();
        let there = registry.find_variables(session, run, &names)?;
        for mut decl in mem::take(&mut variables) {
            let known = there.get(&decl.variable);
            let taken = fresh.iter().any(|other| other.variable == decl.variable);
            let differs = known.is_some_and(|known| match known.declared {
                true => variable_difference(&known.decl, &decl).is_some(),
                false => field_difference(&known.decl, &decl).is_some(),
            });
            if taken || differs {
                decl.variable.version = decl.variable.version.saturating_add(1);
                variables.push(decl);
            } else if !known.is_some_and(|known| known.declared) {
                fresh.push(decl);
            }
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    declare_variables(registry, session, run, fresh)
}
