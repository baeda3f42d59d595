//! Keywords and values that a store holds, within a time that nobody notices.
//!
//! Two threads look: one for the values of the keyword under the rest of the request, entry by entry; one
//! for the values in the whole store, which segments know. When the time is over, TAB offers the findings of the
//! first, and adds those of the second if the first has not finished.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use fieldstone::prelude::*;
use fieldstone::{
    Env, FieldStore, KeyValue, ListOptions, Mode, OpenOptions, ReadOptions, Request, Result, Schema,
};

/// How long a store is asked (B-3), unless `FIELDSTONE_PATIENCE` says another number of milliseconds: on a slow
/// file system one may want to wait, or not to be asked at all (0).
pub const PATIENCE: Duration = Duration::from_millis(40);

/// The time that a store is given.
pub(super) fn patience() -> Duration {
    // A loaded machine must not change what the tests see.
    if cfg!(test) {
        return Duration::from_secs(60);
    }
    let named = std::env::var("FIELDSTONE_PATIENCE").ok().and_then(|text| text.parse().ok());
    named.map_or(PATIENCE, Duration::from_millis)
}

/// Values beyond these are not collected.
const MOST: usize = 20_000;

/// The source of keywords and values: a store, or a schema by its name.
pub struct Vocabulary {
    pub schema: Schema,
    store: Option<fieldstone::Store>,
    /// When to stop, nanoseconds of the monotonic clock.
    until: u64,
}

enum SchemaLookup {
    Here(KeyValue),
    HereIsAll,
    Anywhere(Vec<KeyValue>),
}

impl Vocabulary {
    /// Opens a store, or takes a built-in schema. `None` where that takes too long or is neither.
    pub fn of(url: &str) -> Option<Vocabulary> {
        let until = Env::real().clock.monotonic().saturating_add(patience().as_nanos() as u64);
        if patience().is_zero() {
            // Not even a store that answers at once is asked.
            return Some(Vocabulary { schema: Schema::builtin(url)?, store: None, until });
        }
        let (sender, answers) = channel();
        let path = url.to_owned();
        thread::spawn(move || {
            let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
            // Nobody may listen any more.
            let _ = sender.send(fieldstone::open(&path, &reading).ok());
        });
        let store = answers.recv_timeout(patience()).ok().flatten();
        let schema = store.as_ref().map(|s| s.schema()).or_else(|| Schema::builtin(url))?;
        Some(Vocabulary { schema, store, until })
    }

    /// The keywords of the fields, with the number of their values; none where time is over first.
    pub fn keywords(&self) -> Vec<(Arc<str>, usize)> {
        let Some(store) = self.store.clone() else { return Vec::new() };
        let (sender, answers) = channel();
        thread::spawn(move || {
            let _ = sender.send(store.axes(&Request::new(), &ReadOptions::default()));
        });
        let axes = answers.recv_timeout(self.left()).ok().and_then(Result::ok).unwrap_or_default();
        axes.into_iter().map(|(name, values)| (name, values.len())).collect()
    }

    /// Values of a keyword under a request, in their order.
    pub fn values(&self, keyword: &str, others: &Request) -> BTreeSet<KeyValue> {
        let mut found = BTreeSet::new();
        let Some(store) = self.store.clone() else { return found };
        let (sender, answers) = channel();
        let (request, name, other, also) =
            (others.clone(), keyword.to_owned(), store.clone(), sender.clone());
        let constrained = !others.is_empty();
        if constrained {
            thread::spawn(move || {
                let _ = search(&store, &request, &name, &sender);
            });
        }
        let name = keyword.to_owned();
        thread::spawn(move || {
            let axes = other.axes(&Request::new(), &ReadOptions::default()).unwrap_or_default();
            let values = axes.into_iter().find(|(keyword, _)| **keyword == *name).map(|(_, values)| values);
            let _ = also.send(SchemaLookup::Anywhere(values.unwrap_or_default()));
        });
        let mut anywhere = None;
        loop {
            match answers.recv_timeout(self.left()) {
                Ok(SchemaLookup::Here(value)) if found.len() < MOST => drop(found.insert(value)),
                Ok(SchemaLookup::Here(_)) => {}
                Ok(SchemaLookup::HereIsAll) => return found,
                Ok(SchemaLookup::Anywhere(values)) => {
                    anywhere = Some(values);
                    if !constrained {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        found.extend(anywhere.into_iter().flatten());
        found
    }

    fn left(&self) -> Duration {
        Duration::from_nanos(self.until.saturating_sub(Env::real().clock.monotonic()))
    }
}

/// Sends every new value of a keyword as it is met.
fn search(
    store: &dyn FieldStore,
    request: &Request,
    keyword: &str,
    sender: &Sender<SchemaLookup>,
) -> std::result::Result<(), ()> {
    let mut last = None;
    // The levels below the keyword's need not be looked at.
    let rules = store.schema().rules();
    let deepest = rules.iter().flat_map(|rule| rule.levels.iter().enumerate());
    let deepest =
        deepest.filter(|(_, level)| level.open || level.keywords.iter().any(|k| *k.name == *keyword));
    let depth = deepest.map(|(i, _)| i as u8 + 1).max().unwrap_or(3);
    let declared = rules.iter().flat_map(|rule| &rule.levels[..2]).flat_map(|level| &level.keywords);
    let above = declared.filter(|k| *k.name == *keyword).count() == rules.len();
    let depth = if above { depth.min(level_of(&rules, keyword)) } else { depth };
    let options = ListOptions { depth, ..ListOptions::default() };
    for entry in store.list(request, &options).map_err(drop)? {
        let value = entry.map_err(drop)?.key.get(keyword).cloned();
        if value != last
            && let Some(value) = &value
        {
            sender.send(SchemaLookup::Here(value.clone())).map_err(drop)?;
        }
        last = value;
    }
    sender.send(SchemaLookup::HereIsAll).map_err(drop)
}

/// The deepest level, from 1, at which a keyword is declared.
fn level_of(rules: &[fieldstone::RuleDescription], keyword: &str) -> u8 {
    let levels = rules.iter().flat_map(|rule| rule.levels.iter().zip(1u8..));
    let with = levels.filter(|(level, _)| level.keywords.iter().any(|k| *k.name == *keyword));
    with.map(|(_, i)| i).max().unwrap_or(3)
}
