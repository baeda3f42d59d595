//! What `copy` and `move` take, and how they say what they did.

use fieldstone::Error;
use fieldstone::catalog::query::text::parse;
use fieldstone::transfer::{LeftBehind, TransferReport, What};
use serde_json::{Value, json};

use crate::arguments::Selecting;
use crate::output::{Done, Out, count, size};

/// A request, or a query that finds attributes.
pub fn what(selecting: &Selecting, find: Option<&str>) -> Done<What> {
    let request = selecting.parse()?;
    match find {
        None => Ok(What::Requests(vec![request])),
        Some(query) if request.is_empty() => Ok(What::Query(parse(query)?)),
        Some(_) => Err(Error::invalid("a request and --find").with_hint("give one of them").into()),
    }
}

/// What arrived.
pub fn done(report: &TransferReport) -> String {
    let mut text = format!("{}, {}", count(report.fields, "field"), size(report.bytes));
    if report.unchanged > 0 {
        text.push_str(&format!(", {} there already", report.unchanged));
    }
    if report.attributes > 0 {
        text.push_str(&format!(", {}", count(report.attributes, "attribute")));
    }
    text
}

/// What stayed behind, one line per kind and on stderr.
pub fn note_left(left: &[LeftBehind], out: &Out) {
    for LeftBehind { kind, count: n, names, why } in left {
        // An attribute is named by its tag, which many may share.
        let more = if *kind != "attribute" && *n > names.len() as u64 { ", …" } else { "" };
        out.note(format_args!("{} stayed behind ({}{more}): {why}", count(*n, kind), names.join(", ")));
    }
}

/// The same as JSON.
pub fn left_rows(left: &[LeftBehind]) -> Vec<Value> {
    let row = |left: &LeftBehind| json!({"kind": left.kind, "count": left.count, "names": left.names, "why": left.why});
    left.iter().map(row).collect()
}
