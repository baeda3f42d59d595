//! Finders compared with a plain reference: elements one by one, by the tests that queries use, and regions by flood
//! fill.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone::catalog::value::{Test, Value};
use fieldstone::finders::{Feature, Finder, annotations, find};
use fieldstone::{DType, ErrorKind};
use fieldstone_format::catalog::{Column, RunName, Values, VariableName};
use fieldstone_testkit::{Random, seeded};

const TYPES: [&str; 16] = [
    "|b1", "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "|u1", "<u2", "<u4", "<u8", ">u8", "<f2", ">f4",
    "<f8",
];

/// A few values of a type, its bytes in order, with those at the edges among them.
fn element(dtype: DType, random: &mut Random) -> (Value, Vec<u8>) {
    let small = random.below(6) as i64 - 2;
    let (value, mut bytes) = match dtype.to_string().trim_start_matches(['<', '>', '|']) {
        "b1" => {
            let b = random.below(3) as u8;
            (Value::UInt(u64::from(b != 0)), vec![b])
        }
        "f2" => {
            let all = [
                (0x0000, 0.0),
                (0x3c00, 1.0),
                (0xc000, -2.0),
                (0x7e00, f64::NAN),
                (0x7c00, f64::INFINITY),
                (0x0001, 2_f64.powi(-24)),
            ];
            let (bits, value) = *random.pick(&all);
            (Value::Float(value), u16::to_le_bytes(bits).to_vec())
        }
        "f4" => {
            let v = *random.pick(&[0.0, 1.0, 1.5, -2.0, f32::NAN, f32::NEG_INFINITY, f32::MAX, 0.1]);
            (Value::Float(v.into()), v.to_le_bytes().to_vec())
        }
        "f8" => {
            let v = *random.pick(&[0.0, 1.0, 2.5, -2.0, f64::NAN, f64::INFINITY, 9007199254740994.0, 1e300]);
            (Value::Float(v), v.to_le_bytes().to_vec())
        }
        "i8" => {
            let v = *random.pick(&[small, i64::MIN, i64::MAX, 9007199254740993]);
            (Value::Int(v), v.to_le_bytes().to_vec())
        }
        "u8" if dtype.size() == 8 => {
            let v = *random.pick(&[small.unsigned_abs(), u64::MAX, 9007199254740993]);
            (Value::UInt(v), v.to_le_bytes().to_vec())
        }
        text => {
            let size = dtype.size();
            let v = match text.starts_with('u') {
                true => small.abs(),
                false => *random.pick(&[small, -(1_i64 << (size * 8 - 1)), (1_i64 << (size * 8 - 1)) - 1]),
            };
            (Value::Int(v), v.to_le_bytes()[..size].to_vec())
        }
    };
    if dtype.to_string().starts_with('>') {
        bytes.reverse();
    }
    (value, bytes)
}

fn number(random: &mut Random) -> Value {
    let whole = [-2, 0, 1, 2, 127, i64::MAX, i64::MIN, 9007199254740992, 9007199254740993];
    match random.below(3) {
        0 => Value::Int(*random.pick(&whole)),
        1 => Value::UInt(*random.pick(&[0, 1, u64::MAX, 9007199254740993])),
        _ => Value::Float(*random.pick(&[
            0.0,
            -0.5,
            1.0,
            1.5,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.1_f32.into(),
            1e300,
            9007199254740992.0,
        ])),
    }
}

fn a_test(random: &mut Random) -> Test {
    let value = number(random);
    match random.below(6) {
        0 => Test::Above(value),
        1 => Test::AtLeast(value),
        2 => Test::Below(value),
        3 => Test::AtMost(value),
        4 => Test::Between(value, number(random)),
        _ => Test::Equal(value),
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Int(i) => *i as f64,
        Value::UInt(u) => *u as f64,
        Value::Float(f) => *f,
        _ => panic!("{value}"),
    }
}

/// The element at a place in C order.
fn place(mut at: usize, shape: &[u64]) -> Vec<u64> {
    let mut place = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        place[d] = at as u64 % shape[d];
        at /= shape[d] as usize;
    }
    place
}

/// First and last corner, elements, least and greatest value.
type Flooded = (Vec<u64>, Vec<u64>, usize, f64, f64);

/// Regions by flood fill.
fn flood(values: &[Value], shape: &[u64], test: &Test) -> Vec<Flooded> {
    let at: BTreeMap<Vec<u64>, &Value> =
        values.iter().enumerate().map(|(i, value)| (place(i, shape), value)).collect();
    let mut left: BTreeSet<Vec<u64>> =
        at.iter().filter(|(_, value)| test.matches(value)).map(|(place, _)| place.clone()).collect();
    let mut regions = Vec::new();
    while let Some(seed) = left.pop_first() {
        let (mut todo, mut members) = (vec![seed], Vec::new());
        while let Some(here) = todo.pop() {
            for d in 0..here.len() {
                for step in [-1_i64, 1] {
                    let mut next = here.clone();
                    next[d] = next[d].wrapping_add_signed(step);
                    if left.remove(&next) {
                        todo.push(next);
                    }
                }
            }
            members.push(here);
        }
        let first: Vec<u64> = (0..shape.len()).map(|d| members.iter().map(|m| m[d]).min().unwrap()).collect();
        let count =
            (0..shape.len()).map(|d| members.iter().map(|m| m[d]).max().unwrap() + 1 - first[d]).collect();
        let numbers: Vec<f64> = members.iter().map(|m| float(at[m])).collect();
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        regions.push((first, count, members.len(), least, most));
    }
    // A stable sort by size: floods begin with the first element in C order.
    regions.sort_by_key(|region| std::cmp::Reverse(region.2));
    regions
}

#[test]
fn finders_agree_with_a_plain_reference() {
    let mut random = seeded(1);
    let mut regions_seen = 0;
    for round in 0..6000 {
        let dtype = DType::parse(TYPES[round % TYPES.len()]).unwrap();
        let rank = random.below(5) as usize;
        let longest = [40, 130, 12, 6, 4][rank];
        let shape: Vec<u64> = (0..rank).map(|_| random.below(longest)).collect();
        let n = shape.iter().product::<u64>() as usize;
        let (values, bytes): (Vec<Value>, Vec<Vec<u8>>) = (0..n).map(|_| element(dtype, &mut random)).unzip();
        let start: Vec<u64> = (0..rank).map(|_| random.below(1000)).collect();
        let test = a_test(&mut random);
        let finders =
            [Finder::Min, Finder::Max, Finder::Mean, Finder::named(test.clone(), "t".into()).unwrap()];
        let found = find(&bytes.concat(), dtype, &start, &shape, &finders).unwrap();

        let numbers: Vec<f64> = values.iter().map(float).filter(|v| !v.is_nan()).collect();
        let mut expected: Vec<(&str, f64, Vec<u64>, Vec<u64>)> = Vec::new();
        if !numbers.is_empty() {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            expected.push(("min", least, start.clone(), shape.clone()));
            expected.push(("max", most, start.clone(), shape.clone()));
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            if !mean.is_nan() {
                expected.push(("mean", mean, start.clone(), shape.clone()));
            }
        }
        let regions = flood(&values, &shape, &test);
        regions_seen += regions.len();
        let wants_least = matches!(test, Test::Below(_) | Test::AtMost(_));
        for (first, count, _, least, most) in regions.iter().take(100) {
            let start = first.iter().zip(&start).map(|(a, b)| a + b).collect();
            expected.push(("t", if wants_least { *least } else { *most }, start, count.clone()));
        }
        if regions.len() > 100 {
            expected.push(("t.more", (regions.len() - 100) as f64, start.clone(), shape.clone()));
        }
        let say = || format!("{dtype} {shape:?} {test:?}: {found:?} is not {expected:?}");
        assert_eq!(found.len(), expected.len(), "{}", say());
        for (got, want) in found.iter().zip(&expected) {
            let close = got.value == want.1
                || want.0 == "mean" && (got.value - want.1).abs() <= 1e-9 * want.1.abs().max(1.0);
            assert!(close && got.tag == want.0, "{}", say());
            assert_eq!((&got.start, &got.count), (&want.2, &want.3), "{}", say());
        }
    }
    assert!(regions_seen > 10_000, "{regions_seen}");
}

#[test]
fn a_mean_of_many_keeps_its_digits() {
    let n = 3_000_000;
    let data: Vec<u8> = (0..n).flat_map(|i| (1e9 + f64::from(i % 10)).to_ne_bytes()).collect();
    let found = find(&data, DType::F8, &[0], &[n as u64], &[Finder::Mean]).unwrap();
    assert_eq!(found[0].value, 1e9 + 4.5);
}

#[test]
fn long_rows_of_long_stretches_agree_too() {
    let mut random = seeded(2);
    for _ in 0..300 {
        let (rows, width) = (1 + random.below(3), 64 * (1 + random.below(6)));
        let mut data = Vec::new();
        while (data.len() as u64) < rows * width {
            let value = random.below(2) as u8;
            data.extend(std::iter::repeat_n(value, 32 * (1 + random.below(4)) as usize));
        }
        data.truncate((rows * width) as usize);
        let values: Vec<Value> = data.iter().map(|&b| Value::UInt(b.into())).collect();
        let test = Test::Above(Value::Int(0));
        let found = find(&data, DType::U1, &[0, 0], &[rows, width], &[Finder::region(test.clone()).unwrap()]);
        let boxes: Vec<_> = found.unwrap().into_iter().map(|f| (f.start, f.count)).collect();
        let expected: Vec<_> =
            flood(&values, &[rows, width], &test).into_iter().map(|r| (r.0, r.1)).collect();
        assert_eq!(boxes, expected, "{rows} x {width}");
    }
}

#[test]
fn the_largest_regions_are_kept_and_the_rest_counted() {
    // Every second element passes, in runs of 1, 2, … elements.
    let mut data = Vec::new();
    for length in 1..=150_usize {
        data.extend(std::iter::repeat_n(1_u8, length));
        data.push(0);
    }
    let found = find(
        &data,
        DType::U1,
        &[10],
        &[data.len() as u64],
        &[Finder::region(Test::Above(Value::Int(0))).unwrap()],
    )
    .unwrap();
    assert_eq!(found.len(), 101);
    assert_eq!((found[0].tag.as_str(), found[0].count.as_slice()), ("above_0", &[150][..]));
    assert_eq!(found[99].count, [51]);
    let more =
        Feature { tag: "above_0.more".into(), value: 50.0, start: vec![10], count: vec![data.len() as u64] };
    assert_eq!(found[100], more);
}

#[test]
fn declarations_are_read_back_and_wrong_ones_refused() {
    let text = |text: &str| Value::Text(text.into());
    let map = |parts: &[(&str, Value)]| {
        Value::Map(parts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    };
    let declared = Value::List(vec![
        text("min"),
        text("mean"),
        map(&[("above", Value::Int(9000))]),
        map(&[("between", Value::List(vec![Value::Float(0.5), Value::Int(2)]))]),
        map(&[("below", Value::Float(-1.5)), ("tag", text("cold")), ("limit", Value::Int(7))]),
    ]);
    let finders = Finder::parse(&declared).unwrap();
    let tags: Vec<&str> = finders.iter().map(Finder::tag).collect();
    assert_eq!(tags, ["min", "mean", "above_9000", "between_0.5_2", "cold"]);
    assert_eq!(finders[4].limit(), 7);
    let again = Finder::parse(&Finder::declare(&finders).unwrap()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{finders:?}"));
    assert_eq!(Finder::parse(&text("max")).unwrap().len(), 1);
    for wrong in [
        text("median"),
        Value::Int(3),
        map(&[("tag", text("x"))]),
        map(&[("above", text("x"))]),
        map(&[("above", Value::Float(f64::NAN))]),
        map(&[("above", Value::Int(1)), ("below", Value::Int(0))]),
        map(&[("above", Value::Int(1)), ("tag", text("max"))]),
        map(&[("above", Value::Int(1)), ("limit", Value::Int(0))]),
        map(&[("above", Value::Int(1)), ("colour", Value::Int(0))]),
        map(&[("between", Value::List(vec![Value::Int(1)]))]),
        Value::List(vec![text("min"), text("min")]),
    ] {
        let error = Finder::parse(&wrong).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.hint().is_some(), "{wrong}: {error}");
    }
    for dtype in ["<c16", "|S3", "<U2", "<M8[s]"] {
        let dtype = DType::parse(dtype).unwrap();
        let refused = find(&[], dtype, &[0], &[0], &finders).unwrap_err();
        assert!(refused.message().contains(&dtype.name()), "{refused}");
    }
    assert!(find(&[0; 7], DType::F8, &[0], &[1], &finders).is_err());
}

#[test]
fn what_is_found_becomes_one_batch_a_tag() {
    let data: Vec<u8> = [5.0_f32, 0.0, 7.0, 0.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let finders = [Finder::Max, Finder::region(Test::Above(Value::Int(1))).unwrap()];
    let found = find(&data, DType::F4, &[4, 8], &[2, 2], &finders).unwrap();
    let run = RunName { project: String::new(), name: "r".into() };
    let variable = VariableName { name: "t".into(), version: 0 };
    let batches = annotations(&run, &variable, Some(6), &found);
    assert_eq!(batches.iter().map(|b| b.tag.name.as_str()).collect::<Vec<_>>(), ["max", "above_1"]);
    let boxes = batches[1].boxes.as_ref().unwrap();
    assert_eq!((batches[1].rows, &batches[1].step), (1, &Some(Column::One(6))));
    assert_eq!((boxes.start.as_slice(), boxes.count.as_slice()), (&[4, 8][..], &[2, 1][..]));
    assert!(matches!(&batches[1].values, Values::Float(v) if v == &[7.0]));
    let scalar = find(&7.0_f64.to_ne_bytes(), DType::F8, &[], &[], &finders).unwrap();
    assert!(annotations(&run, &variable, None, &scalar).iter().all(|b| b.boxes.is_none() && b.rows == 1));
}
