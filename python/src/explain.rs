//! What Python says of a request that finds nothing: the name or value that no field has, and the nearest that there are.

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

/// The error, with a hint that names what there is in place of what `request` asks for. Only what failed pays for it.
pub fn explained(store: &fieldstone::Store, request: &Request, error: Error) -> Error {
    if error.code() != Code::FieldNotFound {
        return error;
    }
    match why(store, request) {
        Some(why) => error.with_hint(why.hint(call)),
        None => error,
    }
}

/// Why a request finds nothing, in words for a listing that is empty.
pub fn reason(store: &fieldstone::Store, request: &Request) -> Option<String> {
    why(store, request).map(|why| why.reason)
}
