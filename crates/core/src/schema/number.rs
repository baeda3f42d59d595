//! Decimal numbers as text: canonical form and exact stepping.
//!
//! The canonical text of a decimal has its plain digits without superfluous zeros; it is never rounded through a
//! float, so that "0.1" stays "0.1" and a range steps exactly.

/// Larger exponents are refused: no finite `f64` needs more.
const MAX_EXPONENT: i64 = 400;

/// Value and canonical text of a finite decimal; `None` if `text` is not one.
pub(crate) fn decimal(text: &str) -> Option<(f64, String)> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], rest[at + 1..].parse::<i64>().ok()?),
        None => (rest, 0),
    };
    if exponent.abs() > MAX_EXPONENT {
        return None;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut digits = format!("{whole}{fraction}");
    let mut point = i64::try_from(whole.len()).ok()? + exponent;
    if point < 0 {
        digits.insert_str(0, &"0".repeat(usize::try_from(-point).ok()?));
        point = 0;
    }
    let point = usize::try_from(point).ok()?;
    if digits.len() < point {
        digits.push_str(&"0".repeat(point - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.is_empty() && fraction.is_empty() {
        return Some((0.0, "0".to_owned()));
    }
    let mut canonical = String::with_capacity(whole.len() + fraction.len() + 3);
    if negative {
        canonical.push('-');
    }
    canonical.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        canonical.push('.');
        canonical.push_str(fraction);
    }
    let value: f64 = canonical.parse().ok()?;
    // A decimal too small for a float keeps its text; the sign of its zero must not get into the key.
    value.is_finite().then_some((value + 0.0, canonical))
}

/// The number of digits after the decimal point of a canonical decimal.
pub(crate) fn scale(canonical: &str) -> u32 {
    canonical.split_once('.').map_or(0, |(_, f)| u32::try_from(f.len()).unwrap_or(u32::MAX))
}

/// A canonical decimal as a whole number of units of 10^-scale; `None` if it does not fit.
pub(crate) fn to_units(canonical: &str, units_scale: u32) -> Option<i128> {
    let missing = units_scale.checked_sub(scale(canonical))?;
    let digits: String = canonical.chars().filter(|c| *c != '.').collect();
    digits.parse::<i128>().ok()?.checked_mul(10i128.checked_pow(missing)?)
}

/// The canonical decimal of a number of units.
pub(crate) fn from_units(units: i128, units_scale: u32) -> Option<(f64, String)> {
    let width = usize::try_from(units_scale).ok()? + 1;
    let mut digits = format!("{:0width$}", units.unsigned_abs());
    digits.insert(digits.len() - (width - 1), '.');
    if units < 0 {
        digits.insert(0, '-');
    }
    decimal(&digits)
}
