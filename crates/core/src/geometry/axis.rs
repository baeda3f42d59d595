//! Coordinate axes: their names, and the test which of their values are in a range.
//!
//! Invariant: a range of longitudes from a greater to a lesser value contains those above the greater and those below
//! the lesser; all longitudes are compared modulo a full circle, in whichever direction a file counts them.
//!
//! ```
//! use fieldstone_core::geometry::CoordinateAxis;
//! let lon = CoordinateAxis::new("lon", "longitude", "degrees_east");
//! assert!(lon.is_called("longitude") && lon.holds((170.0, -170.0), 185.0));
//! assert!(!lon.holds((170.0, -170.0), 0.0));
//! ```

/// A coordinate, as its file or declaration names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoordinateAxis {
    /// Its name.
    pub name: String,
    /// The attribute `standard_name`; empty if there is none.
    pub standard_name: String,
    /// The attribute `units`; empty if there is none.
    pub units: String,
}

impl CoordinateAxis {
    /// Makes a coordinate from its name and attributes, which are empty if they are missing.
    #[must_use]
    pub fn new(name: &str, standard_name: &str, units: &str) -> CoordinateAxis {
        CoordinateAxis { name: name.into(), standard_name: standard_name.into(), units: units.into() }
    }

    /// Whether it is a longitude.
    #[must_use]
    pub fn is_longitude(&self) -> bool {
        self.is_angle("longitude", &["east", "E"], &["lon", "longitude"])
    }

    /// Whether it is a latitude.
    #[must_use]
    pub fn is_latitude(&self) -> bool {
        self.is_angle("latitude", &["north", "N"], &["lat", "latitude"])
    }

    /// CF identifies longitudes and latitudes by their standard names, or by units such as `degrees_east`,
    /// `degree_E`, `degreesN`. A coordinate with neither is identified by its name.
    fn is_angle(&self, standard: &str, ends: &[&str], names: &[&str]) -> bool {
        let of_units = self.units.strip_prefix("degrees").or_else(|| self.units.strip_prefix("degree"));
        self.standard_name == standard
            || of_units.is_some_and(|end| ends.contains(&end.strip_prefix('_').unwrap_or(end)))
            || (self.standard_name.is_empty()
                && ["", "degrees", "degree", "deg"].contains(&&*self.units)
                && names.iter().any(|name| self.name.eq_ignore_ascii_case(name)))
    }

    /// Whether a name in a query refers to this coordinate: its name, its standard name, `lon` or `lat`.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        name == self.name
            || (!self.standard_name.is_empty() && name == self.standard_name)
            || (self.is_longitude() && matches!(name, "lon" | "longitude"))
            || (self.is_latitude() && matches!(name, "lat" | "latitude"))
    }

    /// A full circle in the coordinate's unit; `None` if it is not a longitude.
    fn circle(&self) -> Option<f64> {
        self.is_longitude().then(|| if self.is_in_radians() { std::f64::consts::TAU } else { 360.0 })
    }

    /// Whether the coordinate is in radians.
    #[must_use]
    pub fn is_in_radians(&self) -> bool {
        self.units.starts_with("rad")
    }

    /// Whether `at` is in the range, whose ends are included.
    #[must_use]
    pub fn holds(&self, range: (f64, f64), at: f64) -> bool {
        holds(self.circle(), range, at)
    }

    /// For each of many coordinates, whether it is from `low` to `high`, both included.
    #[must_use]
    pub fn within(&self, (low, high): (f64, f64), values: &[f64]) -> Vec<bool> {
        let circle = self.circle();
        values.iter().map(|at| holds(circle, (low, high), *at)).collect()
    }
}

fn holds(circle: Option<f64>, (low, high): (f64, f64), at: f64) -> bool {
    match circle {
        Some(circle) if low.is_finite() && high.is_finite() => {
            let width = if high >= low { high - low } else { (high - low).rem_euclid(circle) };
            // A range that ends at its own start goes once around; rounding must not lose it. NaN is in no range.
            (width >= circle && !at.is_nan())
                || (at - low).rem_euclid(circle) <= width
                || at == low
                || at == high
        }
        _ => low <= at && at <= high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_known_by_cf_names_and_units() {
        for units in ["degrees_east", "degree_east", "degreesE", "degree_E"] {
            let lon = CoordinateAxis::new("nav_lon", "", units);
            assert!(lon.is_longitude() && lon.is_called("lon") && lon.is_called("nav_lon"), "{units}");
            assert!(!lon.is_latitude() && !lon.is_called("lat") && !lon.is_called(""));
        }
        assert!(CoordinateAxis::new("a", "latitude", "radian").is_called("lat"));
        assert!(CoordinateAxis::new("Lat", "", "").is_latitude());
        assert!(!CoordinateAxis::new("lat", "grid_latitude", "degrees").is_latitude());
        let plane = CoordinateAxis::new("x", "projection_x_coordinate", "m");
        assert!(plane.is_called("projection_x_coordinate") && !plane.is_called("lon"));
    }

    #[test]
    fn longitudes_go_around_and_others_do_not() {
        let lon = CoordinateAxis::new("x", "longitude", "degrees_east");
        assert_eq!(
            lon.within((170.0, -170.0), &[170.0, 180.0, -180.0, 190.0, -170.0, 0.0, 169.9]),
            [true, true, true, true, true, false, false]
        );
        assert_eq!(lon.within((-30.0, 30.0), &[330.0, 0.0, 360.0, 31.0]), [true, true, true, false]);
        assert_eq!(lon.within((0.0, 360.0), &[-77.0, 360.0, f64::NAN]), [true, true, false]);
        assert_eq!(lon.within((10.0, f64::INFINITY), &[9.0, 11.0]), [false, true]);
        let plane = CoordinateAxis::new("x", "", "m");
        assert!(!plane.holds((5.0, 3.0), 4.0) && plane.holds((3.0, 5.0), 4.0));
    }
}
