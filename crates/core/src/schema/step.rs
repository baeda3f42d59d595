//! Steps: hours ("6"), shorter steps ("30m", "15s"), before the start ("-6"), and spans between two steps ("0-24",
//! "30m-1", "-12--6").

/// Seconds of one step: a bare number counts hours; the units are d, h, m, s, also combined ("1h30m").
pub(crate) fn seconds(text: &str) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse::<i64>().ok()?.checked_mul(3_600);
    }
    let mut seconds: i64 = 0;
    let mut number: Option<i64> = None;
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            continue;
        }
        let unit = match c {
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (number.is_none() && !text.is_empty()).then_some(seconds)
}

/// Whole minutes of an interval, as [`seconds`] parses it.
pub(crate) fn minutes(text: &str) -> Option<i64> {
    seconds(text).filter(|seconds| seconds % 60 == 0).map(|seconds| seconds / 60)
}

/// First and last second of a step or span; equal ends mean one step.
pub(crate) fn span(text: &str) -> Option<(i64, i64)> {
    // A minus at the beginning is a sign.
    let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
    match dash {
        None => signed(text).map(|s| (s, s)),
        Some(at) => {
            let (from, to) = (signed(&text[..at])?, signed(&text[at + 1..])?);
            (from <= to).then_some((from, to))
        }
    }
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(size) => seconds(size)?.checked_neg(),
        None => seconds(text),
    }
}

/// The canonical text, as in FDB: hours if they are whole, else the hours, minutes and seconds that are not 0 (`30m`,
/// `1h30m`).
pub(crate) fn text(start: i64, end: i64) -> String {
    if start == end { one(start) } else { format!("{}-{}", one(start), one(end)) }
}

fn one(seconds: i64) -> String {
    let (sign, size) = (if seconds < 0 { "-" } else { "" }, seconds.unsigned_abs());
    if size.is_multiple_of(3_600) {
        return format!("{sign}{}", size / 3_600);
    }
    let parts = [(size / 3_600, 'h'), (size / 60 % 60, 'm'), (size % 60, 's')];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}"));
    format!("{sign}{}", parts.collect::<String>())
}
