//! Spans of time for people.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        assert_eq!(span(90 * SECOND), "90 s");
        assert_eq!(span(-3_600 * SECOND), "-60 min");
        assert_eq!(span(49 * 3_600 * SECOND), "2 days");
    }
}
