//! What a catalog asks of the store that it is joined to.

use std::sync::{Mutex, PoisonError, Weak};

use fieldstone_catalog::live::{FieldPort, FlushParticipant};
use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::view::Holds;
use fieldstone_store::Standing;
use fieldstone_store::api::{FieldAccess, ListOptions, RemoveOptions, Transactions};

use super::composed::Composed;

impl FieldPort for Composed {
    fn standing(&self, feed: &Feed) -> Box<dyn Holds> {
        let now = self.journal.env().clock.now();
        Box::new(Standing::at(feed, self.journal.schema().clone(), now))
    }

    fn count(&self, request: &Request, transaction: Option<Id>) -> Result<u64> {
        let options = ListOptions { transaction, ..ListOptions::default() };
        let mut entries = self.fields.list(request, &options)?;
        entries.try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    fn remove(&self, request: &Request, transaction: Option<Id>) -> Result<u64> {
        self.fields.remove(request, &RemoveOptions { transaction })
    }

    fn decide_kinds(&self, transaction: Id, on: u32, off: u32) -> Result<()> {
        Transactions::decide_kinds(self, transaction, on, off)
    }

    fn join(&self, catalog: Weak<dyn FlushParticipant>) {
        let catalogs = self.catalogs.get(Mutex::default);
        catalogs.lock().unwrap_or_else(PoisonError::into_inner).push(catalog);
    }
}
