//! The common parts of the shapes: values, times, steps, names.

use fieldstone_core::geometry::Scalar;
use fieldstone_core::key::KeyValue;
use fieldstone_core::schema::step_number;
use fieldstone_core::value::moment_text;
use fieldstone_format::catalog::RunName;
use serde_json::{Number, Value as Json};

pub use crate::values_json::{float, named, value};

/// A time in UTC to the nanosecond, always with its nine digits: `2026-11-21T01:55:56.120000000Z`.
pub fn time(nanoseconds: i64) -> String {
    format!("{}.{:09}Z", whole_seconds(nanoseconds), nanoseconds.rem_euclid(1_000_000_000))
}

/// A time in UTC to the second: `2026-11-21T01:55:56Z`.
pub fn time_in_seconds(nanoseconds: i64) -> String {
    format!("{}Z", whole_seconds(nanoseconds))
}

/// A time in UTC without its fraction and its `Z`.
fn whole_seconds(nanoseconds: i64) -> String {
    let text = moment_text(nanoseconds);
    text.split(['.', 'Z']).next().unwrap_or_default().to_owned()
}

/// A time with as many digits of a fraction as it has; `-` for 0, which means none.
pub fn moment(nanoseconds: i64) -> String {
    if nanoseconds == 0 { "-".to_owned() } else { moment_text(nanoseconds) }
}

/// An element of an array; null if JSON has no number for it.
pub fn scalar(value: Scalar) -> Json {
    match value {
        Scalar::Int(i) => i.into(),
        Scalar::UInt(u) => u.into(),
        Scalar::Float(f) => Number::from_f64(f).map_or(Json::Null, Json::Number),
    }
}

/// A step: a number of hours, else its text in keys (`15m`); null for none.
pub fn step(step: Option<i64>) -> Json {
    step.map_or(Json::Null, |step| {
        step_number::whole(step).map_or_else(|| step_number::text(step).into(), Json::from)
    })
}

/// The project of a run; null for none.
pub fn project(run: &RunName) -> Json {
    text(&run.project)
}

/// A run as one text, with its project in front: `weather:a`.
pub fn run(run: &RunName) -> String {
    if run.project.is_empty() { run.name.clone() } else { format!("{}:{}", run.project, run.name) }
}

/// A text; null if it is empty.
pub fn text(text: &str) -> Json {
    Some(text).filter(|text| !text.is_empty()).into()
}

/// Values of a keyword, as text.
pub fn texts(values: &[KeyValue]) -> Json {
    values.iter().map(|value| Json::from(value.text())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_all_their_digits_or_none() {
        assert_eq!(time(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(time(1_500_000_000), "1970-01-01T00:00:01.500000000Z");
        for (nanoseconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_000_000_000, "2000-02-28T23:59:59Z"),
            (951_782_400_999_999_999, "2000-02-29T00:00:00Z"),
            (951_868_800_000_000_000, "2000-03-01T00:00:00Z"),
            (4_102_444_799_000_000_000, "2099-12-31T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (i64::MIN, "1677-09-21T00:12:43Z"),
            (i64::MAX, "2262-04-11T23:47:16Z"),
        ] {
            assert_eq!(time_in_seconds(nanoseconds), text);
        }
    }

    #[test]
    fn what_json_has_no_number_for_is_text_or_null() {
        assert_eq!(float(f64::NAN), "NaN");
        assert_eq!(scalar(Scalar::Float(f64::NAN)), Json::Null);
        assert_eq!([step(Some(6)), step(None)], [Json::from(6), Json::Null]);
        assert_eq!(step(step_number::of("15m")), "15m");
    }
}
