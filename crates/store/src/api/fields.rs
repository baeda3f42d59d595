//! Fields in by key, fields out by request.
//!
//! Invariant: what a call of reading gives is one moment's; a later flush, of whomever, changes nothing of
//! a list, of [`Fields`] or of a [`Field`] that somebody holds.

use std::fmt;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_journal::Session;

#[cfg(doc)]
use super::{Admin, Transactions};
use super::{
    ArchiveOptions, ByteStream, ExternalSpec, FieldSpec, ListOptions, Listing, Pairs, ReadOptions,
    RemoveOptions, RetrieveOptions, StoredArraySpec, Value,
};
use crate::field::{Field, Fields};

/// Fields in by key, out by request.
///
/// Calls that write fail with `Denied` on a handle that only reads, or that reads an older version, and
/// where the dataset is another user's; the error names him. Nothing that is refused leaves anything
/// behind. Keys and requests that the schema does not take are `Invalid`, naming the keyword.
///
/// A request may be bound to others ([`Request::within`]): every call that takes one answers from what all of
/// them select.
pub trait FieldAccess: Send + Sync + fmt::Debug {
    /// The location of the store, as it was opened: for messages.
    fn url(&self) -> &str;

    /// The schema in force.
    fn schema(&self) -> Schema;

    /// Adds rules, behind those of the schema, and optional keywords; returns the schema as it is then. It is
    /// durable and in force for everybody when this returns, beside transactions; every key stays as it is.
    ///
    /// `Invalid` where a rule would make no key or a word would change its meaning, `Denied` for others than the
    /// owner of the store, `Conflict` where another writer has added what does not go with it.
    fn extend_schema(&self, text: &str, session: &Session) -> Result<Schema>;

    /// The meaning of a request under this schema today, and in this store if it shows only a part; looks nothing up.
    fn select(&self, request: &Request) -> Result<Selection>;

    /// The requests to which this store binds every request; none if it shows all of its fields.
    fn bounds(&self) -> Result<Vec<Request>>;

    /// Takes a value under a key, for the session's next [`flush`](Transactions::flush).
    ///
    /// When it returns, the store has its own copy, and the caller may reuse the memory; nothing is visible
    /// or durable yet. Of several whole values of one key in one flush the last is stored. A whole value
    /// hides, when it becomes visible, all that was there; a piece lies upon it.
    ///
    /// `Invalid` where the bytes do not fit type and shape. A large value is written at once: where that
    /// fails, it is a failure as of a [`flush`](Transactions::flush).
    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()>;

    /// Takes many values, as [`archive`](Self::archive) does each, at a fraction of the cost.
    ///
    /// All keys are checked before the first value is taken; an error of a key names the item by its number.
    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()>;

    /// Starts a new generation of an array field, to which anyone adds pieces.
    ///
    /// The new field hides the earlier one when it becomes visible; until pieces cover the shape, the field is listed
    /// as incomplete.
    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()>;

    /// Takes bytes that stay in a file outside the store.
    ///
    /// They are read once, for their checksums, and from there whenever the field is read. A file that is
    /// gone or not what it was is `Corrupt` then. The store never changes or removes the file. `Conflict`
    /// where the file is not any more what `spec` saw, `Invalid` where the place is not in it.
    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()>;

    /// Archives a whole array that is in a file of the store's own folder. Bytes may be added to the file after the
    /// array; the array's own bytes do not change.
    ///
    /// Nothing is read now: the caller has made the bytes durable and says what their checksums are. They are
    /// compared whenever the field is read; `Corrupt` where the file is gone or holds something else. With
    /// holes the field is incomplete. `Invalid` where the store is in no folder, and for a place that is none.
    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()>;

    /// Removes the fields that a request selects among those that this handle sees and those that it archived and did
    /// not flush; returns their number.
    ///
    /// From the flush on their keys have no field, until one is archived again; older versions still show the removed
    /// fields. Removes all of them or none: `Denied` if one is in another user's dataset. `Invalid` for a request
    /// that lists no values and so selects everything, even if it is bound to others.
    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64>;

    /// Removes these very versions of fields.
    ///
    /// One that is not the newest any more when this becomes visible, whoever wrote the newer one and
    /// whenever, stays untouched; so who copied a field can remove what it copied, without a lock. `Invalid`
    /// for a field of another store.
    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()>;

    /// Lists fields, as a stream in key order.
    ///
    /// The stream holds a bounded part of the store at a time. It reports unreadable parts as an error after the last
    /// entry, so that everything readable comes first. `Invalid` for a depth other than 1, 2 or 3.
    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing>;

    /// The fields a request names, in request order, lazily: no byte of them is read.
    ///
    /// A strict retrieve is `NotFound`, naming some, where a combination of listed values has no field or a
    /// field lacks elements, `Conflict` where pieces disagree, `Corrupt` where something may be missing that
    /// was there. A lenient one gives what there is and counts what is not.
    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields>;

    /// Exactly one field: the one with this very key, or else the only one the key names as a request
    /// (see [`get_by_request`](super::get_by_request)).
    ///
    /// `NotFound` where there is none, `Invalid` where there are several, naming two. An incomplete field is
    /// given; reading what it lacks is `NotFound` then.
    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field>;

    /// The values present, per keyword in the order of the key's levels, each once and in typed order.
    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>>;

    /// The text that names what is visible now, and with which this moment can be opened again.
    ///
    /// Handles that see the same say the same.
    fn version(&self) -> Result<String>;

    /// Looks for newer commits now, whatever hints say that there are none (every read looks, by hints).
    fn refresh(&self) -> Result<()>;

    /// The user who owns what stands under an encoded first level of keys, a dataset or a run of the
    /// catalog; `None` where nobody does yet.
    fn owner(&self, level: &[u8]) -> Result<Option<u32>>;

    /// Makes what stands under an encoded first level ours, from the session's next flush on. `Denied` where
    /// another user owns it. Archiving a field claims its dataset by itself.
    fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()>;
}

/// Values that a store reads part by part while it takes them.
pub trait FieldStreams {
    /// Takes opaque bytes, as [`archive`](FieldAccess::archive) does, so that memory does not hold all of them; a store at the far
    /// end of a connection holds them. They are read twice.
    fn archive_stream(&self, key: &Pairs<'_>, stream: ByteStream<'_>, options: &ArchiveOptions)
    -> Result<()>;
}
