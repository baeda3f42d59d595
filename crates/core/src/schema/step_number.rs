//! Numbers by which the catalog identifies steps. The number of a whole hour is that hour; any other step or span
//! (`15m`, `0-24`) has one of the numbers below [`WHOLE`], which determines its text.
//!
//! ```text
//! number = -2^63 + 1 + (end + 2^33) * 2^28 + length      seconds; -2^33 <= end < 2^33, 0 <= length < 2^28
//! ```
//!
//! The numbers are in the order of the steps' ends, 272 years on both sides of the start; a span lasts 8 years at
//! most.
//!
//! ```
//! use fieldstone_core::schema::step_number;
//! let quarter = step_number::of("15m").unwrap_or_default();
//! assert!(quarter < step_number::WHOLE);
//! assert_eq!(step_number::text(quarter), "15m");
//! assert_eq!((step_number::of("6"), step_number::whole(quarter)), (Some(6), None));
//! ```

use super::step;

/// The smallest number that is a number of hours.
pub const WHOLE: i64 = -(1 << 62) + 1;

const FIRST: i64 = i64::MIN + 1;
const REACH: i64 = 1 << 33;
const LENGTHS: i64 = 1 << 28;

/// The number of a step with this canonical text; `None` if it has none.
pub fn of(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        // Another text with the same number would be the name of another field.
        return (number >= WHOLE && number.to_string() == text).then_some(number);
    }
    let (start, end) = step::span(text).filter(|(start, end)| step::text(*start, *end) == text)?;
    let length = end.checked_sub(start).filter(|length| *length < LENGTHS)?;
    (-REACH..REACH).contains(&end).then(|| FIRST + (end + REACH) * LENGTHS + length)
}

/// The text of a number, as it is in keys.
pub fn text(number: i64) -> String {
    if number >= WHOLE {
        return number.to_string();
    }
    let end = end(number);
    step::text(end - number.saturating_sub(FIRST).max(0) % LENGTHS, end)
}

/// The number, if it is a number of hours.
pub fn whole(number: i64) -> Option<i64> {
    (number >= WHOLE).then_some(number)
}

/// Seconds from the start to the end of the step or span with this number.
pub fn end(number: i64) -> i64 {
    match whole(number) {
        Some(hours) => hours.saturating_mul(3_600),
        None => number.saturating_sub(FIRST).max(0) / LENGTHS - REACH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_number_and_every_number_its_text() {
        for step in [
            "0", "6", "-6", "15m", "1h30m", "45s", "1h1s", "-30m", "0-24", "30m-1", "-12--6", "0-15m",
            "2628000",
        ] {
            let number = of(step).unwrap();
            assert_eq!(text(number), step);
            assert_eq!(whole(number).is_some(), step.parse::<i64>().is_ok(), "{step}");
        }
    }

    #[test]
    fn steps_between_hours_are_in_the_order_of_their_ends() {
        let numbers: Vec<i64> =
            ["-30m", "5s", "15s", "1m", "15m", "0-6", "6h15m", "0-24"].map(|s| of(s).unwrap()).into();
        assert!(numbers.is_sorted() && numbers.iter().all(|number| *number > i64::MIN && *number < WHOLE));
    }

    #[test]
    fn what_is_no_step_or_too_far_away_has_no_number() {
        for step in ["", "six", "+6", "06", "90m", "6h", "0-999999", "9999999999m", "-4611686018427387904"] {
            assert_eq!(of(step), None, "{step}");
        }
    }
}
