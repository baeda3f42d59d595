//! Traversals as text, for the program and `travel().text`.
//!
//! ```text
//! travel = step { "." step }
//! step   = v [ "(" what { "," what } ")" ] | e [ "(" type { "," type } ")" ]
//!        | va "(" test ")" | ea "(" test ")" | rtn [ "()" ]
//!        | repeat [ "(" [ [ max "=" ] N ] ")" ] | return_fp [ "()" ]
//! what   = TYPE:ID | /PATH | type "=" TYPE | versions | test
//! type   = NAME | versions
//! test   = as in queries of the catalog: size > 9000, name in (a, b), path like "*.nc"
//! versions = "versions" [ "=" FROM ".." TO ]
//! ```
//!
//! Quote texts that hold a comma, a bracket or a blank: `"file:/a,b.nc"`. Moments are dates, seconds since 1970 or
//! stamps.

use fieldstone_catalog::query::text::parse_test;
use fieldstone_core::value::parse_moment;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_graph::travel::{TravelStep, VertexTest};

/// Numbers from here on are stamps; smaller ones are seconds.
const STAMPS: u64 = 1_000_000_000_000_000;

/// A moment as a stamp: ISO 8601, seconds since 1970, or a printed stamp.
pub fn parse_stamp(text: &str) -> Result<u64> {
    let wrong = || {
        Error::invalid(format!("'{text}' is not a valid time"))
            .with_hint("write 2026-11-21T06:00, seconds since 1970, or a stamp")
    };
    if let Ok(number) = text.parse::<u64>() {
        return match number {
            STAMPS.. => Ok(number),
            seconds => seconds.checked_mul(1_000_000_000).ok_or_else(wrong),
        };
    }
    if let Ok(seconds) = text.parse::<f64>() {
        let nanoseconds = (seconds * 1e9).round();
        return if (0.0..9e18).contains(&nanoseconds) { Ok(nanoseconds as u64) } else { Err(wrong()) };
    }
    parse_moment(text).and_then(|moment| u64::try_from(moment).ok()).ok_or_else(wrong)
}

/// Reads a traversal.
///
/// ```
/// use fieldstone::graph::parse_travel;
/// let steps = parse_travel("v(file:/plot.png).e(wasWrittenBy).e(read).repeat().return_fp()")?;
/// assert_eq!(steps.len(), 5);
/// # Ok::<(), fieldstone::Error>(())
/// ```
pub fn parse_travel(text: &str) -> Result<Vec<TravelStep>> {
    let mut steps = Vec::new();
    let mut left = text.trim();
    loop {
        let end = left.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(left.len());
        let (name, behind) = left.split_at(end);
        let (arguments, behind) = arguments(behind.trim_start())?;
        steps.push(step(name, &arguments)?);
        left = behind.trim_start();
        if left.is_empty() {
            return Ok(steps);
        }
        left =
            left.strip_prefix('.').ok_or_else(|| refused(format!("'{left}' follows a step")))?.trim_start();
    }
}

fn refused(message: String) -> Error {
    Error::invalid(message).with_hint(
        "join the steps of a traversal with dots: v(file:/plot.png).e(wasWrittenBy).e(read).repeat()",
    )
}

/// The text between brackets, split at its commas; and the rest.
fn arguments(text: &str) -> Result<(Vec<&str>, &str)> {
    let Some(inner) = text.strip_prefix('(') else { return Ok((Vec::new(), text)) };
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) => quote = quote.filter(|_| c != open),
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                parts.push(inner[from..at].trim());
                parts.retain(|part| !part.is_empty());
                return Ok((parts, &inner[at + 1..]));
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    Err(refused(format!("'{text}' lacks a closing bracket")))
}

fn step(name: &str, arguments: &[&str]) -> Result<TravelStep> {
    let one = || match arguments {
        [test] => parse_test(test),
        _ => Err(refused(format!("{name} takes one test"))),
    };
    let none = |step: TravelStep| match arguments {
        [] => Ok(step),
        _ => Err(refused(format!("{name} takes nothing"))),
    };
    match name {
        "v" => vertices(arguments),
        "e" => edges(arguments),
        "va" => one().map(|(name, test)| TravelStep::VertexProperty(name, test)),
        "ea" => one().map(|(name, test)| TravelStep::EdgeProperty(name, test)),
        "rtn" => none(TravelStep::Return),
        "return_fp" => none(TravelStep::FullPaths),
        "repeat" => match arguments {
            [] => Ok(TravelStep::Repeat(None)),
            [most] => {
                let number = most.strip_prefix("max").and_then(|rest| rest.trim_start().strip_prefix('='));
                let most = number.unwrap_or(most).trim().parse();
                most.map(|most| TravelStep::Repeat(Some(most)))
                    .map_err(|_| refused("repeat takes a number".to_owned()))
            }
            _ => Err(refused("repeat takes one number".to_owned())),
        },
        _ => {
            Err(refused(format!("'{name}' is not a step; steps are v, e, va, ea, rtn, repeat and return_fp")))
        }
    }
}

fn vertices(arguments: &[&str]) -> Result<TravelStep> {
    let mut asked = VertexTest::default();
    for argument in arguments {
        if let Some(versions) = versions(argument)? {
            asked.versions = Some(versions);
        } else if let Some(name) = vertex(&unquoted(argument)) {
            asked.named.get_or_insert_default().push(name);
        } else if let Some(kind) =
            argument.strip_prefix("type").and_then(|rest| rest.trim_start().strip_prefix('='))
        {
            asked.kind = Some(unquoted(kind.trim()));
        } else {
            asked.tests.push(parse_test(argument)?);
        }
    }
    Ok(TravelStep::Vertices(asked))
}

fn edges(arguments: &[&str]) -> Result<TravelStep> {
    let (mut kinds, mut between) = (Vec::new(), None);
    for argument in arguments {
        match versions(argument)? {
            Some(versions) => between = Some(versions),
            None => kinds.push(unquoted(argument)),
        }
    }
    Ok(TravelStep::Edges { kinds, versions: between })
}

/// TYPE:ID, or a full path.
fn vertex(text: &str) -> Option<VertexName> {
    if text.starts_with('/') {
        return Some(VertexName::new("file", text));
    }
    let (kind, id) = text.split_once(':')?;
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let named = !kind.is_empty() && !id.is_empty() && kind.chars().all(word);
    named.then(|| VertexName::new(kind, id))
}

fn versions(text: &str) -> Result<Option<(u64, u64)>> {
    let Some(rest) = text.strip_prefix("versions") else { return Ok(None) };
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Some((0, u64::MAX)));
    }
    let Some(rest) = rest.strip_prefix('=') else { return Ok(None) };
    let wrong =
        || refused(format!("'{text}' is not a range of versions; write versions=2026-01-01..2026-02-01"));
    let (from, to) = rest.trim().split_once("..").ok_or_else(wrong)?;
    let moment = |text: &str, open: u64| if text.is_empty() { Ok(open) } else { parse_stamp(text) };
    Ok(Some((moment(from.trim(), 0)?, moment(to.trim(), u64::MAX)?)))
}

/// Removes the quotes; inside them `\\` makes the next character literal.
fn unquoted(text: &str) -> String {
    let mut chars = text.chars();
    let quote = chars.next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote
        .and_then(|quote| text.len().checked_sub(2).map(|_| quote))
        .and_then(|quote| text[1..].strip_suffix(quote));
    let Some(inner) = inner else { return text.to_owned() };
    let (mut plain, mut escaped) = (String::with_capacity(inner.len()), false);
    for c in inner.chars() {
        escaped = !escaped && c == '\\';
        if !escaped {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::value::{Test, Value};

    #[test]
    fn text_says_what_calls_say() {
        let text =
            "v(file:/plot.png).e('wasWrittenBy').v.e(read, write).ea(bytes > 10).repeat(max = 3).rtn()";
        let named =
            VertexTest { named: Some(vec![VertexName::new("file", "/plot.png")]), ..VertexTest::default() };
        let edges = |kinds: &[&str]| TravelStep::Edges {
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            versions: None,
        };
        let expected = vec![
            TravelStep::Vertices(named),
            edges(&["wasWrittenBy"]),
            TravelStep::Vertices(VertexTest::default()),
            edges(&["read", "write"]),
            TravelStep::EdgeProperty("bytes".into(), Test::Above(Value::Int(10))),
            TravelStep::Repeat(Some(3)),
            TravelStep::Return,
        ];
        assert_eq!(parse_travel(text).unwrap(), expected);
    }

    #[test]
    fn a_start_is_named_or_found() {
        let TravelStep::Vertices(test) = &parse_travel(
            r#"v("file:/a,b (1).nc", /c.nc, type=file, size in (1, 2), versions=..2026-01-01)"#,
        )
        .unwrap()[0] else {
            panic!("a start")
        };
        let names = [VertexName::new("file", "/a,b (1).nc"), VertexName::new("file", "/c.nc")];
        assert_eq!(test.named.as_deref(), Some(&names[..]));
        assert_eq!(test.kind.as_deref(), Some("file"));
        let one_of = Test::IsIn(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(test.tests, [("size".to_owned(), one_of)]);
        assert_eq!(test.versions, Some((0, parse_stamp("2026-01-01").unwrap())));
    }

    #[test]
    fn what_is_no_traversal_is_refused() {
        for text in [
            "",
            "v(",
            "x()",
            "v(a b c)",
            "v(file:/a)e(read)",
            "v().va()",
            "v().repeat(x)",
            "v().rtn(1)",
            "v().e(versions=1)",
        ] {
            assert!(parse_travel(text).is_err(), "{text}");
        }
    }
}
