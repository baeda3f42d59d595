//! Names of the ends of a network and of the traversals on it, the same in all processes.
//!
//! ```text
//! address = varint: number of the slot + 1; 0: a client, then its id: 16 bytes
//! query   = id of the client: 16 bytes  number: varint
//! ```
//!
//! Invariant: a client draws its id at random, so that no two clients, in any processes, share a name. No two
//! traversals do either.

use fieldstone_core::Result;
pub use fieldstone_core::graph::Address;

use super::fields::{Field, fields};
use crate::Id;
use crate::bytes::{Cursor, Put};

/// The name of a traversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId {
    /// The client that runs it.
    pub client: Id,
    /// Its number among the client's traversals.
    pub number: u64,
}

fields!(QueryId { client, number });

impl Field for Id {
    const LEAST: usize = 16;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Id> {
        Ok(Id(cursor.array()?))
    }
}

impl Field for Address {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Address::Slot(number) => out.put_varint(u64::from(*number) + 1),
            Address::Client(id) => {
                out.put_varint(0);
                id.put(out);
            }
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Address> {
        match cursor.varint()? {
            0 => Ok(Address::Client(Id::read(cursor)?)),
            number => match u16::try_from(number - 1) {
                Ok(number) => Ok(Address::Slot(number)),
                Err(_) => Err(cursor.fail("a slot has an impossible number")),
            },
        }
    }
}
