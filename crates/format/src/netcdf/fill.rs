//! Fill values of unwritten elements, by netCDF's rules, in external bytes.
//!
//! A variable's own fill value is its attribute [`ATTRIBUTE`], with the variable's type and one element;
//! without such an attribute the default of its type applies.
//!
//! Invariant: a fill value is exactly one element.
//!
//! ```
//! use fieldstone_format::netcdf::{NcType, fill::default_fill};
//! assert_eq!(default_fill(NcType::Short), (-32767_i16).to_be_bytes());
//! ```

use super::{Attr, NcType};

/// Name of the attribute that holds a variable's fill value.
pub const ATTRIBUTE: &str = "_FillValue";

/// One element of `ty`'s default fill value, big-endian.
pub fn default_fill(ty: NcType) -> &'static [u8] {
    match ty {
        NcType::Byte => &[0x81],
        NcType::Char => &[0],
        NcType::Short => &[0x80, 0x01],
        NcType::Int => &[0x80, 0, 0, 0x01],
        NcType::Float => &[0x7c, 0xf0, 0, 0],
        NcType::Double => &[0x47, 0x9e, 0, 0, 0, 0, 0, 0],
        NcType::UByte => &[0xff],
        NcType::UShort => &[0xff; 2],
        NcType::UInt => &[0xff; 4],
        NcType::Int64 => &[0x80, 0, 0, 0, 0, 0, 0, 0x02],
        NcType::UInt64 => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
    }
}

/// The fill value of a variable of type `ty` with these attributes: one element, big-endian.
pub fn fill_of<'a>(ty: NcType, attrs: impl IntoIterator<Item = Attr<'a>>) -> &'a [u8] {
    attrs
        .into_iter()
        .find(|attr| attr.name == ATTRIBUTE)
        .filter(|attr| attr.ty == ty && attr.value.len() == ty.size())
        .map_or(default_fill(ty), |attr| attr.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcdf::Attrs;

    #[test]
    fn defaults_are_those_of_netcdf() {
        assert_eq!(default_fill(NcType::Byte), (-127_i8).to_be_bytes());
        assert_eq!(default_fill(NcType::Int), (-2_147_483_647_i32).to_be_bytes());
        assert_eq!(default_fill(NcType::Float), 9.969_21e36_f32.to_be_bytes());
        assert_eq!(default_fill(NcType::Double), 9.969_209_968_386_869e36_f64.to_be_bytes());
        assert_eq!(default_fill(NcType::UShort), 65535_u16.to_be_bytes());
        assert_eq!(default_fill(NcType::Int64), (-9_223_372_036_854_775_806_i64).to_be_bytes());
        assert_eq!(default_fill(NcType::UInt64), 18_446_744_073_709_551_614_u64.to_be_bytes());
        assert!(NcType::ALL.iter().all(|ty| default_fill(*ty).len() == ty.size()));
    }

    #[test]
    fn an_attribute_of_the_right_type_and_length_wins() {
        let mut attrs = Attrs::default();
        attrs.push("units", NcType::Char, b"K");
        attrs.push(ATTRIBUTE, NcType::Short, &[0, 7]);
        assert_eq!(fill_of(NcType::Short, attrs.iter()), [0, 7]);
        assert_eq!(fill_of(NcType::UShort, attrs.iter()), default_fill(NcType::UShort));
    }
}
