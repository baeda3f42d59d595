//! Locates the variables of a netCDF classic file.

use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::TeamReader;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::ImportedVariable;
use fieldstone_format::netcdf::layout::{Layout, bytes_of};
use fieldstone_format::netcdf::parse::Source;
use fieldstone_format::netcdf::{Header, Var, parse, paths};

use super::{ImportedArray, absent};
use crate::distributed::plan::FileArray;

/// The first bytes of an HDF5 file.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Checks the header of a file of `len` bytes, and returns its bytes.
pub(super) fn read_header(file: &TeamReader, len: u64) -> Result<Vec<u8>> {
    let (mut magic, source) = ([0; 8], HeaderFile { file, len });
    if source.read_at(&mut magic, 0)? == magic.len() && magic == HDF5 {
        return Err(Code::FileFormat
            .error(
                "this is a netCDF-4 file, which is HDF5; only netCDF classic files (CDF-1, CDF-2, CDF-5) can \
                 be imported",
            )
            .with_hint("convert it: nccopy -k cdf5 IN OUT"));
    }
    let (_, places) = parse::header(&source)?;
    let mut bytes = vec![0; places.header_len as usize];
    match source.read_at(&mut bytes, 0)? == bytes.len() {
        true => Ok(bytes),
        false => Err(Error::corrupt("the file ends inside its header, which was complete a moment ago")),
    }
}

/// A file of `len` bytes, as a source for checking its header.
struct HeaderFile<'a> {
    file: &'a TeamReader,
    len: u64,
}

impl Source for HeaderFile<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = self.len.saturating_sub(offset).min(buffer.len() as u64);
        self.file.read_at(&mut buffer[..left as usize], offset)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }
}

/// The header of a file of `len` bytes.
struct HeaderBytes(Vec<u8>, u64);

impl Source for HeaderBytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.1)
    }
}

/// The header of an imported file.
pub(super) struct ImportedHeader {
    pub header: Header,
    layout: Layout,
}

impl ImportedHeader {
    /// Parses the header of a file of `len` bytes.
    pub fn parse(bytes: Vec<u8>, len: u64) -> Result<ImportedHeader> {
        let (header, places) = parse::header(&HeaderBytes(bytes, len))?;
        let layout = Layout::of(&header, places.header_len)?;
        Ok(ImportedHeader { header, layout })
    }

    /// The variables with these names, or all, in a file of `len` bytes.
    pub fn arrays(&self, len: u64, names: &[String]) -> Result<Vec<ImportedArray>> {
        let ImportedHeader { header, layout } = self;
        let records = header.numrecs.unwrap_or_else(|| layout.records_in(len));
        let is_escaped = paths::is_escaped(&header.attrs);
        let name_of = |var: Var<'_>| match is_escaped {
            true => paths::decode(var.name()).into_owned(),
            false => var.name().to_owned(),
        };
        let array = |var: Var<'_>| array_of(header, layout, records, var, name_of(var));
        if names.is_empty() {
            return header.vars.iter().map(array).collect();
        }
        let find = |name: &String| {
            let found = header.vars.iter().find(|var| name_of(*var) == *name);
            found.ok_or_else(|| {
                let known: Vec<String> = header.vars.iter().map(name_of).collect();
                absent(name, "the file", known.iter().map(|name| &**name))
            })
        };
        names.iter().map(|name| array(find(name)?)).collect()
    }
}

fn array_of(
    header: &Header,
    layout: &Layout,
    records: u64,
    var: Var<'_>,
    name: String,
) -> Result<ImportedArray> {
    let size = var.ty().size() as u64;
    let dtype = DType::parse(&format!(">{}", var.ty().numpy()))?;
    let slab = bytes_of(header, var)? / size;
    let lens = &header.dims.lens;
    let mut shape: Vec<u64> =
        var.dims().iter().map(|dim| lens.get(*dim as usize).copied().unwrap_or(0)).collect();
    let mut array = FileArray::dense(var.begin(), size);
    if header.is_record(var) {
        shape.iter_mut().take(1).for_each(|len| *len = records);
        (array.record, array.record_stride) = (slab, layout.record_size);
    }
    let variable = ImportedVariable { name, dtype, offset: var.begin(), shape };
    Ok(ImportedArray { variable, array })
}
