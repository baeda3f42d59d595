//! Frames that the two ends of a connection exchange.

use fieldstone_core::Result;
use fieldstone_wire::{In, NoEnds, Out, Wire, wire_enum, wire_struct};

/// The object that is the backend itself.
pub const BACKEND: u64 = 0;
/// An object that no connection has.
pub const NOWHERE: u64 = u64::MAX;

/// A call of a client.
#[derive(Debug)]
pub struct Call {
    /// Its number on the connection.
    pub id: u64,
    /// The calling thread's number.
    pub worker: u64,
    /// The object that is called.
    pub object: u64,
    /// The method.
    pub method: u16,
    /// Its arguments.
    pub arguments: Vec<u8>,
}

/// A client's frame.
#[derive(Debug)]
pub enum Request {
    /// A call.
    Call(Call),
    /// Ends a call early.
    Cancel(u64),
    /// The client has released an object.
    Release(u64),
    /// A reply to a question.
    Reply(u64, Vec<u8>),
}

/// A question that the server asks while it serves a call.
#[derive(Debug)]
pub enum Question {
    /// Asks for an author's part of a commit to a store. The reply is an `AuthorPart`.
    HandIn(u64, Vec<u8>),
    /// Reports that an author's part is durable. The reply is empty.
    Landed(u64, Vec<u8>),
    /// Offers a portion of an answer to the caller. The reply is an outcome.
    Portion(Vec<u8>),
}

/// A server's frame.
#[derive(Debug)]
pub enum Response {
    /// The answer to a call: its bytes, or an error's.
    Answer(u64, bool, Vec<u8>),
    /// A question, with its number and the number of its call.
    Ask(u64, u64, Question),
}

wire_enum! {
    Request { 0 Call(call), 1 Cancel(id), 2 Release(object), 3 Reply(question, bytes) }
    Question { 0 HandIn(author, bytes), 1 Landed(author, bytes), 2 Portion(bytes) }
    Response { 0 Answer(call, ok, bytes), 1 Ask(id, call, question) }
}

wire_struct! {
    Call { id, worker, object, method, arguments }
}

/// The bytes of an item that refers to neither end.
pub fn encoded(item: &impl Wire) -> Vec<u8> {
    let mut out = Out::new(&NoEnds);
    item.put(&mut out);
    out.into_bytes()
}

/// Reads an item from all of some bytes.
pub fn decoded<T: Wire>(bytes: &[u8]) -> Result<T> {
    let mut input = In::new(bytes, &NoEnds);
    let item = T::read(&mut input)?;
    input.end()?;
    Ok(item)
}
