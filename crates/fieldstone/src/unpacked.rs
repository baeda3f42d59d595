//! Extremes of packed values in unpacked form: a list of an ingested file's variables has the minimum and maximum that
//! xarray finds, and none if the index has only a fill value.
//!
//! The index keeps the extremes of the stored values. The attributes that define the packing are in the header of the
//! file (the field `@header` of the run, `spec/netcdf-header.md`), which is read once for each run in a list.
//!
//! Invariant: a list finds the runs with a header once, at one moment of the store, when its first array of numbers
//! comes; a run without one costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::geometry::Scalar;
use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::packing::Packing;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::value::Value;
use fieldstone_store::api::{Extremes, FieldAccess, ListEntry, Listing, ReadOptions, RetrieveOptions};
use fieldstone_store::{Field, Fields};
use serde_json::Value as Json;

use crate::Session;
use crate::Store;
use crate::interop::helper::attribute_value;
use crate::interop::ingest::HEADER;

/// Keyword and text.
type Pairs = Vec<(Arc<str>, String)>;

/// The same entries with extremes of their unpacked elements; `requests` selected them.
pub fn unpacked(store: &Store, requests: &[Request], listing: Listing) -> Listing {
    let listings = unpacked_all(store, requests, vec![listing]);
    listings.into_iter().next().unwrap_or_else(|| Box::new(std::iter::empty()))
}

/// The same for several lists, which share their lookups.
pub fn unpacked_all(store: &Store, requests: &[Request], listings: Vec<Listing>) -> Vec<Listing> {
    let there = Arc::new(HeadersThere { request: headers_beside(requests), found: OnceLock::new() });
    let unpacked = |listing: Listing| -> Listing {
        let (store, there) = (store.clone(), there.clone());
        let mut headers = Headers { store, there, run: None, header: None, packings: HashMap::new() };
        Box::new(listing.map(move |entry| {
            entry.map(|mut entry| {
                entry.summary = headers.extremes(&entry);
                entry
            })
        }))
    };
    listings.into_iter().map(unpacked).collect()
}

/// The request for headers of the runs that requests select.
fn headers_beside(requests: &[Request]) -> Request {
    let mut beside = Request::new();
    let of_run = |name: &str| !["variable", "step"].iter().any(|own| name.eq_ignore_ascii_case(own));
    if let [one] = requests {
        for (name, values) in one.iter().filter(|(name, _)| of_run(name)) {
            beside.set(name, values.clone());
        }
    }
    beside.set("variable", Values::list([HEADER]));
    beside
}

/// The runs with a header, once they were looked up.
struct HeadersThere {
    request: Request,
    found: OnceLock<Option<(Fields, HashMap<Pairs, usize>)>>,
}

impl HeadersThere {
    /// The header of a run.
    fn of(&self, store: &Store, run: &Pairs) -> Option<Field> {
        let found = self.found.get_or_init(|| {
            // If the schema lacks the keyword, or the read fails, there is none.
            let lenient = RetrieveOptions { strict: false, session: Session::default() };
            let fields = store.retrieve(&self.request, &lenient).ok()?;
            let mut places = HashMap::new();
            for (place, field) in fields.iter().enumerate() {
                let key = field.ok()?.key().ok()?;
                if key.get("step").is_none_or(KeyValue::is_absent) {
                    places.insert(run_of(&key), place);
                }
            }
            Some((fields, places))
        });
        let (fields, places) = found.as_ref()?;
        fields.get(*places.get(run)?).ok()
    }
}

/// The index's extremes, unpacked.
pub fn unpack(packing: &Packing, stored: &Extremes) -> Extremes {
    let (Some(least), Some(greatest), false) = (stored.min, stored.max, packing.is_plain()) else {
        return *stored;
    };
    let (min, max) = packing.ends(least.as_f64(), greatest.as_f64());
    // An end that is a missing value was counted as an element.
    let missing = stored.missing.filter(|_| min.is_some() && max.is_some());
    Extremes { min: min.map(Scalar::Float), max: max.map(Scalar::Float), missing }
}

/// The header of the current run of a list, and its content.
struct Headers {
    store: Store,
    there: Arc<HeadersThere>,
    run: Option<Pairs>,
    header: Option<Json>,
    packings: HashMap<(String, DType), Packing>,
}

impl Headers {
    fn extremes(&mut self, entry: &ListEntry) -> Option<Extremes> {
        let (stored, dtype) = (entry.summary?, entry.dtype?);
        if !matches!(dtype.kind(), DTypeKind::Int | DTypeKind::UInt | DTypeKind::Float) {
            return Some(stored);
        }
        let Some(variable) = entry.key.get("variable") else { return Some(stored) };
        let run = run_of(&entry.key);
        if self.run.as_ref() != Some(&run) {
            self.header = self.there.of(&self.store, &run).and_then(|field| header_of(&field));
            (self.run, self.packings) = (Some(run), HashMap::new());
        }
        let Some(header) = &self.header else { return Some(stored) };
        let packing = self
            .packings
            .entry((variable.text().into_owned(), dtype))
            .or_insert_with_key(|(path, _)| packing_in(header, path, dtype));
        Some(unpack(packing, &stored))
    }
}

/// A key without variable and step: the keywords of the run.
fn run_of(key: &FieldKey) -> Pairs {
    let others = key.iter().filter(|(name, _)| !["variable", "step"].contains(&&***name));
    others.map(|(name, value)| (name.clone(), value.text().into_owned())).collect()
}

/// The field of another variable of the same run, without a step.
pub fn beside<S: FieldAccess + ?Sized>(store: &S, key: &FieldKey, variable: &str) -> Option<Field> {
    let run = run_of(key);
    let mut pairs: Vec<(&str, &str)> = run.iter().map(|(name, value)| (&**name, value.as_str())).collect();
    pairs.push(("variable", variable));
    store.get(&pairs, &ReadOptions::default()).ok()
}

/// The header of an ingested netCDF file; `None` for anything else.
pub fn header_of(field: &Field) -> Option<Json> {
    let header: Json = serde_json::from_slice(&field.read().ok()?).ok()?;
    (header["fieldstone"] == "netcdf-header" && header["version"] == 1).then_some(header)
}

/// The header's entry for the variable of a path.
pub fn variable_of<'h>(header: &'h Json, path: &str) -> Option<&'h Json> {
    let (group, own) = path.rsplit_once('/').unwrap_or(("", path));
    let group = header["groups"].as_array()?.iter().find(|g| g["path"] == group)?;
    group["variables"].as_array()?.iter().find(|v| v["name"] == own)
}

/// The packing of a field, from its file; `None` for a field without a file.
pub fn packing_of<S: FieldAccess + ?Sized>(store: &S, key: &FieldKey, dtype: DType) -> Option<Packing> {
    let header = beside(store, key, HEADER).and_then(|field| header_of(&field))?;
    Some(packing_in(&header, &key.get("variable")?.text(), dtype))
}

fn packing_in(header: &Json, path: &str, dtype: DType) -> Packing {
    let attrs = variable_of(header, path).map(attributes).unwrap_or_default();
    Packing::of(dtype, |name| attrs.iter().find(|(own, _)| own == name).map(|(_, value)| value))
}

/// The attributes of a variable, in their order.
pub fn attributes(variable: &Json) -> Vec<(String, Value)> {
    let pair = |pair: &Json| Some((pair[0].as_str()?.to_owned(), attribute_value(&pair[1])?));
    variable["attrs"].as_array().into_iter().flatten().filter_map(pair).collect()
}
