//! An overview of a store, or of the fields that a request selects: counts, the values of each keyword, and the
//! catalog's content.

use std::sync::Arc;

use fieldstone_catalog::query::{Aggregate, By, Query};
use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_store::api::{Admin, FieldAccess, ReadOptions, Stats};

use crate::Store;

/// An overview of a store, or of the fields that a request selects.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Its URL.
    pub url: String,
    /// The name of its schema; `custom` if that has none.
    pub schema: String,
    /// Its version.
    pub version: String,
    /// The request.
    pub request: Request,
    /// The counts of its fields.
    pub stats: Stats,
    /// Keywords with their values.
    pub axes: Vec<(Arc<str>, Vec<KeyValue>)>,
    /// The overview of its catalog; `None` if that is empty, or a request selects fields.
    pub catalog: Option<CatalogFacts>,
}

impl Overview {
    /// The overview of the fields that a request selects; the empty request selects the whole store.
    pub fn of(store: &Store, request: &Request) -> Result<Overview> {
        let stats = store.stats(request)?;
        let axes = store.axes(request, &ReadOptions::default())?;
        let version = store.version()?;
        let schema = store.schema().name().unwrap_or("custom").to_owned();
        let catalog = match request.is_empty() && store.catalog().has_records()? {
            true => Some(CatalogFacts::of(store)?),
            false => None,
        };
        let (url, request) = (store.url().to_owned(), request.clone());
        Ok(Overview { url, schema, version, request, stats, axes, catalog })
    }
}

/// Counts of runs in a catalog, and of attributes by tag.
#[derive(Debug, Clone)]
pub struct CatalogFacts {
    /// The number of runs.
    pub runs: u64,
    /// The first and the last time of their steps, in the runs' own unit; `None` if no step has a time.
    pub times: Option<(f64, f64)>,
    /// Tags, each with its number of attributes.
    pub tags: Vec<Aggregate>,
}

impl CatalogFacts {
    fn of(store: &Store) -> Result<CatalogFacts> {
        let (catalog, all) = (store.catalog(), Query::all());
        let times = catalog.steps(&all)?.into_iter().filter_map(|step| step.time);
        let times = times.fold(None, |ends: Option<(f64, f64)>, time| {
            Some(ends.map_or((time, time), |(first, last)| (first.min(time), last.max(time))))
        });
        let runs = catalog.runs(&all)?.len() as u64;
        Ok(CatalogFacts { runs, times, tags: catalog.aggregate(&all, &[By::Tag])? })
    }
}
