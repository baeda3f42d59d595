//! Rules of retention: how one is kept in the store, and which are in force (takeovers.md, 6.3).
//!
//! Invariant: a rule's name is its request with keywords and values in order, or its query behind [`OF_QUERY`], so that each has
//! one rule of a user.

use fieldstone_core::request::{Item, Request, Values};
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::store_record::{Rule, RuleAction, STORE_RECORDS_SINCE};
use fieldstone_journal::{Journal, Session};

use crate::api::{Retaining, RetentionRule, Wiping};
use crate::snapshot::{StoreRule, newest_rules, rules_for};
use crate::wipe::wipe;

/// The beginning of the name of a rule of a query; no request begins so.
const OF_QUERY: &str = "? ";

/// Makes or ends a rule; see the facade's `Store::retain`, which has parsed the query and made the target absolute.
pub fn retain(journal: &Journal, request: &Request, how: &Retaining) -> Result<RetentionRule> {
    journal.access().check_writable()?;
    let name = match &how.query {
        Some(_) if !request.is_empty() => {
            return Err(Code::Option
                .error("a rule has a request or a query")
                .with_hint("leave one of them out"));
        }
        Some(query) => format!("{OF_QUERY}{query}"),
        None => canonical(&journal.schema().now(), request)?,
    };
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
    check(how)?;
    if how.to.is_none() {
        // A wipe that is refused now would be refused when the rule is applied.
        let looks = Wiping { older_than: None, doit: false, all: how.all, session: how.session.clone() };
        wipe(journal, request, &looks).map_err(|e| e.context("a rule of retention"))?;
    } else if how.query.is_none() {
        let now = journal.env().clock.now();
        let selection = journal.schema().make(|schema| schema.select_at(request, now))?;
        if selection.names_nothing() && !how.all {
            return Err(Code::RequestTooBroad.error("a rule that moves everything was asked for").with_hint(
                "list values of the fields to move, such as run=a, or say that all of them are meant",
            ));
        }
    }
    let rule = Rule {
        text: how.query.clone().unwrap_or_else(|| name.clone()),
        name,
        query: how.query.is_some(),
        older: how.older_than,
        versions: how.versions,
        action: how.to.clone().map_or(RuleAction::Wipe, RuleAction::Move),
    };
    if old.as_ref().is_none_or(|old| old.rule != rule) {
        journal.settings().retain(&rule, &how.session)?;
    }
    let made = in_force(journal, how, &rule.name)?;
    made.map(|made| row(journal, &made)).ok_or_else(|| {
        Error::conflict(format!("the rule {:?} was ended meanwhile", rule.name)).with_hint("make it again")
    })
}

/// Checks that a new rule says what it is for.
fn check(how: &Retaining) -> Result<()> {
    let (error, hint) = match how {
        Retaining { to: None, query: Some(_), .. } => {
            ("a rule of a query does not say where fields go", "name another store: to=\"/archive/store\"")
        }
        Retaining { to: Some(_), versions: Some(_), .. } => {
            ("a rule that moves fields has no number of versions", "make a rule of another request for them")
        }
        Retaining { to: None, older_than: None, versions: None, .. } => (
            "a rule of retention needs an age or a number of versions",
            "such as older_than=\"5d\", or versions=2",
        ),
        Retaining { versions: Some(0), .. } => (
            "a rule cannot keep 0 versions of a field",
            "versions=1 keeps the visible one; a rule with an age wipes fields",
        ),
        _ => return Ok(()),
    };
    Err(Code::Option.error(error).with_hint(hint))
}

/// The rules that move fields and count for the data of a session's user, by owner and request; checks that this handle may
/// maintain the store.
pub fn moving_rules(journal: &Journal, session: &Session) -> Result<Vec<RetentionRule>> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "maintenance")?;
    let snapshot = journal.looks().snapshot()?;
    let rules = rules_for(&snapshot, journal.access().user(session)).into_iter();
    Ok(rules.filter(|rule| moves(rule)).map(|rule| row(journal, &rule)).collect())
}

/// The rules that are in force, by owner and request; see the facade's `Store::rules`.
pub fn rules(journal: &Journal) -> Result<Vec<RetentionRule>> {
    let snapshot = journal.looks().snapshot()?;
    let known = newest_rules(&snapshot).into_iter().filter(|rule| is_known(rule));
    Ok(known.map(|rule| row(journal, &rule)).collect())
}

/// Whether a rule is of a kind that this release makes.
pub fn is_known(rule: &StoreRule) -> bool {
    !rule.rule.query || moves(rule)
}

/// Whether a rule moves fields.
pub fn moves(rule: &StoreRule) -> bool {
    matches!(rule.rule.action, RuleAction::Move(_))
}

/// This user's rule of a name.
fn in_force(journal: &Journal, how: &Retaining, name: &str) -> Result<Option<std::sync::Arc<StoreRule>>> {
    let (snapshot, user) = (journal.looks().snapshot()?, journal.access().user(&how.session));
    Ok(newest_rules(&snapshot).into_iter().find(|rule| rule.user == user && rule.rule.name == name))
}

fn row(journal: &Journal, rule: &StoreRule) -> RetentionRule {
    let text = || rule.rule.text.clone();
    RetentionRule {
        request: if rule.rule.query { String::new() } else { text() },
        query: rule.rule.query.then(text),
        to: match &rule.rule.action {
            RuleAction::Move(target) => Some(target.clone()),
            _ => None,
        },
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
