//! What a failure lost, and who learns of it.
//!
//! A failure drops what a session cannot flush any more: fields whose bytes went to a file that is not
//! written again, and with them the rest of the batch, because a flush is all or nothing. A batch holds
//! what several threads put into it, and a failure in one session can take the batch of another: each of
//! them hears of it by an error that names its own keys first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::Record;
use fieldstone_format::log::SideRecord;

use crate::session::SessionKey;

/// Most keys that a message names, and most other sessions.
const NAMED: usize = 3;

/// What failed.
#[derive(Debug, Clone, Copy)]
pub enum Failed<'a> {
    /// A session's value, with this encoded key, was being taken into the data log.
    Value(SessionKey, &'a [u8]),
    /// The store was being made for a session.
    Store(SessionKey),
    /// A session's flush.
    Flush(SessionKey),
    /// A decision on a transaction, which belongs to no session.
    Decision,
}

impl Failed<'_> {
    /// Whose call it was.
    pub fn session(&self) -> Option<SessionKey> {
        match self {
            Failed::Value(session, _) | Failed::Store(session) | Failed::Flush(session) => Some(*session),
            Failed::Decision => None,
        }
    }

    /// The key of the value that was being taken.
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Failed::Value(_, key) => Some(key),
            _ => None,
        }
    }
}

/// Some of many keys, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    named: Vec<String>,
    count: u64,
}

impl Keys {
    /// Counts a key, and keeps its text where there is room for it.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        if self.named.len() < NAMED {
            self.named.push(text());
        }
        self.count += 1;
    }

    /// Adds others behind them.
    pub fn join(&mut self, more: Keys) {
        self.count += more.count;
        self.named.extend(more.named);
        self.named.truncate(NAMED);
    }
}

/// What was lost, and why.
#[derive(Debug, Clone)]
pub struct Loss {
    keys: Keys,
    attributes: u64,
    /// Side records that are no attributes: what was declared or deleted.
    records: u64,
    /// Whether what a transaction had flushed is gone.
    prepared: bool,
    code: Code,
    cause: String,
    hint: Option<String>,
}

impl Loss {
    /// Nothing yet, by this failure.
    pub fn by(error: &Error) -> Loss {
        Loss {
            keys: Keys::default(),
            attributes: 0,
            records: 0,
            prepared: false,
            code: error.code(),
            cause: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        }
    }

    /// This failure's loss of what was prepared under a transaction.
    pub fn of_prepared(&self) -> Loss {
        Loss { prepared: true, ..self.clone() }
    }

    /// This failure's loss of these keys and records.
    pub fn of(&self, keys: Keys, side: &[SideRecord]) -> Loss {
        let mut loss = Loss { keys, ..self.clone() };
        for record in side {
            match Record::decode(record) {
                Ok(Record::Attributes(batch)) => loss.attributes += batch.rows as u64,
                _ => loss.records += 1,
            }
        }
        loss
    }

    /// This loss, and attributes that were not in a batch yet.
    pub fn and_attributes(self, attributes: u64) -> Loss {
        Loss { attributes: self.attributes + attributes, ..self }
    }

    /// The same loss, as far as it is one of these keys.
    pub fn with_keys(&self, keys: Keys) -> Loss {
        Loss { keys, ..self.clone() }
    }

    /// Adds a later loss; the first failure stays the cause.
    pub fn join(&mut self, later: Loss) {
        self.keys.join(later.keys);
        self.attributes += later.attributes;
        self.records += later.records;
        self.prepared |= later.prepared;
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.keys.count == 0 && self.attributes == 0 && self.records == 0 && !self.prepared
    }

    /// What was lost, in words.
    pub fn text(&self) -> String {
        let counted = |n: u64, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let shown = self.keys.named.join(", ");
        let keys = match self.keys.count.saturating_sub(self.keys.named.len() as u64) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        };
        let records = match self.keys.count + self.attributes {
            0 => counted(self.records, "record of the catalog", "records of the catalog"),
            _ => counted(self.records, "other record of the catalog", "other records of the catalog"),
        };
        let parts = [
            self.prepared.then(|| "what was flushed into it before".to_owned()),
            Some(keys).filter(|keys| !keys.is_empty()),
            counted(self.attributes, "attribute", "attributes"),
            records,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", and ")
    }

    /// What the call that failed raises. `others`: what its failure took of other sessions, who learn of it
    /// themselves.
    pub fn raised_by(&self, error: Error, others: &[(SessionKey, Loss)]) -> Error {
        let own = Some(self.text()).filter(|_| !self.is_empty());
        let others_named = others.iter().take(NAMED).map(|(session, loss)| match session.transaction {
            Some(id) => format!("{} in transaction {id}", loss.text()),
            None => format!("{} outside of transactions", loss.text()),
        });
        let more = match others.len().saturating_sub(NAMED) {
            0 => None,
            n => Some(format!("what waited in {n} more transactions")),
        };
        let lost: Vec<String> = own.into_iter().chain(others_named).chain(more).collect();
        if lost.is_empty() { error } else { error.context(format!("not archived: {}", lost.join("; "))) }
    }

    /// What those raise who were robbed by another call.
    pub fn error(&self) -> Error {
        let error = Error::new(
            self.code,
            format!("not archived: {}: another call on this handle failed: {}", self.text(), self.cause),
        );
        error.with_hint(self.hint.as_deref().unwrap_or("archive it again, then flush"))
    }
}

/// How often each session lost something to a failure.
#[derive(Debug, Default)]
pub struct Losses(HashMap<SessionKey, u64>);

impl Losses {
    /// Counts a loss.
    pub fn count(&mut self, session: SessionKey) {
        *self.0.entry(session).or_default() += 1;
    }

    /// How often a session lost something.
    pub fn of(&self, session: SessionKey) -> u64 {
        self.0.get(&session).copied().unwrap_or(0)
    }

    /// The same of all sessions that did.
    pub fn all(&self) -> HashMap<SessionKey, u64> {
        self.0.clone()
    }
}

/// Losses of transactions behind the back of those who use them.
#[derive(Debug, Default)]
pub struct Robbed(HashMap<Id, Loss>);

impl Robbed {
    /// A transaction lost a part, of which not all who use it know.
    pub fn add(&mut self, transaction: Id, loss: Loss) {
        match self.0.entry(transaction) {
            Entry::Occupied(mut known) => known.get_mut().join(loss),
            Entry::Vacant(free) => drop(free.insert(loss)),
        }
    }

    /// The transaction has ended.
    pub fn end(&mut self, transaction: Id) {
        self.0.remove(&transaction);
    }

    /// Refuses a transaction that lost a part, whoever asks.
    pub fn check(&self, transaction: Id) -> Result<()> {
        self.0.get(&transaction).map_or(Ok(()), |loss| {
            Err(loss
                .error()
                .context(format!("transaction {transaction} lost a part and cannot be committed"))
                .with_hint("abort it, and begin a new one"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(range: std::ops::Range<u32>) -> Keys {
        let mut keys = Keys::default();
        range.for_each(|n| keys.add(|| format!("k{n}")));
        keys
    }

    #[test]
    fn a_loss_names_three_keys_and_counts_the_rest() {
        let none = Loss::by(&Error::unavailable("the disk is full"));
        assert!(none.is_empty());
        let message =
            |loss: &Loss, others: &[_]| loss.raised_by(Error::unavailable("x"), others).message().to_owned();
        assert_eq!(message(&none, &[]), "x");
        assert_eq!(none.of(keys(0..3), &[]).text(), "k0, k1, k2");
        let mut loss = none.of(keys(0..2), &[SideRecord { kind: 0x7777, bytes: [][..].into() }]);
        assert_eq!(loss.text(), "k0, k1, and 1 other record of the catalog");
        loss.join(none.of(keys(2..9), &[]));
        assert_eq!(loss.text(), "k0, k1, k2 and 6 more, and 1 other record of the catalog");
        let flushed = Loss { prepared: true, ..none.of(keys(0..1), &[]) };
        assert_eq!(flushed.text(), "what was flushed into it before, and k0");
        let other = (SessionKey::default().within(Id([0x11; 16])), none.of(keys(0..1), &[]));
        let id = "11".repeat(16);
        assert_eq!(
            message(&none, std::slice::from_ref(&other)),
            format!("not archived: k0 in transaction {id}: x")
        );
        let many: Vec<_> = std::iter::repeat_n(other, 5).collect();
        assert!(message(&many[0].1, &many).ends_with("; what waited in 2 more transactions: x"));
        let error = loss.error();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains("k0") && error.message().contains("the disk is full"), "{error}");
    }
}
