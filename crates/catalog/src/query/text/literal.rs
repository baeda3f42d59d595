//! Values in the text of a query.

use fieldstone_core::value::{Glob, Value, parse_moment};
use fieldstone_core::{Code, Result};

use super::scan::Scan;

/// Reads a value; the flag says whether it is a bare word with the signs of a pattern.
pub(super) fn value_or_pattern(scan: &mut Scan<'_>) -> Result<(Value, bool)> {
    if let Some(text) = scan.quoted()? {
        return Ok((Value::Text(text), false));
    }
    if matches!(scan.peek(), Some('[' | '{')) {
        return Ok((scan.deeper(nested)?, false));
    }
    let place = scan.at;
    let word = scan.bare();
    if word.is_empty() {
        return Err(scan
            .expected("a value")
            .with_hint("a value is a number, true, false, a date, a range 5..9, or a text; quote a text that holds spaces or one of ( ) , = < >"));
    }
    let value = bare(word, true).map_err(|error| {
        let hint = error.hint().unwrap_or("quote it if it is a text").to_owned();
        scan.error_at(place, error.message()).with_hint(hint)
    })?;
    let pattern = matches!(value, Value::Text(_)) && Glob::is_pattern(word);
    Ok((value, pattern))
}

/// Reads a value.
pub(super) fn value(scan: &mut Scan<'_>) -> Result<Value> {
    Ok(value_or_pattern(scan)?.0)
}

/// The text of a bare word that is a number in comparisons and a text in stored values, such as `0042` and
/// `1234e56`.
pub(super) fn as_typed(scan: &Scan<'_>, from: usize, value: &Value) -> Option<String> {
    let word = scan.text_from(from).trim();
    let number = value.is_number() || matches!(value, Value::IntRange(..) | Value::FloatRange(..));
    (number && matches!(bare(word, false), Ok(Value::Text(_)))).then(|| word.to_owned())
}

/// The whole text as one value; the text itself if it is not a value or would lose something. Quoted text is
/// text.
pub(super) fn whole(text: &str) -> Result<Value> {
    let trimmed = text.trim();
    if trimmed.starts_with('\'') {
        let mut scan = Scan::new(trimmed);
        // A text that begins with a quote but is not a quoted text stands for itself, as 'tis.
        return Ok(match (scan.quoted(), scan.peek()) {
            (Ok(Some(text)), None) => Value::Text(text),
            _ => Value::Text(text.to_owned()),
        });
    }
    if trimmed.starts_with(['"', '[', '{']) {
        let mut scan = Scan::new(trimmed);
        let value = value(&mut scan)?;
        return match scan.peek() {
            None => Ok(value),
            Some(_) => Err(scan.expected("the end of the value")),
        };
    }
    // Of values with spaces, only a moment may stand without quotes.
    if trimmed.is_empty() || trimmed.contains(char::is_whitespace) && parse_moment(trimmed).is_none() {
        return Ok(Value::Text(text.to_owned()));
    }
    match bare(trimmed, false)? {
        Value::Text(_) => Ok(Value::Text(text.to_owned())),
        value => Ok(value),
    }
}

/// The value of a bare word, for a comparison or for storing.
fn bare(word: &str, compared: bool) -> Result<Value> {
    let number: fn(&str) -> Option<Value> = if compared { number } else { kept_number };
    match word {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "null" => return Ok(Value::Null),
        _ => {}
    }
    if let Some(number) = number(word) {
        return Ok(number);
    }
    if let Some((first, last)) = word.split_once("..")
        && let (Some(first), Some(last)) = (number(first), number(last))
    {
        return range(first, last).ok_or_else(|| {
            Code::QuerySyntax
                .error(format!("`{word}` is not a valid range"))
                .with_hint("a range is LOW..HIGH with LOW at most HIGH, both included")
        });
    }
    if let Some(digits) = word.strip_prefix("0x") {
        let pairs = digits.as_bytes().chunks(2).map(|pair| {
            let text = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(text, 16).ok().filter(|_| text.bytes().all(|b| b.is_ascii_hexdigit()))
        });
        return pairs.collect::<Option<Vec<u8>>>().map(Value::Bytes).ok_or_else(|| {
            Code::QuerySyntax
                .error(format!("`{word}` is not valid as bytes"))
                .with_hint("write 0x and two hexadecimal digits for each byte; numbers are decimal")
        });
    }
    Ok(parse_moment(word).map_or_else(|| Value::Text(word.to_owned()), Value::DateTime))
}

/// The number that a word stands for, if the number keeps everything that the word says. Words with leading
/// zeros, a plus sign, digits beyond 64 bits, a float beyond all floats, or digits around an `e` as in a hash
/// stay names.
fn kept_number(word: &str) -> Option<Value> {
    /// Shorter than any hash.
    const SHORT: usize = 6;
    let value = number(word)?;
    let digits = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    // A number such as 0042 would lose its zeros.
    let zeros = mantissa.len() > 1 && mantissa.starts_with('0') && !mantissa.starts_with("0.");
    let like_hash = exponent.is_some_and(|exponent| {
        word.len() > SHORT && !mantissa.contains('.') && !exponent.starts_with(['-', '+'])
    });
    let kept = match value {
        Value::Int(_) | Value::UInt(_) => true,
        Value::Float(number) if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            // A number that is too small for a float would become 0.
            let nothing = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            // A whole number beyond 64 bits would lose digits.
            let whole = exponent.is_none() && !mantissa.contains('.');
            number.is_finite() && (number != 0.0 || nothing) && !whole
        }
        _ => true,
    };
    (kept && !zeros && !like_hash && !word.starts_with('+')).then_some(value)
}

/// The number in a text, if a declared type requires one; `None` if no number of ours can hold it.
pub(super) fn declared_number(text: &str) -> Option<Value> {
    let word = text.trim();
    let infinite = |value: &Value| matches!(value, Value::Float(number) if number.is_infinite());
    number(word).filter(|value| !infinite(value) || word.to_ascii_lowercase().contains("inf"))
}

/// A number: int, uint for larger ones, float with a point or an exponent, `nan`, `inf`.
pub(super) fn number(word: &str) -> Option<Value> {
    if let Ok(n) = word.parse::<i64>() {
        return Some(Value::Int(n));
    }
    if let Ok(n) = word.parse::<u64>() {
        return Some(Value::UInt(n));
    }
    let special = word.trim_start_matches(['-', '+']);
    let digits = special.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let named = ["nan", "NaN", "inf", "Inf", "infinity", "Infinity"].contains(&special);
    if digits || named { word.parse::<f64>().ok().map(Value::Float) } else { None }
}

fn range(first: Value, last: Value) -> Option<Value> {
    let float = |value: &Value| match value {
        Value::Float(n) => Some(*n),
        other => match other.fits(fieldstone_core::value::ValueType::Float) {
            Some(Value::Float(n)) => Some(n),
            _ => None,
        },
    };
    let value = match (&first, &last) {
        (Value::Int(a), Value::Int(b)) => Value::IntRange(*a, *b),
        (a, b) => Value::FloatRange(float(a)?, float(b)?),
    };
    value.check().ok().map(|()| value)
}

/// A list or a map.
fn nested(scan: &mut Scan<'_>) -> Result<Value> {
    let place = scan.at;
    let value = if scan.takes('[') {
        Value::List(items(scan, ']', element)?)
    } else {
        scan.take('{')?;
        Value::Map(items(scan, '}', |scan| {
            let key = match scan.quoted()? {
                Some(key) => key,
                None => match scan.ident() {
                    "" => return Err(scan.expected("a key in quotes")),
                    key => key.to_owned(),
                },
            };
            scan.take(':')?;
            Ok((key, element(scan)?))
        })?)
    };
    value.check().map_err(|error| scan.error_at(place, error.message()))?;
    Ok(value)
}

fn items<T>(
    scan: &mut Scan<'_>,
    end: char,
    mut item: impl FnMut(&mut Scan<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    if scan.takes(end) {
        return Ok(items);
    }
    loop {
        items.push(item(scan)?);
        if scan.takes(end) {
            return Ok(items);
        }
        if !scan.takes(',') {
            return Err(scan.expected(&format!("`,` or `{end}`")));
        }
    }
}

/// An element: a bare word ends at a bracket too.
fn element(scan: &mut Scan<'_>) -> Result<Value> {
    if let Some(text) = scan.quoted()? {
        return Ok(Value::Text(text));
    }
    if matches!(scan.peek(), Some('[' | '{')) {
        return scan.deeper(nested);
    }
    let place = scan.at;
    let word = scan.bare();
    let word = &word[..word.find([']', '}']).unwrap_or(word.len())];
    scan.at = place + word.len();
    if word.is_empty() {
        return Err(scan.expected("a value"));
    }
    bare(word, false).map_err(|error| scan.error_at(place, error.message()))
}
