//! A rank's memory, with any strides: C or Fortran order, slices, reversed axes.
//!
//! Elements count in C order of the memory's shape, wherever they are in memory. Dimensions that are contiguous in
//! memory are merged first, so that dense memory is a plain list (A-2). Copies convert bytes to the byte order of the
//! file.
//!
//! Invariants: every element is inside the bytes, which the constructor checks; no other bytes are read or changed.
//!
//! ```
//! use fieldstone_array::distributed::buffer::{Buffer, Element};
//! # fn main() -> fieldstone_core::Result<()> {
//! // Two rows and three columns of bytes, in Fortran order.
//! let buffer = Buffer::strided(&[1, 4, 2, 5, 3, 6], Element::new(1, 1)?, &[2, 3], &[1, 2], 0)?;
//! let mut row = [0; 3];
//! buffer.copy(3, &mut row);
//! assert_eq!(row, [4, 5, 6]);
//! # Ok(()) }
//! ```

use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::{Code, Result};

/// Calls a function with the number of bytes as a constant, for sizes that are common in fields: numbers, vectors and
/// small matrices. Copying a constant number of bytes takes a few instructions; copying a variable number takes a
/// call.
macro_rules! by_size {
    ($bytes:expr, $call:ident($($argument:expr),*), $other:expr) => {
        match $bytes {
            1 => $call::<1>($($argument),*),
            2 => $call::<2>($($argument),*),
            4 => $call::<4>($($argument),*),
            8 => $call::<8>($($argument),*),
            12 => $call::<12>($($argument),*),
            16 => $call::<16>($($argument),*),
            20 => $call::<20>($($argument),*),
            24 => $call::<24>($($argument),*),
            32 => $call::<32>($($argument),*),
            40 => $call::<40>($($argument),*),
            48 => $call::<48>($($argument),*),
            64 => $call::<64>($($argument),*),
            72 => $call::<72>($($argument),*),
            _ => $other,
        }
    };
}
pub(crate) use by_size;

/// Size of an element, and how its bytes are swapped on their way to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    size: usize,
    swap: usize,
}

impl Element {
    /// Limit on the size of an element.
    pub const LARGEST: usize = 16;

    /// Makes an element of `size` bytes, of which groups of `swap` are reversed; 1 for no swap.
    ///
    /// Errors: `Invalid` beyond [`LARGEST`](Element::LARGEST), or if `swap` is not 1, 2, 4 or 8, or does not divide
    /// `size`.
    pub fn new(size: usize, swap: usize) -> Result<Element> {
        let fits = (1..=Element::LARGEST).contains(&size)
            && [1, 2, 4, 8].contains(&swap)
            && size.is_multiple_of(swap);
        match fits {
            true => Ok(Element { size, swap }),
            false => Err(Code::Dtype
                .error(format!("elements of {size} bytes, swapped in groups of {swap}"))
                .with_hint("elements of distributed arrays have 1 to 16 bytes")),
        }
    }

    /// Elements of this type, for a file in `order`.
    ///
    /// Errors: as for [`new`](Element::new).
    pub fn of(dtype: DType, order: ByteOrder) -> Result<Element> {
        let same = dtype.byte_order() == ByteOrder::None || dtype.byte_order() == order;
        Element::new(dtype.size(), if same { 1 } else { dtype.word() })
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        self.size
    }

    /// The strides in bytes of dense memory of this shape, in C order.
    pub fn dense(self, shape: &[u64]) -> Vec<isize> {
        let mut apart = self.size as isize;
        let mut strides: Vec<isize> = shape
            .iter()
            .rev()
            .map(|len| {
                let stride = apart;
                apart = apart.saturating_mul((*len).max(1) as isize);
                stride
            })
            .collect();
        strides.reverse();
        strides
    }

    /// Converts elements to the other byte order, in place.
    fn turn(self, bytes: &mut [u8]) {
        fn reverse<const N: usize>(bytes: &mut [u8]) {
            bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|word| word.reverse());
        }
        match self.swap {
            2 => reverse::<2>(bytes),
            4 => reverse::<4>(bytes),
            8 => reverse::<8>(bytes),
            _ => {}
        }
    }
}

/// The index of an element in memory, in a narrow type if all fit.
pub trait Position: Copy + Send + Sync + std::fmt::Debug {
    /// The index.
    fn get(self) -> usize;
}

impl Position for u32 {
    fn get(self) -> usize {
        self as usize
    }
}

impl Position for u64 {
    fn get(self) -> usize {
        self as usize
    }
}

/// The layout of elements in some bytes.
#[derive(Debug, Clone)]
struct MemoryLayout {
    element: Element,
    /// Offset of the first element.
    origin: usize,
    /// Length and stride in bytes of each dimension, outermost first, without those of length 1.
    dims: Vec<(u64, isize)>,
    elements: u64,
}

impl MemoryLayout {
    fn new(
        len: usize,
        element: Element,
        shape: &[u64],
        strides: &[isize],
        origin: usize,
    ) -> Result<MemoryLayout> {
        if strides.len() != shape.len() {
            return Err(Code::Shape.error(format!(
                "{} strides for {} dimensions of memory",
                strides.len(),
                shape.len()
            )));
        }
        let elements = shape.iter().filter(|len| **len > 0).try_fold(1u64, |n, len| n.checked_mul(*len));
        let elements = if shape.contains(&0) { Some(0) } else { elements };
        let (mut low, mut high) = (origin as i128, origin as i128 + element.size as i128);
        for (len, stride) in shape.iter().zip(strides) {
            let reach = (i128::from(*len) - 1).max(0) * *stride as i128;
            (low, high) = (low + reach.min(0), high + reach.max(0));
        }
        let Some(elements) = elements.filter(|n| *n == 0 || (low >= 0 && high <= len as i128)) else {
            return Err(Code::BufferSize
                .error(format!(
                    "{shape:?} elements of {} bytes with strides {strides:?} from byte {origin} on do not \
                     fit in {len} bytes",
                    element.size
                ))
                .with_hint("pass memory with the local shape of the view"));
        };
        let mut dims: Vec<(u64, isize)> = Vec::new();
        for (len, stride) in shape.iter().copied().zip(strides.iter().copied()).filter(|(len, _)| *len != 1) {
            match dims.last_mut() {
                Some((outer, apart)) if *apart as i128 == len as i128 * stride as i128 => {
                    (*outer, *apart) = (*outer * len, stride);
                }
                _ => dims.push((len, stride)),
            }
        }
        Ok(MemoryLayout { element, origin, dims: if elements == 0 { Vec::new() } else { dims }, elements })
    }

    fn is_dense(&self) -> bool {
        match self.dims[..] {
            [] => true,
            [(_, stride)] => stride == self.element.size as isize,
            _ => false,
        }
    }

    /// Offset of element `at`, its stride, and how many elements follow at this stride.
    fn offset(&self, at: usize) -> (usize, isize, usize) {
        let (mut left, mut offset, mut row) = (at as u64, self.origin as isize, 1);
        for (i, (len, stride)) in self.dims.iter().rev().enumerate() {
            let index = if i + 1 == self.dims.len() { left } else { left % len };
            left /= len;
            offset += index as isize * stride;
            row = if i == 0 { len - index } else { row };
        }
        (offset as usize, self.dims.last().map_or(0, |(_, stride)| *stride), row as usize)
    }

    /// Calls `act` with the offset of each of `count` elements from `at` on, and its index among them.
    fn each(&self, at: usize, count: usize, mut act: impl FnMut(usize, usize)) {
        let mut done = 0;
        while done < count {
            let (offset, stride, row) = self.offset(at + done);
            for n in 0..row.min(count - done) {
                act(offset.wrapping_add_signed(stride * n as isize), done + n);
            }
            done += row.min(count - done);
        }
    }
}

/// Memory from which elements are read.
#[derive(Debug, Clone)]
pub struct Buffer<'a> {
    bytes: &'a [u8],
    layout: MemoryLayout,
}

impl<'a> Buffer<'a> {
    /// Makes a buffer of dense memory in C order.
    ///
    /// Errors: as for [`strided`](Buffer::strided).
    pub fn new(bytes: &'a [u8], element: Element, shape: &[u64]) -> Result<Buffer<'a>> {
        Buffer::strided(bytes, element, shape, &element.dense(shape), 0)
    }

    /// Makes a buffer of memory whose first element begins at byte `origin`, with strides in bytes.
    ///
    /// Errors: `Invalid` if an element is not inside the bytes.
    pub fn strided(
        bytes: &'a [u8],
        element: Element,
        shape: &[u64],
        strides: &[isize],
        origin: usize,
    ) -> Result<Buffer<'a>> {
        Ok(Buffer { bytes, layout: MemoryLayout::new(bytes.len(), element, shape, strides, origin)? })
    }

    /// As [`strided`](Buffer::strided), but counts elements in Fortran order: the same memory, for an array that is
    /// stored with its dimensions reversed (see [`LocalView::transposed`](super::view::LocalView::transposed)).
    ///
    /// Errors: as for [`Buffer::strided`].
    pub fn transposed(
        bytes: &'a [u8],
        element: Element,
        shape: &[u64],
        strides: &[isize],
        origin: usize,
    ) -> Result<Buffer<'a>> {
        let shape: Vec<u64> = shape.iter().rev().copied().collect();
        let strides: Vec<isize> = strides.iter().rev().copied().collect();
        Buffer::strided(bytes, element, &shape, &strides, origin)
    }

    /// The type of its elements.
    pub fn element(&self) -> Element {
        self.layout.element
    }

    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.layout.elements
    }

    /// Fills `out` with the elements from `at` on, as they are in the file.
    pub fn copy(&self, at: usize, out: &mut [u8]) {
        self.copy_raw(at, out);
        self.layout.element.turn(out);
    }

    fn copy_raw(&self, at: usize, out: &mut [u8]) {
        let size = self.layout.element.size;
        if self.layout.is_dense() {
            let from = self.layout.origin + at * size;
            out.copy_from_slice(&self.bytes[from..from + out.len()]);
            return;
        }
        self.layout.each(at, out.len() / size, |offset, n| {
            out[n * size..(n + 1) * size].copy_from_slice(&self.bytes[offset..offset + size]);
        });
    }

    /// Fills `out` with `unit` elements from each of `positions`, as they are in the file.
    pub fn gather<P: Position>(&self, positions: &[P], unit: usize, out: &mut [u8]) {
        let size = self.layout.element.size;
        let dense = self.layout.is_dense().then(|| self.bytes.get(self.layout.origin..).unwrap_or_default());
        for (positions, out) in positions.chunks(CHUNK).zip(out.chunks_mut(CHUNK * unit * size)) {
            let one_by_one = |out: &mut [u8]| {
                let units = out.chunks_exact_mut(unit * size);
                units.zip(positions).for_each(|(out, at)| self.copy_raw(at.get(), out));
            };
            match dense {
                Some(from) => by_size!(unit * size, gather(from, size, positions, out), one_by_one(out)),
                None => one_by_one(out),
            }
            self.layout.element.turn(out);
        }
    }
}

/// Fills `out` with `N` bytes from each of `positions`, which count elements of `size` bytes.
fn gather<const N: usize>(bytes: &[u8], size: usize, positions: &[impl Position], out: &mut [u8]) {
    for (out, at) in out.as_chunks_mut::<N>().0.iter_mut().zip(positions) {
        let begin = at.get() * size;
        out.copy_from_slice(&bytes[begin..begin + N]);
    }
}

/// The inverse of [`gather`].
fn scatter<const N: usize>(bytes: &mut [u8], size: usize, positions: &[impl Position], from: &[u8]) {
    for (from, at) in from.as_chunks::<N>().0.iter().zip(positions) {
        let begin = at.get() * size;
        bytes[begin..begin + N].copy_from_slice(from);
    }
}

/// Units copied and then swapped: few enough to stay in the cache.
const CHUNK: usize = 1 << 11;

/// Memory into which elements are written.
#[derive(Debug)]
pub struct BufferMut<'a> {
    bytes: &'a mut [u8],
    layout: MemoryLayout,
}

impl<'a> BufferMut<'a> {
    /// Makes a buffer of dense memory in C order.
    ///
    /// Errors: as for [`Buffer::strided`].
    pub fn new(bytes: &'a mut [u8], element: Element, shape: &[u64]) -> Result<BufferMut<'a>> {
        BufferMut::strided(bytes, element, shape, &element.dense(shape), 0)
    }

    /// Makes a buffer of memory whose first element begins at byte `origin`, with strides in bytes.
    ///
    /// Errors: as for [`Buffer::strided`].
    pub fn strided(
        bytes: &'a mut [u8],
        element: Element,
        shape: &[u64],
        strides: &[isize],
        origin: usize,
    ) -> Result<BufferMut<'a>> {
        let layout = MemoryLayout::new(bytes.len(), element, shape, strides, origin)?;
        Ok(BufferMut { bytes, layout })
    }

    /// As [`strided`](BufferMut::strided), but counts elements in Fortran order: the same memory, for an array that
    /// is stored with its dimensions reversed (see [`LocalView::transposed`](super::view::LocalView::transposed)).
    ///
    /// Errors: as for [`Buffer::strided`].
    pub fn transposed(
        bytes: &'a mut [u8],
        element: Element,
        shape: &[u64],
        strides: &[isize],
        origin: usize,
    ) -> Result<BufferMut<'a>> {
        let shape: Vec<u64> = shape.iter().rev().copied().collect();
        let strides: Vec<isize> = strides.iter().rev().copied().collect();
        BufferMut::strided(bytes, element, &shape, &strides, origin)
    }

    /// The type of its elements.
    pub fn element(&self) -> Element {
        self.layout.element
    }

    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.layout.elements
    }

    /// The same memory, for reading.
    pub fn as_buffer(&self) -> Buffer<'_> {
        Buffer { bytes: self.bytes, layout: self.layout.clone() }
    }

    /// Writes the elements from `at` on; `from` has them as they are in the file, and is swapped in place.
    pub fn place(&mut self, at: usize, from: &mut [u8]) {
        self.layout.element.turn(from);
        self.place_raw(at, from);
    }

    fn place_raw(&mut self, at: usize, from: &[u8]) {
        let size = self.layout.element.size;
        if self.layout.is_dense() {
            let begin = self.layout.origin + at * size;
            self.bytes[begin..begin + from.len()].copy_from_slice(from);
            return;
        }
        let bytes = &mut *self.bytes;
        self.layout.each(at, from.len() / size, |offset, n| {
            bytes[offset..offset + size].copy_from_slice(&from[n * size..(n + 1) * size]);
        });
    }

    /// Writes `unit` elements at each of `positions`; `from` has them as they are in the file, and is swapped in
    /// place.
    pub fn scatter<P: Position>(&mut self, positions: &[P], unit: usize, from: &mut [u8]) {
        let size = self.layout.element.size;
        for (positions, from) in positions.chunks(CHUNK).zip(from.chunks_mut(CHUNK * unit * size)) {
            self.layout.element.turn(from);
            if self.layout.is_dense() {
                let into = &mut self.bytes[self.layout.origin..];
                by_size!(unit * size, scatter(into, size, positions, from), {
                    for (from, at) in from.chunks_exact(unit * size).zip(positions) {
                        into[at.get() * size..][..from.len()].copy_from_slice(from);
                    }
                });
            } else {
                let units = from.chunks_exact(unit * size);
                units.zip(positions).for_each(|(from, at)| self.place_raw(at.get(), from));
            }
        }
    }
}
