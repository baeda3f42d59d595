//! The fields that stand in the store at the moment of a feed: the answer to questions of followers.

use std::sync::Arc;

use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follower::{FieldLookup, HeldField};
use fieldstone_journal::session::Limits;

use crate::api::ListOptions;
use crate::read;
use crate::snapshot::Snapshot;

/// The fields of one snapshot. Nothing newer is ever seen through it.
#[derive(Debug, Clone)]
pub struct Standing {
    snapshot: Arc<Snapshot>,
    schema: Schema,
    /// The day from which relative dates in requests count.
    now: i64,
}

impl Standing {
    /// The fields that stand at the moment of a feed.
    pub fn at(feed: &Feed, schema: Schema, now: i64) -> Standing {
        Standing { snapshot: feed.snapshot().clone(), schema, now }
    }
}

impl FieldLookup for Standing {
    fn fields(
        &self,
        request: &Request,
        transaction: Option<Id>,
        field: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()> {
        let selection = self.schema.select_at(request, self.now)?;
        let options = ListOptions { session: Session::from(transaction), ..ListOptions::default() };
        for entry in read::list(&self.snapshot, selection, &options, None, Limits::default())? {
            let entry = match entry {
                // Damaged parts are skipped here, as they are when logs are followed.
                Err(e) if e.kind() == ErrorKind::Corrupt => break,
                // Fields that a purge took from an older version do not stand there any more.
                Err(e) if e.code() == Code::VersionPurged => break,
                entry => entry?,
            };
            let array = entry.dtype.zip(entry.shape).map(|(dtype, shape)| (dtype, shape.to_vec()));
            if !field(&HeldField { key: entry.key, array })? {
                break;
            }
        }
        Ok(())
    }
}
