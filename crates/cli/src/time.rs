//! Spans of time for people.

use std::time::{Duration, SystemTime};

use fieldstone::catalog::value::parse_moment;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A span such as `3 h`, for people.
pub fn span(nanoseconds: i64) -> String {
    let seconds = nanoseconds / SECOND;
    let (n, unit) = match seconds.abs() {
        0..120 => (seconds, "s"),
        120..7_200 => (seconds / 60, "min"),
        7_200..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / DAY, "days"),
    };
    format!("{n} {unit}")
}

/// A span as people write it: `0`, `90s`, `30m`, `1h`, `2d`.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let seconds = match &text[digits..] {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    let number = text[..digits].parse::<u64>().ok();
    let span = number.zip(seconds).and_then(|(number, unit)| number.checked_mul(unit));
    span.map(Duration::from_secs).ok_or_else(|| "write a time, such as 90s, 30m, 1h or 2d".to_owned())
}

/// The moment before which content is older than an age such as `5d`, or than a date; nanoseconds since 1970.
pub fn parse_before(text: &str) -> Result<i64, String> {
    let before = |age: Duration| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        i64::try_from(now).ok()?.checked_sub(i64::try_from(age.as_nanos()).ok()?)
    };
    let moment = match parse_span(text) {
        Ok(age) => before(age),
        Err(_) => parse_moment(text),
    };
    moment.ok_or_else(|| "write an age, such as 12h or 5d, or a date, such as 2026-11-21".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        for (text, seconds) in
            [("0", 0), ("90", 90), ("90s", 90), ("30m", 1_800), ("1h", 3_600), ("2d", 172_800)]
        {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "h", "-1h", "1.5h", "1w", "1h30m", "9999999999999999999d", "ü"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_is_a_span_or_a_date() {
        assert_eq!(parse_before("1970-01-01T00:00:02"), Ok(2 * SECOND));
        let (day, now) = (parse_before("1d").unwrap(), parse_before("0").unwrap());
        assert!((86_400 * SECOND - (now - day)).abs() < SECOND, "{day} {now}");
        for wrong in ["", "d", "yesterday", "-1d", "9223372036d"] {
            assert!(parse_before(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(90 * SECOND), "90 s");
        assert_eq!(span(-3_600 * SECOND), "-60 min");
        assert_eq!(span(49 * 3_600 * SECOND), "2 days");
    }
}
