//! Elements of every type that finders accept, loaded from bytes at any address.

use fieldstone_core::dtype::{DType, DTypeKind};

use super::bounds::Bounds;
use super::regions::{Region, label};

/// An element of `N` bytes.
pub trait Element<const N: usize>: Copy + PartialOrd {
    /// Reads it in this machine's byte order.
    fn load(bytes: [u8; N]) -> Self;
    /// As a float, rounded if necessary.
    fn float(self) -> f64;
    /// The bounds in this type; if nothing passes, the first is greater than the second.
    fn bounds(bounds: &Bounds) -> (Self, Self);
}

macro_rules! wholes {
    ($($type:ty, $size:literal;)*) => {$(
        impl Element<$size> for $type {
            fn load(bytes: [u8; $size]) -> $type {
                <$type>::from_ne_bytes(bytes)
            }
            fn float(self) -> f64 {
                self as f64
            }
            fn bounds(bounds: &Bounds) -> ($type, $type) {
                let (from, to) = bounds.wholes;
                if from > to || from > <$type>::MAX.into() || to < <$type>::MIN.into() {
                    return (<$type>::MAX, <$type>::MIN);
                }
                let from = <$type>::try_from(from).unwrap_or(<$type>::MIN);
                (from, <$type>::try_from(to).unwrap_or(<$type>::MAX))
            }
        }
    )*};
}

wholes! { i8, 1; i16, 2; i32, 4; i64, 8; u8, 1; u16, 2; u32, 4; u64, 8; }

impl Element<8> for f64 {
    fn load(bytes: [u8; 8]) -> f64 {
        f64::from_ne_bytes(bytes)
    }
    fn float(self) -> f64 {
        self
    }
    fn bounds(bounds: &Bounds) -> (f64, f64) {
        bounds.floats
    }
}

/// A float of 4 bytes; compared as one of 8, which is exact.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Single(f64);

impl Element<4> for Single {
    fn load(bytes: [u8; 4]) -> Single {
        Single(f32::from_ne_bytes(bytes).into())
    }
    fn float(self) -> f64 {
        self.0
    }
    fn bounds(bounds: &Bounds) -> (Single, Single) {
        (Single(bounds.floats.0), Single(bounds.floats.1))
    }
}

/// A float of 2 bytes.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Half(f64);

impl Element<2> for Half {
    fn load(bytes: [u8; 2]) -> Half {
        let bits = u16::from_ne_bytes(bytes);
        let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
        let magnitude = match exponent {
            0 => fraction * 2_f64.powi(-24),
            0x1f if fraction > 0.0 => f64::NAN,
            0x1f => f64::INFINITY,
            _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
        };
        Half(if bits >> 15 == 1 { -magnitude } else { magnitude })
    }
    fn float(self) -> f64 {
        self.0
    }
    fn bounds(bounds: &Bounds) -> (Half, Half) {
        (Half(bounds.floats.0), Half(bounds.floats.1))
    }
}

/// A bool: any byte but 0 is 1, as in numpy.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Flag(u8);

impl Element<1> for Flag {
    fn load(bytes: [u8; 1]) -> Flag {
        Flag(u8::from(bytes[0] != 0))
    }
    fn float(self) -> f64 {
        self.0.into()
    }
    fn bounds(bounds: &Bounds) -> (Flag, Flag) {
        let (from, to) = <u8 as Element<1>>::bounds(bounds);
        (Flag(from), Flag(to))
    }
}

/// Calls a generic function with the element type of a dtype.
macro_rules! with_type {
    ($dtype:expr, $call:ident ( $($argument:expr),* ), $otherwise:expr) => {
        match ($dtype.kind(), $dtype.size()) {
            (DTypeKind::Bool, _) => $call::<Flag, 1>($($argument),*),
            (DTypeKind::Int, 1) => $call::<i8, 1>($($argument),*),
            (DTypeKind::Int, 2) => $call::<i16, 2>($($argument),*),
            (DTypeKind::Int, 4) => $call::<i32, 4>($($argument),*),
            (DTypeKind::Int, 8) => $call::<i64, 8>($($argument),*),
            (DTypeKind::UInt, 1) => $call::<u8, 1>($($argument),*),
            (DTypeKind::UInt, 2) => $call::<u16, 2>($($argument),*),
            (DTypeKind::UInt, 4) => $call::<u32, 4>($($argument),*),
            (DTypeKind::UInt, 8) => $call::<u64, 8>($($argument),*),
            (DTypeKind::Float, 2) => $call::<Half, 2>($($argument),*),
            (DTypeKind::Float, 4) => $call::<Single, 4>($($argument),*),
            (DTypeKind::Float, 8) => $call::<f64, 8>($($argument),*),
            _ => $otherwise,
        }
    };
}

/// Reads an element in either byte order.
pub fn load<T: Element<N>, const N: usize>(mut bytes: [u8; N], swap: bool) -> T {
    if swap {
        bytes.reverse();
    }
    T::load(bytes)
}

/// Mean of the elements that are not missing; `None` if all are.
pub fn mean(dtype: DType, data: &[u8]) -> Option<f64> {
    with_type!(dtype, mean_of(data, !dtype.is_native()), None)
}

/// Number of additions before a partial sum is set aside, so that large arrays lose no digits.
const ROW: usize = 4096;

fn mean_of<T: Element<N>, const N: usize>(data: &[u8], swap: bool) -> Option<f64> {
    let (mut sum, mut carried, mut n) = (0.0_f64, 0.0_f64, 0_u64);
    for row in data.as_chunks::<N>().0.chunks(ROW) {
        let (mut lanes, mut counts) = ([0.0_f64; 8], [0_u64; 8]);
        for eight in row.chunks(8) {
            for (lane, bytes) in eight.iter().enumerate() {
                let value = load::<T, N>(*bytes, swap).float();
                let there = !value.is_nan();
                lanes[lane] += if there { value } else { 0.0 };
                counts[lane] += u64::from(there);
            }
        }
        n += counts.iter().sum::<u64>();
        // Compensated if the sum is finite: infinities stay infinities.
        let part: f64 = lanes.iter().sum();
        let next = sum + part;
        if next.is_finite() {
            carried += if sum.abs() >= part.abs() { (sum - next) + part } else { (part - next) + sum };
        }
        sum = next;
    }
    let total = if sum.is_finite() { sum + carried } else { sum };
    (n > 0).then(|| total / n as f64)
}

/// Regions of neighbouring elements in bounds, in a C-order array of these extents.
pub fn regions(dtype: DType, data: &[u8], count: &[u64], bounds: &Bounds) -> Vec<Region> {
    with_type!(dtype, label(data, !dtype.is_native(), count, bounds), Vec::new())
}
