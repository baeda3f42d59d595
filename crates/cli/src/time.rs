//! Times for people and for JSON: UTC, as ISO 8601 has it.

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// `2026-11-21T01:55:56.123456789Z`; `seconds` leaves out the fraction.
pub fn utc(nanoseconds: i64, seconds: bool) -> String {
    let (whole, fraction) = (nanoseconds.div_euclid(SECOND), nanoseconds.rem_euclid(SECOND));
    let (days, second) = (whole.div_euclid(DAY), whole.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    match seconds {
        true => format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
        false => format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z"),
    }
}

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

/// The date of a day counted from 1970-01-01, in the Gregorian calendar: counts in eras of 400 years
/// whose years begin in March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let day_of_era = from_march.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds * SECOND, true), text);
        }
        assert_eq!(utc(-1, false), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(utc(i64::MIN, true), "1677-09-21T00:12:43Z");
        assert_eq!(utc(i64::MAX, true), "2262-04-11T23:47:16Z");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(90 * SECOND), "90 s");
        assert_eq!(span(-3_600 * SECOND), "-60 min");
        assert_eq!(span(49 * 3_600 * SECOND), "2 days");
    }
}
