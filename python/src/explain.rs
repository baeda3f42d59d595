//! Explains to Python why a request finds nothing: the name or value that no field has, and the nearest existing
//! names.

use fieldstone::explain::{Look, why};
use fieldstone::{Code, Error, Request};

fn call(look: &Look) -> String {
    let (call, request) = match look {
        Look::Status => return "see store.status()".to_owned(),
        Look::Axes(request) => ("axes", request),
        Look::List(request) => ("list", request),
    };
    let request = if request.is_empty() { String::new() } else { format!("'{request}'") };
    format!("see store.{call}({request})")
}

/// Adds a hint to the error that names existing alternatives to the terms of `request`. Only failed calls pay for the
/// lookup.
pub fn explained(store: &fieldstone::Store, request: &Request, error: Error) -> Error {
    if error.code() != Code::FieldNotFound {
        return error;
    }
    match why(store, request) {
        Some(why) => error.with_hint(why.hint(call)),
        None => error,
    }
}

/// The reason why a request finds nothing, as text for an empty listing.
pub fn reason(store: &fieldstone::Store, request: &Request) -> Option<String> {
    why(store, request).map(|why| why.reason)
}
