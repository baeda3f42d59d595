//! Sessions, authors and their parts as bytes.

use fieldstone_catalog::engine::Interrupt;
use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::author::{AuthorPart, Landed};
use fieldstone_journal::session::SessionId;

use crate::{In, Out, Wire, wire_struct};

/// Client, transaction, user; the author's number; the remaining nanoseconds; whether it can be cancelled, or
/// is.
impl Wire for Session {
    fn put(&self, out: &mut Out<'_>) {
        let ends = out.ends;
        self.key().id.number().put(out);
        self.transaction().put(out);
        self.own_user().put(out);
        ends.author_of(self).put(out);
        self.deadline().map(|deadline| deadline.saturating_sub(ends.now())).put(out);
        let cancel = self.cancel().cloned();
        cancel.map(|cancel| Interrupt::new(move || cancel.is_cancelled())).put(out);
    }

    fn read(input: &mut In<'_>) -> Result<Session> {
        let session = Session::new(SessionId::of(u64::read(input)?)).within(Option::<Id>::read(input)?);
        let session = match Option::<u32>::read(input)? {
            Some(user) => session.of_user(user),
            None => session,
        };
        let session = match Option::<u64>::read(input)? {
            Some(number) => session.by(input.ends.author(number)?),
            None => session,
        };
        let session = match Option::<u64>::read(input)? {
            Some(left) => session.until(input.ends.now().saturating_add(left)),
            None => session,
        };
        Ok(match Option::<Interrupt>::read(input)? {
            Some(_) => session.cancelled_by(input.ends.cancel()),
            None => session,
        })
    }
}

/// Whether it is due already. If not, the client watches it, and the server ends the call when the client
/// asks.
impl Wire for Interrupt {
    fn put(&self, out: &mut Out<'_>) {
        self.is_due().put(out);
        out.ends.watch(self.clone());
    }

    fn read(input: &mut In<'_>) -> Result<Interrupt> {
        let cancel = input.ends.cancel();
        if bool::read(input)? {
            cancel.cancel();
        }
        Ok(Interrupt::new(move || cancel.is_cancelled()))
    }
}

wire_struct! {
    AuthorPart { floor, writer, reads, vertices, relations, ticket }
    Landed { store, stamp, ticket }
}
