//! Moments as text: RFC 3339, in UTC.

use crate::schema::calendar::{self, Day};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Formats nanoseconds since 1970 as `2026-11-21T07:43:25.5Z`; with a fraction only if it is not zero.
pub fn moment_text(nanoseconds: i64) -> String {
    let (of_day, second) = (nanoseconds.rem_euclid(DAY), nanoseconds.rem_euclid(SECOND));
    let (hour, minute) = (of_day / (3600 * SECOND), of_day / (60 * SECOND) % 60);
    let mut text = match Day::at(nanoseconds) {
        Some(day) => format!("{:04}-{:02}-{:02}", day.year, day.month, day.day),
        None => String::from("1970-01-01"),
    };
    text.push_str(&format!("T{hour:02}:{minute:02}:{:02}", of_day / SECOND % 60));
    if second != 0 {
        text.push_str(format!(".{second:09}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Parses `2026-11-21`, `2026-11-21T07:43`, `…:25`, `…:25.5`, each with `Z`, `+hh:mm` or nothing after the time
/// (which means UTC, too), to nanoseconds since 1970; a blank may replace the `T`. `None` for other texts, and for
/// moments before 1677 or after 2262.
pub fn parse_moment(text: &str) -> Option<i64> {
    let date = text.get(..10).filter(|date| date.as_bytes()[4] == b'-')?;
    let day = i128::from(calendar::date(date)?.number()) * i128::from(DAY);
    let rest = &text[10..];
    let within = match rest.as_bytes().first() {
        None => 0,
        Some(b'T' | b't' | b' ') => time_of_day(&rest[1..])?,
        Some(_) => return None,
    };
    i64::try_from(day + within).ok()
}

/// Nanoseconds since midnight UTC in `07:43:25.5+01:00`.
fn time_of_day(text: &str) -> Option<i128> {
    let zone_at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone_at);
    let offset = match zone.as_bytes() {
        [] | [b'Z' | b'z'] => 0,
        [sign, rest @ ..] => {
            let (hours, minutes) = std::str::from_utf8(rest).ok()?.split_once(':')?;
            let seconds = two(hours, 23)? * 3600 + two(minutes, 59)? * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
    };
    let (hour, rest) = clock.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse::<i128>().ok()?;
    let seconds = two(hour, 23)? * 3600 + two(minute, 59)? * 60 + two(second, 59)? - offset;
    Some(i128::from(seconds) * i128::from(SECOND) + nanoseconds)
}

/// A number of two digits, at most `limit`.
fn two(text: &str, limit: i64) -> Option<i64> {
    if text.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n| *n <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        for (text, nanoseconds, shown) in [
            ("1970-01-01", 0, "1970-01-01T00:00:00Z"),
            ("2000-02-29T00:00:00Z", 951_782_400 * SECOND, "2000-02-29T00:00:00Z"),
            ("2000-02-29 01:00:00.25+01:00", 951_782_400 * SECOND + 250_000_000, "2000-02-29T00:00:00.25Z"),
            ("1969-12-31T23:59:59.999999999", -1, "1969-12-31T23:59:59.999999999Z"),
            ("2000-02-28T19:00-05:00", 951_782_400 * SECOND, "2000-02-29T00:00:00Z"),
        ] {
            assert_eq!(parse_moment(text), Some(nanoseconds), "{text}");
            assert_eq!(moment_text(nanoseconds), shown);
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert_eq!(parse_moment(&moment_text(extreme)), Some(extreme));
        }
        for wrong in [
            "",
            "2000",
            "2000-02-30",
            "2000-02-29T",
            "2000-02-29T1:00",
            "2000-02-29T24:00",
            "2000-02-29T00:00:00.",
            "2000-02-29T00:00+1",
            "3000-01-01",
            "20000229",
            "2000-060",
            "é000-01-01x",
        ] {
            assert_eq!(parse_moment(wrong), None, "{wrong}");
        }
    }
}
