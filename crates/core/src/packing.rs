//! Packed values by CF's rules: `scale_factor`, `add_offset`, `_FillValue`, `missing_value` and netCDF's `_Unsigned`.
//! This module unpacks them as xarray does.
//!
//! Values outside `valid_min`, `valid_max` or `valid_range` stay what they are, as xarray keeps them; [`Packing::masked`]
//! finds them for a caller that leaves them out.
//!
//! ```
//! use fieldstone_core::dtype::DType;
//! use fieldstone_core::packing::Packing;
//! use fieldstone_core::value::Value;
//! let attrs = [("scale_factor", Value::Float(0.5)), ("_FillValue", Value::Int(-1))];
//! let dtype = DType::parse("<i2")?;
//! let packing = Packing::of(dtype, |name| attrs.iter().find(|(own, _)| *own == name).map(|(_, value)| value));
//! let values = packing.decode(dtype, &[6, 0, 0xff, 0xff])?;
//! assert!(values[0] == 3.0 && values[1].is_nan());
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use crate::Result;
use crate::dtype::{DType, DTypeKind};
use crate::elements::as_floats;
use crate::value::Value;

/// How the values of one variable are packed.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// The number added to stored numbers below zero, or from a limit on, to give them the other sign.
    wrap: Option<Wrap>,
    /// Stored numbers that mean "missing".
    missing: Vec<f64>,
    scale: f64,
    offset: f64,
    valid: Option<Valid>,
}

/// The least and the greatest value that is valid.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Valid {
    ends: (f64, f64),
    /// Whether the ends are numbers as stored; else they are unpacked.
    as_stored: bool,
}

impl Valid {
    /// CF compares stored numbers, unless the ends are floats and the elements are packed into integers.
    fn of<'v>(
        attr: impl Fn(&str) -> Option<&'v Value>,
        stored: impl Fn(f64) -> f64,
        dtype: DType,
    ) -> Option<Valid> {
        let one =
            |name: &str, at: usize| attr(name).and_then(|value| Some((value, *numbers(value).get(at)?)));
        let least = one("valid_range", 0).or_else(|| one("valid_min", 0));
        let greatest = one("valid_range", 1).or_else(|| one("valid_max", 0));
        let (value, _) = least.or(greatest)?;
        let as_stored = dtype.kind() == DTypeKind::Float || !is_float(value);
        let end = |end: Option<(&Value, f64)>, open: f64| {
            end.map_or(open, |(_, end)| if as_stored { stored(end) } else { end })
        };
        Some(Valid { ends: (end(least, f64::NEG_INFINITY), end(greatest, f64::INFINITY)), as_stored })
    }
}

/// Integers whose sign differs from that of their type.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrap {
    /// Stored as signed, meant as unsigned: this is added to negative ones.
    Unsigned(f64),
    /// Stored as unsigned, meant as signed: this is subtracted from the upper half.
    Signed(f64),
}

impl Wrap {
    fn of(dtype: DType, unsigned: Option<&Value>) -> Option<Wrap> {
        let Some(Value::Text(text)) = unsigned else { return None };
        let all = 2f64.powi(8 * i32::try_from(dtype.size()).ok()?);
        match (text.as_str(), dtype.kind()) {
            ("true", DTypeKind::Int) => Some(Wrap::Unsigned(all)),
            ("false", DTypeKind::UInt) => Some(Wrap::Signed(all)),
            _ => None,
        }
    }

    fn apply(self, value: f64) -> f64 {
        match self {
            Wrap::Unsigned(all) if value < 0.0 => value + all,
            Wrap::Signed(all) if value >= all / 2.0 => value - all,
            _ => value,
        }
    }
}

impl Packing {
    /// The packing that attributes describe, for elements of a type.
    pub fn of<'v>(dtype: DType, attr: impl Fn(&str) -> Option<&'v Value>) -> Packing {
        let wrap = Wrap::of(dtype, attr("_Unsigned"));
        // A fill value has the type of the elements, whatever type the attribute has.
        let stored = |value: f64| match (dtype.kind(), dtype.size()) {
            (DTypeKind::Float, 4) => f64::from(value as f32),
            _ => wrap.map_or(value, |wrap| wrap.apply(value)),
        };
        let missing = ["_FillValue", "missing_value"].into_iter().filter_map(&attr).flat_map(numbers);
        let one = |name: &str| attr(name).and_then(|value| numbers(value).first().copied());
        Packing {
            wrap,
            missing: missing.map(stored).collect(),
            scale: one("scale_factor").unwrap_or(1.0),
            offset: one("add_offset").unwrap_or(0.0),
            valid: Valid::of(&attr, stored, dtype),
        }
    }

    /// Whether the stored numbers are the values.
    pub fn is_plain(&self) -> bool {
        self.wrap.is_none() && self.missing.is_empty() && self.scale == 1.0 && self.offset == 0.0
    }

    /// Replaces stored numbers by their values, and missing ones by NaN.
    pub fn undo(&self, values: &mut [f64]) {
        if self.is_plain() {
            return;
        }
        for value in values {
            let stored = self.wrap.map_or(*value, |wrap| wrap.apply(*value));
            *value = match self.missing.contains(&stored) {
                true => f64::NAN,
                false => stored * self.scale + self.offset,
            };
        }
    }

    /// Finds stored numbers that stand for a value outside the valid range; `None` without such a range. A number that
    /// stands for nothing is missing, and not masked.
    pub fn masked(&self, stored: &[f64]) -> Option<Vec<bool>> {
        let Valid { ends: (least, greatest), as_stored } = self.valid?;
        let is_masked = |stored: &f64| {
            let own = self.wrap.map_or(*stored, |wrap| wrap.apply(*stored));
            let compared = if as_stored { own } else { own * self.scale + self.offset };
            !self.missing.contains(&own) && (compared < least || compared > greatest)
        };
        Some(stored.iter().map(is_masked).collect())
    }

    /// The least and the greatest value, by the least and the greatest of stored numbers without missing ones. `None` for
    /// an end that cannot be known so: the stored number stands for nothing itself, or the sign that is meant puts other
    /// numbers at the ends.
    pub fn ends(&self, least: f64, greatest: f64) -> (Option<f64>, Option<f64>) {
        let apart = match self.wrap {
            Some(Wrap::Unsigned(_)) => least < 0.0 && greatest >= 0.0,
            Some(Wrap::Signed(all)) => least < all / 2.0 && greatest >= all / 2.0,
            None => false,
        };
        if apart {
            return (None, None);
        }
        let end = |stored: f64| {
            let mut value = [stored];
            self.undo(&mut value);
            Some(value[0]).filter(|value| !value.is_nan())
        };
        match self.scale < 0.0 {
            true => (end(greatest), end(least)),
            false => (end(least), end(greatest)),
        }
    }

    /// The values of an array's elements. Invalid if the elements are not real numbers.
    pub fn decode(&self, dtype: DType, data: &[u8]) -> Result<Vec<f64>> {
        let mut values = as_floats(dtype, data)?;
        self.undo(&mut values);
        Ok(values)
    }
}

fn is_float(value: &Value) -> bool {
    match value {
        Value::Float(_) => true,
        Value::Array(all) | Value::List(all) => all.iter().any(is_float),
        _ => false,
    }
}

/// The numbers of an attribute.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Int(number) => vec![*number as f64],
        Value::UInt(number) => vec![*number as f64],
        Value::Float(number) => vec![*number],
        Value::Array(all) | Value::List(all) => all.iter().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(typestr: &str, data: &[u8], attrs: &[(&str, Value)]) -> Vec<f64> {
        let dtype = DType::parse(typestr).expect("a type");
        let attr = |name: &str| attrs.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
        Packing::of(dtype, attr).decode(dtype, data).expect("numbers")
    }

    #[test]
    fn fill_values_have_the_type_of_the_elements() {
        // 1e20 as a 32-bit float is another double.
        let fill = [("_FillValue", Value::Float(1e20))];
        let data: Vec<u8> = [1.5f32, 1e20].iter().flat_map(|v| v.to_le_bytes()).collect();
        let values = decoded("<f4", &data, &fill);
        assert!(values[0] == 1.5 && values[1].is_nan());
        let both = [
            ("_FillValue", Value::Int(1)),
            ("missing_value", Value::Array(vec![Value::Int(2), Value::Int(3)])),
        ];
        let values = decoded("|u1", &[0, 1, 2, 3, 4], &both);
        assert_eq!(values.iter().map(|v| v.is_nan()).collect::<Vec<_>>(), [false, true, true, true, false]);
    }

    #[test]
    fn values_outside_the_valid_range_are_masked_and_missing_ones_are_not() {
        let masked = |typestr: &str, data: &[f64], attrs: &[(&str, Value)]| {
            let dtype = DType::parse(typestr).expect("a type");
            let attr = |name: &str| attrs.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
            Packing::of(dtype, attr).masked(data)
        };
        assert_eq!(masked("<f4", &[1.0], &[]), None);
        let range = Value::Array(vec![Value::Int(0), Value::Int(10)]);
        let attrs =
            [("valid_range", range), ("_FillValue", Value::Int(-1)), ("scale_factor", Value::Float(100.0))];
        assert_eq!(
            masked("<i2", &[-2.0, -1.0, 0.0, 10.0, 11.0], &attrs),
            Some(vec![true, false, false, false, true]),
            "as stored, and the fill value is missing"
        );
        let unpacked = [("valid_max", Value::Float(5.0)), ("scale_factor", Value::Float(0.5))];
        assert_eq!(masked("<i2", &[-9.0, 10.0, 11.0], &unpacked), Some(vec![false, false, true]));
        let unsigned = [("valid_min", Value::Int(-6)), ("_Unsigned", Value::Text("true".into()))];
        assert_eq!(masked("|i1", &[-6.0, -7.0], &unsigned), Some(vec![false, true]), "250 is the least");
        assert_eq!(masked("<f4", &[f64::NAN], &[("valid_min", Value::Float(0.0))]), Some(vec![false]));
    }

    #[test]
    fn ends_are_those_of_what_is_meant_or_unknown() {
        let of = |typestr: &str, attrs: &[(&str, Value)], least, greatest| {
            let dtype = DType::parse(typestr).expect("a type");
            let attr = |name: &str| attrs.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
            Packing::of(dtype, attr).ends(least, greatest)
        };
        let packed = [("scale_factor", Value::Float(0.5)), ("_FillValue", Value::Int(-32768))];
        assert_eq!(of("<i2", &packed, -4.0, 10.0), (Some(-2.0), Some(5.0)));
        assert_eq!(of("<i2", &packed, -32768.0, 10.0), (None, Some(5.0)));
        assert_eq!(
            of("<f4", &[("_FillValue", Value::Float(1e20))], 1.5, f64::from(1e20f32)),
            (Some(1.5), None)
        );
        let turned = [("scale_factor", Value::Int(-2))];
        assert_eq!(of("<i2", &turned, 1.0, 3.0), (Some(-6.0), Some(-2.0)));
        let unsigned = [("_Unsigned", Value::Text("true".into()))];
        assert_eq!(of("|i1", &unsigned, -2.0, 5.0), (None, None));
        assert_eq!(of("|i1", &unsigned, -2.0, -1.0), (Some(254.0), Some(255.0)));
        assert_eq!(of("|i1", &unsigned, 3.0, 5.0), (Some(3.0), Some(5.0)));
        let signed = [("_Unsigned", Value::Text("false".into()))];
        assert_eq!(of("|u1", &signed, 3.0, 255.0), (None, None));
        assert_eq!(of("<i4", &[], 3.0, 5.0), (Some(3.0), Some(5.0)));
    }

    #[test]
    fn the_sign_that_is_meant_is_not_that_of_the_type() {
        let unsigned = [
            ("_Unsigned", Value::Text("true".into())),
            ("scale_factor", Value::Float(0.5)),
            ("add_offset", Value::Float(-1.0)),
            ("_FillValue", Value::Int(-1)),
        ];
        let values = decoded("<i2", &[0xfe, 0xff, 0xff, 0xff, 4, 0], &unsigned);
        assert!(values[0] == 65_534.0 * 0.5 - 1.0 && values[1].is_nan() && values[2] == 1.0, "{values:?}");
        let signed = [("_Unsigned", Value::Text("false".into()))];
        assert_eq!(decoded("|u1", &[0xff, 1], &signed), [-1.0, 1.0]);
        // If the type has that sign already, there is nothing to do.
        assert_eq!(decoded("|i1", &[0xff], &signed), [-1.0]);
    }
}
