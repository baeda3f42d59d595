//! Delivery of each message once, on a network that loses, repeats and reorders frames.
//!
//! Frames to each end are numbered and kept until they are acknowledged; late ones are sent again. The
//! receiver records the numbers that arrived, so that it takes none twice. A reliable network needs none of
//! this, and its frames have no numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fieldstone_core::Result;
use fieldstone_format::graph_message::ends::Address;
use fieldstone_format::graph_message::{Frame, Message};

/// Nanoseconds after which an unacknowledged frame is sent again.
const AGAIN: u64 = 20_000_000;

/// Frames to send: receiver and bytes.
pub type Outgoing = Vec<(Address, Vec<u8>)>;

/// One end's deliveries.
#[derive(Debug)]
pub struct Delivery {
    own: Address,
    reliable: bool,
    peers: HashMap<Address, Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    /// The last number sent.
    last: u64,
    /// Unacknowledged frames, each with the time when it was sent.
    open: BTreeMap<u64, (u64, Vec<u8>)>,
    /// All numbers up to this one arrived.
    through: u64,
    /// Later numbers that arrived.
    beyond: BTreeSet<u64>,
    /// The end has gone: nothing is sent to it, and its late frames are ignored.
    gone: bool,
}

impl Delivery {
    /// The deliveries of an end.
    pub fn new(own: Address, reliable: bool) -> Delivery {
        Delivery { own, reliable, peers: HashMap::new() }
    }

    /// Wraps a message into a frame.
    pub fn wrap(&mut self, to: Address, message: Message, now: u64) -> Vec<u8> {
        if self.reliable {
            return Frame { from: self.own, to, number: 0, message }.encode();
        }
        let peer = self.peers.entry(to).or_default();
        peer.last += 1;
        let frame = Frame { from: self.own, to, number: peer.last, message }.encode();
        if !peer.gone {
            peer.open.insert(peer.last, (now, frame.clone()));
        }
        frame
    }

    /// The message of a frame and its sender; `None` for a repeated frame, an acknowledgement, and a frame for
    /// another end or from one that has gone. Corrupt for an invalid frame.
    pub fn take(&mut self, bytes: &[u8], out: &mut Outgoing) -> Result<Option<(Address, Message)>> {
        let Frame { from, to, number, message } = Frame::decode(bytes)?;
        if to != self.own {
            return Ok(None);
        }
        if self.reliable {
            return Ok(Some((from, message)));
        }
        let peer = self.peers.entry(from).or_default();
        if peer.gone {
            return Ok(None);
        }
        if let Message::Acknowledge { numbers } = &message {
            numbers.iter().for_each(|number| drop(peer.open.remove(number)));
            return Ok(None);
        }
        if number == 0 {
            return Ok(Some((from, message)));
        }
        let acknowledge = Message::Acknowledge { numbers: vec![number] };
        out.push((from, Frame { from: self.own, to: from, number: 0, message: acknowledge }.encode()));
        if number <= peer.through || !peer.beyond.insert(number) {
            return Ok(None);
        }
        while peer.beyond.remove(&(peer.through + 1)) {
            peer.through += 1;
        }
        Ok(Some((from, message)))
    }

    /// Forgets an end that has gone: nothing is sent to it again. If the network is unreliable, its late
    /// frames are ignored from now on.
    pub fn forget(&mut self, end: Address) {
        if !self.reliable {
            self.peers.insert(end, Peer { gone: true, ..Peer::default() });
        }
    }

    /// Collects the frames that must be sent again by now.
    pub fn again(&mut self, now: u64, out: &mut Outgoing) {
        for (to, peer) in &mut self.peers {
            for (sent, frame) in peer.open.values_mut() {
                if now.saturating_sub(*sent) >= AGAIN {
                    *sent = now;
                    out.push((*to, frame.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::env::sim::Random;

    #[test]
    fn every_message_comes_once_whatever_is_lost_and_repeated() {
        for seed in 0..200u64 {
            let mut dice = Random::new(seed);
            let mut random = |n: u64| dice.below(n);
            let names = [Address::Slot(0), Address::Slot(1)];
            let mut ends = names.map(|name| Delivery::new(name, false));
            let mut wire: Outgoing = Vec::new();
            let mut came = Vec::new();
            let mut now = 0;
            for batch in 0..20 {
                wire.push((names[1], ends[0].wrap(names[1], Message::Moved { batch }, now)));
            }
            while ends[0].peers.values().any(|peer| !peer.open.is_empty()) {
                now += AGAIN / 3;
                if wire.is_empty() {
                    ends[0].again(now, &mut wire);
                    continue;
                }
                let (to, frame) = wire.swap_remove(random(wire.len() as u64) as usize);
                match random(4) {
                    0 => {}
                    1 => wire.extend([(to, frame.clone()), (to, frame)]),
                    _ => {
                        let taken = ends[usize::from(to == names[1])].take(&frame, &mut wire).unwrap();
                        came.extend(taken.map(|(from, message)| (from, format!("{message:?}"))));
                    }
                }
            }
            came.sort();
            let mut expected: Vec<_> =
                (0..20).map(|batch| (names[0], format!("{:?}", Message::Moved { batch }))).collect();
            expected.sort();
            assert_eq!(came, expected, "seed {seed}");
        }
    }

    #[test]
    fn what_an_end_sent_before_it_was_gone_is_not_taken_late() {
        let [one, two] = [Address::Slot(0), Address::Slot(1)];
        let mut delivery = Delivery::new(one, false);
        let frame = Delivery::new(two, false).wrap(one, Message::Settle, 0);
        let mut out = Vec::new();
        drop(delivery.wrap(two, Message::Settle, 0));
        assert!(delivery.take(&frame, &mut out).unwrap().is_some());
        delivery.forget(two);
        out.clear();
        assert_eq!(delivery.take(&frame, &mut out).unwrap(), None);
        drop(delivery.wrap(two, Message::Settle, 0));
        delivery.again(10 * AGAIN, &mut out);
        assert!(out.is_empty(), "nothing is sent to that end again");
    }
}
