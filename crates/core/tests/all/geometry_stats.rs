//! Summaries of arrays, compared with a loop that decodes every element on its own.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::dtype::{ByteOrder, DType, DTypeKind};
use fieldstone_core::env::sim::Random;
use fieldstone_core::geometry::{Scalar, Summary, summarize, summarize_without};
use proptest::prelude::*;
use std::cmp::Ordering;

const NUMERIC: [&str; 22] = [
    "|b1", "|i1", "|u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8",
    "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", ">M8[s]",
];

/// The value of an element, by the definition of its type; `None` if it is missing by itself.
fn decode(dtype: DType, element: &[u8]) -> Option<Scalar> {
    let mut little = element.to_vec();
    if dtype.byte_order() == ByteOrder::Big {
        little.reverse();
    }
    let bits = little.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * little.len() as u32;
    let signed = (bits << unused) as i64 >> unused;
    match (dtype.kind(), little.len()) {
        (DTypeKind::Bool, _) => Some(Scalar::UInt(u64::from(bits != 0))),
        (DTypeKind::Int, _) => Some(Scalar::Int(signed)),
        (DTypeKind::UInt, _) => Some(Scalar::UInt(bits)),
        (DTypeKind::Float, size) => {
            let float = match size {
                2 => half(bits),
                4 => f64::from(f32::from_bits(bits as u32)),
                _ => f64::from_bits(bits),
            };
            (!float.is_nan()).then_some(Scalar::Float(float))
        }
        _ => (signed != i64::MIN).then_some(Scalar::Int(signed)),
    }
}

fn half(bits: u64) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = (bits & 0x3ff) as f64 / 1024.0;
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2_f64.powi(exponent as i32 - 15),
    }
}

fn naive(dtype: DType, data: &[u8], fill: Option<&[u8]>) -> Summary {
    let fill = fill.and_then(|fill| decode(dtype, fill));
    let mut summary = Summary::EMPTY;
    for element in data.chunks_exact(dtype.size()) {
        match decode(dtype, element) {
            Some(value) if fill.is_none_or(|fill| fill != value) => {
                if summary.min.is_none_or(|min| value.compare(min) == Some(Ordering::Less)) {
                    summary.min = Some(value);
                }
                if summary.max.is_none_or(|max| value.compare(max) == Some(Ordering::Greater)) {
                    summary.max = Some(value);
                }
            }
            _ => summary.missing += 1,
        }
    }
    summary
}

fn of<const N: usize>(dtype: &str, elements: &[[u8; N]]) -> Summary {
    summarize(DType::parse(dtype).unwrap(), &elements.concat(), None).unwrap()
}

#[test]
fn extremes_of_every_kind() {
    let some = |min, max, missing| Summary { min: Some(min), max: Some(max), missing };
    let none = |missing| Summary { min: None, max: None, missing };
    let f = |x: f64| x.to_le_bytes();
    let inf = f64::INFINITY;
    assert_eq!(of("<f8", &[f(1.5), f(f64::NAN), f(-2.0)]), some(Scalar::Float(-2.0), Scalar::Float(1.5), 1));
    assert_eq!(of("<f8", &[f(inf), f(inf)]), some(Scalar::Float(inf), Scalar::Float(inf), 0));
    assert_eq!(of("<f8", &[f(-inf)]), some(Scalar::Float(-inf), Scalar::Float(-inf), 0));
    assert_eq!(of("<f8", &[f(f64::NAN); 3]), none(3));
    assert_eq!(of::<8>("<f8", &[]), none(0));
    let i = |x: i64| x.to_be_bytes();
    let (low, high) = (Scalar::Int(i64::MIN), Scalar::Int(i64::MAX));
    assert_eq!(of(">i8", &[i(i64::MAX), i(i64::MIN)]), some(low, high, 0));
    assert_eq!(of(">i8", &[i(i64::MAX)]), some(high, high, 0));
    assert_eq!(of(">M8[ns]", &[i(i64::MIN), i(7)]), some(Scalar::Int(7), Scalar::Int(7), 1));
    assert_eq!(of(">m8[D]", &[i(i64::MIN)]), none(1));
    let top = Scalar::UInt(u64::MAX);
    assert_eq!(of("<u8", &[[255; 8]]), some(top, top, 0));
    assert_eq!(of("|b1", &[[0], [1]]), some(Scalar::UInt(0), Scalar::UInt(1), 0));
    assert_eq!(of("|b1", &[[7]]), some(Scalar::UInt(1), Scalar::UInt(1), 0));
}

#[test]
fn every_half_float_is_decoded() {
    for bits in 0..=u16::MAX {
        let expected = half(bits.into());
        let found = of("<f2", &[bits.to_le_bytes()]);
        if expected.is_nan() {
            assert_eq!(found, Summary { min: None, max: None, missing: 1 });
        } else {
            assert_eq!(found.min, Some(Scalar::Float(expected)), "{bits:#x}");
            assert_eq!(found.max, found.min);
        }
    }
}

#[test]
fn a_float_fill_is_compared_as_a_number() {
    for dtype in ["<f2", ">f2", "<f4", "<f8", ">f8"] {
        let dtype = DType::parse(dtype).unwrap();
        let zero = vec![0; dtype.size()];
        let mut minus_zero = zero.clone();
        let sign = if dtype.byte_order() == ByteOrder::Big { 0 } else { dtype.size() - 1 };
        minus_zero[sign] = 0x80;
        for (data, fill) in [(&zero, &minus_zero), (&minus_zero, &zero)] {
            assert_eq!(summarize(dtype, data, Some(fill)).unwrap().missing, 1, "{dtype}");
        }
    }
}

#[test]
fn what_cannot_be_summarized_gives_none() {
    for dtype in ["c8", "c16", "S4", "U1"] {
        assert_eq!(summarize(DType::parse(dtype).unwrap(), &[0; 16], None), None, "{dtype}");
    }
    assert_eq!(summarize(DType::F8, &[0; 12], None), None);
    assert_eq!(summarize(DType::F8, &[0; 16], Some(&[0; 4])), None);
}

#[test]
fn scalars_compare_exactly_across_kinds() {
    use Ordering::{Equal, Greater, Less};
    let big = 1_i64 << 53;
    for (a, b, order) in [
        (Scalar::Int(-1), Scalar::UInt(u64::MAX), Less),
        (Scalar::UInt(3), Scalar::Int(3), Equal),
        (Scalar::Int(big + 1), Scalar::Float(big as f64), Greater),
        (Scalar::Int(-1), Scalar::Float(-0.5), Less),
        (Scalar::Int(0), Scalar::Float(-0.5), Greater),
        (Scalar::Int(3), Scalar::Float(3.0), Equal),
        (Scalar::UInt(u64::MAX), Scalar::Float(f64::INFINITY), Less),
        (Scalar::UInt(u64::MAX), Scalar::Float(u64::MAX as f64), Less),
        (Scalar::Int(i64::MIN), Scalar::Float(f64::NEG_INFINITY), Greater),
    ] {
        assert_eq!(a.compare(b), Some(order), "{a:?} {b:?}");
        assert_eq!(b.compare(a), Some(order.reverse()), "{b:?} {a:?}");
    }
    assert_eq!(Scalar::Int(1).compare(Scalar::Float(f64::NAN)), None);
    assert_eq!(Scalar::Float(f64::NAN).compare(Scalar::Int(1)), None);
}

#[test]
fn several_values_may_stand_for_nothing() {
    let bytes = |values: &[i16]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
    let data = bytes(&[-99, 4, 10, 32_000, -99, 7]);
    let dtype = DType::parse(">i2").unwrap();
    let found = |missing: &[i16]| {
        let found = summarize_without(dtype, &data, &bytes(missing)).unwrap();
        (found.min, found.max, found.missing)
    };
    let int = |value| Some(Scalar::Int(value));
    assert_eq!(found(&[]), (int(-99), int(32_000), 0));
    assert_eq!(found(&[-99]), (int(4), int(32_000), 2));
    assert_eq!(found(&[-99, 32_000, 5]), (int(4), int(10), 3));
    assert_eq!(found(&[-99, 4, 10, 32_000, 7]), (None, None, 6));
    assert_eq!(summarize_without(dtype, &data, &[0]), None, "no whole element");
}

/// Bytes of a few repeated elements, so that fills, ties and missing values are frequent; in some cases long enough
/// for several blocks.
fn elements() -> impl Strategy<Value = (DType, Vec<u8>, Vec<u8>)> {
    let byte = prop_oneof![Just(0_u8), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    let palette = prop::collection::vec(prop::collection::vec(byte, 8), 1..6);
    let length = prop_oneof![0_usize..200, 15_000_usize..17_000];
    let runs = any::<bool>();
    (prop::sample::select(NUMERIC.to_vec()), palette, length, any::<u64>(), runs).prop_map(
        |(name, palette, length, seed, runs)| {
            let dtype = DType::parse(name).unwrap();
            let element = |i: u64| &palette[i as usize % palette.len()][..dtype.size()];
            let mut random = Random::new(seed);
            let mut drawn = 0;
            let data = (0..length as u64).flat_map(|i| {
                // In runs, whole blocks consist of one element.
                if !runs || i % 3000 == 0 {
                    drawn = random.next_u64();
                }
                element(drawn >> 33).to_vec()
            });
            (dtype, data.collect(), element(0).to_vec())
        },
    )
}

proptest! {
    #[test]
    fn a_summary_is_that_of_the_naive_loop((dtype, data, fill) in elements(), offset in 0_usize..9) {
        // At any address.
        let mut moved = vec![0xa5; offset];
        moved.extend_from_slice(&data);
        for fill in [None, Some(&fill[..])] {
            let found = summarize(dtype, &moved[offset..], fill).unwrap();
            let expected = naive(dtype, &data, fill);
            prop_assert_eq!(found, expected, "{} fill {:?}", dtype, fill);
        }
    }

    #[test]
    fn merged_summaries_are_the_summary_of_all((dtype, data, fill) in elements(), at in any::<prop::sample::Index>()) {
        let cut = at.index(data.len() / dtype.size() + 1) * dtype.size();
        let part = |bytes| summarize(dtype, bytes, Some(&fill)).unwrap();
        let mut merged = part(&data[..cut]);
        merged.merge(&part(&data[cut..]));
        prop_assert_eq!(merged, part(&data));
        let mut neutral = Summary::EMPTY;
        neutral.merge(&merged);
        prop_assert_eq!(neutral, merged);
    }
}
