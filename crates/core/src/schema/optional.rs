//! Optional keywords of an extension (`number?: Integer;`) and the rules that they create.
//!
//! A rule of an earlier part stays as it is, and accepts keys without the keyword. A copy with the keyword in its
//! last level follows it, which thus only meets keys that have it, or another keyword of the same extension.
//!
//! ```text
//! [run [variable [step]]]   extension; number?;   ->   [run [variable [step]]] [run [variable [step, number?]]]
//! ```

use std::sync::Arc;

use super::describe::covers;
use super::rule::{Predicate, Rule};
use crate::key::LEVELS;
use crate::{Code, Error, Result};

/// For each existing rule that lacks one of these keywords and accepts no further keywords, appends a copy that has
/// them in its last level; skips a copy if another rule accepts all of its keys.
pub(super) fn with_optional(rules: &mut Vec<Rule>, added: Vec<Predicate>, types: usize) -> Result<()> {
    if added.is_empty() {
        return Ok(());
    }
    let widest = |(i, rule): &(usize, &Rule)| !rules[i + 1..].iter().any(|later| covers(later, rule));
    let mut new = Vec::new();
    for (_, rule) in rules.iter().enumerate().filter(widest).filter(|(_, rule)| rule.open.is_none()) {
        let known = |p: &&Predicate| {
            rule.predicates().any(|q| q.name == p.name || q.source == p.name || q.name == p.source)
        };
        let lacking: Vec<Predicate> = added.iter().filter(|p| !known(p)).cloned().collect();
        if lacking.is_empty() {
            continue;
        }
        let mut levels = rule.levels.clone();
        let last = Arc::make_mut(&mut levels[LEVELS - 1]);
        last.predicates.extend(lacking);
        last.names = last.predicates.iter().filter(|p| p.visible()).map(|p| p.name.clone()).collect();
        let (types, roles) = (rule.types.start..types, rule.roles.clone());
        new.push(Rule { levels, open: None, types, roles });
    }
    for predicate in &added {
        if !new.iter().flat_map(Rule::predicates).any(|p| p.name == predicate.name) {
            return Err(no_place(&predicate.name));
        }
    }
    rules.append(&mut new);
    Ok(())
}

fn no_place(name: &str) -> Error {
    Code::RuleTaken
        .error(format!("every rule accepts `{name}` already"))
        .with_hint("a rule with `*` accepts any keyword: archive with it")
}
