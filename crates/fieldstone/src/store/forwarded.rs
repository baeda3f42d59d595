//! A store as a field store: each call goes to the backend. Only the check does more, since the store knows the other
//! files of its folder.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_format::Id;
use fieldstone_store::api::{
    Admin, ArchiveOptions, ByteStream, CheckpointOptions, CheckpointReport, ExternalSpec, FieldAccess,
    FieldSpec, FieldStreams, ListOptions, Listing, Pairs, ReadOptions, RemoveOptions, RetrieveOptions, Stats,
    StatsBy, StatsRow, Status, StoredArraySpec, Transactions, Value, VerifyReport,
};
use fieldstone_store::{Field, Fields};

use super::{Store, verify};
use crate::Session;
use crate::remote::methods::{fields, transactions};

/// Generates the methods of a list, each from the backend's method of the same name.
macro_rules! forwarded {
    (() $($number:literal $kind:ident $name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $(forwarded! { @ $kind $name($($arg: $of),*) -> $answer })*
    };
    (@ try $name:ident($($arg:ident: $of:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $arg: $of)*) -> Result<$answer> {
            self.backend.$name($($arg),*)
        }
    };
    (@ plain $name:ident($($arg:ident: $of:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $arg: $of)*) -> $answer {
            self.backend.$name($($arg),*)
        }
    };
}

impl FieldAccess for Store {
    fields!(forwarded!());

    fn url(&self) -> &str {
        self.backend.url()
    }

    fn schema(&self) -> Schema {
        self.backend.schema()
    }

    fn select(&self, request: &Request) -> Result<Selection> {
        self.backend.select(request)
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        self.backend.archive(key, value, options)
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        self.backend.archive_many(items, options)
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        self.backend.create_field(key, spec, options)
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.backend.archive_external(key, spec, options)
    }

    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.backend.archive_stored(key, spec, options)
    }

    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()> {
        self.backend.remove_fields(fields, options)
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        self.backend.list(request, options)
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields> {
        self.backend.retrieve(request, options)
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        self.backend.get(key, options)
    }
}

impl FieldStreams for Store {
    fn archive_stream(
        &self,
        key: &Pairs<'_>,
        stream: ByteStream<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.backend.archive_stream(key, stream, options)
    }
}

impl Transactions for Store {
    transactions!(forwarded!());

    fn will_write(&self) {
        self.backend.will_write();
    }
}

impl Admin for Store {
    /// For the empty request the store also checks meshes and kept partitions, and lists unreferenced files.
    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        verify::verify(self, request)
    }

    fn stats(&self, request: &Request) -> Result<Stats> {
        self.backend.stats(request)
    }

    fn stats_by(&self, request: &Request, by: &StatsBy) -> Result<Vec<StatsRow>> {
        self.backend.stats_by(request, by)
    }

    fn status(&self) -> Result<Status> {
        self.backend.status()
    }

    fn skipped(&self) -> Result<Vec<String>> {
        self.backend.skipped()
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        self.backend.dump(request)
    }

    fn checkpoint(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport> {
        self.backend.checkpoint(folder, options, session)
    }

    fn close(&self, session: &Session) -> Result<()> {
        self.backend.close(session)
    }
}
