//! One file: the conversation with the helper, and the transaction for its fields.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_format::helper::Request;
use fieldstone_store::api::{
    ArchiveOptions, ExternalContent, ExternalSpec, FieldAccess, FileState, Transactions, Value,
};

use super::declare::{self, GribDeclared};
use super::exported::{self, Exported};
use super::external;
use super::file_reply::{FileReply, NetcdfOffer};
use super::grib::{Arrival, Messages};
use super::netcdf::{Offer, place};
use super::{IngestOptions, Skipped, Taken, WHOLE_FILE, looks_like_grib, read_head};
use crate::Session;
use crate::Store;
use crate::catalog::CatalogAccess;
use crate::interop::grib::batch::FileSource;
use crate::interop::grib::{borrowed, merge};
use crate::interop::helper::{Content, FieldFrame, HelperEvent, Name, Reply, Texts};
use crate::interop::shared_helper::SharedHelper;

/// A report's name for an exported file's metadata.
const METADATA: &str = "the metadata";
/// Maximum number of lines in a report for one file; further ones are only counted.
const MAX_SKIPPED: usize = 100;

/// State that an ingest keeps from file to file.
pub struct State<'a> {
    pub(super) store: &'a Store,
    pub(super) catalog: &'a dyn CatalogAccess,
    pub(super) options: &'a IngestOptions<'a>,
    pub(super) helper: SharedHelper<'a>,
    pub(super) messages: Messages<'a>,
}

/// How reading a file ended.
pub(super) enum End {
    /// Its fields are in the transaction.
    Whole,
    /// Nothing of the file can be taken.
    Refused(Error),
}

/// The results of one file so far.
pub(super) struct Harvest<'r> {
    pub(super) transaction: Id,
    pub(super) taken: Taken,
    /// Declarations for its messages.
    pub(super) declared: GribDeclared,
    /// The key of the last field, to count a field that comes in pieces once.
    last: Texts,
    /// The further keywords of a netCDF file, once its place is found.
    base: Texts,
    /// The file and its state at the beginning, if values stay in it.
    outside: Option<(PathBuf, FileState)>,
    /// An exported file's metadata besides its fields.
    exported: Exported,
    /// The missing-value elements of the current field.
    missing: Vec<u8>,
    pub(super) skips: Skips<'r>,
}

impl Harvest<'_> {
    /// Whether values stay in the file.
    pub(super) fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// Checks whether a file whose values stay in it is unchanged.
    fn is_same(&self) -> End {
        let same = self.outside.as_ref().map_or(Ok(()), |(path, seen)| external::check(path, *seen));
        same.map_or_else(End::Refused, |()| End::Whole)
    }

    /// Counts a field of an exported file, or a part of it, that the store already has.
    fn note_there(&mut self, key: &Texts) {
        if self.last != *key {
            self.taken.unchanged += 1;
            self.last.clone_from(key);
        }
    }

    /// Counts a message under its key, and keeps the part of the key that all messages share.
    pub(super) fn note(&mut self, key: Texts, unchanged: bool) {
        match self.taken.fields + self.taken.unchanged {
            // The first one, either archived or counted.
            n if n == u64::from(!unchanged) => self.taken.key = key,
            _ => self.taken.key.retain(|pair| key.contains(pair)),
        }
        self.taken.unchanged += u64::from(unchanged);
    }
}

impl<'a> State<'a> {
    pub fn new(store: &'a Store, options: &'a IngestOptions<'a>) -> Result<State<'a>> {
        let helper = SharedHelper::new(&options.helper);
        let (catalog, messages) = (store.catalog(), Messages::new(store, !options.external)?);
        Ok(State { store, catalog, options, helper, messages })
    }

    /// Takes one file; `None` if nothing of it was taken. Faults of the file go to `skipped`.
    pub fn take(
        &mut self,
        path: &Path,
        progress: &dyn Fn(f64) -> Result<()>,
        skipped: &mut Vec<Skipped>,
    ) -> Result<Option<Taken>> {
        let transaction = self.store.begin()?;
        let taken = Taken::nothing(path);
        let skips = Skips { path, into: skipped, counted: 0, last_why: String::new(), same: 0 };
        let mut harvest = Harvest {
            transaction,
            taken,
            declared: GribDeclared::default(),
            last: Texts::new(),
            base: Texts::new(),
            outside: None,
            exported: Exported::default(),
            missing: Vec::new(),
            skips,
        };
        let outcome = self.read(path, progress, &mut harvest);
        if !matches!(outcome, Ok(End::Whole)) {
            // The helper may be in the middle of an answer.
            self.helper.helper = None;
        }
        let outcome = match outcome {
            // If the commit fails, nothing of the file is kept, and the store's error is returned. If there is nothing
            // new, nothing is written.
            Ok(End::Whole)
                if harvest.taken.fields > 0 || self.store.backend().has_pending(&transaction.into()) =>
            {
                self.store.decide(transaction, true).map(|()| None)
            }
            Ok(End::Whole) => self.store.abandon(transaction, &Session::default()).map(|()| None),
            Ok(End::Refused(why)) => self.store.abandon(transaction, &Session::default()).map(|()| Some(why)),
            Err(error) => {
                let _ = self.store.abandon(transaction, &Session::default());
                Err(error)
            }
        };
        if !matches!(outcome, Ok(None)) {
            self.messages.forget();
        }
        self.messages.next_file();
        if let Some(why) = outcome? {
            harvest.skips.whole(&why);
            return Ok(None);
        }
        harvest.skips.finish();
        let taken = harvest.taken;
        Ok((taken.fields + taken.unchanged > 0).then_some(taken))
    }

    fn read(
        &mut self,
        path: &Path,
        progress: &dyn Fn(f64) -> Result<()>,
        harvest: &mut Harvest<'_>,
    ) -> Result<End> {
        let absolute = match std::path::absolute(path) {
            Ok(absolute) => absolute,
            Err(e) => return Ok(End::Refused(Error::invalid(e.to_string()))),
        };
        let is_grib = read_head(path).is_ok_and(|head| looks_like_grib(&head));
        let grib = if is_grib { FileSource::open(path).ok() } else { None };
        if self.options.external {
            let state = if grib.is_some() { external::state(&absolute) } else { external::look(&absolute) };
            match state {
                Ok(seen) => harvest.outside = Some((absolute.clone(), seen)),
                Err(error) => return Ok(End::Refused(error)),
            }
        }
        let Some(source) = grib else { return self.read_by_helper(&absolute, progress, harvest) };
        let end = self.grib(path, &source, progress, harvest)?;
        Ok(if matches!(end, End::Whole) { harvest.is_same() } else { end })
    }

    /// Has the helper read a file, and takes its replies.
    fn read_by_helper(
        &mut self,
        path: &Path,
        progress: &dyn Fn(f64) -> Result<()>,
        harvest: &mut Harvest<'_>,
    ) -> Result<End> {
        let (path, step_dim) = (path.as_os_str().as_bytes(), &self.options.step_dim);
        let request = Request::Ingest { path, offer: true, copy: !self.options.external, step_dim };
        if let Err(error) = self.helper.get().and_then(|helper| helper.send(&request, &[])) {
            return self.cannot_start(error).map(End::Refused);
        }
        loop {
            let (reply, payload) = match self.next_reply(&request)? {
                Ok(reply) => reply,
                Err(refused) => return Ok(End::Refused(refused)),
            };
            let refused = match FileReply::of(reply) {
                FileReply::Metadata => self.metadata(&payload, harvest),
                FileReply::Offer(offer) => self.offer(offer, harvest)?,
                FileReply::Field(field) => self.field(field, &payload, harvest)?,
                FileReply::Declared(file) => {
                    let schema = self.store.schema();
                    let session = Session::from(harvest.transaction);
                    let place = (&schema, &harvest.base, &session);
                    let known = |run: &RunName, variable: &str| harvest.exported.declares(run, variable);
                    declare::netcdf(self.catalog, place, file, &payload, &known)?;
                    None
                }
                FileReply::Skipped { what, why } => {
                    harvest.skips.add(what, why);
                    None
                }
                FileReply::Progress(share) => {
                    progress(share)?;
                    None
                }
                FileReply::Done => match harvest.exported.finish(self.store, harvest.transaction) {
                    Ok(()) => return Ok(harvest.is_same()),
                    Err(error) => Some(error),
                },
                FileReply::Failed(error) => Some(error),
            };
            if let Some(refused) = refused {
                return Ok(End::Refused(refused));
            }
        }
    }

    /// The next reply to a request; an inner error if nothing of the file can be taken. A helper left by an earlier
    /// file may have ended since: then a new one gets the request.
    fn next_reply(&mut self, request: &Request<'_>) -> Result<Result<(Reply, Vec<u8>)>> {
        loop {
            let event = match self.helper.get()?.next() {
                Ok(event) => event,
                Err(error) => return self.cannot_start(error).map(Err),
            };
            self.helper.answered = true;
            let was_left = std::mem::take(&mut self.helper.reused);
            match event {
                HelperEvent::Reply(reply, payload) => return Ok(Ok((reply, payload))),
                HelperEvent::Died(_) if was_left => {
                    // It ended while it was idle, not because of this file; if the file is the cause, the next helper
                    // shows it.
                    self.helper.helper = None;
                    if let Err(error) = self.helper.get().and_then(|helper| helper.send(request, &[])) {
                        return self.cannot_start(error).map(Err);
                    }
                }
                HelperEvent::Died(how) => {
                    let what = Error::corrupt(format!("reader {how}"));
                    return Ok(Err(what.with_hint("this file was skipped entirely")));
                }
            }
        }
    }

    /// Fails the ingest if no file could be read; later it returns the error, and only this file is skipped.
    pub(super) fn cannot_start(&mut self, error: Error) -> Result<Error> {
        if self.helper.answered { Ok(error) } else { Err(error) }
    }

    /// Reads an exported file's catalog lines; returns the reason if the whole file cannot be taken.
    fn metadata(&self, lines: &[u8], harvest: &mut Harvest<'_>) -> Option<Error> {
        match harvest.exported.read(self.store, &harvest.base, harvest.transaction, lines) {
            Ok(None) => None,
            Ok(Some(why)) => {
                harvest.skips.add(METADATA.to_owned(), why);
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Decides whether a netCDF file is taken, and under which keys; returns the reason if the whole file cannot be
    /// taken.
    fn offer(&mut self, offer: NetcdfOffer, harvest: &mut Harvest<'_>) -> Result<Option<Error>> {
        let NetcdfOffer { run, sha256, keys } = offer;
        let given = &self.options.key;
        let go = match keys.map(|keys| harvest.exported.by_key(self.store, &keys, given)) {
            Some(Ok(())) => {
                harvest.base.clone_from(given);
                self.helper.get()?.send(&Request::Go, &[])?;
                return Ok(None);
            }
            Some(Err(error)) if error.code() == Code::KeyContradiction => return Ok(Some(error)),
            Some(Err(error)) => {
                let why = format!("its fields kept keys of their own: {}", error.message());
                harvest.skips.add(METADATA.to_owned(), why);
                Request::GoPlain
            }
            None => Request::Go,
        };
        match place(self.store, run, &sha256, given, !self.options.external) {
            Ok(Offer::New(base)) => {
                harvest.taken.key.clone_from(&base);
                harvest.base = base;
                self.helper.get()?.send(&go, &[])?;
            }
            Ok(Offer::Held(base, fields)) => {
                harvest.taken.key = base;
                harvest.taken.unchanged = fields;
                self.helper.get()?.send(&Request::Stop, &[])?;
            }
            Err(error) if error.kind() == ErrorKind::Invalid => return Ok(Some(error)),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Archives a field; returns the reason if the whole file cannot be taken.
    fn field(
        &mut self,
        field: FieldFrame,
        payload: &[u8],
        harvest: &mut Harvest<'_>,
    ) -> Result<Option<Error>> {
        harvest.missing = field.missing;
        match field.name {
            Name::Grib { key, apart, offset } => {
                let key = merge(&self.store.schema(), key, &self.options.key);
                let arrival =
                    key.and_then(|key| self.messages.place(key, payload, None, &mut |_| Ok(apart.clone())));
                match arrival {
                    Ok(Arrival::Unchanged(key)) => harvest.note(key, true),
                    Ok(Arrival::New(key)) => {
                        self.archive(&key, &field.content, payload, harvest)?;
                        harvest.note(key, false);
                    }
                    Err(error) if error.kind() == ErrorKind::Invalid => {
                        harvest.skips.add(format!("message at byte {offset}"), error.to_string());
                    }
                    Err(error) => return Err(error),
                }
                Ok(None)
            }
            Name::Key(mut key) => {
                key.retain(|(keyword, _)| !harvest.base.iter().any(|(known, _)| known == keyword));
                let key = merge(&self.store.schema(), key, &harvest.base);
                if let (Ok(key), true) = (&key, harvest.exported.is_by_key())
                    && exported::is_there(self.store, key, &field.content, payload)?
                {
                    harvest.note_there(key);
                    return Ok(None);
                }
                let outcome = key.and_then(|key| self.archive(&key, &field.content, payload, harvest));
                let stays = harvest.outside.is_some();
                match outcome {
                    // If a part of the file does not fit its place, the file could not be restored.
                    Err(error) if error.kind() == ErrorKind::Invalid => Ok(Some(error)),
                    // The same holds for a file that changes, or cannot be read.
                    Err(error) if stays && error.kind() != ErrorKind::Denied => Ok(Some(error)),
                    outcome => outcome.map(|()| None),
                }
            }
        }
    }

    /// Archives a message that stays in its file.
    pub(super) fn archive_outside(
        &self,
        key: &Texts,
        at: (u64, u64),
        harvest: &mut Harvest<'_>,
    ) -> Result<()> {
        let (offset, length) = at;
        let Some((path, seen)) = &harvest.outside else {
            return Err(Error::internal("a message without its file"));
        };
        let content = ExternalContent::Bytes(length);
        let spec = ExternalSpec { path, offset, parts: 1, stride: length, content, seen: Some(*seen) };
        let options = ArchiveOptions { session: Session::from(harvest.transaction), ..Default::default() };
        self.store.archive_external(&borrowed(key), &spec, &options)?;
        harvest.taken.fields += 1;
        harvest.taken.bytes += length;
        Ok(())
    }

    pub(super) fn archive(
        &self,
        key: &Texts,
        content: &Content,
        payload: &[u8],
        harvest: &mut Harvest<'_>,
    ) -> Result<()> {
        // Data that the files of one run share (grids, bounds, masks) are stored once.
        let share = !key.iter().any(|(keyword, _)| keyword == "step") && *content != Content::Opaque;
        let transaction = harvest.transaction;
        let options = ArchiveOptions {
            session: Session::from(transaction),
            share,
            missing: harvest.missing.clone(),
            ..Default::default()
        };
        let bytes = match (content, &harvest.outside) {
            (Content::Outside { dtype, shape, offset, parts, stride }, Some((path, seen))) => {
                let (offset, parts, stride) = (*offset, *parts, *stride);
                let content = ExternalContent::Array { dtype: *dtype, shape };
                let spec = ExternalSpec { path, offset, parts, stride, content, seen: Some(*seen) };
                self.store.archive_external(&borrowed(key), &spec, &options)?;
                fieldstone_core::geometry::element_count(shape)?.saturating_mul(dtype.size() as u64)
            }
            (Content::Outside { .. }, None) => {
                return Err(Error::internal("the helper sent a place where values are due"));
            }
            _ => payload.len() as u64,
        };
        let value = match content {
            Content::Outside { .. } => None,
            Content::Opaque => Some(Value::Bytes(payload)),
            Content::Array { dtype, shape } => Some(Value::Array { data: payload, dtype: *dtype, shape }),
            Content::Piece { dtype, shape, start, count } => {
                Some(Value::Piece { data: payload, dtype: *dtype, start, count, shape })
            }
        };
        if let Some(value) = value {
            self.store.archive(&borrowed(key), value, &options)?;
        }
        if harvest.last != *key {
            harvest.taken.fields += 1;
            harvest.last.clone_from(key);
        }
        harvest.taken.bytes += bytes;
        Ok(())
    }
}

/// The skipped parts of one file: equal reasons are reported once with their number, further ones are counted.
pub(super) struct Skips<'r> {
    path: &'r Path,
    into: &'r mut Vec<Skipped>,
    counted: usize,
    last_why: String,
    /// Number of further parts with the reason of the last reported one.
    same: usize,
}

impl Skips<'_> {
    pub(super) fn add(&mut self, what: String, why: String) {
        if self.counted > 0 && why == self.last_why {
            self.same += 1;
            return;
        }
        self.note_equal();
        self.counted += 1;
        if self.counted <= MAX_SKIPPED {
            self.into.push(Skipped { path: self.path.to_owned(), what, why: why.clone() });
        }
        self.last_why = why;
    }

    /// Adds the number of equal reasons to the line that represents them.
    fn note_equal(&mut self) {
        if self.same > 0
            && self.counted <= MAX_SKIPPED
            && let Some(last) = self.into.last_mut()
        {
            last.what = format!("{} and {} more", last.what, self.same);
        }
        self.same = 0;
    }

    fn finish(&mut self) {
        self.note_equal();
        if let Some(more) = self.counted.checked_sub(MAX_SKIPPED).filter(|more| *more > 0) {
            let what = format!("{more} more parts");
            self.into.push(Skipped {
                path: self.path.to_owned(),
                what,
                why: "for further reasons".to_owned(),
            });
        }
    }

    /// Reports the whole file; its skipped parts no longer matter.
    fn whole(&mut self, why: &Error) {
        let reported = self.counted.min(MAX_SKIPPED);
        self.into.truncate(self.into.len().saturating_sub(reported));
        let what = WHOLE_FILE.to_owned();
        self.into.push(Skipped { path: self.path.to_owned(), what, why: why.to_string() });
    }
}
