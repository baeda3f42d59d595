//! CDL: a container as text, byte for byte as netCDF-C's `ncdump` prints it (C-12).
//!
//! | module | what it does |
//! |---|---|
//! | [`format`] | numbers as C's `printf` writes them |
//! | [`text`] | names and texts, escaped |
//! | `values` | the data section, row by row |
//! | `verbatim` | a netCDF header with the names in the file |
//!
//! Invariants: text goes to the sink in pieces as it is made, and memory is bounded however large a variable, an
//! attribute list or the file is; the contents of a file are printed, never interpreted.

pub mod format;
pub mod text;
mod values;
mod verbatim;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Attr, NcType};

use super::{Metadata, VarInfo};
use format::general;
pub use verbatim::Verbatim;

/// The parts of a container to print.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name after `netcdf`: ncdump uses the file's name without its folder and extension.
    pub name: String,
    /// The header alone, without the data section.
    pub header_only: bool,
    /// Paths of the variables in the data section; `None` for all.
    pub vars: Option<Vec<String>>,
}

/// The source of elements: fills the buffer from an offset on, up to the end of the file.
pub type Read<'a> = dyn Fn(&mut [u8], u64) -> Result<usize> + 'a;

/// Number of variables requested at a time.
const BATCH: usize = 256;

/// Size of the text collected before it goes to the sink.
const PIECE: usize = 1 << 16;

/// Text on its way to the sink.
struct Text<'a, E> {
    buffer: Vec<u8>,
    sink: &'a mut dyn FnMut(&[u8]) -> std::result::Result<(), E>,
}

impl<E> Text<'_, E> {
    fn put(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }
    fn name(&mut self, name: &str) {
        text::name(name, &mut self.buffer);
    }
    /// Passes the collected text on, if it is large enough.
    fn pass(&mut self) -> std::result::Result<(), E> {
        if self.buffer.len() < PIECE { Ok(()) } else { self.flush() }
    }
    fn flush(&mut self) -> std::result::Result<(), E> {
        (self.sink)(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Prints a container. Errors of the sink end the printing and are returned.
///
/// Errors: NotFound if [`Options::vars`] names a variable that the file lacks; Corrupt if the header or the data are
/// cut off.
pub fn write<E: From<Error>>(
    metadata: &dyn Metadata,
    read: &Read<'_>,
    options: &Options,
    sink: &mut dyn FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    for path in options.vars.iter().flatten() {
        if metadata.find_var(path)?.is_none() {
            let none = Code::VariableNotFound.error(format!("no variable `{path}` in this container"));
            return Err(none
                .with_hint("the header lists all variables: print it alone, or name no variables")
                .into());
        }
    }
    let mut text = Text { buffer: Vec::new(), sink };
    text.put("netcdf ");
    text.name(&options.name);
    text.put(" {\n");
    let counts = metadata.counts()?;
    dims(metadata, &mut text)?;
    if counts.vars > 0 {
        text.put("variables:\n");
    }
    each_var(metadata, &mut |var| {
        declare(var, &mut text);
        text.pass()
    })?;
    let attrs = metadata.attrs()?;
    if !attrs.is_empty() {
        text.put("\n// global attributes:\n");
    }
    // ncdump never prints this attribute, which only netCDF-4 files may have.
    for attr in attrs.iter().filter(|attr| attr.name != "_NCProperties") {
        attribute("", attr, &mut text);
        text.pass()?;
    }
    if !options.header_only && counts.vars > 0 {
        text.put("data:\n");
        match &options.vars {
            None => each_var(metadata, &mut |var| values::write(var, read, &mut text))?,
            Some(wanted) => each_var(metadata, &mut |var| match wanted.contains(&var.name) {
                true => values::write(var, read, &mut text),
                false => Ok(()),
            })?,
        }
    }
    text.put("}\n");
    text.flush()
}

/// Passes every variable on, in order.
fn each_var<E: From<Error>>(
    metadata: &dyn Metadata,
    to: &mut dyn FnMut(&VarInfo) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut from = 0;
    loop {
        let vars = metadata.vars(from, BATCH)?;
        if vars.is_empty() {
            return Ok(());
        }
        from += vars.len() as u64;
        vars.iter().try_for_each(&mut *to)?;
    }
}

fn dims<E: From<Error>>(metadata: &dyn Metadata, text: &mut Text<'_, E>) -> std::result::Result<(), E> {
    let mut from = 0;
    loop {
        let dims = metadata.dims(from, BATCH)?;
        if dims.is_empty() {
            return Ok(());
        }
        if from == 0 {
            text.put("dimensions:\n");
        }
        from += dims.len() as u64;
        for dim in &dims {
            text.put("\t");
            text.name(&dim.name);
            match dim.is_record {
                true => text.put(&format!(" = UNLIMITED ; // ({} currently)\n", dim.len)),
                false => text.put(&format!(" = {} ;\n", dim.len)),
            }
        }
        text.pass()?;
    }
}

/// Writes a variable's declaration and attributes.
fn declare<E>(var: &VarInfo, text: &mut Text<'_, E>) {
    text.put("\t");
    text.put(var.ty.name());
    text.put(" ");
    text.name(&var.name);
    for (i, dim) in var.dims.iter().enumerate() {
        text.put(if i == 0 { "(" } else { ", " });
        text.name(&dim.name);
    }
    text.put(if var.dims.is_empty() { " ;\n" } else { ") ;\n" });
    for attr in var.attrs.iter() {
        attribute(&var.name, attr, text);
    }
}

fn attribute<E>(owner: &str, attr: Attr<'_>, text: &mut Text<'_, E>) {
    text.put("\t\t");
    text.name(owner);
    if text::is_word(owner) {
        text.put(" ");
    }
    text.put(":");
    text.name(attr.name);
    text.put(" = ");
    if attr.ty == NcType::Char || attr.value.is_empty() {
        text::quoted(attr.value, &mut text.buffer);
    } else {
        for (i, element) in attr.value.chunks_exact(attr.ty.size()).enumerate() {
            if i > 0 {
                text.put(", ");
            }
            constant(attr.ty, element, &mut text.buffer);
        }
    }
    text.put(" ;\n");
}

/// An element of an attribute, with the suffix of its type.
fn constant(ty: NcType, element: &[u8], to: &mut Vec<u8>) {
    let text = match Element::read(ty, element) {
        Element::Integer(value) => {
            let suffix = match ty {
                NcType::Byte => "b",
                NcType::Short => "s",
                NcType::UByte => "UB",
                NcType::UShort => "US",
                NcType::UInt => "U",
                NcType::Int64 => "LL",
                NcType::UInt64 => "ULL",
                NcType::Char | NcType::Int | NcType::Float | NcType::Double => "",
            };
            format!("{value}{suffix}")
        }
        Element::Single(value) if value.is_finite() => format!("{}f", trimmed(f64::from(value), 7)),
        Element::Double(value) if value.is_finite() => trimmed(value, 15),
        Element::Single(value) => format!("{}f", special(f64::from(value))),
        Element::Double(value) => special(value).to_owned(),
    };
    to.extend_from_slice(text.as_bytes());
}

/// A number with a point, without trailing zeros.
fn trimmed(value: f64, digits: usize) -> String {
    let text = general(value.abs(), digits, true);
    let (mantissa, exponent) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}{exponent}", mantissa.trim_end_matches('0'))
}

/// CDL's word for a number that is not finite; single precision adds an `f`.
fn special(value: f64) -> &'static str {
    match (value.is_nan(), value < 0.0) {
        (true, _) => "NaN",
        (_, true) => "-Infinity",
        (_, false) => "Infinity",
    }
}

/// An element decoded from its external bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Element {
    Integer(i128),
    Single(f32),
    Double(f64),
}

impl Element {
    /// `bytes` is one big-endian element. A character becomes its code.
    fn read(ty: NcType, bytes: &[u8]) -> Element {
        let raw = bytes.iter().fold(0_u64, |raw, byte| raw << 8 | u64::from(*byte));
        match ty {
            NcType::Byte => Element::Integer((raw as u8 as i8).into()),
            NcType::Short => Element::Integer((raw as u16 as i16).into()),
            NcType::Int => Element::Integer((raw as u32 as i32).into()),
            NcType::Int64 => Element::Integer((raw as i64).into()),
            NcType::Char | NcType::UByte | NcType::UShort | NcType::UInt | NcType::UInt64 => {
                Element::Integer(raw.into())
            }
            NcType::Float => Element::Single(f32::from_bits(raw as u32)),
            NcType::Double => Element::Double(f64::from_bits(raw)),
        }
    }
}
