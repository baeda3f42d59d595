//! Ids, values and labels for the formats of an export.

use std::fmt::Write as _;

use fieldstone_core::value::moment_text;
use fieldstone_graph::trace::Lineage;

use crate::interop::lineage::VertexName;

/// The producer of an export.
pub const PRODUCER: &str = "https://github.com/fieldstone/fieldstone";

/// Escapes a text: everything but ASCII letters, digits and the characters in `keeps` becomes `%` and two hex digits
/// per byte.
pub fn percent(text: &str, keeps: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The local part of a qualified name: `file/data/a.nc`.
pub fn local(vertex: &VertexName) -> String {
    let mut name = percent(&vertex.kind, "_-");
    if !vertex.id.starts_with('/') {
        name.push('/');
    }
    name.push_str(&percent(&vertex.id, "_-./"));
    // A local name must not end in a full stop.
    if name.ends_with('.') {
        name.pop();
        name.push_str("%2E");
    }
    name
}

/// A stamp as the text of a time.
pub fn stamp_text(stamp: u64) -> String {
    moment_text(i64::try_from(stamp).unwrap_or(i64::MAX))
}

/// The last part of a path; other ids unchanged.
pub fn base(vertex: &VertexName) -> &str {
    match &*vertex.kind {
        "file" | "directory" => {
            let name = vertex.id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if name.is_empty() { &vertex.id } else { name }
        }
        _ => &vertex.id,
    }
}

/// The folder of a path.
pub fn folder(vertex: &VertexName) -> Option<&str> {
    let path = matches!(&*vertex.kind, "file" | "directory").then_some(&*vertex.id)?;
    let (folder, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then_some(if folder.is_empty() { "/" } else { folder })
}

/// The subjects of a lineage: the first one, and the number of further ones.
pub fn roots_text(lineage: &Lineage) -> String {
    match lineage.roots.len() {
        0 | 1 => lineage.root.to_string(),
        n => format!("{} and {} more", lineage.root, n - 1),
    }
}

/// A text of at most `most` characters, cut in its middle, without control characters.
pub fn short(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() || is_bidi(c) { '\u{fffd}' } else { c };
    let count = text.chars().take(most + 1).count();
    if count <= most {
        return text.chars().map(clean).collect();
    }
    let (front, back) = (most.div_ceil(2), most / 2 - 1);
    let mut end: Vec<char> = text.chars().rev().take(back).map(clean).collect();
    end.reverse();
    text.chars().take(front).map(clean).chain(std::iter::once('…')).chain(end).collect()
}

/// Whether a character changes the direction of the text after it.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number of bytes for people.
pub fn bytes_text(bytes: i64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if size.abs() < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} PiB")
}

/// A time span for people.
pub fn span_text(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    match seconds {
        s if s < 0.001 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {:.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
        s if s < 86_400.0 => format!("{} h {:.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
        s => format!("{} d {:.0} h", (s / 86_400.0).floor(), (s % 86_400.0 / 3600.0).floor()),
    }
}
