//! Reads a listing on a thread of its own, ahead of the one that prints it: on two cores a long list takes the longer of both.
//!
//! Invariants: entries come in order, the first as soon as it is found; at most a few thousand wait; a listing never ends
//! without its last entry or an error. A reader that stops early leaves the thread to the end of the process.

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread;

use fieldstone::{Error, ListEntry, Listing, Result};

/// The first batch has one entry, so that it is printed at once; each is twice the one before, up to this.
const LARGEST: usize = 512;
/// Batches that wait at most.
const WAITING: usize = 4;

type Batch = Vec<Result<ListEntry>>;

/// The same entries, read ahead.
pub fn ahead(entries: Listing) -> Listing {
    let (send, receive) = sync_channel(WAITING);
    let (give, take) = sync_channel(1);
    let read = move || take.into_iter().for_each(|entries| read_all(entries, &send));
    // No thread is to be had: it goes without.
    let Ok(_) = thread::Builder::new().name("list".to_owned()).spawn(read) else { return entries };
    match give.send(entries) {
        Ok(()) => Box::new(Ahead { receive: Some(receive), batch: Vec::new().into_iter() }),
        Err(SendError(entries)) => entries,
    }
}

/// Sends all entries, then an empty batch.
fn read_all(mut entries: Listing, send: &SyncSender<Batch>) {
    let mut size = 1;
    loop {
        let batch: Batch = entries.by_ref().take(size).collect();
        let is_end = batch.is_empty();
        if send.send(batch).is_err() || is_end {
            return;
        }
        size = (2 * size).min(LARGEST);
    }
}

struct Ahead {
    /// None once the end was seen.
    receive: Option<Receiver<Batch>>,
    batch: std::vec::IntoIter<Result<ListEntry>>,
}

impl Iterator for Ahead {
    type Item = Result<ListEntry>;

    fn next(&mut self) -> Option<Result<ListEntry>> {
        loop {
            if let Some(entry) = self.batch.next() {
                return Some(entry);
            }
            match self.receive.as_ref()?.recv() {
                Ok(batch) if batch.is_empty() => self.receive = None,
                Ok(batch) => self.batch = batch.into_iter(),
                Err(_) => {
                    self.receive = None;
                    return Some(Err(ended()));
                }
            }
        }
    }
}

fn ended() -> Error {
    Error::internal("the thread that reads the list has ended before the list")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(entries: impl Iterator<Item = Result<ListEntry>>) -> Vec<String> {
        entries.map(|entry| entry.err().map_or_else(String::new, |e| e.message().to_owned())).collect()
    }

    #[test]
    fn all_entries_come_in_order_and_an_error_where_it_was() {
        for count in [0, 1, 2, 3, 511, 512, 513, 5_000] {
            let entries = move || (0..count).map(|i| Err(Error::invalid(i.to_string())));
            assert_eq!(kinds(ahead(Box::new(entries()))), kinds(entries()), "{count}");
        }
    }

    #[test]
    fn a_thread_that_panics_is_an_error_and_not_an_end() {
        let entries = (0..10).map(|i| match i {
            5 => panic!("on purpose"),
            i => Err(Error::invalid(i.to_string())),
        });
        let all = kinds(ahead(Box::new(entries)));
        assert!(all.len() < 10 && all.last().unwrap().contains("has ended before"), "{all:?}");
    }

    #[test]
    fn a_reader_that_stops_is_not_waited_for() {
        let mut endless = ahead(Box::new((0..).map(|i: u64| Err(Error::invalid(i.to_string())))));
        assert!(endless.next().is_some());
    }
}
