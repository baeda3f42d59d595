//! Rules of retention: how one is kept in the store, and which are in force (takeovers.md, 6.3).
//!
//! Invariant: a rule's name is its request with keywords and values in order, so that a request has one rule of a user.

use fieldstone_core::request::{Item, Request, Values};
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::store_record::{Rule, RuleAction};
use fieldstone_journal::Journal;

use crate::api::{Retaining, RetentionRule, Wiping};
use crate::snapshot::{StoreRule, newest_rules};
use crate::wipe::wipe;

/// Makes or ends a rule; see the facade's `Store::retain`.
pub fn retain(journal: &Journal, request: &Request, how: &Retaining) -> Result<RetentionRule> {
    journal.access().check_writable()?;
    let name = canonical(&journal.schema().now(), request)?;
    let Retaining { older_than, versions, .. } = *how;
    let old = in_force(journal, how, &name)?;
    if how.drop {
        let Some(old) = old else {
            return Err(Error::not_found(format!("no rule of yours has the request {name:?}"))
                .with_hint("the rules of a store are listed by rules()"));
        };
        let ended = Rule { action: RuleAction::End, ..old.rule.clone() };
        journal.settings().retain(&ended, &how.session)?;
        return Ok(row(journal, &old));
    }
    if older_than.is_none() && versions.is_none() {
        return Err(Code::Option
            .error("a rule of retention needs an age or a number of versions")
            .with_hint("such as older_than=\"5d\", or versions=2"));
    }
    if versions == Some(0) {
        return Err(Code::Option
            .error("a rule cannot keep 0 versions of a field")
            .with_hint("versions=1 keeps the visible one; a rule with an age wipes fields"));
    }
    // A wipe that is refused now would be refused when the rule is applied.
    let looks = Wiping { older_than: None, doit: false, all: how.all, session: how.session.clone() };
    wipe(journal, request, &looks).map_err(|e| e.context("a rule of retention"))?;
    let text = name.clone();
    let rule = Rule { name, query: false, text, older: older_than, versions, action: RuleAction::Wipe };
    if old.as_ref().is_none_or(|old| old.rule != rule) {
        journal.settings().retain(&rule, &how.session)?;
    }
    let made = in_force(journal, how, &rule.name)?;
    made.map(|made| row(journal, &made)).ok_or_else(|| {
        Error::conflict(format!("the rule {:?} was ended meanwhile", rule.name)).with_hint("make it again")
    })
}

/// The rules that are in force, by owner and request; see the facade's `Store::rules`.
pub fn rules(journal: &Journal) -> Result<Vec<RetentionRule>> {
    let snapshot = journal.looks().snapshot()?;
    let known = newest_rules(&snapshot).into_iter().filter(|rule| is_known(rule));
    Ok(known.map(|rule| row(journal, &rule)).collect())
}

/// Whether a rule is of a kind that this release makes.
pub fn is_known(rule: &StoreRule) -> bool {
    !rule.rule.query && rule.rule.action == RuleAction::Wipe
}

/// This user's rule of a name.
fn in_force(journal: &Journal, how: &Retaining, name: &str) -> Result<Option<std::sync::Arc<StoreRule>>> {
    let (snapshot, user) = (journal.looks().snapshot()?, journal.access().user(&how.session));
    Ok(newest_rules(&snapshot).into_iter().find(|rule| rule.user == user && rule.rule.name == name))
}

fn row(journal: &Journal, rule: &StoreRule) -> RetentionRule {
    RetentionRule {
        request: rule.rule.text.clone(),
        older_than: rule.rule.older,
        versions: rule.rule.versions,
        owner: journal.env().identity.user_name(rule.user),
        since: rule.time,
    }
}

/// A request as text, with its keywords and its lists in order. Relative dates stay as they are.
fn canonical(schema: &Schema, request: &Request) -> Result<String> {
    if !request.bounds().is_empty() {
        return Err(Code::Option
            .error("a filter of a store has no rules of retention")
            .with_hint("make the rule in the store itself"));
    }
    let mut pairs: Vec<(String, Values)> = Vec::new();
    for (keyword, values) in request.iter() {
        let mut values = values.clone();
        if let Values::List(items) = &mut values
            && items.iter().all(|item| matches!(item, Item::One(_)))
        {
            items.sort_by_key(Item::to_string);
            items.dedup();
        }
        pairs.push((schema.spelling(keyword).to_owned(), values));
    }
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    let mut ordered = Request::new();
    pairs.into_iter().for_each(|(keyword, values)| ordered.set(keyword, values));
    Ok(ordered.to_string())
}
