//! The network that carries frames between slots and clients, and reports ends that have gone.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::sync::{Condvar, Mutex};
use fieldstone_format::graph_message::ends::Address;

/// An arrival at an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// A frame.
    Frame(Vec<u8>),
    /// Another end has gone, or this one was closed: no more frames come from it.
    Gone(Address),
    /// Nothing came in time.
    Nothing,
}

/// Carries frames between the ends of one start of the slots.
pub trait Network: Debug + Send + Sync {
    /// Adds an end, and notifies it of slots that have gone.
    fn open(&self, end: Address);

    /// Sends a frame. An unreliable network may deliver it late, twice or never. A frame to an end that is
    /// not open is lost.
    fn send(&self, to: Address, frame: Vec<u8>);

    /// The next arrival for an end, waiting up to `wait`.
    fn receive(&self, end: Address, wait: Duration) -> Arrival;

    /// Whether every frame arrives once, and those between two ends in order.
    fn is_reliable(&self) -> bool;

    /// Removes an end. Slots are notified of clients, and all ends of slots, after the earlier frames.
    fn close(&self, end: Address);
}

/// Makes networks, one for each start of slots.
pub trait Networks: Debug + Send + Sync {
    /// A new network without ends.
    fn network(&self) -> Arc<dyn Network>;
}

/// Pending arrivals of one end.
#[derive(Debug, Default)]
struct Mailbox {
    arrivals: Mutex<VecDeque<Arrival>>,
    came: Condvar,
}

impl Mailbox {
    fn put(&self, arrival: Arrival) {
        self.arrivals.lock().push_back(arrival);
        self.came.notify_one();
    }
}

/// Mailboxes in memory, between threads.
#[derive(Debug, Default)]
pub struct Mailboxes(Mutex<MailboxTable>);

#[derive(Debug, Default)]
struct MailboxTable {
    boxes: HashMap<Address, Arc<Mailbox>>,
    /// Slots that have gone.
    gone: BTreeSet<Address>,
}

impl Mailboxes {
    fn mailbox(&self, end: Address) -> Option<Arc<Mailbox>> {
        self.0.lock().boxes.get(&end).cloned()
    }
}

impl Network for Mailboxes {
    fn open(&self, end: Address) {
        let mut table = self.0.lock();
        let mailbox = Mailbox::default();
        table.gone.iter().for_each(|slot| mailbox.put(Arrival::Gone(*slot)));
        table.boxes.insert(end, Arc::new(mailbox));
    }

    fn send(&self, to: Address, frame: Vec<u8>) {
        if let Some(mailbox) = self.mailbox(to) {
            mailbox.put(Arrival::Frame(frame));
        }
    }

    fn receive(&self, end: Address, wait: Duration) -> Arrival {
        let Some(mailbox) = self.mailbox(end) else { return Arrival::Gone(end) };
        let mut arrivals = mailbox.arrivals.lock();
        if arrivals.is_empty() && !wait.is_zero() {
            let waited = mailbox.came.wait_timeout_while(arrivals, wait, |arrivals| arrivals.is_empty());
            arrivals = waited.0;
        }
        arrivals.pop_front().unwrap_or(Arrival::Nothing)
    }

    fn is_reliable(&self) -> bool {
        true
    }

    fn close(&self, end: Address) {
        let is_slot = |end: &Address| matches!(end, Address::Slot(_));
        let mut table = self.0.lock();
        let Some(own) = table.boxes.remove(&end) else { return };
        if is_slot(&end) {
            table.gone.insert(end);
        }
        let others = table.boxes.iter().filter(|(other, _)| is_slot(&end) || is_slot(other));
        others.map(|(_, mailbox)| mailbox).chain([&own]).for_each(|mailbox| mailbox.put(Arrival::Gone(end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_format::Id;

    #[test]
    fn all_learn_of_a_slot_that_is_gone_and_slots_of_a_client() {
        let boxes = Mailboxes::default();
        let [one, two] = [Address::Slot(0), Address::Slot(1)];
        let [client, late] = [Id([1; 16]), Id([2; 16])].map(Address::Client);
        [one, two, client].into_iter().for_each(|end| boxes.open(end));
        boxes.send(client, vec![7]);
        boxes.close(one);
        let next = |end| boxes.receive(end, Duration::ZERO);
        assert_eq!(next(client), Arrival::Frame(vec![7]), "earlier frames come first");
        boxes.open(late);
        for end in [one, two, client, late] {
            assert_eq!(next(end), Arrival::Gone(one), "{end:?}");
        }
        boxes.close(client);
        boxes.send(client, vec![8]);
        assert_eq!(
            [next(two), next(client), next(late)],
            [Arrival::Gone(client), Arrival::Gone(client), Arrival::Nothing]
        );
    }
}
