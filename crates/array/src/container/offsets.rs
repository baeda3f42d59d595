//! The extents of variables in a file, and the gaps between them.
//!
//! Invariants: variables come in the order of their bytes, those without records first, as the format lays them out;
//! for a record variable, the numbers describe its first record. A gap is the space between a variable and the one
//! before it (for the first, the header): padding, or reserved space; it is negative if they overlap, which never
//! happens in a valid file.

use fieldstone_core::{Error, Result};

use super::{Metadata, VarInfo};

/// Number of variables requested at a time.
const BATCH: usize = 256;

/// The extent of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarExtent {
    /// The variable.
    pub var: VarInfo,
    /// Offset of its first byte.
    pub begin: u64,
    /// Its bytes at this position: of one record, for a record variable.
    pub bytes: u64,
    /// Bytes between the end of the preceding part and its begin.
    pub gap: i128,
}

impl VarExtent {
    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes)
    }
}

/// Passes on the extent of every variable, in the order of their bytes. `header_end` is the offset after the header's
/// last byte.
///
/// Errors: those of [`Metadata`] and of `to`; Corrupt if a variable ends beyond 2^64.
pub fn offsets<E: From<Error>>(
    metadata: &dyn Metadata,
    header_end: u64,
    to: &mut dyn FnMut(VarExtent) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    // Keep twenty-four bytes for each variable, rather than its whole description.
    let mut order: Vec<(bool, u64, u64)> = Vec::new();
    loop {
        let vars = metadata.vars(order.len() as u64, BATCH)?;
        if vars.is_empty() {
            break;
        }
        order.extend(vars.iter().map(|var| (var.is_record(), var.begin, var.id)));
    }
    order.sort_unstable();
    let mut batch: Vec<VarInfo> = Vec::new();
    let mut before = header_end;
    for (_, begin, id) in order {
        let near = |batch: &[VarInfo]| batch.iter().position(|var| var.id == id);
        if near(&batch).is_none() {
            batch = metadata.vars(id, BATCH)?;
        }
        let Some(at) = near(&batch) else {
            return Err(Error::internal(format!("variable {id} is gone")).into());
        };
        let var = batch[at].clone();
        let bytes = record_bytes(&var)?;
        let extent = VarExtent { begin, bytes, gap: i128::from(begin) - i128::from(before), var };
        before = before.max(extent.end());
        to(extent)?;
    }
    Ok(())
}

/// Bytes of a variable, or of one of its records.
fn record_bytes(var: &VarInfo) -> Result<u64> {
    let fixed = var.dims.iter().skip(usize::from(var.is_record())).map(|dim| dim.len);
    let bytes = match fixed.clone().any(|len| len == 0) {
        true => Some(0),
        false => fixed.into_iter().try_fold(var.ty.size() as u64, u64::checked_mul),
    };
    bytes.filter(|bytes| var.begin.checked_add(*bytes).is_some()).ok_or_else(|| {
        Error::corrupt(format!("variable `{}`, at offset {}, ends beyond 2^64", var.name, var.begin))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::container::cdl::Verbatim;
    use fieldstone_format::netcdf::{Header, NcType, Version};

    fn extents(header: Header) -> Vec<(String, u64, u64, i128)> {
        let mut extents = Vec::new();
        let metadata = Verbatim::new(header, 0).unwrap();
        offsets::<Error>(&metadata, 200, &mut |extent| {
            extents.push((extent.var.name.clone(), extent.begin, extent.end(), extent.gap));
            Ok(())
        })
        .unwrap();
        extents
    }

    #[test]
    fn variables_come_in_the_order_of_their_bytes() {
        let mut header = Header::new(Version::Cdf1);
        let t = header.dims.push_record("t");
        let x = header.dims.push("x", 3);
        header.vars.push("a", NcType::Short, &[t, x]);
        header.vars.push("b", NcType::Byte, &[t]);
        header.vars.push("f", NcType::Int, &[x]);
        header.vars.push("s", NcType::Double, &[]);
        header.vars.begins = vec![220, 228, 200, 212];
        let expected = [("f", 200, 212, 0), ("s", 212, 220, 0), ("a", 220, 226, 0), ("b", 228, 229, 2)];
        let expected = expected.map(|(name, begin, end, gap)| (name.to_owned(), begin, end, gap));
        assert_eq!(extents(header), expected);
    }

    #[test]
    fn an_overlap_is_a_negative_gap() {
        let mut header = Header::new(Version::Cdf1);
        let x = header.dims.push("x", 10);
        header.vars.push("a", NcType::Int, &[x]);
        header.vars.push("b", NcType::Int, &[x]);
        header.vars.begins = vec![200, 220];
        assert_eq!(extents(header).last().unwrap().3, -20);
    }
}
