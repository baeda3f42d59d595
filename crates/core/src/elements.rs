//! The elements of an array as floats, for plots and coordinates.
//!
//! ```
//! use fieldstone_core::dtype::DType;
//! use fieldstone_core::elements::as_floats;
//! assert_eq!(as_floats(DType::parse(">i2")?, &[0xff, 0xfe, 1, 0])?, [-2.0, 256.0]);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use crate::dtype::{DType, DTypeKind};
use crate::{Code, Result};

/// Converts every element to a float, and a missing one to NaN. Invalid if the elements are not real numbers.
pub fn as_floats(dtype: DType, data: &[u8]) -> Result<Vec<f64>> {
    use DTypeKind::{Bool, DateTime, Float, Int, TimeDelta, UInt};
    let not_a_time = |i: i64| if i == i64::MIN { f64::NAN } else { i as f64 };
    Ok(match (dtype.kind(), dtype.size()) {
        (Bool | UInt, 1) => words(dtype, data, |[b]| f64::from(b)),
        (UInt, 2) => words(dtype, data, |b| u16::from_le_bytes(b).into()),
        (UInt, 4) => words(dtype, data, |b| u32::from_le_bytes(b).into()),
        (UInt, 8) => words(dtype, data, |b| u64::from_le_bytes(b) as f64),
        (Int, 1) => words(dtype, data, |b| i8::from_le_bytes(b).into()),
        (Int, 2) => words(dtype, data, |b| i16::from_le_bytes(b).into()),
        (Int, 4) => words(dtype, data, |b| i32::from_le_bytes(b).into()),
        (Int, 8) => words(dtype, data, |b| i64::from_le_bytes(b) as f64),
        (DateTime | TimeDelta, 8) => words(dtype, data, |b| not_a_time(i64::from_le_bytes(b))),
        (Float, 2) => words(dtype, data, |b| half(u16::from_le_bytes(b))),
        (Float, 4) => words(dtype, data, |b| f32::from_le_bytes(b).into()),
        (Float, 8) => words(dtype, data, f64::from_le_bytes),
        _ => {
            return Err(Code::Dtype
                .error(format!("elements of type {dtype} are not real numbers"))
                .with_hint("use integers, floats, booleans or times"));
        }
    })
}

fn words<const N: usize>(dtype: DType, data: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    // `read` takes little-endian words.
    let swap = dtype.is_native() == cfg!(target_endian = "big");
    let word = |word: &[u8; N]| {
        let mut word = *word;
        if swap {
            word.reverse();
        }
        read(word)
    };
    data.as_chunks::<N>().0.iter().map(word).collect()
}

/// A 16-bit float: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_kind_and_byte_order() {
        let floats = |typestr: &str, data: &[u8]| as_floats(DType::parse(typestr).unwrap(), data).unwrap();
        assert_eq!(floats(">i2", &[0xff, 0xfe, 1, 0]), [-2.0, 256.0]);
        assert_eq!(floats("<i2", &[0xff, 0xfe]), [-257.0]);
        assert_eq!(floats("<f4", &1.5f32.to_le_bytes()), [1.5]);
        assert_eq!(floats(">f8", &(-2.25f64).to_be_bytes()), [-2.25]);
        assert_eq!(floats("|b1", &[0, 1]), [0.0, 1.0]);
        assert_eq!(floats("<f2", &[0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00]), [1.0, -2.0, 2f64.powi(-24)]);
        assert!(floats("<M8[s]", &i64::MIN.to_le_bytes())[0].is_nan());
        assert!(as_floats(DType::parse("c8").unwrap(), &[0; 8]).is_err());
    }
}
