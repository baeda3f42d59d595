//! Values, compared with naive references: exact decimals for numbers, plain loops for ranges.

use std::cmp::Ordering;

use fieldstone_core::value::{Test, Value, ValueType};
use proptest::prelude::*;

/// All digits of a finite number: sign, then digits before and after the point, padded.
fn decimal(value: &Value) -> Option<(bool, String)> {
    let text = match value {
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(n) if n.is_finite() => format!("{n:.1074}"),
        _ => return None,
    };
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole:0>310}{fraction:0<1074}");
    let negative = negative && digits.bytes().any(|b| b != b'0');
    Some((negative, digits))
}

fn by_decimals(a: &Value, b: &Value) -> Option<Ordering> {
    let place = |v: &Value| match v {
        Value::Float(n) if n.is_nan() => None,
        Value::Float(n) if n.is_infinite() => Some(if *n > 0.0 { 1 } else { -1 }),
        _ => Some(0),
    };
    let (at, bt) = (place(a)?, place(b)?);
    if at != bt || at != 0 {
        return Some(at.cmp(&bt));
    }
    let (a, b) = (decimal(a)?, decimal(b)?);
    Some(match (a.0, b.0) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.1.cmp(&b.1),
        (true, true) => b.1.cmp(&a.1),
    })
}

/// Numbers that are close to each other across types.
fn number() -> impl Strategy<Value = Value> {
    let edges = prop_oneof![
        Just(0i128),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(i128::from(i64::MAX)),
        Just(i128::from(i64::MIN)),
        Just(i128::from(u64::MAX)),
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from)
    ];
    let near = (edges, -3i128..=3, 0..4u8).prop_map(|(edge, off, kind)| {
        let n = edge + off;
        match kind {
            0 => i64::try_from(n).map_or(Value::Float(n as f64), Value::Int),
            1 => u64::try_from(n).map_or(Value::Float(n as f64), Value::UInt),
            2 => Value::Float(n as f64),
            _ => Value::Float(n as f64 + 0.5),
        }
    });
    let special =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324];
    prop_oneof![
        6 => near,
        1 => any::<f64>().prop_map(Value::Float),
        1 => proptest::sample::select(special.to_vec()).prop_map(Value::Float),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => number(),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => "[ab*]{0,3}".prop_map(Value::Text),
        1 => proptest::collection::vec(any::<u8>(), 0..3).prop_map(Value::Bytes),
        1 => any::<i64>().prop_map(Value::DateTime),
        1 => (-5..5i64, 0..5i64).prop_map(|(a, n)| Value::IntRange(a, a + n)),
        1 => (-5..5i64, 0..5i64).prop_map(|(a, n)| Value::FloatRange(a as f64 / 2.0, (a + n) as f64 / 2.0)),
        1 => proptest::collection::vec((-3..3i64).prop_map(Value::Int), 0..3).prop_map(Value::Array),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            proptest::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|map| Value::Map(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn numbers_compare_exactly(a in number(), b in number()) {
        let expected = by_decimals(&a, &b);
        prop_assert_eq!(a.compare(&b), expected);
        prop_assert_eq!(a == b, expected == Some(Ordering::Equal));
        for (test, orders) in [
            (Test::Above(b.clone()), &[Ordering::Greater][..]),
            (Test::AtLeast(b.clone()), &[Ordering::Greater, Ordering::Equal]),
            (Test::Below(b.clone()), &[Ordering::Less]),
            (Test::AtMost(b.clone()), &[Ordering::Less, Ordering::Equal]),
            (Test::Equal(b.clone()), &[Ordering::Equal]),
        ] {
            let holds = expected.is_some_and(|order| orders.contains(&order));
            prop_assert_eq!(test.matches(&a), holds);
            prop_assert_eq!(Test::Not(Box::new(test)).matches(&a), !holds);
        }
    }

    #[test]
    fn the_order_is_total_and_agrees(a in value(), b in value(), c in value()) {
        prop_assert_eq!(a.order(&b), b.order(&a).reverse());
        prop_assert_eq!(a.order(&a), Ordering::Equal);
        if a.order(&b).is_le() && b.order(&c).is_le() {
            prop_assert!(a.order(&c).is_le(), "{} {} {}", a, b, c);
        }
        if a == b {
            prop_assert_eq!(a.order(&b), Ordering::Equal);
            prop_assert_eq!(a.order(&c), b.order(&c));
        }
        if let Some(order) = a.compare(&b) {
            prop_assert_eq!(a.order(&b), order);
        }
    }

    #[test]
    fn nan_is_last_in_either_direction(a in value(), b in value(), c in value(), falling in any::<bool>()) {
        let order = |a: &Value, b: &Value| a.order_in(b, falling);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le(), "{} {} {}", a, b, c);
        }
        let nan = Value::Float(f64::NAN);
        let is_nan = matches!(a, Value::Float(n) if n.is_nan());
        prop_assert_eq!(order(&a, &nan), if is_nan { Ordering::Equal } else { Ordering::Less });
        let list = |value: &Value| Value::List(vec![Value::Int(1), value.clone()]);
        prop_assert_eq!(order(&list(&a), &list(&nan)), order(&a, &nan));
        if !a.to_string().contains("NaN") && !b.to_string().contains("NaN") {
            let plain = a.order(&b);
            prop_assert_eq!(order(&a, &b), if falling { plain.reverse() } else { plain });
        }
    }

    #[test]
    fn ranges_hold_what_they_hold(a in -6..6i64, n in 0..5i64, b in -6..6i64, m in 0..5i64, x in -9..9i64) {
        // In halves, so that every number of interest is listed.
        let (from, to) = (2 * a, 2 * (a + n));
        let of_range = |holds: &dyn Fn(i64) -> bool| (from..=to).any(holds);
        for range in [Value::IntRange(a, a + n), Value::FloatRange(a as f64, (a + n) as f64)] {
            for number in [Value::Int(x), Value::Float(x as f64)] {
                prop_assert_eq!(Test::Contains(number.clone()).matches(&range), of_range(&|h| h == 2 * x));
                prop_assert_eq!(Test::Above(number.clone()).matches(&range), of_range(&|h| h > 2 * x));
                prop_assert_eq!(Test::AtLeast(number.clone()).matches(&range), of_range(&|h| h >= 2 * x));
                prop_assert_eq!(Test::Below(number.clone()).matches(&range), of_range(&|h| h < 2 * x));
                prop_assert_eq!(Test::AtMost(number.clone()).matches(&range), of_range(&|h| h <= 2 * x));
                prop_assert!(!Test::Equal(number).matches(&range));
            }
            let between = Test::Between(Value::Int(b), Value::Float((b + m) as f64));
            prop_assert_eq!(between.matches(&range), of_range(&|h| h >= 2 * b && h <= 2 * (b + m)));
            let inner = Test::Contains(Value::IntRange(b, b + m));
            prop_assert_eq!(inner.matches(&range), (2 * b..=2 * (b + m)).all(|h| h >= from && h <= to));
        }
    }

    #[test]
    fn widening_changes_no_value(a in value()) {
        for kind in ValueType::ALL {
            if let Some(wide) = a.fits(kind) {
                prop_assert!(kind == ValueType::Json || wide.kind() == kind);
                let has_nan = a.to_string().contains("NaN");
                prop_assert!(wide == a || has_nan, "{} {}", wide, a);
            } else {
                prop_assert_ne!(a.kind(), kind);
            }
        }
    }
}

#[test]
fn nan_passes_nothing_but_exists() {
    let nan = Value::Float(f64::NAN);
    assert!(Test::Exists.matches(&nan));
    for test in [
        Test::Equal(nan.clone()),
        Test::IsIn(vec![nan.clone(), Value::Int(1)]),
        Test::AtLeast(Value::Float(f64::NEG_INFINITY)),
        Test::AtMost(Value::Float(f64::INFINITY)),
        Test::Between(Value::Float(f64::NEG_INFINITY), Value::Float(f64::INFINITY)),
        Test::Contains(nan.clone()),
    ] {
        assert!(!test.matches(&nan), "{test:?}");
        assert!(!test.matches(&Value::IntRange(0, 1)) || !matches!(test, Test::Contains(_)));
        assert!(Test::Not(Box::new(test)).matches(&nan));
    }
    assert!(!Test::Contains(nan.clone()).matches(&Value::Array(vec![nan.clone()])));
    assert_ne!(Value::List(vec![nan.clone()]), Value::List(vec![nan]));
}

#[test]
fn nothing_lies_between_ends_that_are_the_wrong_way_round() {
    let backwards = Test::Between(Value::Int(5), Value::Int(1));
    for value in [Value::Int(3), Value::IntRange(0, 9), Value::FloatRange(0.0, 9.0)] {
        assert!(!backwards.matches(&value), "{value}");
    }
}

#[test]
fn families_do_not_mix() {
    let one = Value::Int(1);
    for other in [Value::Bool(true), Value::DateTime(1), Value::Text("1".into()), Value::Bytes(vec![1])] {
        assert_ne!(other, one);
        assert_eq!(other.compare(&one), None);
        assert!(!Test::AtLeast(one.clone()).matches(&other));
        assert!(!Test::AtMost(one.clone()).matches(&other));
        assert!(!Test::Glob("*".into()).matches(&other) || matches!(other, Value::Text(_)));
    }
    assert_eq!(Value::IntRange(1, 2), Value::FloatRange(1.0, 2.0));
    assert_eq!(
        Value::Map(vec![("a".into(), one.clone()), ("b".into(), Value::Null)]),
        Value::Map(vec![("b".into(), Value::Null), ("a".into(), Value::Float(1.0))])
    );
}

#[test]
fn texts_and_arrays_contain() {
    let yes = |test: Test, value: Value| assert!(test.matches(&value), "{test:?} {value}");
    let no = |test: Test, value: Value| assert!(!test.matches(&value), "{test:?} {value}");
    let text = |t: &str| Value::Text(t.to_owned());
    yes(Test::Contains(text("bul")), text("turbulence"));
    no(Test::Contains(text("Bul")), text("turbulence"));
    yes(Test::Contains(Value::Bytes(vec![2, 3])), Value::Bytes(vec![1, 2, 3]));
    no(Test::Contains(Value::Bytes(vec![3, 2])), Value::Bytes(vec![1, 2, 3]));
    yes(Test::Contains(Value::Bytes(Vec::new())), Value::Bytes(Vec::new()));
    yes(Test::Contains(Value::Float(2.0)), Value::Array(vec![Value::Int(1), Value::Int(2)]));
    no(Test::Contains(Value::Int(2)), Value::List(vec![Value::Int(2)]));
    yes(Test::Glob("tur*e".into()), text("turbulence"));
    no(Test::Glob("tur".into()), text("turbulence"));
    yes(Test::Above(text("b")), text("c"));
    yes(Test::Any(vec![Test::Equal(text("x")), Test::Exists]), text("c"));
    no(Test::All(vec![Test::Equal(text("x")), Test::Exists]), text("c"));
}

#[test]
fn types_are_named_and_numbered() {
    for (i, kind) in ValueType::ALL.into_iter().enumerate() {
        assert_eq!(ValueType::from_u8(i as u8 + 1), Some(kind));
        assert_eq!(kind as u8, i as u8 + 1);
        assert_eq!(ValueType::parse(kind.name()).unwrap(), kind);
    }
    assert_eq!((ValueType::from_u8(0), ValueType::from_u8(12)), (None, None));
    let error = ValueType::parse("flaot").unwrap_err();
    assert!(error.hint().unwrap().contains("float"), "{error}");
}

#[test]
fn values_are_written_for_people() {
    for (value, text) in [
        (Value::Float(1.0), "1.0"),
        (Value::Float(f64::NAN), "NaN"),
        (Value::Text("a\"b\n".into()), "\"a\\\"b\\n\""),
        (Value::Bytes(vec![1, 255]), "0x01ff"),
        (Value::FloatRange(0.5, f64::INFINITY), "0.5..inf"),
        (Value::DateTime(1_500_000_000), "1970-01-01T00:00:01.5Z"),
        (
            Value::Map(vec![("k".into(), Value::List(vec![Value::Null, Value::Bool(true)]))]),
            "{\"k\": [null, true]}",
        ),
    ] {
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn what_cannot_be_stored_is_refused() {
    for (value, part) in [
        (Value::IntRange(2, 1), "2..1 is not a range"),
        (Value::FloatRange(f64::NAN, 1.0), "NaN..1.0 is not a range"),
        (Value::Array(vec![Value::Int(1), Value::Text("a".into())]), "an array of int cannot hold \"a\""),
        (Value::Array(vec![Value::List(Vec::new())]), "cannot hold []"),
        (Value::Map(vec![("a".into(), Value::Null), ("a".into(), Value::Null)]), "'a' occurs twice"),
        ((0..70).fold(Value::Null, |inner, _| Value::List(vec![inner])), "nested more than 64"),
    ] {
        let error = value.check().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(Value::List(vec![Value::Array(vec![Value::Int(1)]), Value::IntRange(1, 1)]).check().is_ok());
    let list = |items: Vec<Value>| Value::List(items).fits(ValueType::Array);
    assert_eq!(
        list(vec![Value::Int(1), Value::Float(0.5)]),
        Some(Value::Array(vec![Value::Float(1.0), Value::Float(0.5)]))
    );
    assert_eq!(list(vec![Value::Int((1 << 53) + 1), Value::Float(0.5)]).map(|_| ()), None);
    assert_eq!(list(vec![Value::Int(1), Value::Bool(true)]).map(|_| ()), None);
}

/// Far more levels than a stack can hold.
const DEEP: usize = 1_000_000;

#[test]
fn a_test_is_measured_and_dropped_however_deep_it_is() {
    use fieldstone_core::value::Size;
    let one = || Test::Above(Value::Int(1));
    let not = (0..DEEP).fold(one(), |inner, _| Test::Not(Box::new(inner)));
    let lists = (0..DEEP).fold(one(), |inner, n| match n % 2 {
        0 => Test::All(vec![one(), inner]),
        _ => Test::Any(vec![inner]),
    });
    for deep in [not, lists] {
        let message = deep.size().check().unwrap_err();
        assert!(message.to_string().contains("there are more than 100 levels of nesting"), "{message}");
        assert!(message.hint().unwrap().contains("ask for less"), "{message:?}");
    }
    let most = (0..Size::MOST.levels).fold(one(), |inner, _| Test::Not(Box::new(inner)));
    most.size().check().unwrap();
    assert!(Test::Not(Box::new(most)).size().check().is_err());
    // Parts next to each other add no level, but count.
    assert_eq!(Test::All(vec![one(), Test::Exists]).size(), Size { parts: 4, levels: 1 });
    let values = |n: usize| Test::IsIn(vec![Value::Bool(true); n]);
    values(Size::MOST.parts - 1).size().check().unwrap();
    let message = values(Size::MOST.parts).size().check().unwrap_err();
    assert!(message.to_string().contains("more than 1000000 terms, tests and values"), "{message}");
    // Values in a test count with their depth.
    let list = (0..101).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    assert!(Test::Equal(list).size().check().is_err());
}
