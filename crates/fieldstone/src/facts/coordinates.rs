//! Positions of an array's elements: along one dimension, or of each element.
//!
//! Invariants:
//!
//! * longitudes and latitudes are in degrees, whatever unit their file has, and NaN if they are not a place on the
//!   globe;
//! * times of calendars that count days as ours does are seconds since 1970.

use fieldstone_core::geometry::CoordinateAxis;
use fieldstone_core::value::parse_moment;

/// The direction of greater values of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Farther east, and around the globe.
    Longitude,
    /// Farther north.
    Latitude,
    /// Farther down: a pressure, or a coordinate with the attribute `positive` "down".
    Down,
    /// Later, in seconds since 1970.
    Time,
    /// No known direction.
    Other,
}

impl Direction {
    /// The direction of a coordinate, by its name and attributes.
    pub fn of(axis: &CoordinateAxis, positive: Option<&str>) -> Direction {
        let is_pressure =
            ["Pa", "hPa", "mb", "mbar", "millibar", "millibars", "dbar"].contains(&&*axis.units);
        match positive {
            _ if axis.is_longitude() => Direction::Longitude,
            _ if axis.is_latitude() => Direction::Latitude,
            Some("down") => Direction::Down,
            None if is_pressure => Direction::Down,
            _ => Direction::Other,
        }
    }

    /// Its word for the helper; empty for none.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Longitude => "longitude",
            Direction::Latitude => "latitude",
            Direction::Down => "down",
            Direction::Time => "time",
            Direction::Other => "",
        }
    }

    /// Whether it is a place on the globe.
    pub fn is_on_globe(self) -> bool {
        matches!(self, Direction::Longitude | Direction::Latitude)
    }
}

/// Positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinates {
    /// Their name.
    pub name: String,
    /// Their unit; empty for none.
    pub units: String,
    /// The direction of greater ones.
    pub direction: Direction,
    /// Extents: one dimension, or those of the array.
    pub shape: Vec<usize>,
    /// The positions.
    pub values: Vec<f64>,
}

impl Coordinates {
    /// Positions of a coordinate; `called` is its long name.
    pub fn new(
        axis: &CoordinateAxis,
        called: &str,
        positive: Option<&str>,
        shape: Vec<usize>,
        mut values: Vec<f64>,
    ) -> Coordinates {
        let direction = Direction::of(axis, positive);
        let (mut name, mut units) = (called.to_owned(), axis.units.clone());
        if direction.is_on_globe() {
            if axis.is_in_radians() {
                values.iter_mut().for_each(|value| *value = value.to_degrees());
            }
            let (end, most) = match direction {
                Direction::Longitude => ("degrees_east", 720.0),
                _ => ("degrees_north", 90.0 + 1e-3),
            };
            // A fill value that the file does not declare.
            values.iter_mut().filter(|value| value.abs() > most).for_each(|value| *value = f64::NAN);
            (name, units) = (direction.word().to_owned(), end.to_owned());
        }
        Coordinates { name, units, direction, shape, values }
    }

    /// Their name, with their unit.
    pub fn label(&self) -> String {
        with_unit(&self.name, &self.units)
    }
}

/// Length of a unit of time in seconds and its start in seconds since 1970, for units such as `days since 1850-01-01`;
/// `None` for other units, and for calendars that add or lack days.
pub fn since(units: &str, calendar: Option<&str>) -> Option<(f64, f64)> {
    let ours = ["standard", "gregorian", "proleptic_gregorian"];
    if !calendar.is_none_or(|calendar| ours.contains(&calendar.to_ascii_lowercase().as_str())) {
        return None;
    }
    let (unit, begin) = units.split_once(" since ")?;
    let length = match unit.trim().trim_end_matches('s') {
        "second" | "sec" => 1.0,
        "minute" | "min" => 60.0,
        "hour" | "hr" | "h" => 3600.0,
        "day" | "d" => 86_400.0,
        _ => return None,
    };
    let mut words = begin.trim().split([' ', 'T']);
    let mut date = words.next()?.splitn(3, '-');
    let mut part = || date.next()?.parse::<u32>().ok();
    let day = format!("{:04}-{:02}-{:02}", part()?, part()?, part()?);
    let clock = words.next().unwrap_or_default().trim_end_matches('Z');
    let clock = clock.split(':').map(|part| part.parse::<f64>().unwrap_or(0.0));
    let seconds: f64 = clock.zip([3600.0, 60.0, 1.0]).map(|(part, length)| part * length).sum();
    Some((length, parse_moment(&day)? as f64 / 1e9 + seconds))
}

/// A name with its unit, if any, in parentheses.
pub fn with_unit(name: &str, unit: &str) -> String {
    match unit {
        "" | "1" => name.to_owned(),
        _ => format!("{name} ({unit})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressures_and_depths_point_down_and_radians_become_degrees() {
        let of = |name: &str, units: &str, positive| {
            Direction::of(&CoordinateAxis::new(name, "", units), positive)
        };
        assert_eq!(of("level", "hPa", None), Direction::Down);
        assert_eq!(of("depth", "m", Some("down")), Direction::Down);
        assert_eq!(of("level", "Pa", Some("up")), Direction::Other);
        assert_eq!(of("height", "m", None), Direction::Other);
        let axis = CoordinateAxis::new("lonCell", "longitude", "radian");
        let turned = Coordinates::new(&axis, "lonCell", None, vec![1], vec![std::f64::consts::PI]);
        assert_eq!((turned.values[0], &*turned.label()), (180.0, "longitude (degrees_east)"));
        let axis = CoordinateAxis::new("lat", "", "degrees_north");
        let filled = Coordinates::new(&axis, "lat", None, vec![2], vec![90.0, 9.97e36]);
        assert!(filled.values[0] == 90.0 && filled.values[1].is_nan());
    }

    #[test]
    fn moments_of_our_calendar_are_seconds() {
        assert_eq!(since("days since 1970-01-02", None), Some((86_400.0, 86_400.0)));
        assert_eq!(since("hours since 1970-1-1 12:30:0.0", Some("Gregorian")), Some((3600.0, 45_000.0)));
        for (units, calendar) in [
            ("days since 1970-01-01", Some("noleap")),
            ("months since 1970-01-01", None),
            ("K", None),
            ("days since then", None),
        ] {
            assert_eq!(since(units, calendar), None, "{units}");
        }
    }
}
