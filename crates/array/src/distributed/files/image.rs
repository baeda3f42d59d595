//! The header of a group's file, and the positions of its variables.
//!
//! The set variables come first, so that the first of them begins at a block of the file system; `step` is the last.
//! Before its first step, a file only has its header. A set whose first extent varies has a file for each step, in
//! which that dimension is the record dimension, so it may be 0.

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::layout::{Alignment, Layout, lay_out};
use fieldstone_format::netcdf::{Attrs, Header, NcType, Version, paths, write};

use super::sets::{STEP, SetVariable};

/// Alignment of the data: a block of most file systems.
pub const ALIGN: u64 = 4096;

/// A range of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A file of a group before its steps.
#[derive(Debug, Clone)]
pub struct FileImage {
    header: Header,
    layout: Layout,
    escaped: bool,
    /// Whether records are steps.
    steps: bool,
}

/// The bytes with a file's number of records, and their offset.
pub fn count_of_records(records: u64) -> (u64, Vec<u8>) {
    let mut head = Vec::new();
    write::put_head(&mut head, Version::Cdf5, Some(records));
    (4, head.split_off(4))
}

impl FileImage {
    /// Makes the file of these variables, with a record for each step, or at one step. `attrs` are global.
    pub fn new(variables: &[SetVariable], has_records: bool, attrs: &Attrs) -> Result<FileImage> {
        let mut header = Header::new(Version::Cdf5);
        for attr in attrs.iter() {
            header.attrs.push(attr.name, attr.ty, attr.value);
        }
        let escaped = variables.iter().any(|variable| variable.name.contains('/'));
        if escaped {
            header.attrs.push(paths::ATTRIBUTE, NcType::Char, paths::RULE.as_bytes());
        }
        let record = has_records.then(|| header.dims.push_record(STEP));
        for variable in variables {
            let mut dims: Vec<u32> = record.into_iter().collect();
            for (name, len) in &variable.dims {
                let same = header.dims.iter().position(|dim| dim.name == name);
                dims.push(match same {
                    Some(same) => same as u32,
                    None if variable.varies && header.dims.record.is_none() => {
                        header.numrecs = Some(*len);
                        header.dims.push_record(name)
                    }
                    None => header.dims.push(name, *len),
                });
            }
            header.vars.push(&variable.name, variable.ty, &dims);
            for attr in variable.attrs.iter() {
                header.vars.attrs_of_last(attr.name, attr.ty, attr.value);
            }
        }
        let dims: Vec<u32> = record.into_iter().collect();
        header.vars.push(STEP, NcType::Int64, &dims);
        let alignment = Alignment { v_align: ALIGN, r_align: ALIGN, ..Alignment::default() };
        let layout = lay_out(&mut header, &alignment, escaped, None)?;
        Ok(FileImage { header, layout, escaped, steps: has_records })
    }

    /// The bytes of the header, for a file with this number of steps. Their length does not depend on it.
    pub fn header(&self, steps: u64) -> Vec<u8> {
        let numrecs = if self.steps { Some(steps) } else { self.header.numrecs };
        write::header(&Header { numrecs, ..self.header.clone() }, self.escaped)
    }

    /// The bytes with the number of steps, if records are steps, and their offset.
    pub fn records(&self, records: u64) -> (u64, Vec<u8>) {
        count_of_records(records)
    }

    /// The extent of a variable at a record; the last variable is `step`. In a file without records, the record is 0.
    pub fn extent(&self, variable: usize, bytes: u64, record: u64) -> Result<Extent> {
        let begin = self.header.vars.get(variable).begin();
        let offset = record.checked_mul(self.layout.record_size).and_then(|at| at.checked_add(begin));
        let end = offset.and_then(|offset| offset.checked_add(bytes)).filter(|end| *end <= i64::MAX as u64);
        match (offset, end) {
            (Some(offset), Some(_)) => Ok(Extent { offset, len: bytes }),
            _ => Err(Code::ContainerLimit.error(format!("record {record} exceeds the size of any file"))),
        }
    }

    /// The extent of a step's number.
    pub fn step_extent(&self, record: u64) -> Result<Extent> {
        self.extent(self.header.vars.len() - 1, NcType::Int64.size() as u64, record)
    }

    /// Size of the file with this number of steps, in bytes.
    pub fn len(&self, steps: u64) -> Result<u64> {
        let records = if self.steps { steps } else { self.header.numrecs.unwrap_or(0) };
        let beyond = || Code::ContainerLimit.error(format!("{records} records exceed the size of any file"));
        self.layout.file_len(records).ok_or_else(beyond)
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_core::dtype::DType;
    use fieldstone_format::netcdf::parse;

    use super::super::sets::SetDecl;
    use super::*;

    fn variables() -> Vec<SetVariable> {
        let set = |name: &str, dtype: DType, shape: &[u64]| SetDecl {
            name: name.into(),
            dtype,
            shape: shape.iter().map(|len| Some(*len)).collect(),
            dims: vec![None; shape.len()],
            attrs: Attrs::default(),
            fill: None,
        };
        let sets = [set("a", DType::F8, &[3, 2]), set("p/b", DType::U1, &[3]), set("c", DType::F4, &[])];
        sets.iter().map(|set| set.variable(None).unwrap()).collect()
    }

    /// The header, as a reader of netCDF finds it.
    #[test]
    fn a_header_says_where_the_variables_lie() {
        for has_records in [false, true] {
            let image = FileImage::new(&variables(), has_records, &Attrs::default()).unwrap();
            let bytes = image.header(5);
            let (header, _) = parse::header(&bytes[..]).unwrap();
            let layout = Layout::of(&header, bytes.len() as u64).unwrap();
            assert_eq!(header.numrecs, Some(if has_records { 5 } else { 0 }));
            assert_eq!(header.vars.iter().map(|var| var.name()).collect::<Vec<_>>(), ["a", "p.b", "c", STEP]);
            assert_eq!(header.vars.get(0).begin() % ALIGN, 0);
            for (i, variable) in variables().iter().enumerate() {
                let record = if has_records { 3 } else { 0 };
                let extent = image.extent(i, variable.bytes, record).unwrap();
                let begin = header.vars.get(i).begin() + record * layout.record_size;
                assert_eq!((extent.offset, extent.len), (begin, variable.bytes));
            }
            assert_eq!(image.len(5).unwrap(), layout.file_len(5).unwrap());
            let (at, count) = image.records(header.numrecs.unwrap());
            assert_eq!(&bytes[at as usize..at as usize + count.len()], count);
            let empty = image.header(0);
            assert_eq!((&empty[..4], &empty[12..]), (&bytes[..4], &bytes[12..]), "only the count differs");
        }
        let error = FileImage::new(&variables(), true, &Attrs::default()).unwrap().extent(0, 48, u64::MAX);
        assert!(error.unwrap_err().message().contains("exceeds the size of any file"));
    }
}
