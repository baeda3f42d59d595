//! Reading fields: get, retrieve, list, and how a client reaches them.

use std::sync::Arc;

use fieldstone::prelude::*;
use fieldstone::unpacked::unpacked_all;
use fieldstone::{ListOptions, ReadOptions, RetrieveOptions, key_request};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{Store, session};
use crate::describe::{Cube, cubes};
use crate::errors::{Raise, invalid};
use crate::expand::Expansion;
use crate::explain::explained;
use crate::fields::{self, Origin, PyFields};
use crate::listing::{PyListing, since_version};
use crate::log::Waiting as _;
use crate::news;
use crate::request::{KeyText, requests};
use crate::sequence::Several;

/// The one field that a key names.
pub fn found(
    py: Python<'_>,
    handle: &fieldstone::Store,
    key: &KeyText<'_>,
    options: &ReadOptions,
) -> PyResult<fieldstone::Field> {
    let pairs = key.pairs()?;
    let found = || {
        let found = handle.get(&pairs, options);
        found.map_err(|error| explained(handle, &key_request(&pairs), error))
    };
    py.detach(found).or_raise()
}

#[pymethods]
impl Store {
    /// Exactly one field: bytes for opaque data, a numpy array otherwise. `start` and `count` (in elements per
    /// dimension, half-open; in bytes for opaque data) select a box of it: only the blocks that the box touches are
    /// read.
    ///
    /// Raises NotFound if no field has this key or pieces are missing, Invalid if the key names several fields or the
    /// box lies outside, Corrupt if the stored bytes are damaged.
    #[pyo3(signature = (key, start=None, count=None, *, txn=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        start: Option<&Bound<'py, PyAny>>,
        count: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = ReadOptions { session: session(txn)? };
        let field = found(py, &self.handle()?, &KeyText::new(key)?, &options)?;
        fields::value(py, &field, start, count)
    }

    /// The fields of `request` as cubes, and the values of each axis: for the xarray engine.
    #[pyo3(signature = (request=None, *, by=None, along=None))]
    fn _cubes<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
        by: Option<Several<String>>,
        along: Option<Several<String>>,
    ) -> PyResult<(Vec<Cube>, Bound<'py, PyDict>)> {
        cubes(py, &self.handle()?, request, by, along)
    }

    /// The fields that `request` selects, in request order, as a pinned snapshot that reads lazily.
    ///
    /// With ``strict=True``, each listed value or combination without a field raises NotFound before any byte is
    /// read; with ``strict=False``, you get the existing fields, ``fields.missing`` lists the rest, and missing
    /// pieces of arrays are filled.
    #[pyo3(signature = (request=None, *, strict=true, txn=None))]
    fn retrieve(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        strict: bool,
        txn: Option<&str>,
    ) -> PyResult<PyFields> {
        let (handle, session) = (self.handle()?, session(txn)?);
        let requests = requests(request)?;
        let options = RetrieveOptions { strict, session: session.clone() };
        let found = py.waiting(|| {
            let found = requests.iter().map(|request| {
                let found = handle.retrieve(request, &options);
                let found = found.map_err(|error| explained(&handle, request, error))?;
                Ok((request.to_string(), found))
            });
            found.collect::<fieldstone::Result<Vec<_>>>()
        });
        let origin = Origin { opening: self.handle.opening().clone(), handle, session, strict };
        PyFields::new(origin, found.or_raise()?)
    }

    /// Existing fields, as an iterator of entries in key order: ``e.key``, ``e.nbytes``, ``e.dtype``, ``e.shape``,
    /// ``e.complete``, ``e.location``, ``e.time``, ``e.owner``.
    ///
    /// `depth` 1 lists datasets, 2 indexes, 3 fields; ``masked=True`` also lists versions that newer ones hide.
    /// `since`, a ``store.version``, lists only fields that became visible after it: new fields and fields with a
    /// newer version or piece; raises NotFound if that version is gone.
    #[pyo3(signature = (request=None, *, depth=3, masked=false, since=None, txn=None))]
    fn list(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        depth: i64,
        masked: bool,
        since: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<PyListing> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let depth = u8::try_from(depth).unwrap_or(u8::MAX); // refused below, as 0 and 4 are
        let options = ListOptions { depth, masked, session: session(txn)? };
        if let Some(since) = since {
            if masked {
                return Err(invalid(
                    "since= and masked=True cannot be combined",
                    "list all versions without since=",
                ));
            }
            return Ok(since_version(py, &handle, &requests, since, &options)?.0);
        }
        let streams = py.waiting(|| {
            let listed = requests.iter().map(|request| handle.list(request, &options));
            Ok(unpacked_all(&handle, &requests, listed.collect::<fieldstone::Result<Vec<_>>>()?))
        });
        let text = requests.first().map_or_else(String::new, |request| request.to_string());
        let listing = PyListing::new(streams.or_raise()?, handle.schema(), text.chars().take(200).collect());
        Ok(match requests.into_iter().next() {
            Some(request) => listing.explained_by(handle, request),
            None => listing,
        })
    }

    /// Waits until any process flushes something after a version, and returns True; returns False if nothing was
    /// flushed in `timeout` seconds (None: no limit). `since` is a ``store.version``; the default is the current one.
    /// The flushed data may still be invisible, in a transaction. Other threads keep running; Ctrl-C ends the wait.
    #[pyo3(signature = (since=None, timeout=None))]
    fn wait(&self, py: Python<'_>, since: Option<String>, timeout: Option<f64>) -> PyResult<bool> {
        news::wait(py, &self.handle()?, since, timeout)
    }

    /// The existing values of each keyword: a dict of lists of text in typed order.
    #[pyo3(signature = (request=None, *, txn=None))]
    fn axes<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let options = ReadOptions { session: session(txn)? };
        let axes = py.waiting(|| {
            let mut all: Vec<(Arc<str>, Vec<fieldstone::KeyValue>)> = Vec::new();
            for request in &requests {
                for (keyword, values) in handle.axes(request, &options)? {
                    match all.iter_mut().find(|(known, _)| *known == keyword) {
                        Some((_, known)) => known.extend(values),
                        None => all.push((keyword, values)),
                    }
                }
            }
            if requests.len() > 1 {
                for (_, values) in &mut all {
                    values.sort_unstable();
                    values.dedup();
                }
            }
            Ok(all)
        });
        let dict = PyDict::new(py);
        for (keyword, values) in axes.or_raise()? {
            dict.set_item(&*keyword, PyList::new(py, values.iter().map(|value| value.text()))?)?;
        }
        Ok(dict)
    }

    /// The keys that a request names, in its order, whether or not fields are stored under them: ``len(keys)``, ``for
    /// key in keys``.
    ///
    /// Optional keywords that the request does not name get their default or are absent. Raises Invalid if the
    /// request leaves open a keyword that every key has.
    fn expand(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<Expansion> {
        Expansion::of(py, &self.handle()?, &requests(Some(request))?)
    }

    /// The positions of fields' bytes, in the order of ``list``: "file:offset", files relative to the store's folder.
    /// Created fields without a piece have no position and are left out.
    #[pyo3(name = "where", signature = (request=None, *, txn=None))]
    fn locations(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Vec<String>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let options = ListOptions { session: session(txn)?, ..ListOptions::default() };
        let found = py.waiting(|| {
            let mut found = Vec::new();
            for request in &requests {
                for entry in handle.list(request, &options)? {
                    found.extend(entry?.place.map(|place| place.to_string()));
                }
            }
            Ok(found)
        });
        found.or_raise()
    }
}
