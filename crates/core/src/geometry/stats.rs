//! Minimum, maximum and number of missing elements of an array, from its bytes.
//!
//! One pass takes 64 bytes at a time and keeps a minimum, maximum and count for each of their elements, without
//! branches, so that compilers use vector instructions; the bytes need no alignment.

use crate::dtype::{DType, DTypeKind};
use std::cmp::Ordering;

/// A number from an array, wide enough to be exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Signed integers and times.
    Int(i64),
    /// Unsigned integers and booleans (0 or 1).
    UInt(u64),
    /// Floats.
    Float(f64),
}

impl Scalar {
    /// Exact comparison by value, also between variants; `None` for NaN.
    pub fn compare(self, other: Scalar) -> Option<Ordering> {
        match (self, other) {
            (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
            (Scalar::Float(a), b) => compare_whole(b.whole(), a).map(Ordering::reverse),
            (a, Scalar::Float(b)) => compare_whole(a.whole(), b),
            (a, b) => Some(a.whole().cmp(&b.whole())),
        }
    }

    /// The value as a float, rounded if necessary.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(f) => f,
        }
    }

    fn whole(self) -> i128 {
        match self {
            Scalar::Int(i) => i.into(),
            Scalar::UInt(u) => u.into(),
            Scalar::Float(f) => f as i128,
        }
    }
}

/// `whole` fits in 65 bits, so a cast of the float's floor that saturates at 128 bits keeps the order.
fn compare_whole(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let floor = float.floor();
    let order = whole.cmp(&(floor as i128));
    Some(if order == Ordering::Equal && float > floor { Ordering::Less } else { order })
}

/// The result of [`summarize`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest element that is not missing; `None` if all are.
    pub min: Option<Scalar>,
    /// Largest element that is not missing; `None` if all are.
    pub max: Option<Scalar>,
    /// Elements that are NaN, "not a time" or the fill value.
    pub missing: u64,
}

impl Summary {
    /// The summary of an empty set: the neutral element of [`merge`](Self::merge).
    pub const EMPTY: Summary = Summary { min: None, max: None, missing: 0 };

    /// Adds the summary of further elements.
    pub fn merge(&mut self, other: &Summary) {
        self.min = pick(self.min, other.min, Ordering::Greater);
        self.max = pick(self.max, other.max, Ordering::Less);
        self.missing = self.missing.saturating_add(other.missing);
    }
}

/// Returns `a`, unless it is absent or compares to `b` as `worse`.
fn pick(a: Option<Scalar>, b: Option<Scalar>, worse: Ordering) -> Option<Scalar> {
    match (a, b) {
        (Some(x), Some(y)) if x.compare(y) == Some(worse) => Some(y),
        (None, b) => b,
        (a, _) => a,
    }
}

/// Summarizes the elements in `data`, which may lie at any address.
///
/// NaN, "not a time", and elements equal to `fill` count as missing (`fill` has the dtype's byte order; floats are
/// compared as numbers). `None` for complex numbers, bytes and text, and if `data` or `fill` is not a whole number of
/// elements.
pub fn summarize(dtype: DType, data: &[u8], fill: Option<&[u8]>) -> Option<Summary> {
    use DTypeKind::{Bool, DateTime, Float, Int, TimeDelta, UInt};
    if !data.len().is_multiple_of(dtype.size()) {
        return None;
    }
    if fill.is_some_and(|fill| fill.len() != dtype.size()) {
        return None;
    }
    let swap = !dtype.is_native();
    Some(match (dtype.kind(), dtype.size()) {
        (Bool, _) => lanes::<Flag, 1, 64>(swap, data, fill),
        (Int, 1) => lanes::<i8, 1, 64>(swap, data, fill),
        (Int, 2) => lanes::<i16, 2, 32>(swap, data, fill),
        (Int, 4) => lanes::<i32, 4, 16>(swap, data, fill),
        (Int, _) => lanes::<i64, 8, 8>(swap, data, fill),
        (UInt, 1) => lanes::<u8, 1, 64>(swap, data, fill),
        (UInt, 2) => lanes::<u16, 2, 32>(swap, data, fill),
        (UInt, 4) => lanes::<u32, 4, 16>(swap, data, fill),
        (UInt, _) => lanes::<u64, 8, 8>(swap, data, fill),
        (Float, 2) => lanes::<Half, 2, 32>(swap, data, fill),
        (Float, 4) => lanes::<f32, 4, 16>(swap, data, fill),
        (Float, _) => lanes::<f64, 8, 8>(swap, data, fill),
        (DateTime | TimeDelta, _) => lanes::<Time, 8, 8>(swap, data, fill),
        _ => return None,
    })
}

/// As [`summarize`], with any number of fill values: `missing` holds them as consecutive elements.
pub fn summarize_without(dtype: DType, data: &[u8], missing: &[u8]) -> Option<Summary> {
    let size = dtype.size();
    if !missing.len().is_multiple_of(size) {
        return None;
    }
    let mut values = missing.chunks_exact(size);
    let Some(first) = values.next() else { return summarize(dtype, data, None) };
    if values.len() == 0 {
        return summarize(dtype, data, Some(first));
    }
    let is_gone = |item: &[u8]| values.clone().any(|value| value == item);
    // Replace every fill value by the first one, which is then left out.
    let mut one = data.to_vec();
    one.chunks_exact_mut(size).filter(|item| is_gone(item)).for_each(|item| item.copy_from_slice(first));
    summarize(dtype, &one, Some(first))
}

/// An element of `N` bytes.
trait ScanElement<const N: usize>: Copy + PartialOrd {
    /// Unsigned integer of the same width, so that counts stay in the same vector lanes.
    type Count: Copy + Default + std::ops::AddAssign + From<bool> + Into<u64>;
    /// Greater than or equal to every element.
    const TOP: Self;
    /// Less than or equal to every element.
    const BOTTOM: Self;
    /// Whether a compiler may take the minimum of such elements in any order, and so finds vector instructions by
    /// itself: true for integers, false for floats.
    const REORDERS: bool;

    fn load(bytes: [u8; N]) -> Self;
    fn is_missing(self) -> bool;
    fn scalar(self) -> Scalar;
}

/// Number of additions after which a count is moved to 64 bits: a multiple of the lanes that fits in the narrowest
/// count.
const ROUNDS: usize = 192;

fn lanes<T: ScanElement<N>, const N: usize, const L: usize>(
    swap: bool,
    data: &[u8],
    fill: Option<&[u8]>,
) -> Summary {
    let items = data.as_chunks::<N>().0;
    let fill = fill.and_then(|fill| fill.first_chunk::<N>()).copied();
    if swap { Scan::<T, N, L, true>::run(items, fill) } else { Scan::<T, N, L, false>::run(items, fill) }
}

/// Minimum and maximum of each lane so far, and the number of missing elements.
struct Scan<T, const N: usize, const L: usize, const SWAP: bool> {
    min: [T; L],
    max: [T; L],
    missing: u64,
}

impl<T: ScanElement<N>, const N: usize, const L: usize, const SWAP: bool> Scan<T, N, L, SWAP> {
    fn run(items: &[[u8; N]], fill: Option<[u8; N]>) -> Summary {
        let mut scan = Self { min: [T::TOP; L], max: [T::BOTTOM; L], missing: 0 };
        match fill.map(Self::load) {
            None => scan.take(items),
            Some(fill) => {
                // Fill values mostly occur in stretches (land, the night side), so most blocks contain none, or
                // nothing else, and need no selection.
                for block in items.chunks(ROUNDS * L) {
                    let gone = Self::count(block, fill);
                    if gone == 0 {
                        scan.take(block);
                    } else if gone < block.len() as u64 {
                        scan.take_but(block, fill);
                    }
                    scan.missing += gone;
                }
            }
        }
        let some = scan.missing < items.len() as u64;
        let min = scan.min.into_iter().reduce(|a, b| if b < a { b } else { a });
        let max = scan.max.into_iter().reduce(|a, b| if b > a { b } else { a });
        Summary {
            min: min.filter(|_| some).map(T::scalar),
            max: max.filter(|_| some).map(T::scalar),
            missing: scan.missing,
        }
    }

    fn load(mut bytes: [u8; N]) -> T {
        if SWAP {
            bytes.reverse();
        }
        T::load(bytes)
    }

    /// Adds elements of which none is equal to the fill value.
    fn take(&mut self, items: &[[u8; N]]) {
        let (rows, rest) = items.as_chunks::<L>();
        for block in rows.chunks(ROUNDS) {
            let mut count = [T::Count::default(); L];
            for row in block {
                for i in 0..L {
                    let item = Self::load(row[i]);
                    let gone = item.is_missing();
                    self.put(i, item, gone);
                    count[i] += T::Count::from(gone);
                }
            }
            self.missing += count.iter().map(|&c| c.into()).sum::<u64>();
        }
        for &bytes in rest {
            let item = Self::load(bytes);
            self.put(0, item, item.is_missing());
            self.missing += u64::from(item.is_missing());
        }
    }

    /// Adds elements, skips those equal to `fill`, and counts none.
    fn take_but(&mut self, items: &[[u8; N]], fill: T) {
        let (rows, mut rest) = items.as_chunks::<L>();
        if T::REORDERS {
            rest = items;
        } else {
            for row in rows {
                for (i, &bytes) in row.iter().enumerate() {
                    let item = Self::load(bytes);
                    self.put(i, item, item.is_missing() | (item == fill));
                }
            }
        }
        let (mut min, mut max) = (self.min[0], self.max[0]);
        for &bytes in rest {
            let item = Self::load(bytes);
            let gone = item.is_missing() | (item == fill);
            let low = if gone { T::TOP } else { item };
            let high = if gone { T::BOTTOM } else { item };
            min = if low < min { low } else { min };
            max = if high > max { high } else { max };
        }
        self.min[0] = min;
        self.max[0] = max;
    }

    #[inline(always)]
    fn put(&mut self, lane: usize, item: T, gone: bool) {
        let low = if gone { T::TOP } else { item };
        let high = if gone { T::BOTTOM } else { item };
        self.min[lane] = if low < self.min[lane] { low } else { self.min[lane] };
        self.max[lane] = if high > self.max[lane] { high } else { self.max[lane] };
    }

    /// Number of missing elements, including those equal to `fill`.
    fn count(items: &[[u8; N]], fill: T) -> u64 {
        let mut total = 0;
        for block in items.chunks(ROUNDS) {
            let mut count = T::Count::default();
            for &bytes in block {
                let item = Self::load(bytes);
                count += T::Count::from(item.is_missing() | (item == fill));
            }
            total += count.into();
        }
        total
    }
}

macro_rules! integer_element {
    ($($type:ty, $size:literal, $count:ty, $scalar:ident;)*) => {$(
        impl ScanElement<$size> for $type {
            type Count = $count;
            const TOP: $type = <$type>::MAX;
            const BOTTOM: $type = <$type>::MIN;
            const REORDERS: bool = true;

            fn load(bytes: [u8; $size]) -> $type {
                <$type>::from_ne_bytes(bytes)
            }
            fn is_missing(self) -> bool {
                false
            }
            fn scalar(self) -> Scalar {
                Scalar::$scalar(self.into())
            }
        }
    )*};
}

integer_element! {
    i8, 1, u8, Int;
    i16, 2, u16, Int;
    i32, 4, u32, Int;
    i64, 8, u64, Int;
    u8, 1, u8, UInt;
    u16, 2, u16, UInt;
    u32, 4, u32, UInt;
    u64, 8, u64, UInt;
}

macro_rules! float_element {
    ($($type:ty, $size:literal, $count:ty;)*) => {$(
        impl ScanElement<$size> for $type {
            type Count = $count;
            const TOP: $type = <$type>::INFINITY;
            const BOTTOM: $type = <$type>::NEG_INFINITY;
            const REORDERS: bool = false;

            fn load(bytes: [u8; $size]) -> $type {
                <$type>::from_ne_bytes(bytes)
            }
            fn is_missing(self) -> bool {
                self.is_nan()
            }
            fn scalar(self) -> Scalar {
                Scalar::Float(self.into())
            }
        }
    )*};
}

float_element! {
    f32, 4, u32;
    f64, 8, u64;
}

/// A boolean; any byte except 0 is true, as in numpy.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Flag(u8);

impl ScanElement<1> for Flag {
    type Count = u8;
    const TOP: Flag = Flag(1);
    const BOTTOM: Flag = Flag(0);
    const REORDERS: bool = true;

    fn load(bytes: [u8; 1]) -> Flag {
        Flag(u8::from(bytes[0] != 0))
    }
    fn is_missing(self) -> bool {
        false
    }
    fn scalar(self) -> Scalar {
        Scalar::UInt(self.0.into())
    }
}

/// A datetime or timedelta.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Time(i64);

impl ScanElement<8> for Time {
    type Count = u64;
    const TOP: Time = Time(i64::MAX);
    const BOTTOM: Time = Time(i64::MIN);
    const REORDERS: bool = true;

    fn load(bytes: [u8; 8]) -> Time {
        Time(i64::from_ne_bytes(bytes))
    }
    fn is_missing(self) -> bool {
        self.0 == i64::MIN
    }
    fn scalar(self) -> Scalar {
        Scalar::Int(self.0)
    }
}

/// A 16-bit float, held as an integer of the same order: its bits, with those of negative numbers below the sign
/// inverted, and -0 made 0. So comparisons need not decode it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Half(i16);

impl Half {
    const INFINITY: i16 = 0x7c00;
    const NEG_INFINITY: i16 = !0x7c00;
}

impl ScanElement<2> for Half {
    type Count = u16;
    const TOP: Half = Half(Half::INFINITY);
    const BOTTOM: Half = Half(Half::NEG_INFINITY);
    const REORDERS: bool = true;

    fn load(bytes: [u8; 2]) -> Half {
        let bits = i16::from_ne_bytes(bytes);
        let key = bits ^ ((bits >> 15) & 0x7fff);
        Half(if key == -1 { 0 } else { key })
    }
    fn is_missing(self) -> bool {
        (self.0 > Half::INFINITY) | (self.0 < Half::NEG_INFINITY)
    }
    fn scalar(self) -> Scalar {
        let bits = self.0 ^ ((self.0 >> 15) & 0x7fff);
        let exponent = i32::from((bits >> 10) & 0x1f);
        let fraction = f64::from(bits & 0x3ff);
        let magnitude = match exponent {
            0 => fraction * 2_f64.powi(-24),
            0x1f => f64::INFINITY,
            _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
        };
        Scalar::Float(if bits < 0 { -magnitude } else { magnitude })
    }
}
