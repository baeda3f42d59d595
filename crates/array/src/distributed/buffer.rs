//! Buffers of callers: elements at any strides, in this machine's byte order; the file's is big-endian.
//!
//! Invariant: whoever has a [`Strides`] that was checked against a slice reads and writes within it.

use fieldstone_core::{Code, Result};

/// How elements are written: their size, and that of the numbers in them, which the file has the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element {
    size: usize,
    word: usize,
}

impl Element {
    /// Elements of `size` bytes made of numbers of `word` bytes: 1, 2, 4 or 8.
    pub fn new(size: usize, word: usize) -> Result<Element> {
        match [1, 2, 4, 8].contains(&word) && size >= word && size.is_multiple_of(word) {
            true => Ok(Element { size, word }),
            false => Err(Code::Dtype.error(format!("elements of {size} bytes, of numbers of {word}"))),
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        self.size
    }

    /// Turns bytes from this machine's order into the file's, and back.
    pub fn swap(self, bytes: &mut [u8]) {
        if cfg!(target_endian = "big") {
            return;
        }
        match self.word {
            2 => reverse::<2>(bytes),
            4 => reverse::<4>(bytes),
            8 => reverse::<8>(bytes),
            _ => {}
        }
    }
}

fn reverse<const N: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|word| word.reverse());
}

/// Where elements lie in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strides {
    shape: Vec<u64>,
    /// Bytes from one element to the next, in each dimension.
    steps: Vec<isize>,
    /// Of the first element, within the bytes.
    origin: usize,
    element: Element,
    /// Whether elements follow one another in C order.
    dense: bool,
}

impl Strides {
    /// Elements in C order, one behind the other; `Invalid` where there are not `bytes` of them.
    pub fn dense(shape: &[u64], element: Element, bytes: usize) -> Result<Strides> {
        let mut step = element.size as isize;
        let mut steps = vec![0; shape.len()];
        for (len, at) in shape.iter().zip(&mut steps).rev() {
            *at = step;
            step = step.saturating_mul(*len as isize);
        }
        let strides = Strides::new(shape, steps, 0, element, bytes)?;
        let needed = shape.iter().product::<u64>() * element.size as u64;
        match needed == bytes as u64 {
            true => Ok(strides),
            false => Err(Code::BufferSize.error(format!("a buffer of {bytes} bytes for {needed}"))),
        }
    }

    /// Elements at `steps` bytes from one to the next in each dimension, the first at `origin`; `Invalid` where one of
    /// them is not within `bytes`.
    pub fn new(
        shape: &[u64],
        steps: Vec<isize>,
        origin: usize,
        element: Element,
        bytes: usize,
    ) -> Result<Strides> {
        let wrong = |text: String| Code::BufferSize.error(text);
        if steps.len() != shape.len() {
            return Err(wrong(format!("{} strides for {} dimensions", steps.len(), shape.len())));
        }
        let elements = shape.iter().try_fold(1u64, |all, len| all.checked_mul(*len));
        let elements = elements.ok_or_else(|| wrong(format!("a buffer of shape {shape:?}")))?;
        if elements > 0 {
            let (mut least, mut most) = (origin as i128, origin as i128);
            for (len, step) in shape.iter().zip(&steps) {
                let reach = i128::from(*len - 1) * *step as i128;
                (least, most) = (least + reach.min(0), most + reach.max(0));
            }
            if least < 0 || most + element.size as i128 > bytes as i128 {
                let text = format!("a buffer of {bytes} bytes has not all elements of shape {shape:?}");
                return Err(wrong(text));
            }
        }
        let mut expected = element.size as i128;
        let mut dense = true;
        for (len, step) in shape.iter().zip(&steps).rev() {
            dense &= *len == 1 || *step as i128 == expected;
            expected *= i128::from(*len);
        }
        Ok(Strides { shape: shape.to_vec(), steps, origin, element, dense })
    }

    /// What an element is.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Where the element with a number in C order begins.
    fn at(&self, mut i: u64) -> usize {
        if self.dense {
            return self.origin + i as usize * self.element.size;
        }
        let mut offset = self.origin as isize;
        for (len, step) in self.shape.iter().zip(&self.steps).rev() {
            offset += (i % len) as isize * step;
            i /= len;
        }
        offset as usize
    }

    /// Gives pieces of memory, as long as they follow one another, of `len` elements from `first` on.
    fn pieces(&self, first: u64, len: u64, mut each: impl FnMut(usize, usize)) {
        let size = self.element.size;
        if self.dense {
            return each(self.at(first), len as usize * size);
        }
        let (row, step) = match (self.shape.last(), self.steps.last()) {
            (Some(row), Some(step)) => (*row, *step),
            _ => return each(self.origin, size),
        };
        let (mut i, end) = (first, first + len);
        while i < end {
            let n = (row - i % row).min(end - i);
            let at = self.at(i);
            if step == size as isize {
                each(at, n as usize * size);
            } else {
                (0..n as isize).for_each(|k| each((at as isize + k * step) as usize, size));
            }
            i += n;
        }
    }

    /// Appends elements of a buffer, in the buffer's byte order.
    pub fn copy_out(&self, bytes: &[u8], first: u64, len: u64, out: &mut Vec<u8>) {
        self.pieces(first, len, |at, n| out.extend_from_slice(&bytes[at..at + n]));
    }

    /// Puts elements into a buffer; `from` has as many bytes as they take.
    pub fn copy_in(&self, bytes: &mut [u8], first: u64, len: u64, from: &[u8]) {
        let mut done = 0;
        self.pieces(first, len, |at, n| {
            bytes[at..at + n].copy_from_slice(&from[done..done + n]);
            done += n;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_at_any_strides() {
        let element = Element::new(2, 2).unwrap();
        let bytes: Vec<u8> = (0..24).collect();
        let all = |strides: &Strides, n: u64| {
            let mut out = Vec::new();
            strides.copy_out(&bytes, 0, n, &mut out);
            out.chunks(2).map(|e| e[0] / 2).collect::<Vec<u8>>()
        };
        let dense = Strides::dense(&[3, 4], element, 24).unwrap();
        assert_eq!(all(&dense, 12), (0..12).collect::<Vec<u8>>());
        let fortran = Strides::new(&[4, 3], vec![2, 8], 0, element, 24).unwrap();
        assert_eq!(all(&fortran, 12), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        let backwards = Strides::new(&[3, 2], vec![-8, 4], 16, element, 24).unwrap();
        assert_eq!(all(&backwards, 6), [8, 10, 4, 6, 0, 2]);
        let repeated = Strides::new(&[3], vec![0], 2, element, 24).unwrap();
        assert_eq!(all(&repeated, 3), [1, 1, 1]);
        let mut into = vec![0; 24];
        backwards.copy_in(&mut into, 1, 3, &[1, 1, 2, 2, 3, 3]);
        assert_eq!((&into[20..22], &into[8..10], &into[12..14]), (&[1, 1][..], &[2, 2][..], &[3, 3][..]));
    }

    #[test]
    fn what_lies_outside_is_refused() {
        let element = Element::new(8, 8).unwrap();
        for (shape, steps, origin, bytes) in [
            (vec![3], vec![8], 0, 23),
            (vec![3], vec![-8], 15, 24),
            (vec![2, 2], vec![16, 8], 1, 32),
            (vec![2, 2], vec![16], 0, 32),
            (vec![u64::MAX, 3], vec![0, 0], 0, 32),
        ] {
            assert!(Strides::new(&shape, steps, origin, element, bytes).is_err(), "{shape:?}");
        }
        assert!(Strides::new(&[0, u64::MAX], vec![8, 8], 0, element, 0).is_ok(), "nothing is nowhere");
        assert!(Strides::dense(&[3], element, 32).is_err());
        assert!(Element::new(6, 4).is_err() && Element::new(0, 1).is_err() && Element::new(3, 3).is_err());
    }

    #[test]
    fn numbers_are_turned_round_and_not_elements() {
        let mut bytes: Vec<u8> = (0..8).collect();
        Element::new(8, 4).unwrap().swap(&mut bytes);
        assert_eq!(bytes, [3, 2, 1, 0, 7, 6, 5, 4]);
    }
}
