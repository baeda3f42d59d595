//! Conversion of values between a file (big-endian) and memory (this machine's order), by netCDF's rules.
//!
//! Any numeric type converts to any other; text (`char`) converts to nothing else. A value that the target
//! type cannot hold is a [`Misfit`]: the fill value replaces it, all other elements are converted, and the
//! first misfit is reported. The rules are those of the netCDF library, made exact where it leaves them to
//! the C compiler:
//!
//! * from integer to integer a value fits or it does not;
//! * from float to integer the fraction is cut off; the value before that must be in the range of the type;
//!   NaN and the infinities do not fit;
//! * from double to float the value is rounded; a finite one above the largest float does not fit; NaN and
//!   the infinities are kept;
//! * from integer to float the value is rounded, and always fits;
//! * in CDF-1 and CDF-2, which have no `ubyte`, a `byte` in the file and a `ubyte` in memory are the same
//!   eight bits.
//!
//! The netCDF library differs in three classes of values, for which it follows the C compiler: it converts
//! NaN, and the limit that a float rounds up to (2^63 as `int64`), to a meaningless integer without an error,
//! and it reports a range error for an infinity that goes from one float type to the other.
//!
//! Nothing is allocated, and only [`Conversion::new`] can fail. Slices of one call should have the same
//! number of elements; surplus elements of the longer one are not touched.
//!
//! ```
//! use fieldstone_format::netcdf::values::Conversion;
//! use fieldstone_format::netcdf::{NcType, Version};
//! # fn main() -> fieldstone_core::Result<()> {
//! let to_short = Conversion::new(NcType::Short, NcType::Double, Version::Cdf1)?;
//! let memory: Vec<u8> = [1.9f64, 40000.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
//! let mut file = [0; 4];
//! let misfit = to_short.write(&memory, &mut file, &(-1i16).to_be_bytes());
//! assert_eq!(file, [0, 1, 255, 255]);
//! assert_eq!(misfit.map(|m| (m.index, m.value)), Some((1, "40000".to_owned())));
//! # Ok(()) }
//! ```

use fieldstone_core::{Code, Result};

use super::{NcType, Version};

/// Calls `$function` for the Rust types of two netCDF types. Text only gets here if both are text.
macro_rules! dispatch {
    ($from:expr, $to:expr, $function:ident, $($argument:expr),*) => {
        match $from {
            NcType::Byte => dispatch!(@to i8, $to, $function, $($argument),*),
            NcType::Short => dispatch!(@to i16, $to, $function, $($argument),*),
            NcType::Int => dispatch!(@to i32, $to, $function, $($argument),*),
            NcType::Float => dispatch!(@to f32, $to, $function, $($argument),*),
            NcType::Double => dispatch!(@to f64, $to, $function, $($argument),*),
            NcType::UByte | NcType::Char => dispatch!(@to u8, $to, $function, $($argument),*),
            NcType::UShort => dispatch!(@to u16, $to, $function, $($argument),*),
            NcType::UInt => dispatch!(@to u32, $to, $function, $($argument),*),
            NcType::Int64 => dispatch!(@to i64, $to, $function, $($argument),*),
            NcType::UInt64 => dispatch!(@to u64, $to, $function, $($argument),*),
        }
    };
    (@to $from:ty, $to:expr, $function:ident, $($argument:expr),*) => {
        match $to {
            NcType::Byte => $function::<$from, i8, _, _>($($argument),*),
            NcType::Short => $function::<$from, i16, _, _>($($argument),*),
            NcType::Int => $function::<$from, i32, _, _>($($argument),*),
            NcType::Float => $function::<$from, f32, _, _>($($argument),*),
            NcType::Double => $function::<$from, f64, _, _>($($argument),*),
            NcType::UByte | NcType::Char => $function::<$from, u8, _, _>($($argument),*),
            NcType::UShort => $function::<$from, u16, _, _>($($argument),*),
            NcType::UInt => $function::<$from, u32, _, _>($($argument),*),
            NcType::Int64 => $function::<$from, i64, _, _>($($argument),*),
            NcType::UInt64 => $function::<$from, u64, _, _>($($argument),*),
        }
    };
}

/// A value that the target type cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Its position among the elements of the call.
    pub index: u64,
    /// The value as text.
    pub value: String,
}

/// The conversion between one type in the file and one in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    external: NcType,
    memory: NcType,
    copies: bool,
}

impl Conversion {
    /// The conversion between `external` in a file of `version` and `memory`.
    ///
    /// Errors: `Invalid` if one is text and the other is not.
    pub fn new(external: NcType, memory: NcType, version: Version) -> Result<Conversion> {
        if (external == NcType::Char) != (memory == NcType::Char) {
            let message = format!("{} in the file and {} in memory", external.name(), memory.name());
            return Err(Code::DtypeMismatch
                .error(format!("{message}: text and numbers do not convert to one another"))
                .with_hint(format!("read and write it as {}", external.name())));
        }
        let same_bits = version != Version::Cdf5 && external == NcType::Byte && memory == NcType::UByte;
        Ok(Conversion { external, memory, copies: external == memory || same_bits })
    }

    /// The type in the file.
    pub fn external(&self) -> NcType {
        self.external
    }

    /// The type in memory.
    pub fn memory(&self) -> NcType {
        self.memory
    }

    /// Whether only the byte order changes, so that [`turn`] can convert elements in place.
    pub fn copies(&self) -> bool {
        self.copies
    }

    /// From the file's bytes to memory. `fill` is the big-endian value of the memory's type that replaces
    /// misfits.
    pub fn read(&self, external: &[u8], memory: &mut [u8], fill: &[u8]) -> Option<Misfit> {
        if self.copies {
            turn_into(self.external.size(), external, memory);
            return None;
        }
        dispatch!(self.external, self.memory, reading, external, memory, fill)
    }

    /// From memory to the file's bytes. `fill` is the big-endian value of the file's type that replaces
    /// misfits.
    pub fn write(&self, memory: &[u8], external: &mut [u8], fill: &[u8]) -> Option<Misfit> {
        if self.copies {
            turn_into(self.external.size(), memory, external);
            return None;
        }
        dispatch!(self.memory, self.external, writing, memory, external, fill)
    }
}

/// Converts elements of `size` bytes between big-endian and this machine's order, in place.
pub fn turn(size: usize, bytes: &mut [u8]) {
    fn each<const N: usize>(bytes: &mut [u8], turned: impl Fn([u8; N]) -> [u8; N]) {
        for element in bytes.as_chunks_mut::<N>().0 {
            *element = turned(*element);
        }
    }
    match size {
        2 => each(bytes, |element| u16::from_be_bytes(element).to_ne_bytes()),
        4 => each(bytes, |element| u32::from_be_bytes(element).to_ne_bytes()),
        8 => each(bytes, |element| u64::from_be_bytes(element).to_ne_bytes()),
        _ => {}
    }
}

/// As [`turn`], but from one slice to another.
pub fn turn_into(size: usize, from: &[u8], to: &mut [u8]) {
    fn each<const N: usize>(from: &[u8], to: &mut [u8], turned: impl Fn([u8; N]) -> [u8; N]) {
        for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
            *to = turned(*from);
        }
    }
    match size {
        2 => each(from, to, |element| u16::from_be_bytes(element).to_ne_bytes()),
        4 => each(from, to, |element| u32::from_be_bytes(element).to_ne_bytes()),
        8 => each(from, to, |element| u64::from_be_bytes(element).to_ne_bytes()),
        _ => {
            let len = from.len().min(to.len());
            to[..len].copy_from_slice(&from[..len]);
        }
    }
}

/// A numeric type of `N` bytes.
trait Number<const N: usize>: Copy + Text {
    fn from_be(bytes: [u8; N]) -> Self;
    fn from_ne(bytes: [u8; N]) -> Self;
    fn be(self) -> [u8; N];
    fn ne(self) -> [u8; N];
}

/// Conversion of a value to another type; `None` if that type cannot hold it.
trait Fit<T> {
    fn fit(self) -> Option<T>;
}

macro_rules! numbers {
    ($($type:ty: $size:literal),*) => {$(
        impl Number<$size> for $type {
            fn from_be(bytes: [u8; $size]) -> $type { <$type>::from_be_bytes(bytes) }
            fn from_ne(bytes: [u8; $size]) -> $type { <$type>::from_ne_bytes(bytes) }
            fn be(self) -> [u8; $size] { self.to_be_bytes() }
            fn ne(self) -> [u8; $size] { self.to_ne_bytes() }
        }
    )*};
}
numbers!(i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, f32: 4, i64: 8, u64: 8, f64: 8);

macro_rules! integers {
    ($($from:ty),* => $to:tt) => {$(integers!(@one $from => $to);)*};
    (@one $from:ty => ($($to:ty),*)) => {
        $(impl Fit<$to> for $from {
            fn fit(self) -> Option<$to> { <$to>::try_from(self).ok() }
        })*
        impl Fit<f32> for $from {
            fn fit(self) -> Option<f32> { Some(self as f32) }
        }
        impl Fit<f64> for $from {
            fn fit(self) -> Option<f64> { Some(self as f64) }
        }
    };
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64 => (i8, u8, i16, u16, i32, u32, i64, u64));

macro_rules! floats {
    // If the float type holds the largest integer exactly, that is the limit. If it rounds the integer up to
    // the next power of two, the limit itself does not fit.
    ($from:ty: exact $($exact:ty),*; rounded $($rounded:ty),*) => {
        $(impl Fit<$exact> for $from {
            fn fit(self) -> Option<$exact> {
                let fits = self >= <$exact>::MIN as $from && self <= <$exact>::MAX as $from;
                fits.then_some(self as $exact)
            }
        })*
        $(impl Fit<$rounded> for $from {
            fn fit(self) -> Option<$rounded> {
                let fits = self >= <$rounded>::MIN as $from && self < <$rounded>::MAX as $from;
                fits.then_some(self as $rounded)
            }
        })*
    };
}
floats!(f32: exact i8, u8, i16, u16; rounded i32, u32, i64, u64);
floats!(f64: exact i8, u8, i16, u16, i32, u32; rounded i64, u64);

impl Fit<f32> for f32 {
    fn fit(self) -> Option<f32> {
        Some(self)
    }
}
impl Fit<f64> for f32 {
    fn fit(self) -> Option<f64> {
        Some(f64::from(self))
    }
}
impl Fit<f64> for f64 {
    fn fit(self) -> Option<f64> {
        Some(self)
    }
}
impl Fit<f32> for f64 {
    fn fit(self) -> Option<f32> {
        let fits = !self.is_finite() || (self >= f64::from(f32::MIN) && self <= f64::from(f32::MAX));
        fits.then_some(self as f32)
    }
}

/// Numbers that have a text form.
trait Text: std::fmt::Display + std::fmt::LowerExp {}

impl<T: std::fmt::Display + std::fmt::LowerExp> Text for T {}

/// A number as text: 1e300 rather than 301 digits.
fn shown(value: impl Text) -> String {
    let text = value.to_string();
    // No integer is longer.
    if text.len() > "-9223372036854775808".len() { format!("{value:e}") } else { text }
}

fn convert<S: Fit<T> + Copy + Text, T: Copy, const N: usize, const M: usize>(
    (from, to): (&[u8], &mut [u8]),
    (read, write): (impl Fn([u8; N]) -> S, impl Fn(T) -> [u8; M]),
    fill: T,
) -> Option<Misfit> {
    let mut first = None;
    for (i, (from, to)) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<M>().0).enumerate() {
        let value = read(*from);
        *to = write(value.fit().unwrap_or_else(|| {
            first.get_or_insert((i, value));
            fill
        }));
    }
    first.map(|(index, value)| Misfit { index: index as u64, value: shown(value) })
}

/// `fill` as a number; zero if its size is wrong, which no caller of ours does.
fn filling<T: Number<M>, const M: usize>(fill: &[u8]) -> T {
    T::from_be(fill.first_chunk().copied().unwrap_or([0; M]))
}

fn reading<S: Number<N> + Fit<T>, T: Number<M>, const N: usize, const M: usize>(
    from: &[u8],
    to: &mut [u8],
    fill: &[u8],
) -> Option<Misfit> {
    convert((from, to), (S::from_be, T::ne), filling(fill))
}

fn writing<S: Number<N> + Fit<T>, T: Number<M>, const N: usize, const M: usize>(
    from: &[u8],
    to: &mut [u8],
    fill: &[u8],
) -> Option<Misfit> {
    convert((from, to), (S::from_ne, T::be), filling(fill))
}

#[cfg(test)]
mod tests;
