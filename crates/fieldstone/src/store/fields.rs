//! The field store's calls for reading and writing fields. Reads report a missing store, in every mode.

use std::borrow::Cow;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::sync::Mutex;
use fieldstone_store::api::{
    ArchiveOptions, ByteStream, ExternalSpec, FieldAccess, FieldSpec, FieldStreams, ListOptions, Listing,
    Pairs, ReadOptions, RemoveOptions, RetrieveOptions, StoredArraySpec, Value, key_request,
};
use fieldstone_store::{Field, Fields};

use super::composed::Composed;
use crate::Session;
use crate::execution::Asked;
use crate::execution::current::{ExecutionInner, current};

impl Composed {
    /// An execution's request to this store.
    fn asked(&self, by: Arc<ExecutionInner>, request: String) -> Arc<Asked> {
        Arc::new(Asked { by, request: request.into(), url: self.reachable.clone() })
    }

    /// Options with the author of the call.
    fn options<'a>(&self, options: &'a ArchiveOptions) -> Cow<'a, ArchiveOptions> {
        match self.session(&options.session) {
            Cow::Owned(session) => Cow::Owned(ArchiveOptions { session, ..options.clone() }),
            Cow::Borrowed(_) => Cow::Borrowed(options),
        }
    }

    /// Refuses a mistyped keyword, unless fields have it: data of an earlier release stay usable.
    fn check_slips(&self, key: &Pairs<'_>, options: &ArchiveOptions) -> Result<()> {
        if options.verbatim {
            return Ok(());
        }
        self.journal.schema().make(|schema| {
            self.undated.look(schema, key);
            schema.check_slips(key, |keyword| self.is_used(keyword))
        })
    }

    /// Whether fields have a keyword. A positive answer is kept: it stays true.
    fn is_used(&self, keyword: &str) -> Result<bool> {
        let used = || self.used_keywords.get(Mutex::default).lock();
        if used().contains(keyword) {
            return Ok(true);
        }
        let axes = self.fields.axes(&Request::new(), &ReadOptions::default())?;
        let Some((name, _)) = axes.into_iter().find(|(name, _)| **name == *keyword) else { return Ok(false) };
        used().insert(name);
        Ok(true)
    }
}

impl FieldAccess for Composed {
    fn url(&self) -> &str {
        self.fields.url()
    }

    fn schema(&self) -> Schema {
        self.fields.schema()
    }

    fn extend_schema(&self, text: &str, session: &Session) -> Result<Schema> {
        self.fields.extend_schema(text, session)
    }

    fn select(&self, request: &Request) -> Result<Selection> {
        self.fields.select(request)
    }

    fn bounds(&self) -> Result<Vec<Request>> {
        self.fields.bounds()
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        let options = &*self.options(options);
        self.check_slips(key, options)?;
        self.fields.archive(key, value, options)?;
        self.note_change(&options.session)
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        let options = &*self.options(options);
        for (i, (key, _)) in items.iter().enumerate() {
            self.check_slips(key, options).map_err(|e| e.context(format!("field {i}")))?;
        }
        self.fields.archive_many(items, options)?;
        self.note_change(&options.session)
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        let options = &*self.options(options);
        self.check_slips(key, options)?;
        self.fields.create_field(key, spec, options)?;
        self.note_change(&options.session)
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        let options = &*self.options(options);
        self.undated.look(&self.fields.schema(), key);
        self.fields.archive_external(key, spec, options)?;
        self.note_change(&options.session)
    }

    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        let options = &*self.options(options);
        self.fields.archive_stored(key, spec, options)?;
        self.note_change(&options.session)
    }

    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64> {
        let options = &RemoveOptions { session: self.session(&options.session).into_owned() };
        let removed = self.fields.remove(request, options)?;
        self.note_change(&options.session)?;
        Ok(removed)
    }

    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()> {
        let options = &RemoveOptions { session: self.session(&options.session).into_owned() };
        self.fields.remove_fields(fields, options)?;
        self.note_change(&options.session)
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        self.journal.check_there()?;
        self.fields.list(request, options)
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields> {
        self.journal.check_there()?;
        let fields = self.fields.retrieve(request, options)?;
        Ok(match current() {
            Some(by) => self.asked(by, request.to_string()).fields(fields),
            None => fields,
        })
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        self.journal.check_there()?;
        let field = self.fields.get(key, options)?;
        Ok(match current() {
            Some(by) => self.asked(by, key_request(key).to_string()).field(field),
            None => field,
        })
    }

    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
        self.journal.check_there()?;
        self.fields.axes(request, options)
    }

    fn version(&self) -> Result<String> {
        self.fields.version()
    }

    fn refresh(&self) -> Result<()> {
        self.fields.refresh()
    }

    fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        self.fields.owner(level)
    }

    fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        self.fields.claim(level, session)
    }
}

impl FieldStreams for Composed {
    fn archive_stream(
        &self,
        key: &Pairs<'_>,
        stream: ByteStream<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        let options = &*self.options(options);
        self.check_slips(key, options)?;
        self.fields.archive_stream(key, stream, options)?;
        self.note_change(&options.session)
    }
}
