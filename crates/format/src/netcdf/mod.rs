//! netCDF classic: CDF-1, CDF-2 and CDF-5, and the parts that our own formats share with them (names, types,
//! values).
//!
//! | module | content |
//! |---|---|
//! | [`columns`] | a header in memory: dimensions, attributes, variables, kept by columns |
//! | [`names`] | legal names, and their normal form |
//! | [`paths`] | paths as names: the reversible escaping |
//! | [`fill`] | fill values |
//! | [`trailer`] | the name index after the last data byte |
//! | [`extents`] | from a box of a variable to ranges of bytes |
//! | [`values`] | between the file's values and memory's: byte order, conversions, range errors |
//! | [`write`] | a header's bytes: sizes beforehand, entries of any range |
//! | [`parse`] | reading a header, whole or by entries; findings about its defects |
//! | [`layout`] | vsizes, offsets, the record; the limits of each version |
//!
//! The normative text is `spec/netcdf-classic.md`.
//!
//! Invariants: files are big-endian; sizes and offsets are checked, never wrapped; a header of a million
//! objects takes little more memory than its bytes.

pub mod columns;
pub mod extents;
pub mod fill;
pub mod layout;
pub mod names;
pub mod parse;
pub mod paths;
pub mod trailer;
pub mod values;
pub mod write;

pub use columns::{Attr, Attrs, Dim, Dims, Header, Names, Var, Vars};

/// The netCDF classic format of a file. The numbers are those of its magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Version {
    /// 32-bit offsets ("classic").
    Cdf1 = 1,
    /// 64-bit offsets.
    Cdf2 = 2,
    /// 64-bit offsets, sizes and counts; unsigned and 64-bit types.
    Cdf5 = 5,
}

impl Version {
    /// The version for the fourth byte of a file.
    pub fn from_byte(byte: u8) -> Option<Version> {
        match byte {
            1 => Some(Version::Cdf1),
            2 => Some(Version::Cdf2),
            5 => Some(Version::Cdf5),
            _ => None,
        }
    }

    /// Bytes of a count, a length or a vsize.
    pub fn size_width(self) -> usize {
        if self == Version::Cdf5 { 8 } else { 4 }
    }

    /// Bytes of a `begin`.
    pub fn offset_width(self) -> usize {
        if self == Version::Cdf1 { 4 } else { 8 }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Version::Cdf1 => "CDF-1",
            Version::Cdf2 => "CDF-2",
            Version::Cdf5 => "CDF-5",
        }
    }
}

/// An external type. The numbers are those in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NcType {
    /// 8-bit signed integer (`byte`).
    Byte = 1,
    /// Text, one byte for each element.
    Char = 2,
    /// 16-bit signed integer.
    Short = 3,
    /// 32-bit signed integer.
    Int = 4,
    /// IEEE single.
    Float = 5,
    /// IEEE double.
    Double = 6,
    /// 8-bit unsigned integer; this and the following types are CDF-5 only.
    UByte = 7,
    /// 16-bit unsigned integer.
    UShort = 8,
    /// 32-bit unsigned integer.
    UInt = 9,
    /// 64-bit signed integer.
    Int64 = 10,
    /// 64-bit unsigned integer.
    UInt64 = 11,
}

impl NcType {
    /// All types, in the order of their numbers.
    pub const ALL: [NcType; 11] = [
        NcType::Byte,
        NcType::Char,
        NcType::Short,
        NcType::Int,
        NcType::Float,
        NcType::Double,
        NcType::UByte,
        NcType::UShort,
        NcType::UInt,
        NcType::Int64,
        NcType::UInt64,
    ];

    /// The type with this number.
    pub fn from_code(code: u32) -> Option<NcType> {
        NcType::ALL.get((code as usize).wrapping_sub(1)).copied()
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            NcType::Byte | NcType::Char | NcType::UByte => 1,
            NcType::Short | NcType::UShort => 2,
            NcType::Int | NcType::Float | NcType::UInt => 4,
            NcType::Double | NcType::Int64 | NcType::UInt64 => 8,
        }
    }

    /// Whether a file of `version` may hold it.
    pub fn is_in(self, version: Version) -> bool {
        version == Version::Cdf5 || self <= NcType::Double
    }

    /// CDL's word for it.
    pub fn name(self) -> &'static str {
        match self {
            NcType::Byte => "byte",
            NcType::Char => "char",
            NcType::Short => "short",
            NcType::Int => "int",
            NcType::Float => "float",
            NcType::Double => "double",
            NcType::UByte => "ubyte",
            NcType::UShort => "ushort",
            NcType::UInt => "uint",
            NcType::Int64 => "int64",
            NcType::UInt64 => "uint64",
        }
    }

    /// The type for a numpy dtype text without its byte order (`f4`, `i1`, `S1`), by the mapping of netCDF4.
    pub fn from_numpy(text: &str) -> Option<NcType> {
        Some(match text.trim_start_matches(['<', '>', '=', '|']) {
            "i1" | "int8" => NcType::Byte,
            "S1" | "c" | "char" => NcType::Char,
            "i2" | "int16" => NcType::Short,
            "i4" | "int32" => NcType::Int,
            "f4" | "float32" => NcType::Float,
            "f8" | "float64" => NcType::Double,
            "u1" | "uint8" => NcType::UByte,
            "u2" | "uint16" => NcType::UShort,
            "u4" | "uint32" => NcType::UInt,
            "i8" | "int64" => NcType::Int64,
            "u8" | "uint64" => NcType::UInt64,
            _ => return None,
        })
    }

    /// The numpy dtype without a byte order.
    pub fn numpy(self) -> &'static str {
        match self {
            NcType::Byte => "i1",
            NcType::Char => "S1",
            NcType::Short => "i2",
            NcType::Int => "i4",
            NcType::Float => "f4",
            NcType::Double => "f8",
            NcType::UByte => "u1",
            NcType::UShort => "u2",
            NcType::UInt => "u4",
            NcType::Int64 => "i8",
            NcType::UInt64 => "u8",
        }
    }
}

/// `len` rounded up to a multiple of four; `None` on overflow.
pub fn pad4(len: u64) -> Option<u64> {
    Some(len.checked_add(3)? & !3)
}
