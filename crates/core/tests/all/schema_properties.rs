//! Properties of types, ranges and keys that must hold for any input.

#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{KeywordType, Schema};
use proptest::prelude::*;

/// Every type, with texts that are likely to be near its grammar.
fn near() -> impl Strategy<Value = (KeywordType, String)> {
    let kinds = proptest::sample::select(KeywordType::ALL.to_vec()).prop_map(|(_, kind)| kind);
    let text = prop_oneof![
        "[-+]?[0-9]{0,12}",
        "[-+]?[0-9]{0,6}\\.?[0-9]{0,6}(e[-+]?[0-9]{1,3})?",
        "[0-9]{4}-[01][0-9]-[0-3][0-9]",
        "(1[89]|20)[0-9]{2}[01][0-9][0-3][0-9]",
        "[0-9]{1,2}:?[0-5][0-9](:00)?",
        "[0-9]{1,3}[dhms]?(-[0-9]{1,3}[dhms]?)?",
        "[0-9]{1,3}\\.[0-9]{1,3}",
        "(jan|feb|march|tp|2t|z|ecmf|0\\.5/0\\.5)",
        "\\PC{0,8}",
    ];
    (kinds, text)
}

fn canonical(kind: KeywordType, text: &str) -> Option<KeyValue> {
    kind.canonical("k", text).ok()
}

fn expand(kind: &str, list: &str) -> Vec<String> {
    let schema = Schema::parse(&format!("k: {kind}; [a [b [k]]]")).unwrap();
    let selection = schema.select(&Request::parse(&format!("k={list}")).unwrap()).unwrap();
    let (_, values) = selection.listed().remove(0);
    // The position of each value is found again.
    let (_, one_of) = selection.listed_values().next().unwrap();
    for (i, value) in one_of.values().enumerate() {
        assert_eq!(one_of.position(&value), Some(i));
        assert_eq!(one_of.get(i).as_ref(), Some(&value));
    }
    assert_eq!(one_of.min(), one_of.values().min().as_ref());
    assert_eq!(one_of.max(), one_of.values().max().as_ref());
    values
}

/// All days of a year, by the plain rules of the calendar.
fn days(year: i32) -> Vec<String> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month =
        |(m, n): (usize, &u32)| (1..=*n).map(move |d| format!("{year:04}{:02}{d:02}", m + 1)).collect();
    lengths.iter().enumerate().flat_map::<Vec<String>, _>(month).collect()
}

#[test]
fn every_day_of_the_calendar_is_in_the_range_of_all_days() {
    let all: Vec<String> = (1..=9999).flat_map(days).collect();
    let schema = Schema::parse("k: Date; [a [b [k]]]").unwrap();
    let selection = schema.select(&Request::parse("k=00010101/to/99991231").unwrap()).unwrap();
    assert_eq!(selection.listed().remove(0).1, all);
}

proptest! {
    #[test]
    fn a_canonical_text_is_its_own_canonical_text((kind, text) in near()) {
        if let Some(value) = canonical(kind, &text) && !value.is_absent() {
            prop_assert_eq!(canonical(kind, &value.text()), Some(value));
        }
    }

    #[test]
    fn typed_order_is_the_order_of_numbers(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, scale in 0usize..5) {
        for kind in [KeywordType::Integer, KeywordType::Double, KeywordType::Mixed] {
            prop_assert_eq!(canonical(kind, &a.to_string()).cmp(&canonical(kind, &b.to_string())), a.cmp(&b));
        }
        let decimal = |n: i64| {
            let digits = format!("{:0width$}", n.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{}{whole}.{fraction}", if n < 0 { "-" } else { "" })
        };
        let value = |n: i64| canonical(KeywordType::Double, &decimal(n)).unwrap();
        prop_assert_eq!(value(a).cmp(&value(b)), a.cmp(&b));
        if a >= 0 && b >= 0 {
            let step = |n: i64| canonical(KeywordType::Step, &format!("{n}m")).unwrap();
            prop_assert_eq!(step(a).cmp(&step(b)), a.cmp(&b));
        }
    }

    #[test]
    fn a_decimal_keeps_its_digits(whole in "[1-9][0-9]{0,40}", fraction in "[0-9]{0,40}[1-9]", zeros in 0usize..5, negative: bool) {
        let sign = if negative { "-" } else { "" };
        let padded = format!("{sign}{}{whole}.{fraction}{}", "0".repeat(zeros), "0".repeat(zeros));
        let value = canonical(KeywordType::Double, &padded).unwrap();
        prop_assert_eq!(value.text(), format!("{sign}{whole}.{fraction}"));
    }

    #[test]
    fn integer_ranges_are_loops(from in -500i64..500, count in 0i64..50, by in 1i64..20, rest in 0i64..20, down: bool) {
        let by = if down { -by } else { by };
        let to = from + count * by + (rest % by.abs()) * by.signum();
        let expected: Vec<String> = (0..=count).map(|i| (from + i * by).to_string()).collect();
        prop_assert_eq!(expand("Integer", &format!("{from}/to/{to}/by/{by}")), expected);
        let hundredths = |n: i64| {
            let text = format!("{:03}", n.unsigned_abs());
            format!("{}{}.{}", if n < 0 { "-" } else { "" }, &text[..text.len() - 2], &text[text.len() - 2..])
        };
        let expected: Vec<String> = (0..=count)
            .map(|i| canonical(KeywordType::Double, &hundredths(from + i * by)).unwrap().text().into_owned())
            .collect();
        let list = format!("{}/to/{}/by/{}", hundredths(from), hundredths(to), hundredths(by));
        prop_assert_eq!(expand("Double", &list), expected);
    }

    #[test]
    fn date_ranges_step_through_the_calendar(year in 1890i32..2110, from in 0usize..365, len in 0usize..700, by in 1usize..40) {
        let calendar: Vec<String> = (year..year + 3).flat_map(days).collect();
        let to = from + len;
        let up: Vec<String> = calendar[from..=to].iter().step_by(by).cloned().collect();
        prop_assert_eq!(expand("Date", &format!("{}/to/{}/by/{by}", calendar[from], calendar[to])), up);
        let down: Vec<String> = calendar[from..=to].iter().rev().step_by(by).cloned().collect();
        prop_assert_eq!(expand("Date", &format!("{}/to/{}/by/-{by}", calendar[to], calendar[from])), down);
    }

    #[test]
    fn step_ranges_are_minutes(from in 0i64..600, count in 0i64..40, by in 1i64..100) {
        let to = from + count * by;
        let text = |m: i64| canonical(KeywordType::Step, &format!("{m}m")).unwrap().text().into_owned();
        let expected: Vec<String> = (0..=count).map(|i| text(from + i * by)).collect();
        prop_assert_eq!(expand("Step", &format!("{}/to/{}/by/{by}m", text(from), text(to))), expected);
    }

    #[test]
    fn lists_keep_the_first_of_equal_values_in_order(list in proptest::collection::vec(0i64..30, 1..40)) {
        let mut expected: Vec<String> = Vec::new();
        for n in &list {
            if !expected.contains(&n.to_string()) {
                expected.push(n.to_string());
            }
        }
        let text: Vec<String> = list.iter().map(|n| format!("{n:03}")).collect();
        prop_assert_eq!(expand("Integer", &text.join("/")), expected);
    }

    #[test]
    fn a_printed_key_resolves_to_itself(
        values in proptest::collection::vec("\\PC{1,6}|[*,/{}=\"\\\\\n\t\u{0}]{1,4}", 3),
        step in proptest::option::of(-1000i64..1000),
        extras in proptest::collection::btree_map("[a-z]{3,5}", "\\PC{1,5}", 0..4),
    ) {
        let schema = Schema::builtin("simulation").unwrap();
        let step = step.map(|s| s.to_string());
        let mut pairs = vec![("project", values[0].as_str()), ("variable", &values[1]), ("run", &values[2])];
        pairs.extend(step.iter().map(|s| ("step", s.as_str())));
        pairs.extend(extras.iter().filter(|(k, _)| schema.type_of(k).is_none()).map(|(k, v)| (k.as_str(), v.as_str())));
        let key = schema.resolve(&pairs).unwrap();
        for (keyword, text) in &pairs {
            prop_assert_eq!(key.get(keyword).unwrap().text(), *text);
        }
        let request = Request::parse(&key.to_string()).unwrap();
        let read = request.single_pairs().unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        prop_assert_eq!(&schema.resolve(&read).unwrap(), &key);
        // And the request that names it selects it.
        let selection = schema.select(&request).unwrap();
        let names = [&key.levels[0].names, &key.levels[1].names, &key.levels[2].names];
        let matcher = selection.for_shape(names).unwrap();
        for (i, level) in key.levels.iter().enumerate() {
            prop_assert!(matcher.matches_level(i, &level.values));
        }
        prop_assert_eq!(selection.only_key(), Some(key));
    }
}

/// A small world of keys: three keywords with few values each.
const WORLD: &str = "n: Integer; s: Step; d: Date; [ n [ d [ s? ]]] [ n=!1/2 [ d, x [ s ]]]";
const DAYS: [&str; 4] = ["20240228", "20240229", "20240301", "20240302"];
const STEPS: [&str; 4] = ["0", "30m", "1", "1h30m"];

/// A list of a keyword and, by plain loops, the values that it means.
fn list_of(values: Vec<String>, by: &'static str) -> impl Strategy<Value = (String, Vec<String>)> {
    let last = values.len();
    let part = (0..last, 0..last, 1..3usize, any::<bool>()).prop_map(move |(a, b, stride, range)| {
        if !range {
            return (values[a].clone(), vec![values[a].clone()]);
        }
        let (a, b) = (a.min(b), a.max(b));
        let meant = values[a..=b].iter().step_by(stride).cloned().collect();
        let by = match by {
            "30m" => format!("{}m", 30 * stride),
            _ => stride.to_string(),
        };
        (format!("{}/to/{}/by/{by}", values[a], values[b]), meant)
    });
    proptest::collection::vec(part, 1..4).prop_map(|parts| {
        let text = parts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("/");
        let mut meant: Vec<String> = Vec::new();
        for value in parts.into_iter().flat_map(|(_, values)| values) {
            if !meant.contains(&value) {
                meant.push(value);
            }
        }
        (text, meant)
    })
}

fn texts(values: [&str; 4]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

proptest! {
    #[test]
    fn expansion_is_the_product_of_plain_loops(
        n in list_of(texts(["0", "1", "2", "3"]), "1"),
        d in list_of(texts(DAYS), "1"),
        s in list_of(texts(STEPS), "30m"),
        order in Just(vec![0usize, 1, 2]).prop_shuffle(),
    ) {
        let schema = Schema::parse(WORLD).unwrap();
        let pairs = [format!("n={}", n.0), format!("d={}", d.0), format!("s={}", s.0)];
        let request = order.iter().map(|i| pairs[*i].as_str()).collect::<Vec<_>>().join(" ,\n ");
        let selection = schema.select(&Request::parse(&request).unwrap()).unwrap();
        let keys: Vec<String> = selection.expand().unwrap().map(|key| key.to_string()).collect();
        let mut expected = Vec::new();
        for n in &n.1 {
            for d in &d.1 {
                for s in &s.1 {
                    expected.push(format!("{{n={n}}}{{d={d}}}{{s={s}}}"));
                }
            }
        }
        prop_assert_eq!(selection.expand().unwrap().count_keys(), expected.len() as u64);
        prop_assert_eq!(&keys, &expected);
        // A key of the world is selected if and only if the loops made it.
        for (world_n, world_d, world_s) in
            (0..4).flat_map(|n| (0..4).flat_map(move |d| (0..4).map(move |s| (n, d, s))))
        {
            let (n, d, s) = (world_n.to_string(), DAYS[world_d], STEPS[world_s]);
            let key = schema.resolve(&[("n", n.as_str()), ("d", d), ("s", s)]).unwrap();
            let names = [&key.levels[0].names, &key.levels[1].names, &key.levels[2].names];
            let matcher = selection.for_shape(names).unwrap();
            let selected = (0..3).all(|level| matcher.matches_level(level, &key.levels[level].values));
            prop_assert_eq!(selected, expected.contains(&key.to_string()));
        }
    }

    /// A request that is bound to others selects the keys that all of them select, in its own order.
    #[test]
    fn a_bound_request_selects_what_all_select(
        own in list_of(texts(["0", "1", "2", "3"]), "1"),
        other in list_of(texts(["0", "1", "2", "3"]), "1"),
        d in list_of(texts(DAYS), "1"),
        s in list_of(texts(STEPS), "30m"),
    ) {
        let schema = Schema::parse(WORLD).unwrap();
        let parse = |text: String| Request::parse(&text).unwrap();
        let requests = [
            parse(format!("n={},d=20240228/20240229/20240302,s=0/1", own.0)),
            parse(format!("n={},d={}", other.0, d.0)),
            parse(format!("s={}", s.0)),
        ];
        let [first, second, third] = &requests;
        let bound = first.clone().within(second.clone().within(third.clone()));
        let flat = first.clone().within(second.clone()).within(third.clone());
        let each = requests.each_ref().map(|request| schema.select(request).unwrap());
        for bound in [bound, flat] {
            let both = schema.select(&bound).unwrap();
            let expected: Vec<_> = each[0].expand().unwrap().filter(|key| each.iter().all(|s| s.takes(key))).collect();
            prop_assert_eq!(both.expand().unwrap().count_keys(), expected.len() as u64);
            prop_assert_eq!(both.count_listed(), each[0].count_listed());
            let found: Vec<_> = both.expand().unwrap().collect();
            prop_assert_eq!(&found, &expected);
            for key in each[0].expand().unwrap() {
                prop_assert_eq!(both.takes(&key), expected.contains(&key));
            }
        }
    }

    #[test]
    fn a_count_of_keys_is_how_many_come(n in list_of(texts(["0", "1", "2", "3"]), "1")) {
        let schema = Schema::parse(WORLD).unwrap();
        let request = format!("n={},d=20240229,s=0,x=1", n.0);
        let keys = schema.select(&Request::parse(&request).unwrap()).unwrap().expand().unwrap();
        let expected = n.1.iter().filter(|n| !["1", "2"].contains(&n.as_str())).count();
        prop_assert_eq!(keys.count_keys(), expected as u64);
        prop_assert_eq!(keys.count(), expected);
    }

    #[test]
    fn words_and_names_are_canonical_once((kind, text) in (
        proptest::sample::select(KeywordType::ALL.to_vec()),
        "(fc|Forecast|OD|pressure levels|unknown|[a-z]{1,4}|[a-z0-9 ]{1,12}|[0-9]{1,9}(\\.[0-9]{1,3})?|\\PC{0,300})",
    )) {
        if let Ok(value) = kind.1.canonical("k", &text) && !value.is_absent() {
            prop_assert_eq!(kind.1.canonical("k", &value.text()).unwrap(), value);
        }
    }
}
