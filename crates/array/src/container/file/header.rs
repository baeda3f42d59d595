//! Queries that data mode makes to the header of an open container, in addition to those of readers.

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::Layout;

use crate::container::model::{Metadata, VarInfo};
use crate::container::partitioned::Reader;

/// Numbers in the file of the objects that this rank has defined, indexed by local number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalIds<'a> {
    pub vars: &'a [u64],
    pub dims: &'a [u64],
}

/// The header of an open container, in whatever form it is kept.
pub(super) trait OpenHeader: Metadata {
    /// The positions of the parts of the file.
    fn layout(&self) -> Result<Layout>;

    /// The whole header with names as paths, from which a redefinition begins; reads it if necessary.
    ///
    /// Errors: `Invalid` if there is no header that memory could hold as a whole.
    fn header(&self) -> Result<&Header>;

    /// Numbers of this rank's definitions; `None` if the container was opened.
    fn local_ids(&self) -> Option<LocalIds<'_>> {
        None
    }

    /// A variable by the number that its definition returned or, in an opened container, by its number in the file.
    fn local_var(&self, local: u32) -> Result<VarInfo> {
        let var = self.vars(u64::from(local), 1)?.pop();
        var.ok_or_else(|| {
            Code::VariableNotFound.error(format!("the container has no variable number {local}"))
        })
    }
}

impl OpenHeader for Reader {
    fn layout(&self) -> Result<Layout> {
        let head = self.head();
        // The table does not contain the end of fixed data: only that records come after them.
        Ok(Layout {
            header_len: head.table_offset + head.table_len,
            data_begin: head.data_begin,
            data_end: head.record_begin,
            record_begin: head.record_begin,
            record_size: head.record_size,
            one_record_var: false,
        })
    }
    fn header(&self) -> Result<&Header> {
        Err(Code::ContainerFormat
            .error("a partitioned header is read block by block, never as a whole")
            .with_hint("convert the container to cdf5"))
    }
}
