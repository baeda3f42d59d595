//! Boxes and dimensions in the text of a query.

use fieldstone_core::Result;

use super::super::{Dim, Range, Relation, Term};
use super::literal;
use super::scan::Scan;
use fieldstone_core::value::Value;

/// Reads the part after the word `box`.
pub(super) fn region(scan: &mut Scan<'_>, relation: Relation) -> Result<Term> {
    let mut parts: Vec<(Dim, Range)> = Vec::new();
    let bracket = scan.peek() == Some('(');
    if !bracket && scan.peek() != Some('=') {
        return Err(scan
            .expected("`=` or `(` after `box`")
            .with_hint("write box=z:50:100,y:0:20 in elements, or box(z=0.5..0.7) in coordinates"));
    }
    scan.at += 1;
    let mut positions = 0;
    loop {
        let place = scan.at;
        let part = part(scan, &mut positions, bracket)?;
        if parts.iter().any(|(dim, _)| *dim == part.0) {
            return Err(scan.error_at(place, "the dimension is given twice"));
        }
        parts.push(part);
        if scan.takes(',') {
            continue;
        }
        if bracket {
            scan.take(')')?;
        }
        return Ok(Term::Region(parts, relation));
    }
}

/// `FROM:TO`, `DIM:FROM:TO` or `DIM=LOW..HIGH`.
fn part(scan: &mut Scan<'_>, positions: &mut usize, physical: bool) -> Result<(Dim, Range)> {
    let quoted = scan.quoted()?;
    let place = scan.at;
    let bare = scan.bare();
    let name_len = bare.find(':').unwrap_or(bare.len());
    let (name, rest) = bare.split_at(name_len);
    let dim = match &quoted {
        Some(name) => Some(Dim::Name(name.clone())),
        None => dimension(name),
    };
    if bare.len() == name_len && scan.rest().starts_with('=') {
        let Some(dim) = dim else { return Err(scan.expected("a dimension")) };
        if !physical {
            return Err(scan
                .error_at(scan.at, "coordinates must be in parentheses")
                .with_hint("write box(z=0.5..0.7)"));
        }
        scan.at += 1;
        // A range from a greater to a lesser longitude goes around the globe.
        let around = matches!(&dim, Dim::Name(name) if name.to_ascii_lowercase().starts_with("lon"));
        return coordinates(scan, around).map(|range| (dim, range));
    }
    let numbers: Vec<&str> = rest.split(':').skip(1).collect();
    let (dim, from, to) = match (&quoted, &numbers[..]) {
        (None, [to]) if name.is_empty() || name.parse::<i64>().is_ok() => {
            *positions += 1;
            (Dim::Index(*positions - 1), name, *to)
        }
        (_, [from, to]) => match dim {
            Some(dim) if quoted.is_none() || name.is_empty() => (dim, *from, *to),
            _ => return Err(scan.error_at(place, "expected the name of a dimension, or its number from 0")),
        },
        _ => {
            return Err(scan.error_at(place, "expected DIMENSION:FROM:TO or FROM:TO").with_hint(
                "write box=z:50:100 for elements 50 to 99, or box=z:50: for all elements from 50 on",
            ));
        }
    };
    let end = |word: &str| match word {
        "" => Ok(None),
        word => word.parse::<i64>().map(Some).map_err(|_| {
            scan.error_at(place, &format!("`{word}` is not an index of an element"))
                .with_hint("indices are integers; write coordinates as box(z=0.5..0.7)")
        }),
    };
    let (from, to) = (end(from)?, end(to)?);
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        return Err(scan
            .error_at(place, &format!("the box from {from} to {to} has no elements"))
            .with_hint("a box excludes its end: 50:51 is element 50 alone"));
    }
    Ok((dim, Range::Index(from, to)))
}

/// `LOW..HIGH`, both ends included.
fn coordinates(scan: &mut Scan<'_>, around: bool) -> Result<Range> {
    scan.peek();
    let place = scan.at;
    let word = scan.bare();
    let float = |word: &str| match literal::number(word)? {
        Value::Int(n) => Some(n as f64),
        Value::UInt(n) => Some(n as f64),
        Value::Float(n) => Some(n),
        _ => None,
    };
    let ends = word.split_once("..").and_then(|(low, high)| Some((float(low)?, float(high)?)));
    match ends {
        Some((low, high)) if low <= high || around => Ok(Range::Physical(low, high)),
        _ => Err(scan
            .error_at(place, "expected LOW..HIGH, both ends included")
            .with_hint("write box(z=0.5..0.7); inf means no limit")),
    }
}

/// A dimension by number, or by name; `None` if the word is empty.
pub(super) fn dimension(word: &str) -> Option<Dim> {
    if word.is_empty() {
        return None;
    }
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return word.parse().ok().map(Dim::Index);
    }
    Some(Dim::Name(word.to_owned()))
}
