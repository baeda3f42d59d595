//! Element types parse and print numpy's type strings, and refuse types without fixed bytes.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::{ByteOrder, DType, DTypeKind};
use proptest::prelude::*;

/// Text given, canonical text, kind, size, word.
const KNOWN: &[(&str, &str, DTypeKind, usize, usize)] = &[
    ("|b1", "|b1", DTypeKind::Bool, 1, 1),
    ("<b1", "|b1", DTypeKind::Bool, 1, 1),
    ("bool", "|b1", DTypeKind::Bool, 1, 1),
    ("?", "|b1", DTypeKind::Bool, 1, 1),
    ("|i1", "|i1", DTypeKind::Int, 1, 1),
    (">i1", "|i1", DTypeKind::Int, 1, 1),
    ("<i2", "<i2", DTypeKind::Int, 2, 2),
    (">i4", ">i4", DTypeKind::Int, 4, 4),
    (">i8", ">i8", DTypeKind::Int, 8, 8),
    ("uint8", "|u1", DTypeKind::UInt, 1, 1),
    (">u2", ">u2", DTypeKind::UInt, 2, 2),
    ("<u4", "<u4", DTypeKind::UInt, 4, 4),
    ("<u8", "<u8", DTypeKind::UInt, 8, 8),
    ("<f2", "<f2", DTypeKind::Float, 2, 2),
    (">f4", ">f4", DTypeKind::Float, 4, 4),
    (" <f8 ", "<f8", DTypeKind::Float, 8, 8),
    ("<c8", "<c8", DTypeKind::Complex, 8, 4),
    (">c16", ">c16", DTypeKind::Complex, 16, 8),
    ("|S12", "|S12", DTypeKind::Bytes, 12, 1),
    ("<S1", "|S1", DTypeKind::Bytes, 1, 1),
    ("|S2147483647", "|S2147483647", DTypeKind::Bytes, 2147483647, 1),
    ("<U3", "<U3", DTypeKind::Unicode, 12, 4),
    (">U1", ">U1", DTypeKind::Unicode, 4, 4),
    ("<M8", "<M8", DTypeKind::DateTime, 8, 8),
    ("<M8[generic]", "<M8", DTypeKind::DateTime, 8, 8),
    ("<M8[ns]", "<M8[ns]", DTypeKind::DateTime, 8, 8),
    (">M8[25s]", ">M8[25s]", DTypeKind::DateTime, 8, 8),
    ("<m8[1D]", "<m8[D]", DTypeKind::TimeDelta, 8, 8),
];

#[test]
fn every_kind_reads_and_writes_its_numpy_text() {
    for &(text, canonical, kind, size, word) in KNOWN {
        let dtype = DType::parse(text).unwrap();
        assert_eq!(
            (dtype.to_string().as_str(), dtype.kind(), dtype.size(), dtype.word()),
            (canonical, kind, size, word),
            "{text}"
        );
        assert_eq!(canonical.parse::<DType>().unwrap(), dtype);
    }
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"] {
        let text = format!("<m8[{unit}]");
        assert_eq!(DType::parse(&text).unwrap().to_string(), text);
    }
}

#[test]
fn names_without_a_sign_mean_this_machines_order() {
    let sign = ByteOrder::NATIVE.sign();
    for (name, code) in [
        ("f8", "f8"),
        ("=f8", "f8"),
        ("float64", "f8"),
        ("float32", "f4"),
        ("half", "f2"),
        ("int32", "i4"),
        ("int16", "i2"),
        ("int", "i8"),
        ("uint64", "u8"),
        ("complex64", "c8"),
        ("complex128", "c16"),
        ("U7", "U7"),
        ("datetime64[ns]", "M8[ns]"),
        ("timedelta64[3h]", "m8[3h]"),
    ] {
        let dtype = DType::parse(name).unwrap();
        assert_eq!(dtype.to_string(), format!("{sign}{code}"));
        assert!(dtype.is_native());
    }
    assert_eq!(DType::parse("f8").unwrap(), DType::F8);
    assert_eq!(DType::parse("bool").unwrap(), DType::BOOL);
}

#[test]
fn byte_order_is_a_property_of_ordered_elements_only() {
    let little = DType::parse("<f8").unwrap();
    let big = DType::parse(">f8").unwrap();
    assert_eq!((little.byte_order(), big.byte_order()), (ByteOrder::Little, ByteOrder::Big));
    assert_eq!(little.with_order(ByteOrder::Big), big);
    assert_eq!(little.with_order(ByteOrder::None), little);
    assert_eq!(big.to_native(), DType::F8);
    assert_ne!(little.is_native(), big.is_native());
    let bytes = DType::parse("S4").unwrap();
    assert_eq!(bytes.with_order(ByteOrder::Big), bytes);
    assert!(bytes.is_native());
}

#[test]
fn what_has_no_fixed_meaning_is_refused_by_name() {
    for (text, word) in [
        ("<f16", "long double"),
        ("f12", "long double"),
        (">c32", "long double"),
        ("longdouble", "long double"),
        ("float128", "long double"),
        ("|V8", "structured"),
        ("V", "structured"),
        ("void", "structured"),
        ("[('a', '<f8')]", "structured"),
        ("i4,f8", "structured"),
        ("|O", "objects"),
        ("object", "objects"),
        ("T", "variable length"),
        ("S0", "size zero"),
        ("<U0", "size zero"),
        ("S", "length"),
        ("str", "length"),
        ("|f8", "byte order"),
        ("|U2", "byte order"),
        ("<i3", "no i of 3 bytes"),
        ("f1", "no f of 1 bytes"),
        ("b2", "no b of 2 bytes"),
        ("M4", "no M of 4 bytes"),
        ("<f8[ns]", "unit"),
        ("<M8[ns", "bracket"),
        ("<M8[0s]", "multiple"),
        ("<M8[4294967297s]", "multiple"),
        ("<M8[s/2]", "no unit of time"),
        ("<M8[parsec]", "no unit of time"),
        ("<M8[]", "no unit of time"),
        ("S2147483648", "too large"),
        ("U536870912", "too large"),
        ("S99999999999999999999", "too large"),
        ("", "empty"),
        ("<", "no such type"),
        ("<<f8", "no such type"),
        ("<float64", "no such type"),
        ("f+8", "no such type"),
        ("f-8", "no such type"),
        ("f 8", "no such type"),
        ("x8", "no such type"),
        ("é", "no such type"),
        ("fé", "no such type"),
    ] {
        let error = DType::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(word), "{text}: {error}");
        assert!(error.message().contains(&format!("{text:?}")), "{text}: {error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn the_default_fill_is_nan_not_a_time_or_zero() {
    let nan = f64::NAN.to_bits();
    for (text, expected) in [
        ("<f2", vec![0x00, 0x7e]),
        (">f2", vec![0x7e, 0x00]),
        ("<f4", f32::NAN.to_le_bytes().to_vec()),
        (">f8", nan.to_be_bytes().to_vec()),
        ("<c16", [nan.to_le_bytes(), nan.to_le_bytes()].concat()),
        (">c8", [f32::NAN.to_be_bytes(), f32::NAN.to_be_bytes()].concat()),
        ("<M8[s]", i64::MIN.to_le_bytes().to_vec()),
        (">m8[D]", i64::MIN.to_be_bytes().to_vec()),
        ("i4", vec![0; 4]),
        ("bool", vec![0]),
        ("S5", vec![0; 5]),
        ("<U2", vec![0; 8]),
    ] {
        assert_eq!(DType::parse(text).unwrap().default_fill(), expected, "{text}");
    }
}

#[test]
fn swapping_reverses_words_not_elements() {
    for (text, expected) in [
        ("i2", [2, 1, 4, 3, 6, 5, 8, 7]),
        ("f4", [4, 3, 2, 1, 8, 7, 6, 5]),
        ("c8", [4, 3, 2, 1, 8, 7, 6, 5]),
        ("U2", [4, 3, 2, 1, 8, 7, 6, 5]),
        ("M8[s]", [8, 7, 6, 5, 4, 3, 2, 1]),
        ("S8", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("u1", [1, 2, 3, 4, 5, 6, 7, 8]),
    ] {
        let mut data = [1, 2, 3, 4, 5, 6, 7, 8];
        DType::parse(text).unwrap().swap_bytes(&mut data);
        assert_eq!(data, expected, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(
        text in r"[<>=|]?[a-zA-Z?é]{0,9}[0-9]{0,12}(\[[0-9]{0,11}[a-zA-Zµ]{0,3}\]?)?|\PC{0,12}",
    ) {
        if let Ok(dtype) = DType::parse(&text) {
            prop_assert!(dtype.size() >= 1);
            prop_assert_eq!(DType::parse(&dtype.to_string()).unwrap(), dtype);
        }
    }
}
