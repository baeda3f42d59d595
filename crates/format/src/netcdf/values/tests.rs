use super::*;

const NUMBERS: [NcType; 10] = [
    NcType::Byte,
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

/// A value of any type, for comparison: integers exactly, floats by their bits.
#[derive(Debug, Clone, Copy)]
enum Value {
    Integer(i128),
    Float(f64),
}

fn value(ty: NcType, big: &[u8]) -> Value {
    let mut bytes = big.to_vec();
    bytes.reverse();
    let mut raw = [0; 16];
    raw[..bytes.len()].copy_from_slice(&bytes);
    let unsigned = i128::from_le_bytes(raw);
    let sign = 1i128 << (8 * ty.size() - 1);
    match ty {
        NcType::Float => Value::Float(f32::from_bits(unsigned as u32).into()),
        NcType::Double => Value::Float(f64::from_bits(unsigned as u64)),
        NcType::UByte | NcType::UShort | NcType::UInt | NcType::UInt64 | NcType::Char => {
            Value::Integer(unsigned)
        }
        _ => Value::Integer((unsigned ^ sign) - sign),
    }
}

fn limits(ty: NcType) -> (i128, i128) {
    let bits = 8 * ty.size() as u32;
    match ty {
        NcType::UByte | NcType::UShort | NcType::UInt | NcType::UInt64 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// The big-endian bytes of `from` in `ty`, by the module's description; `None` for a misfit.
fn expected(from: Value, ty: NcType) -> Option<Vec<u8>> {
    let integer = |whole: i128| {
        let (least, greatest) = limits(ty);
        let bytes = whole.to_be_bytes();
        (least..=greatest).contains(&whole).then(|| bytes[16 - ty.size()..].to_vec())
    };
    match (from, ty) {
        (Value::Integer(whole), NcType::Double) => Some((whole as f64).to_be_bytes().to_vec()),
        (Value::Integer(whole), NcType::Float) => Some((whole as f32).to_be_bytes().to_vec()),
        (Value::Integer(whole), _) => integer(whole),
        (Value::Float(x), NcType::Double) => Some(x.to_be_bytes().to_vec()),
        (Value::Float(x), NcType::Float) => {
            let fits = !x.is_finite() || x.abs() <= f64::from(f32::MAX);
            fits.then(|| (x as f32).to_be_bytes().to_vec())
        }
        // Whole numbers are exact as i128 here, so a value beyond a limit by any fraction is detected.
        (Value::Float(x), _) => {
            let (floor, ceil) = (x.floor(), x.ceil());
            let (least, greatest) = limits(ty);
            let fits = x.is_finite() && floor as i128 >= least && ceil as i128 <= greatest;
            fits.then(|| integer(x.trunc() as i128)).flatten()
        }
    }
}

/// Values at and around every limit of every type, of type `ty`, big-endian.
fn samples(ty: NcType) -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    for other in NUMBERS.iter().filter(|ty| !matches!(ty, NcType::Float | NcType::Double)) {
        for limit in [limits(*other).0, limits(*other).1, 0] {
            for near in [-2i128, -1, 0, 1, 2] {
                let whole = Value::Integer(limit + near);
                samples.extend(expected(whole, ty));
                if matches!(ty, NcType::Float | NcType::Double) {
                    for fraction in [-0.5, 0.5, 0.999] {
                        samples.extend(expected(Value::Float((limit + near) as f64 + fraction), ty));
                    }
                }
            }
        }
    }
    if matches!(ty, NcType::Float | NcType::Double) {
        let f32s = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-40, -0.0].map(f64::from);
        let f64s =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, f64::from(f32::MAX) * 1.000001, 0.1];
        samples.extend(f32s.iter().chain(&f64s).filter_map(|x| expected(Value::Float(*x), ty)));
    }
    samples
}

fn native(size: usize, big: &[u8]) -> Vec<u8> {
    let mut bytes = big.to_vec();
    if cfg!(target_endian = "little") {
        bytes.chunks_mut(size).for_each(<[u8]>::reverse);
    }
    bytes
}

#[test]
fn every_pair_of_numeric_types_at_every_limit() {
    let mut checked = 0;
    for from in NUMBERS {
        for to in NUMBERS {
            let samples = samples(from);
            let fill: Vec<u8> = (1..=to.size() as u8).collect();
            let wanted: Vec<Option<Vec<u8>>> =
                samples.iter().map(|sample| expected(value(from, sample), to)).collect();
            let misfit = wanted.iter().position(Option::is_none).map(|i| i as u64);
            let bytes: Vec<u8> = wanted.iter().flat_map(|v| v.as_ref().unwrap_or(&fill)).copied().collect();
            let given: Vec<u8> = samples.concat();
            let mut out = vec![0; bytes.len()];

            let reader = Conversion::new(from, to, Version::Cdf5).unwrap();
            let found = reader.read(&given, &mut out, &fill);
            assert_eq!(found.map(|m| m.index), misfit, "read {from:?} as {to:?}");
            assert_eq!(native(to.size(), &out), bytes, "read {from:?} as {to:?}");

            let writer = Conversion::new(to, from, Version::Cdf5).unwrap();
            let found = writer.write(&native(from.size(), &given), &mut out, &fill);
            assert_eq!(found.map(|m| m.index), misfit, "write {from:?} as {to:?}");
            assert_eq!(out, bytes, "write {from:?} as {to:?}");
            checked += wanted.len();
        }
    }
    assert!(checked > 8_000, "{checked}");
}

#[test]
fn text_converts_to_nothing_else() {
    for other in NUMBERS {
        assert!(Conversion::new(NcType::Char, other, Version::Cdf1).is_err());
        assert!(Conversion::new(other, NcType::Char, Version::Cdf1).is_err());
    }
    let text = Conversion::new(NcType::Char, NcType::Char, Version::Cdf1).unwrap();
    let mut out = [0; 3];
    assert_eq!(text.read(b"abc", &mut out, b"\0"), None);
    assert_eq!(&out, b"abc");
}

#[test]
fn bytes_have_no_sign_before_cdf5() {
    let file = [200, 7];
    let mut out = [0; 2];
    for version in [Version::Cdf1, Version::Cdf2] {
        let bits = Conversion::new(NcType::Byte, NcType::UByte, version).unwrap();
        assert!(bits.copies());
        assert_eq!(bits.read(&file, &mut out, &[9]), None);
        assert_eq!(out, [200, 7]);
    }
    let signed = Conversion::new(NcType::Byte, NcType::UByte, Version::Cdf5).unwrap();
    let misfit = signed.read(&file, &mut out, &[9]).unwrap();
    assert_eq!((misfit.index, misfit.value.as_str(), out), (0, "-56", [9, 7]));
}

#[test]
fn turning_in_place_and_from_slice_to_slice_agree_and_undo_themselves() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for size in [1, 2, 4, 8] {
        let mut turned = bytes.clone();
        turn(size, &mut turned);
        assert_eq!(turned, native(size, &bytes), "{size}");
        let mut other = vec![0; bytes.len()];
        turn_into(size, &bytes, &mut other);
        assert_eq!(other, turned, "{size}");
        turn(size, &mut turned);
        assert_eq!(turned, bytes, "{size}");
    }
}

#[test]
fn values_that_do_not_fit_are_reported_in_few_digits() {
    assert_eq!(shown(1e300), "1e300");
    assert_eq!(shown(-1.5e-300), "-1.5e-300");
    assert_eq!(shown(1e9), "1000000000");
    assert_eq!(shown(f64::NAN), "NaN");
    assert_eq!(shown(u64::MAX), "18446744073709551615");
    assert_eq!(shown(i64::MIN), "-9223372036854775808");
}
