//! The catalog as a reader sees it, as lines: what is declared, and what fields and attributes name.

use std::collections::BTreeSet;

use super::change::{CommitId, Key};
use super::fields::shown;
use super::state::StoreState;

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// The line of an attribute.
pub fn attribute_line(
    run: &str,
    tag: &str,
    step: Option<i64>,
    variable: Option<&str>,
    user: u32,
    value: f64,
) -> String {
    format!("attribute {run} {tag} {} {} by {user}: {value}", or_dash(step), or_dash(variable))
}

impl StoreState {
    fn visible_fields(&self) -> impl Iterator<Item = &Key> {
        self.fields.iter().filter(|(_, changes)| shown(changes).is_some()).map(|(key, _)| key)
    }

    /// Attributes that a user wrote in a run under a tag, and that are visible.
    pub fn attributes_of(&self, run: &str, tag: &str, user: u32) -> Vec<(CommitId, usize)> {
        let own = self.attributes.iter().filter(|((place, by), written)| {
            place.run == run && place.tag == tag && *by == user && !self.erased.contains(&written.id)
        });
        own.map(|(_, written)| written.id).collect()
    }

    /// Attributes, runs, steps and variables.
    pub fn catalog_lines(&self) -> BTreeSet<String> {
        let (mut lines, mut runs) = (BTreeSet::new(), self.runs.clone());
        let (mut steps, mut variables) = (self.steps.clone(), self.variables.clone());
        for key in self.visible_fields() {
            runs.insert(key.run.clone());
            steps.insert((key.run.clone(), key.step));
            variables.insert((key.run.clone(), key.variable.clone()));
        }
        let visible = self.attributes.iter().filter(|(_, written)| !self.erased.contains(&written.id));
        for ((place, user), written) in visible {
            runs.insert(place.run.clone());
            steps.extend(place.step.map(|step| (place.run.clone(), step)));
            variables.extend(place.variable.clone().map(|variable| (place.run.clone(), variable)));
            let (variable, value) = (place.variable.as_deref(), written.value as f64 / 4.0);
            lines.insert(attribute_line(&place.run, &place.tag, place.step, variable, *user, value));
        }
        steps.extend(self.steps.iter().cloned());
        runs.extend(steps.iter().map(|(run, _)| run.clone()));
        lines.extend(runs.iter().map(|run| format!("run {run} {}", self.runs.contains(run))));
        lines.extend(steps.iter().map(|(run, step)| format!("step {run} {step}")));
        lines.extend(variables.iter().map(|(run, variable)| format!("variable {run} {variable}")));
        lines
    }
}
