//! Copying and filling boxes between C-order buffers.
//!
//! Both first reduce the work to a [`CopyPlan`]: a run of bytes that is contiguous on both sides, repeated along as
//! few axes as possible. Dimensions of extent 1 vanish, and adjacent dimensions without a gap on either side are
//! joined, so that a copy of a whole array is one `memcpy`, whatever its rank.

use super::{IndexBox, byte_count};
use crate::{Code, Error, Result};

/// Copies `region` (global indices) from a buffer that covers `src_box` to one that covers `dst_box`.
///
/// `Invalid` if the region is not inside both boxes, or the length of a buffer is not that of its box.
pub fn copy_box(
    src: &[u8],
    src_box: &IndexBox,
    dst: &mut [u8],
    dst_box: &IndexBox,
    region: &IndexBox,
    item_size: usize,
) -> Result<()> {
    check("source", src.len(), src_box, region, item_size)?;
    check("destination", dst.len(), dst_box, region, item_size)?;
    if region.is_empty() {
        return Ok(());
    }
    let plan = CopyPlan::new(src_box, dst_box, region, item_size);
    match plan.run {
        1 => plan.each_row(|row| row.copy_items::<1>(src, dst)),
        2 => plan.each_row(|row| row.copy_items::<2>(src, dst)),
        4 => plan.each_row(|row| row.copy_items::<4>(src, dst)),
        8 => plan.each_row(|row| row.copy_items::<8>(src, dst)),
        16 => plan.each_row(|row| row.copy_items::<16>(src, dst)),
        run => plan.each_row(|row| {
            for i in 0..row.length {
                let (from, to) = (row.src + i * row.src_step, row.dst + i * row.dst_step);
                dst[to..to + run].copy_from_slice(&src[from..from + run]);
            }
        }),
    }
    Ok(())
}

/// Sets every element of `region` to `item` in a buffer that covers `dst_box`. The item's length is the
/// element's size.
pub fn fill_box(dst: &mut [u8], dst_box: &IndexBox, region: &IndexBox, item: &[u8]) -> Result<()> {
    check("destination", dst.len(), dst_box, region, item.len())?;
    if region.is_empty() {
        return Ok(());
    }
    let plan = CopyPlan::new(dst_box, dst_box, region, item.len());
    plan.each_row(|row| {
        for i in 0..row.length {
            let to = row.dst + i * row.dst_step;
            fill_run(&mut dst[to..to + plan.run], item);
        }
    });
    Ok(())
}

fn fill_run(run: &mut [u8], item: &[u8]) {
    if item.iter().all(|byte| *byte == item[0]) {
        return run.fill(item[0]);
    }
    run[..item.len()].copy_from_slice(item);
    // Double the filled part, so that a few large copies replace one small copy for each element.
    let mut filled = item.len();
    while filled < run.len() {
        let more = filled.min(run.len() - filled);
        run.copy_within(..more, filled);
        filled += more;
    }
}

fn check(what: &str, length: usize, covers: &IndexBox, region: &IndexBox, item_size: usize) -> Result<()> {
    if item_size == 0 {
        return Err(Error::invalid("elements of size zero cannot be copied"));
    }
    let expected = byte_count(covers.count(), item_size)?;
    if length != expected {
        return Err(Code::BufferSize.error(format!(
            "the {what} buffer has {length} bytes, box {covers} of {item_size}-byte elements needs {expected}"
        )));
    }
    if !covers.contains(region) {
        return Err(Code::Box.error(format!("box {region} is not inside the {what}'s box {covers}")));
    }
    Ok(())
}

/// A repetition of the run: the count, and the distance in bytes on each side.
#[derive(Debug, Clone, Copy)]
struct CopyAxis {
    length: usize,
    src_step: usize,
    dst_step: usize,
}

/// The innermost repetition at one position of the outer ones.
#[derive(Debug, Clone, Copy)]
struct Row {
    src: usize,
    dst: usize,
    length: usize,
    src_step: usize,
    dst_step: usize,
}

impl Row {
    fn copy_items<const N: usize>(self, src: &[u8], dst: &mut [u8]) {
        for i in 0..self.length {
            let (from, to) = (self.src + i * self.src_step, self.dst + i * self.dst_step);
            dst[to..to + N].copy_from_slice(&src[from..from + N]);
        }
    }
}

struct CopyPlan {
    src: usize,
    dst: usize,
    run: usize,
    /// Fastest first.
    axes: Vec<CopyAxis>,
}

impl CopyPlan {
    /// The arguments are checked already: both boxes fit memory and contain the region, which is not empty. So every
    /// number here is at most the length of a buffer.
    fn new(src_box: &IndexBox, dst_box: &IndexBox, region: &IndexBox, item_size: usize) -> CopyPlan {
        let mut plan = CopyPlan { src: 0, dst: 0, run: item_size, axes: Vec::new() };
        let (mut src_step, mut dst_step) = (item_size, item_size);
        for d in (0..region.rank()).rev() {
            plan.src += (region.start()[d] - src_box.start()[d]) as usize * src_step;
            plan.dst += (region.start()[d] - dst_box.start()[d]) as usize * dst_step;
            plan.repeat(CopyAxis { length: region.count()[d] as usize, src_step, dst_step });
            src_step *= src_box.count()[d] as usize;
            dst_step *= dst_box.count()[d] as usize;
        }
        plan
    }

    fn repeat(&mut self, axis: CopyAxis) {
        if axis.length == 1 {
            return;
        }
        match self.axes.last_mut() {
            None if axis.src_step == self.run && axis.dst_step == self.run => self.run *= axis.length,
            Some(inner)
                if axis.src_step == inner.src_step * inner.length
                    && axis.dst_step == inner.dst_step * inner.length =>
            {
                inner.length *= axis.length;
            }
            _ => self.axes.push(axis),
        }
    }

    fn each_row(&self, mut copy: impl FnMut(Row)) {
        let one = CopyAxis { length: 1, src_step: 0, dst_step: 0 };
        let inner = self.axes.first().copied().unwrap_or(one);
        let outer = self.axes.get(1..).unwrap_or(&[]);
        let mut at = vec![0_usize; outer.len()];
        let (mut src, mut dst) = (self.src, self.dst);
        loop {
            let CopyAxis { length, src_step, dst_step } = inner;
            copy(Row { src, dst, length, src_step, dst_step });
            let mut d = 0;
            loop {
                let Some(axis) = outer.get(d) else { return };
                if at[d] + 1 < axis.length {
                    at[d] += 1;
                    src += axis.src_step;
                    dst += axis.dst_step;
                    break;
                }
                src -= at[d] * axis.src_step;
                dst -= at[d] * axis.dst_step;
                at[d] = 0;
                d += 1;
            }
        }
    }
}
