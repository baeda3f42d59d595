//! The choice: the requests for the fields, conditions for each of them, and the catalog's share.

use std::cell::RefCell;
use std::collections::HashMap;

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::encode_key;
use fieldstone_store::Field;
use fieldstone_store::api::{FieldAccess, RetrieveOptions};

use super::chosen::Chosen;
use super::fields::{borrowed, digest, texts};
use super::{TransferOptions, What};
use crate::DatasetAccess as _;
use crate::Session;
use crate::Store;

/// The share of the catalog that goes, and the requests for the fields.
pub struct Choice {
    pub chosen: Chosen,
    pub requests: Vec<Request>,
    /// The hits under which a field must be, if only the fields are chosen by hits.
    pub under: Option<Chosen>,
}

/// Chooses; `by_field`: only fields, as those of an age, and what stands on them.
pub fn choose(from: &Store, what: &What, has_catalog: bool, by_field: bool) -> Result<Choice> {
    let of = |chosen, requests| Ok(Choice { chosen, requests, under: None });
    match what {
        What::Requests(requests) if requests.is_empty() => {
            Err(Code::RequestTooBroad.error("a transfer needs a request"))
        }
        // Declarations without a field have no age.
        What::Requests(requests) if has_catalog && !by_field => {
            of(Chosen::of_requests(from, requests)?, requests.clone())
        }
        What::Requests(requests) => of(Chosen::default(), requests.clone()),
        What::Under(query) => {
            let under = Chosen::of_hits(from, &What::Query(query.clone()))?;
            let requests = under.fields_under(from)?;
            Ok(Choice { chosen: Chosen::default(), requests, under: Some(under) })
        }
        _ if by_field => Err(Error::invalid("hits are not chosen by age")
            .with_hint("give a request with the age, or hits without one")),
        hits => {
            let chosen = Chosen::of_hits(from, hits)?;
            let requests = chosen.fields_under(from)?;
            of(chosen, requests)
        }
    }
}

/// Whether a field belongs to a transfer that has chosen these hits, if any; an owner that nobody knows is another one. A field
/// that goes away from the store belongs to one by the key that it was archived by alone.
pub fn wanted<'a>(
    from: &'a Store,
    hits: Option<&'a Chosen>,
    options: &'a TransferOptions<'a>,
    goes: bool,
) -> impl Fn(&FieldKey, &Field) -> bool + 'a {
    let has_overlays = goes && from.overlays().map_or(true, |overlays| !overlays.is_empty());
    let is_there = move |key: &FieldKey| {
        let own = from.backend().entries(&borrowed(&texts(key)), &Session::default());
        own.map_or(true, |entries| entries.iter().any(|entry| entry.live))
    };
    let (schema, me) = (from.schema(), from.catalog().user(&Session::default()));
    let owners: RefCell<HashMap<Vec<u8>, bool>> = RefCell::default();
    move |key, field| {
        let is_own = || {
            let key = encode_key(key);
            let level = &key.bytes[..key.ends[0]];
            let mut owners = owners.borrow_mut();
            let known = owners.get(level).copied();
            known.unwrap_or_else(|| {
                let own = matches!(from.owner(level), Ok(Some(owner)) if owner == me);
                owners.insert(level.to_vec(), own);
                own
            })
        };
        hits.is_none_or(|hits| hits.is_under(&schema, key))
            && options.before.is_none_or(|before| field.time() < before)
            && (!options.own || is_own())
            && (!has_overlays || is_there(key))
    }
}

/// Whether a key's field belongs to a selection.
type IsWanted = Box<dyn Fn(&FieldKey) -> bool>;

/// Requests for the fields of a selection, and possibly others; and which of these belong to it.
pub fn fields_under(store: &Store, what: &What) -> Result<(Vec<Request>, IsWanted)> {
    let Choice { chosen, requests, under } = choose(store, what, false, false)?;
    let schema = store.schema();
    let hits = under.or(chosen.hits().is_some().then_some(chosen));
    Ok((requests, Box::new(move |key| hits.as_ref().is_none_or(|hits| hits.is_under(&schema, key)))))
}

/// The number of fields that a transfer would take, and their bytes.
pub fn found(from: &Store, what: &What, options: &TransferOptions<'_>) -> Result<(u64, u64)> {
    let Choice { chosen, requests, under } = choose(from, what, false, options.before.is_some())?;
    let is_wanted =
        wanted(from, under.as_ref().or(chosen.hits().is_some().then_some(&chosen)), options, true);
    let lenient = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    let (mut known, mut count, mut nbytes) = (std::collections::HashSet::new(), 0, 0u64);
    for request in &requests {
        for field in from.backend().retrieve(request, &lenient)?.iter() {
            let field = field?;
            let key = field.key()?;
            if is_wanted(&key, &field) && known.insert(digest(&key)) {
                count += 1;
                // One whose pieces disagree has no size: it stays.
                nbytes = nbytes.saturating_add(field.nbytes().unwrap_or(0));
            }
        }
    }
    Ok((count, nbytes))
}
