//! Memory of one rank: random strides, random byte order, and elements computed from their index.

use fieldstone_array::distributed::group::Memory;
use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::env::sim::Random;

/// A buffer with random strides: its bytes, the strides, the offset of its first element.
pub struct Strided {
    pub bytes: Vec<u8>,
    pub strides: Vec<isize>,
    pub origin: usize,
}

impl Strided {
    /// Dense in C or Fortran order, with gaps between elements, or with reversed axes.
    pub fn new(random: &mut Random, shape: &[u64], size: usize) -> Strided {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        if random.below(3) == 0 {
            order.reverse();
        }
        let (mut strides, mut origin) = (vec![0; shape.len()], 0);
        let mut apart = size + if random.below(4) == 0 { 3 } else { 0 };
        for dim in order {
            strides[dim] = apart as isize;
            if random.below(4) == 0 && shape[dim] > 0 {
                origin += apart * (shape[dim] as usize - 1);
                strides[dim] = -strides[dim];
            }
            apart *= shape[dim] as usize;
        }
        Strided { bytes: vec![0xee; apart + size], strides, origin }
    }

    /// The offset of each element, in C order.
    pub fn offsets(&self, shape: &[u64]) -> Vec<usize> {
        let mut offsets = vec![self.origin as isize];
        for (len, stride) in shape.iter().zip(&self.strides) {
            offsets =
                offsets.iter().flat_map(|at| (0..*len).map(move |n| at + n as isize * stride)).collect();
        }
        offsets.into_iter().map(|offset| offset as usize).collect()
    }
}

/// The bytes of element `at` in memory.
pub fn value(at: u64, size: usize) -> Vec<u8> {
    (0..size).map(|n| (at as usize * 31 + n * 7 + at as usize / 256 + 1) as u8).collect()
}

/// Converts bytes from one byte order to another.
pub fn turn(from: DType, to: DType, bytes: &mut [u8]) {
    if from != to {
        from.swap_bytes(bytes);
    }
}

/// Memory of one rank, in either byte order and with any strides.
pub struct OwnMemory {
    pub strided: Strided,
    pub dtype: DType,
}

impl OwnMemory {
    pub fn new(dtype: DType, local: &[u64], seed: u64) -> OwnMemory {
        let mut random = Random::new(seed);
        let order = if random.one_in(3) { ByteOrder::Big } else { ByteOrder::Little };
        let dtype = dtype.with_order(order);
        OwnMemory { strided: Strided::new(&mut random, local, dtype.size()), dtype }
    }

    /// Stores an element given as in files.
    pub fn put(&mut self, offset: usize, mut element: Vec<u8>) {
        turn(self.dtype.with_order(ByteOrder::Big), self.dtype, &mut element);
        self.strided.bytes[offset..offset + element.len()].copy_from_slice(&element);
    }

    pub fn shared<'a>(&'a self, local: &'a [u64]) -> Memory<'a> {
        let Strided { bytes, strides, origin } = &self.strided;
        Memory { bytes, dtype: self.dtype, shape: local, strides, origin: *origin }
    }
}
