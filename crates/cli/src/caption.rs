//! The words of a picture: the field's long name, its time, its run, and what else distinguishes it from others.
//!
//! Invariant: each word of a key is said once, or is one of those that the name, the time or the level already says.

use fieldstone::facts::{Coordinates, Described, Direction, time_of};
use fieldstone::prelude::*;
use fieldstone::{FieldKey, Store};

/// Keywords of GRIB messages that their name, level and valid time say.
const SAID_OF_GRIB: [&str; 15] = [
    "date",
    "time",
    "step",
    "param",
    "parameter",
    "levtype",
    "levelist",
    "bottomlevel",
    "typeoflevel",
    "domain",
    "validity",
    "grid",
    "origin",
    "timespan",
    "steptype",
];

/// The words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caption {
    /// The long name.
    pub name: String,
    /// The time, or the step where it has no time; empty for neither.
    pub time: String,
    /// The run; empty for none.
    pub run: String,
    /// The place of a part of the array, then further words of the key.
    pub more: Vec<String>,
}

impl Caption {
    /// The caption of an array.
    pub fn of_array(store: &Store, key: &FieldKey, described: Option<&Described>) -> Caption {
        let schema = store.schema();
        let variable = schema.variable_of(key);
        let own = || variable.as_deref().map_or_else(|| words(key, &[]).join(", "), str::to_owned);
        let name = described.map_or_else(own, Described::name);
        let of_file = || described.and_then(|described| described.time(store, key));
        let time = match (time_of(store, key).or_else(of_file), schema.step_of(key)) {
            (Some(seconds), _) if described.is_some_and(Described::is_of_file) => moment(seconds),
            (Some(time), _) => format!("time {}", short(time)),
            (None, Some(step)) => format!("step {step}"),
            (None, None) => String::new(),
        };
        let run = match schema.run_of(key) {
            Some((_, run)) if !run.is_empty() => format!("run {run}"),
            _ => String::new(),
        };
        let more = match variable {
            Some(_) => words(key, &["run", "variable", "step"]),
            None => Vec::new(),
        };
        Caption { name, time, run, more }
    }

    /// The caption of a GRIB message, by what its decoder says.
    pub fn of_grib<'a>(key: &FieldKey, attribute: impl Fn(&str) -> Option<&'a str>) -> Caption {
        let name = attribute("long_name").or_else(|| attribute("short_name")).map(str::to_owned);
        // A parameter that no table names has its number.
        let number = || ["parameter", "param"].into_iter().find_map(|word| key.get(word));
        let name = name.or_else(|| number().map(|number| format!("parameter {}", number.text())));
        let level = attribute("level").map(str::to_owned);
        Caption {
            name: name.unwrap_or_else(|| words(key, &[]).join(", ")),
            time: attribute("valid_time").unwrap_or_default().to_owned(),
            run: String::new(),
            more: level.into_iter().chain(words(key, &SAID_OF_GRIB)).collect(),
        }
    }

    /// A title: the name, and below it all else.
    pub fn title(&self) -> String {
        let below: Vec<&str> = self.parts().skip(1).collect();
        if below.is_empty() { self.name.clone() } else { format!("{}\n{}", self.name, below.join(", ")) }
    }

    /// All of it on one line.
    pub fn line(&self) -> String {
        self.parts().collect::<Vec<_>>().join(", ")
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let own = [&self.name, &self.time, &self.run].into_iter().chain(&self.more);
        own.map(String::as_str).filter(|part| !part.is_empty())
    }
}

/// The words of a key: `keyword value`, without those of `said`.
fn words(key: &FieldKey, said: &[&str]) -> Vec<String> {
    let others = key.iter().filter(|(name, value)| !value.is_absent() && !said.contains(&&***name));
    others.map(|(name, value)| format!("{name} {}", value.text())).collect()
}

/// A position of a coordinate with its unit.
pub fn position(axis: &Coordinates, value: f64) -> String {
    match axis.direction {
        Direction::Time => moment(value),
        _ => format!("{} {}", short(value), axis.units).trim_end().to_owned(),
    }
}

/// Seconds since 1970 as date and time of day; of a calendar without leap years it is the date that its file says.
fn moment(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    // Nobody writes a date whose year has six digits.
    if minutes.abs() > 5e10 {
        return format!("time {}", short(seconds));
    }
    let minutes = minutes as i64;
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Days of the Gregorian calendar, counted in eras of 400 years that begin on the first of March.
    let from_march = days + 719_468;
    let (era, day) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// A number with about six digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e9 => format!("{value}"),
        1e-3..1e6 => {
            let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 8) as usize;
            let text = format!("{value:.digits$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.5e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0.0, "1970-01-01 00:00"),
            (951_782_400.0, "2000-02-29 00:00"),
            (-86_400.0 * 719_162.0, "0001-01-01 00:00"),
            (4_083_998_399.6, "2099-06-01 12:00"),
            (1e20, "time 1.00000e20"),
        ] {
            assert_eq!(moment(seconds), text);
        }
    }

    #[test]
    fn titles_have_the_name_first() {
        let mut caption = Caption { name: "air temperature".into(), ..Caption::default() };
        assert_eq!(caption.title(), "air temperature");
        caption.run = "run a".into();
        caption.more = vec!["level 500 hPa".into()];
        assert_eq!(caption.title(), "air temperature\nrun a, level 500 hPa");
        caption.time = "step 6".into();
        assert_eq!(caption.line(), "air temperature, step 6, run a, level 500 hPa");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(250.0, "250"), (1.0 / 3.0, "0.333333"), (12345.678, "12345.7"), (1e-9, "1.00000e-9")]
        {
            assert_eq!(short(value), text);
        }
    }
}
