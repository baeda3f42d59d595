//! The data section: a variable's elements, row by row, wrapped as ncdump wraps them.
//!
//! A row is the last dimension. Elements are read in pieces of bounded size, so that memory never holds a whole row
//! or variable.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::NcType;

use super::format::{self, Argument, Printf};
use super::text::{self, TextContext};
use super::{Element, Read, Text, special};
use crate::container::VarInfo;

/// Columns of a line: ncdump's 80, minus two for the characters that end it.
const COLUMNS: usize = 78;

/// Bytes read at a time.
const SPAN: u64 = 1 << 18;

/// Prints ` name = … ;`; nothing for a variable without elements.
pub(super) fn write<E: From<Error>>(
    var: &VarInfo,
    read: &Read<'_>,
    text: &mut Text<'_, E>,
) -> std::result::Result<(), E> {
    let shape = var.shape();
    if shape.contains(&0) {
        return Ok(());
    }
    text.put("\n ");
    text.name(&var.name);
    let deep = shape.len() > 1;
    text.put(if deep { " =\n  " } else { " = " });
    let column = if deep { 2 } else { text::visible(&var.name).len() + 4 };
    let style = Style::of(var);
    let columns = shape.last().copied().unwrap_or(1);
    let mut rows = Rows { style, columns, at: 0, column, zeros: 0 };
    let elements = elements(var, &shape)?;
    let mut done = 0;
    runs(var, &shape, &mut |offset, span, record, stride| {
        let mut buffer = vec![0; span];
        let have = read(&mut buffer, offset)?;
        if have < span {
            let wrong = format!(
                "variable `{}`: its data at offset {} are beyond the end of the file (rule: a file holds \
                 all bytes of its variables)",
                var.name,
                offset + have as u64
            );
            return Err(Error::corrupt(wrong).into());
        }
        for part in buffer.chunks(stride) {
            for element in part[..record].chunks_exact(var.ty.size()) {
                done += 1;
                rows.element(var.ty, element, done == elements, text);
                text.pass()?;
            }
        }
        Ok(())
    })
}

/// The number of elements of the variable.
fn elements(var: &VarInfo, shape: &[u64]) -> Result<u64> {
    let product = shape.iter().try_fold(1_u64, |product, len| product.checked_mul(*len));
    product.ok_or_else(|| Error::corrupt(format!("variable `{}`: more than 2^64 elements", var.name)))
}

/// Divides a variable into spans to read at a time: offset, bytes, and how many bytes of each `stride` belong to the
/// variable.
fn runs<E: From<Error>>(
    var: &VarInfo,
    shape: &[u64],
    to: &mut dyn FnMut(u64, usize, usize, usize) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let overflow = || Error::corrupt(format!("variable `{}`: its data end beyond byte 2^64", var.name));
    let size = var.ty.size() as u64;
    let (records, inner) = match (var.is_record(), shape) {
        (true, [records, inner @ ..]) => (*records, inner),
        _ => (1, shape),
    };
    let bytes = elements(var, inner)?.checked_mul(size).ok_or_else(overflow)?;
    // Small records that are near each other are read together with the bytes between them.
    let together = if (bytes..=SPAN).contains(&var.record_stride) { SPAN / var.record_stride } else { 1 };
    let mut record = 0;
    while record < records {
        let at = record.checked_mul(var.record_stride).and_then(|at| at.checked_add(var.begin));
        let at = at.ok_or_else(overflow)?;
        let some = together.min(records - record);
        if some > 1 {
            // The bytes after the last record do not belong to this variable.
            let span = (some - 1) * var.record_stride + bytes;
            to(at, span as usize, bytes as usize, var.record_stride as usize)?;
        } else {
            let mut done = 0;
            while done < bytes {
                let span = (bytes - done).min(SPAN);
                let offset = at.checked_add(done).ok_or_else(overflow)?;
                to(offset, span as usize, span as usize, span as usize)?;
                done += span;
            }
        }
        record += some;
    }
    Ok(())
}

/// The format of a variable's elements.
enum Style {
    /// Rows of characters are texts.
    Text,
    /// By a format of C; the value of the second field is printed as `_`.
    Numbers(Option<Printf>, Option<Element>, Digits),
    /// A format without a conversion: its text is printed for each value.
    Fixed(String, Option<Element>),
}

/// Significant digits if there is no format.
type Digits = usize;

impl Style {
    fn of(var: &VarInfo) -> Style {
        let wanted = var.attrs.find("C_format").filter(|attr| attr.ty == NcType::Char);
        let wanted = wanted.filter(|attr| !attr.value.is_empty() && attr.value.len() < 100);
        let wanted = wanted.map(|attr| attr.value.split(|byte| *byte == 0).next().unwrap_or(&[]));
        let wanted = wanted.map(|text| String::from_utf8_lossy(text).into_owned());
        let digits = if var.ty == NcType::Float { 7 } else { 15 };
        let argument = match var.ty {
            NcType::Char if wanted.as_deref().is_none_or(|format| matches!(format, "" | "%s")) => {
                return Style::Text;
            }
            NcType::Char => Argument::Character,
            NcType::Float | NcType::Double => Argument::Real,
            NcType::Int64 | NcType::UInt64 => Argument::Integer(64),
            _ => Argument::Integer(32),
        };
        match wanted {
            Some(format) if format::plain(&format).is_some() => {
                Style::Fixed(format::plain(&format).unwrap_or_default(), fill(var))
            }
            Some(format) => Style::Numbers(Printf::parse(&format, argument), fill(var), digits),
            None => Style::Numbers(None, fill(var), digits),
        }
    }
}

/// The fill value: the variable's own, else the type's; none for bytes, for which ncdump considers it too risky.
fn fill(var: &VarInfo) -> Option<Element> {
    let own = var.attrs.find("_FillValue");
    if let Some(own) = own.filter(|own| own.ty == var.ty && own.value.len() == var.ty.size()) {
        return Some(Element::read(var.ty, own.value));
    }
    Some(match var.ty {
        NcType::Byte | NcType::UByte => return None,
        NcType::Char => Element::Integer(0),
        NcType::Short => Element::Integer(-32_767),
        NcType::Int => Element::Integer(-2_147_483_647),
        NcType::Float => Element::Single(f32::from_bits(0x7cf0_0000)),
        NcType::Double => Element::Double(f64::from_bits(0x479e_0000_0000_0000)),
        NcType::UShort => Element::Integer(65_535),
        NcType::UInt => Element::Integer(4_294_967_295),
        NcType::Int64 => Element::Integer(-9_223_372_036_854_775_806),
        NcType::UInt64 => Element::Integer(18_446_744_073_709_551_614),
    })
}

/// Whether a value is the fill value, by ncdump's rule: floats may differ in their last bit.
fn is_fill(fill: Element, value: Element) -> bool {
    match (fill, value) {
        (Element::Single(fill), Element::Single(value)) => {
            (fill > 0.0) == (value > 0.0)
                && if fill.is_finite() && value.is_finite() {
                    (fill - value).abs() <= (f32::EPSILON * value).abs()
                } else {
                    fill.is_nan() && value.is_nan() || fill.is_infinite() && value.is_infinite()
                }
        }
        (Element::Double(fill), Element::Double(value)) => {
            (fill > 0.0) == (value > 0.0)
                && if fill.is_finite() && value.is_finite() {
                    (fill - value).abs() <= (f64::EPSILON * value).abs()
                } else {
                    fill.is_nan() && value.is_nan() || fill.is_infinite() && value.is_infinite()
                }
        }
        (fill, value) => fill == value,
    }
}

/// The position of the printing.
struct Rows {
    style: Style,
    /// Elements in a row.
    columns: u64,
    /// Elements of this row printed so far.
    at: u64,
    /// Column on the line.
    column: usize,
    /// Zero bytes of a text that are printed only if another byte follows.
    zeros: u64,
}

impl Rows {
    fn element<E>(&mut self, ty: NcType, bytes: &[u8], last: bool, text: &mut Text<'_, E>) {
        let first = self.at == 0;
        self.at += 1;
        let ends = self.at == self.columns;
        if matches!(self.style, Style::Text) {
            self.character(bytes.first().copied().unwrap_or(0), first, ends, text);
        } else {
            self.number(Element::read(ty, bytes), ends, text);
        }
        if ends {
            self.at = 0;
            text.put(if last { " ;\n" } else { ",\n  " });
            self.column = 2;
        }
    }

    fn character<E>(&mut self, byte: u8, first: bool, ends: bool, text: &mut Text<'_, E>) {
        if first {
            text.put("\"");
            self.zeros = 0;
        }
        if byte == 0 {
            self.zeros += 1;
        } else {
            for _ in 0..std::mem::take(&mut self.zeros) {
                text.put("\\000");
            }
            text::byte(byte, TextContext::Data, &mut text.buffer);
        }
        if ends {
            text.put("\"");
        }
    }

    fn number<E>(&mut self, value: Element, ends: bool, text: &mut Text<'_, E>) {
        // Write the element here, and move it to the next line if it does not fit.
        let start = text.buffer.len();
        self.value(value, &mut text.buffer);
        if !ends {
            text.put(", ");
        }
        let len = text.buffer.len() - start;
        if len + self.column > COLUMNS && len > 2 {
            text.buffer.splice(start..start, *b"\n    ");
            self.column = 4;
        }
        self.column += len;
    }

    fn value(&self, value: Element, to: &mut Vec<u8>) {
        let (format, fill, digits) = match &self.style {
            Style::Text => return,
            Style::Fixed(text, fill) => {
                let shown = if fill.is_some_and(|fill| is_fill(fill, value)) { "_" } else { text };
                return to.extend_from_slice(shown.as_bytes());
            }
            Style::Numbers(format, fill, digits) => (format, fill, *digits),
        };
        if fill.is_some_and(|fill| is_fill(fill, value)) {
            return to.push(b'_');
        }
        match (value, format) {
            (Element::Integer(value), Some(format)) => format.integer(value, to),
            (Element::Integer(value), None) => to.extend_from_slice(value.to_string().as_bytes()),
            (Element::Single(value), _) if !value.is_finite() => {
                to.extend_from_slice(special(f64::from(value)).as_bytes());
                to.push(b'f');
            }
            (Element::Double(value), _) if !value.is_finite() => {
                to.extend_from_slice(special(value).as_bytes())
            }
            (Element::Single(value), format) => real(f64::from(value), format.as_ref(), digits, to),
            (Element::Double(value), format) => real(value, format.as_ref(), digits, to),
        }
    }
}

fn real(value: f64, format: Option<&Printf>, digits: usize, to: &mut Vec<u8>) {
    if let Some(format) = format {
        return format.real(value, to);
    }
    if value.is_sign_negative() {
        to.push(b'-');
    }
    to.extend_from_slice(super::general(value.abs(), digits, false).as_bytes());
}
