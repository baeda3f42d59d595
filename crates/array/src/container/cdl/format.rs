//! Numbers as C's `printf` writes them: for CDL, and for a variable's `C_format`.
//!
//! Invariants: for every case that the C standard defines, the text equals C's, digit for digit; [`Printf::parse`]
//! refuses a format that does not fit the type of its value (undefined in C), and never guesses.

/// One conversion with the text around it, such as `"%8.3f m"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printf {
    prefix: String,
    suffix: String,
    flags: Flags,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
    /// Bits of an integer, after the length modifier and the type.
    bits: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    left: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    zero: bool,
}

/// The argument of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// An integer with this number of bits after C's promotion: 32 or 64.
    Integer(u32),
    /// A double.
    Real,
    /// A single character.
    Character,
}

/// Limit on width and precision: beyond it ncdump's own buffer ends, too.
const WIDEST: usize = 99;

impl Printf {
    /// Parses a format with exactly one conversion that fits the argument; `None` for all others.
    pub fn parse(format: &str, argument: Argument) -> Option<Printf> {
        let (prefix, rest) = literal(format);
        let mut rest = rest.strip_prefix('%')?;
        let mut flags = Flags::default();
        loop {
            match rest.as_bytes().first()? {
                b'-' => flags.left = true,
                b'+' => flags.plus = true,
                b' ' => flags.blank = true,
                b'#' => flags.alternate = true,
                b'0' => flags.zero = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        let width = digits(&mut rest)?.unwrap_or(0);
        let precision = match rest.strip_prefix('.') {
            Some(after) => {
                rest = after;
                Some(digits(&mut rest)?.unwrap_or(0))
            }
            None => None,
        };
        let modifiers = rest.len() - rest.trim_start_matches(['h', 'l', 'q', 'j', 'z', 't', 'L']).len();
        let (modifier, after) = rest.split_at(modifiers);
        let conversion = *after.as_bytes().first()?;
        let fits = match argument {
            Argument::Integer(_) => b"diuoxXc".contains(&conversion),
            Argument::Real => b"eEfFgG".contains(&conversion) && matches!(modifier, "" | "l"),
            Argument::Character => b"cdiuoxX".contains(&conversion),
        };
        let (suffix, left) = literal(after.get(1..)?);
        if !fits || !left.is_empty() {
            return None;
        }
        let bits = match (modifier, argument) {
            ("hh", _) => 8,
            ("h", _) => 16,
            ("", _) => 32,
            (_, Argument::Integer(bits)) => bits,
            _ => 32,
        };
        Some(Printf { prefix, suffix, flags, width, precision, conversion, bits })
    }

    /// The text of an integer.
    pub fn integer(&self, value: i128, to: &mut Vec<u8>) {
        to.extend_from_slice(self.prefix.as_bytes());
        if self.conversion == b'c' {
            self.pad(b"", &[value as u8], false, to);
        } else {
            let mask = (1_i128 << self.bits) - 1;
            let low = value & mask;
            let signed = if low >> (self.bits - 1) == 1 { low - mask - 1 } else { low };
            let (negative, digits) = match self.conversion {
                b'o' => (false, format!("{low:o}")),
                b'x' => (false, format!("{low:x}")),
                b'X' => (false, format!("{low:X}")),
                b'u' => (false, low.to_string()),
                _ => (signed < 0, signed.unsigned_abs().to_string()),
            };
            let least = self.precision.unwrap_or(1);
            let mut digits = if digits == "0" && least == 0 { String::new() } else { digits };
            if digits.len() < least {
                digits.insert_str(0, &"0".repeat(least - digits.len()));
            }
            let sign: &[u8] = match self.conversion {
                b'o' if self.flags.alternate && !digits.starts_with('0') => b"0",
                b'x' if self.flags.alternate && low != 0 => b"0x",
                b'X' if self.flags.alternate && low != 0 => b"0X",
                b'd' | b'i' => self.sign(negative),
                _ => b"",
            };
            self.pad(sign, digits.as_bytes(), self.flags.zero && self.precision.is_none(), to);
        }
        to.extend_from_slice(self.suffix.as_bytes());
    }

    /// The text of a finite number.
    pub fn real(&self, value: f64, to: &mut Vec<u8>) {
        to.extend_from_slice(self.prefix.as_bytes());
        let magnitude = value.abs();
        let precision = self.precision.unwrap_or(6);
        let mut digits = match self.conversion.to_ascii_lowercase() {
            b'f' => fixed(magnitude, precision, self.flags.alternate),
            b'e' => exponential(magnitude, precision, self.flags.alternate),
            _ => general(magnitude, precision, self.flags.alternate),
        };
        if self.conversion.is_ascii_uppercase() {
            digits.make_ascii_uppercase();
        }
        self.pad(self.sign(value.is_sign_negative()), digits.as_bytes(), self.flags.zero, to);
        to.extend_from_slice(self.suffix.as_bytes());
    }

    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.flags.plus, self.flags.blank) {
            (true, _, _) => b"-",
            (_, true, _) => b"+",
            (_, _, true) => b" ",
            _ => b"",
        }
    }

    fn pad(&self, sign: &[u8], digits: &[u8], zeros: bool, to: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        let fill = |to: &mut Vec<u8>, with: u8| to.resize(to.len() + missing, with);
        if !self.flags.left && !zeros {
            fill(to, b' ');
        }
        to.extend_from_slice(sign);
        if !self.flags.left && zeros {
            fill(to, b'0');
        }
        to.extend_from_slice(digits);
        if self.flags.left {
            fill(to, b' ');
        }
    }
}

/// The text of a format without a conversion.
pub fn plain(format: &str) -> Option<String> {
    let (text, rest) = literal(format);
    rest.is_empty().then_some(text)
}

/// The text up to the next conversion, with `%%` read as a percent sign, and the rest.
fn literal(format: &str) -> (String, &str) {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest.strip_prefix("%%") {
            Some(after) => {
                text.push('%');
                rest = after;
            }
            None => return (text, rest),
        }
    }
    text.push_str(rest);
    (text, "")
}

/// A number at the front, if there is one; `None` if it is too large.
fn digits(rest: &mut &str) -> Option<Option<usize>> {
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(len);
    *rest = after;
    if number.is_empty() {
        return Some(None);
    }
    number.parse::<usize>().ok().filter(|n| *n <= WIDEST).map(Some)
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if alternate && precision == 0 {
        text.push('.');
    }
    text
}

/// Mantissa digits and exponent of C's `%e`.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn with_exponent(mut mantissa: String, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    mantissa.push_str(&format!("e{sign}{:02}", exponent.unsigned_abs()));
    mantissa
}

fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let (mut mantissa, exponent) = scientific(value, precision);
    if alternate && precision == 0 {
        mantissa.push('.');
    }
    with_exponent(mantissa, exponent)
}

/// C's `%g` of a finite number that is not negative: the shorter of `%e` and `%f`, without trailing zeros unless
/// `alternate`.
pub fn general(value: f64, precision: usize, alternate: bool) -> String {
    let significant = precision.max(1);
    let (mantissa, exponent) = scientific(value, significant - 1);
    let in_fixed = exponent >= -4 && i64::from(exponent) < significant as i64;
    let mut text = match in_fixed {
        true => format!("{value:.*}", (significant as i64 - 1 - i64::from(exponent)) as usize),
        false => mantissa,
    };
    match alternate {
        true if !text.contains('.') => text.push('.'),
        false if text.contains('.') => {
            let kept = text.trim_end_matches('0').trim_end_matches('.').len();
            text.truncate(kept);
        }
        _ => {}
    }
    if in_fixed { text } else { with_exponent(text, exponent) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn int(format: &str, value: i128) -> String {
        let mut to = Vec::new();
        Printf::parse(format, Argument::Integer(32)).unwrap().integer(value, &mut to);
        String::from_utf8(to).unwrap()
    }

    fn real(format: &str, value: f64) -> String {
        let mut to = Vec::new();
        Printf::parse(format, Argument::Real).unwrap().real(value, &mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn integers_are_written_as_c_writes_them() {
        for (format, value, text) in [
            ("%d", -7, "-7"),
            ("%5d|", 42, "   42|"),
            ("%-5d|", 42, "42   |"),
            ("%05d", -42, "-0042"),
            ("%+d", 42, "+42"),
            ("% d", 42, " 42"),
            ("%.3d", 7, "007"),
            ("%u", -1, "4294967295"),
            ("%hhd", 300, "44"),
            ("%#x", 255, "0xff"),
            ("%X", 255, "FF"),
            ("%#o", 8, "010"),
            ("%c", 65, "A"),
            ("<%d%%>", 5, "<5%>"),
        ] {
            assert_eq!(int(format, value), text, "{format}");
        }
    }

    #[test]
    fn reals_are_written_as_c_writes_them() {
        for (format, value, text) in [
            ("%g", 0.0, "0"),
            ("%g", -0.0, "-0"),
            ("%g", 100_000.0, "100000"),
            ("%g", 1_000_000.0, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%.7g", 9.96921e36, "9.96921e+36"),
            ("%.3g", 9999.0, "1e+04"),
            ("%.15g", 0.1, "0.1"),
            ("%#.7g", 1.0, "1.000000"),
            ("%#.7g", 1_234_567.0, "1234567."),
            ("%8.3f", 2.71881, "   2.719"),
            ("%-8.1f|", 2.25, "2.2     |"),
            ("%08.2f", -3.0, "-0003.00"),
            ("%.0f", 0.5, "0"),
            ("%.0f", 1.5, "2"),
            ("%#.0f", 1.0, "1."),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2E", 1e-100, "1.00E-100"),
            ("%G", 1e-10, "1E-10"),
            ("%lf", 1.0, "1.000000"),
        ] {
            assert_eq!(real(format, value), text, "{format} of {value}");
        }
    }

    #[test]
    fn formats_that_do_not_fit_are_refused() {
        for format in ["", "abc", "%d", "%s", "%f %f", "%", "%5", "%1000f", "%n", "%a", "%.200f"] {
            assert_eq!(Printf::parse(format, Argument::Real), None, "{format}");
        }
        assert_eq!(Printf::parse("%f", Argument::Integer(32)), None);
    }
}
