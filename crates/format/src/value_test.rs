//! Tests of values as bytes.
//!
//! ```text
//! test = 0 exists | 1 above value | 2 at least value | 3 below value | 4 at most value | 5 between value value
//!      | 6 equal value | 7 in n: varint n x value | 8 contains value | 9 glob text
//!      | 10 all n: varint n x test | 11 any n: varint n x test | 12 not test
//! ```

use fieldstone_core::Result;
use fieldstone_core::value::{Size, Test};

use crate::bytes::{Cursor, Put};
use crate::value::{put_value, read_value};

/// Appends a test, which must not be deeper than [`Size::MOST`]: code that accepts tests from outside checks
/// that.
pub fn put_test(out: &mut Vec<u8>, test: &Test) {
    let mut one = |kind: u8, value| {
        out.push(kind);
        put_value(out, value);
    };
    match test {
        Test::Exists => out.push(0),
        Test::Above(value) => one(1, value),
        Test::AtLeast(value) => one(2, value),
        Test::Below(value) => one(3, value),
        Test::AtMost(value) => one(4, value),
        Test::Between(from, to) => {
            one(5, from);
            put_value(out, to);
        }
        Test::Equal(value) => one(6, value),
        Test::IsIn(values) => {
            out.push(7);
            out.put_varint(values.len() as u64);
            values.iter().for_each(|value| put_value(out, value));
        }
        Test::Contains(value) => one(8, value),
        // Tests that come over a wire belong to reads.
        Test::Glob(pattern) | Test::Typed(pattern) => {
            out.push(9);
            out.put_bytes(pattern.as_bytes());
        }
        Test::All(tests) | Test::Any(tests) => {
            out.push(if matches!(test, Test::All(_)) { 10 } else { 11 });
            out.put_varint(tests.len() as u64);
            tests.iter().for_each(|test| put_test(out, test));
        }
        Test::Not(inner) => {
            out.push(12);
            put_test(out, inner);
        }
    }
}

/// Reads a test; every defect is Corrupt.
pub fn read_test(cursor: &mut Cursor<'_>) -> Result<Test> {
    read_within(cursor, 0)
}

fn read_within(cursor: &mut Cursor<'_>, level: u32) -> Result<Test> {
    if level as usize > Size::MOST.levels {
        return Err(cursor.fail("a test is nested too deeply"));
    }
    let tests = |cursor: &mut Cursor<'_>| -> Result<Vec<Test>> {
        let n = cursor.count(1)?;
        (0..n).map(|_| read_within(cursor, level + 1)).collect()
    };
    Ok(match cursor.u8()? {
        0 => Test::Exists,
        1 => Test::Above(read_value(cursor)?),
        2 => Test::AtLeast(read_value(cursor)?),
        3 => Test::Below(read_value(cursor)?),
        4 => Test::AtMost(read_value(cursor)?),
        5 => Test::Between(read_value(cursor)?, read_value(cursor)?),
        6 => Test::Equal(read_value(cursor)?),
        7 => {
            let n = cursor.count(1)?;
            Test::IsIn((0..n).map(|_| read_value(cursor)).collect::<Result<_>>()?)
        }
        8 => Test::Contains(read_value(cursor)?),
        9 => Test::Glob(cursor.text()?.to_owned()),
        10 => Test::All(tests(cursor)?),
        11 => Test::Any(tests(cursor)?),
        12 => Test::Not(Box::new(read_within(cursor, level + 1)?)),
        _ => return Err(cursor.fail("a test has an unknown kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::value::Value;
    use proptest::prelude::*;

    fn test() -> impl Strategy<Value = Test> {
        let value = || any::<i64>().prop_map(Value::Int);
        let leaf = prop_oneof![
            Just(Test::Exists),
            value().prop_map(Test::Above),
            value().prop_map(Test::AtLeast),
            value().prop_map(Test::Below),
            value().prop_map(Test::AtMost),
            (value(), value()).prop_map(|(a, b)| Test::Between(a, b)),
            value().prop_map(Test::Equal),
            value().prop_map(Test::Contains),
            proptest::collection::vec(value(), 0..3).prop_map(Test::IsIn),
            "[a-z*]{0,5}".prop_map(Test::Glob),
        ];
        leaf.prop_recursive(4, 16, 3, |inner| {
            let many = || proptest::collection::vec(inner.clone(), 0..3);
            prop_oneof![
                many().prop_map(Test::All),
                many().prop_map(Test::Any),
                inner.clone().prop_map(|test| Test::Not(Box::new(test))),
            ]
        })
    }

    proptest! {
        #[test]
        fn tests_come_back(test in test()) {
            let mut bytes = Vec::new();
            put_test(&mut bytes, &test);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(read_test(&mut cursor).unwrap(), test);
            prop_assert!(cursor.is_empty());
            for cut in 0..bytes.len() {
                prop_assert!(read_test(&mut Cursor::new(&bytes[..cut])).is_err());
            }
        }
    }
}
