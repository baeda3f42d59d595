//! Steps: hours ("6"), shorter ones ("30m"), before the start ("-6"), and spans of two ("0-24", "30m-1", "-12--6").

/// Minutes of one step: a bare number is hours; units are d, h, m, s, also joined ("1h30m").
/// Seconds must add up to whole minutes.
pub(crate) fn minutes(text: &str) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse::<i64>().ok()?.checked_mul(60);
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
    (number.is_none() && !text.is_empty() && seconds % 60 == 0).then_some(seconds / 60)
}

/// First and last minute of a step or span; equal ends are one step.
pub(crate) fn span(text: &str) -> Option<(i64, i64)> {
    // A minus at the begin is a sign.
    let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
    match dash {
        None => signed(text).map(|m| (m, m)),
        Some(at) => {
            let (from, to) = (signed(&text[..at])?, signed(&text[at + 1..])?);
            (from <= to).then_some((from, to))
        }
    }
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(size) => minutes(size)?.checked_neg(),
        None => minutes(text),
    }
}

/// Canonical text, FDB's: hours where they are whole, else hours and minutes (`30m`, `1h30m`).
pub(crate) fn text(start: i64, end: i64) -> String {
    let one = |m: i64| match (m / 60, m % 60) {
        (hours, 0) => hours.to_string(),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{}m", minutes.abs()),
    };
    if start == end { one(start) } else { format!("{}-{}", one(start), one(end)) }
}
