//! Rules of retention (takeovers.md, 6.3): how long fields stay, and how many of their versions.
//!
//! A rule says nothing by itself: whoever maintains the store obeys those that count for his data. These are his own, those of
//! root and those of the owner of the folder of logs, as their wipes count there, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::log::SideRecord;
use fieldstone_format::store_record::{self, Rule, RuleAction, StoreRecord};

use super::{Order, Snapshot};

/// The user who may do anything.
const ROOT: u32 = 0;

/// A rule in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRule {
    /// The place of its commit.
    pub order: Order,
    /// When, nanoseconds since 1970, by its writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// Its content.
    pub rule: Rule,
}

impl StoreRule {
    /// The rule in a side record of a commit; `None` for a record of another kind.
    pub fn decode(order: Order, (user, time): (u32, i64), record: &SideRecord) -> Result<Option<StoreRule>> {
        // Other records of the store are their readers' to decode.
        if record.kind != store_record::RULE {
            return Ok(None);
        }
        Ok(match store_record::decode(record)? {
            Some(StoreRecord::Rule(rule)) => Some(StoreRule { order, time, user, rule }),
            _ => None,
        })
    }
}

/// The user whose a rule is by now.
fn owner(snapshot: &Snapshot, rule: &StoreRule) -> u32 {
    snapshot.hand_overs.owner(rule.user, rule.order.0)
}

/// The rules that are in force, by user and name: the newest of each name, unless it ends the rule.
pub fn newest_rules(snapshot: &Snapshot) -> Vec<Arc<StoreRule>> {
    let mut newest: BTreeMap<(u32, &str), &Arc<StoreRule>> = BTreeMap::new();
    for rule in snapshot.logs.iter().flat_map(|log| &log.rules).chain(&snapshot.taken.rules) {
        let known = newest.entry((owner(snapshot, rule), &rule.rule.name)).or_insert(rule);
        if rule.order > known.order {
            *known = rule;
        }
    }
    newest.into_values().filter(|rule| rule.rule.action != RuleAction::End).cloned().collect()
}

/// Those of them that count for a user's data.
pub fn rules_for(snapshot: &Snapshot, user: u32) -> Vec<Arc<StoreRule>> {
    let mut rules = newest_rules(snapshot);
    let is_above = |by: u32| by == ROOT || snapshot.folder_owner == Some(by);
    rules.retain(|rule| is_above(rule.user) || owner(snapshot, rule) == user);
    rules
}
