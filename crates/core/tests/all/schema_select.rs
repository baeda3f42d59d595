//! The selection of a request: lists in request order, ranges, shapes, and candidate keys.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::key::{FieldKey, Names};
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection, ShapeMatcher};

const FDB: &str =
    "expver: Expver; date: Date; time: Time; step: Step; levelist: Double; param: Param; number: Integer;
[ class, expver, stream, date, time, domain?g
  [ type, levtype
    [ step, levelist?, param, number? ] ] ]";

fn select(schema: &Schema, request: &str) -> Selection {
    schema.select(&Request::parse(request).unwrap()).unwrap_or_else(|e| panic!("{request}: {e}"))
}

fn refused(schema: &Schema, request: &str) -> String {
    let error = schema.select(&Request::parse(request).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

fn key(schema: &Schema, text: &str) -> FieldKey {
    let pairs = Request::parse(text).unwrap().single_pairs().unwrap();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    schema.resolve(&pairs).unwrap()
}

fn names(key: &FieldKey) -> [&Names; 3] {
    [&key.levels[0].names, &key.levels[1].names, &key.levels[2].names]
}

fn positions(matcher: &ShapeMatcher, key: &FieldKey) -> Option<Vec<usize>> {
    let mut found = vec![99];
    let levels = [&key.levels[0].values[..], &key.levels[1].values[..], &key.levels[2].values[..]];
    matcher.listed_positions(levels, &mut found).then_some(found)
}

/// Positions of a stored key in a request, if it matches.
fn rank(schema: &Schema, request: &str, stored: &str) -> Option<Vec<usize>> {
    let stored = key(schema, stored);
    positions(&select(schema, request).for_shape(names(&stored))?, &stored)
}

fn listed(schema: &Schema, request: &str) -> Vec<(String, String)> {
    select(schema, request).listed().into_iter().map(|(k, v)| (k.to_string(), v.join(" "))).collect()
}

fn values(types: &str, list: &str) -> String {
    let schema = Schema::parse(&format!("k: {types}; [a [b [k]]]")).unwrap();
    listed(&schema, &format!("k={list}")).remove(0).1
}

fn list_error(types: &str, list: &str) -> String {
    refused(&Schema::parse(&format!("k: {types}; [a [b [k]]]")).unwrap(), &format!("k={list}"))
}

#[test]
fn fields_come_in_the_order_of_the_request_and_duplicates_are_dropped() {
    let schema = Schema::builtin("simulation").unwrap();
    let order = |request: &str| -> Vec<Option<Vec<usize>>> {
        ["3", "1", "2"].map(|s| rank(&schema, request, &format!("run=a,variable=t,step={s}"))).to_vec()
    };
    assert_eq!(order("step=1/2/3"), [Some(vec![2]), Some(vec![0]), Some(vec![1])]);
    assert_eq!(order("step=3/2/1"), [Some(vec![0]), Some(vec![2]), Some(vec![1])]);
    assert_eq!(order("step=1/1"), [None, Some(vec![0]), None]);
    assert_eq!(select(&schema, "step=1/01/1").count_listed(), Some(1));
    // Schema order, whatever the order of the request's keywords; further keywords come last.
    let found = listed(&schema, "zz=1,step=2/1,variable=u/t,aa=1,run=r");
    let expected = [("run", "r"), ("variable", "u t"), ("step", "2 1"), ("aa", "1"), ("zz", "1")];
    assert_eq!(found, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn ranges_are_inclusive_and_exact_for_every_type() {
    for (types, list, expected) in [
        ("Integer", "1/to/3", "1 2 3"),
        ("Integer", "0/to/24/by/10", "0 10 20"),
        ("Integer", "3/to/1/by/-1", "3 2 1"),
        ("Integer", "5/to/5/by/-3", "5"),
        ("Integer", "1/to/3/2/to/5/by/2/9", "1 2 3 4 9"),
        (
            "Integer",
            "-9223372036854775808/to/-9223372036854775806",
            "-9223372036854775808 -9223372036854775807 -9223372036854775806",
        ),
        ("Double", "0/to/0.5/by/0.1", "0 0.1 0.2 0.3 0.4 0.5"),
        ("Double", "0.1/to/3.1", "0.1 1.1 2.1 3.1"),
        ("Double", "1/to/-1/by/-0.5", "1 0.5 0 -0.5 -1"),
        ("Date", "20240227/to/20240301", "20240227 20240228 20240229 20240301"),
        ("Date", "2023-02-27/to/2023-03-01", "20230227 20230228 20230301"),
        ("Date", "19991231/to/20000102", "19991231 20000101 20000102"),
        ("Date", "20240301/to/20240201/by/-7", "20240301 20240223 20240216 20240209 20240202"),
        ("Date", "20240301/to/20240201/by/7", "20240301 20240223 20240216 20240209 20240202"),
        ("Date", "2024-060/to/2024-061", "20240229 20240301"),
        ("Integer", "3/to/1", "3 2 1"),
        ("Double", "3/to/1/by/0.5", "3 2.5 2 1.5 1"),
        ("Time", "0/to/18/by/6", "0000 0600 1200 1800"),
        ("Time", "0/to/23", "0000 0600 1200 1800"),
        ("Time", "0/to/1/by/30m", "0000 0030 0100"),
        ("Step", "0/to/30", "0 12 24"),
        ("Time", "0/to/0200/by/0030", "0000 0030 0100 0130 0200"),
        ("Time", "12/to/11:00/by/-0030", "1200 1130 1100"),
        ("Step", "0/to/3/by/30m", "0 30m 1 1h30m 2 2h30m 3"),
        ("Step", "0/to/2d/by/1d", "0 24 48"),
        ("Step", "12/to/0/by/-6", "12 6 0"),
        ("Step", "-6/to/6/by/6", "-6 0 6"),
        ("Date", "jan-15/0229", "0115 0229"),
        ("YearMonth", "202411/to/202502", "202411 202412 202501 202502"),
        ("Param", "130/to/132", "130 131 132"),
        ("Mixed", "0/to/1/by/0.25/surface", "0 0.25 0.5 0.75 1 surface"),
    ] {
        assert_eq!(values(types, list), expected, "{types} {list}");
    }
}

#[test]
fn a_range_that_cannot_be_is_refused() {
    for (types, list, said) in [
        ("Text", "a/to/c", "k=a/to/c is a range, but k has type Text, which has no ranges"),
        ("Expver", "1/to/3", "k=1/to/3 is a range, but k has type Expver"),
        ("Integer", "1/to/3/by/0", "k=1/to/3: `by` is 0"),
        ("Double", "1/to/3/by/0.00", "k=1/to/3: `by` is 0"),
        (
            "Integer",
            "1/to/3/by/-1",
            "k=1/to/3 never ends: `by` leads away from 3 (hint: drop the minus of `by`)",
        ),
        ("Integer", "1/to/3/by/0.5", "k: `by` 0.5 is not an interval of type Integer"),
        ("Integer", "a/to/3", "k=\"a\" is not a whole number"),
        ("Date", "20240101/to/20240201/by/month", "k: `by` month is not an interval of type Date"),
        ("Step", "0-6/to/12", "k=0-6 cannot be the end of a range"),
        ("Date", "jan-15/to/jan-20", "k=0115 cannot be the end of a range"),
        ("Integer", "0/to/100000000", "k lists more than 100000000 values"),
        ("Integer", "0/to/99999999/7", "k lists more than 1000000 values (hint: write them as one range"),
        ("Integer", "-9223372036854775808/to/9223372036854775807", "k lists more than 100000000 values"),
        ("Double", "0/to/1/by/0.000000000000000000000000000000000000000000001", "k"),
        ("Mixed", "a/to/c", "k=a cannot be the end of a range"),
        ("Integer", "\"\"", "k has an empty value"),
    ] {
        let got = list_error(types, list);
        assert!(got.starts_with(said), "{types} {list}: {got}");
    }
}

#[test]
fn a_long_range_costs_nothing() {
    let schema = Schema::builtin("simulation").unwrap();
    let request = "step=0/to/99999998/by/2,member=1/to/50000000,level=0/to/9999999.5/by/0.5,run=a,variable=t";
    let selection = select(&schema, request);
    assert_eq!(selection.count_listed(), None, "5e22 combinations");
    assert_eq!(select(&schema, "step=0/to/99999999").count_listed(), Some(100_000_000));
    assert_eq!(
        rank(&schema, request, "run=a,variable=t,step=4,member=7,level=2.5"),
        Some(vec![0, 0, 2, 5, 6])
    );
    assert_eq!(rank(&schema, request, "run=a,variable=t,step=5,member=7,level=2.5"), None);
    assert_eq!(
        selection.keys().unwrap().nth(1).unwrap().to_string(),
        "{run=a}{variable=t}{step=0,level=0,member=2}"
    );
}

#[test]
fn an_unknown_keyword_is_named_with_its_neighbours() {
    let schema = Schema::parse(FDB).unwrap();
    assert_eq!(refused(&schema, "stpe=1"), "the schema has no keyword `stpe` (hint: did you mean `step`?)");
    assert!(refused(&schema, "qqqq=*").contains("hint: its keywords are class, expver"));
}

#[test]
fn other_spellings_select_the_canonical_field() {
    let schema = Schema::parse(FDB).unwrap();
    let stored = "class=rd,expver=1,stream=oper,date=20250101,time=1200,type=fc,levtype=pl,step=1,levelist=500,param=130";
    for request in [
        "param=t",
        "param=130.128",
        "time=12",
        "expver=1",
        "expver=0001",
        "date=2025-01-01",
        "step=60m",
        "levelist=500.0",
        "domain=g",
        "number=*",
        "levelist=*",
    ] {
        assert!(rank(&schema, request, stored).is_some(), "{request}");
    }
    for request in ["param=131", "time=13", "step=60", "levelist=50", "domain=x", "number=1"] {
        assert_eq!(rank(&schema, request, stored), None, "{request}");
    }
}

#[test]
fn a_year_and_a_month_are_constrained_by_the_date() {
    let schema = Schema::parse("[ a, date: Year [ date: Month [ date: Date ]]]").unwrap();
    let stored = key(&schema, "a=1,date=20250215");
    let selection = select(&schema, "date=20240101/20250101/20250215");
    let matcher = selection.for_shape(names(&stored)).unwrap();
    assert_eq!(positions(&matcher, &stored), Some(vec![2]));
    assert_eq!(positions(&matcher, &key(&schema, "a=1,date=20250214")), None);
    // Whole datasets of other years are known not to match.
    assert!(!matcher.matches_level(0, &key(&schema, "a=1,date=20230101").levels[0].values));
    assert!(matcher.matches_level(0, &key(&schema, "a=1,date=20240909").levels[0].values));
    assert_eq!(rank(&schema, "year=2025,month=2", "a=1,date=20250215"), Some(vec![0, 0]));
    assert_eq!(rank(&schema, "year=2024", "a=1,date=20250215"), None);
    let both = select(&schema, "year=2024,date=20250215").for_shape(names(&stored)).unwrap();
    assert!(!both.matches_level(0, &stored.levels[0].values));
    // A schema that only keeps parts still accepts the date.
    let parts = Schema::parse("[ a, date: Year [ date: Month [ b ]]]").unwrap();
    assert!(rank(&parts, "date=20250215", "a=1,b=1,date=20250201").is_some());
    assert_eq!(rank(&parts, "date=20250215", "a=1,b=1,date=20240201"), None);
}

#[test]
fn a_shape_that_lacks_a_listed_keyword_has_no_match() {
    let schema = Schema::builtin("simulation").unwrap();
    assert_eq!(rank(&schema, "member=1", "run=a,variable=t,step=1"), None);
    assert!(rank(&schema, "member=*", "run=a,variable=t,step=1").is_some());
    assert!(rank(&schema, "member=1", "run=a,variable=t,step=1,member=1").is_some());
    assert_eq!(rank(&schema, "step=1", "run=a,variable=t"), None);
    let hidden = Schema::parse("[a, domain- [b [c]]]").unwrap();
    // A keyword that the schema drops does not restrict the selection; it comes last, at position 0.
    assert_eq!(rank(&hidden, "domain=x/g,c=2/3", "a=1,domain=g,b=2,c=3"), Some(vec![1, 0]));
}

#[test]
fn a_pattern_selects_what_it_matches_and_lists_nothing() {
    let schema = Schema::parse("[run, project? [variable [step?, *]]]").unwrap();
    let takes = |request: &str, stored: &str| select(&schema, request).takes(&key(&schema, stored));
    let stored = "run=tos-1,variable=temp,step=6";
    for request in ["run=to*", "run=*1", "run=x/t?s-*", "variable=t*,step=6", "step=6*", "run=*,variable=*m*"]
    {
        assert!(takes(request, stored), "{request}");
    }
    for request in ["run=to*2", "run=To*", "variable=x*", "project=*a", "level=5*", "run=tos-1,variable=w*"] {
        assert!(!takes(request, stored), "{request}");
    }
    assert!(takes("level=5*", "run=a,variable=t,level=500"));
    let patterns = select(&schema, "run=to*");
    assert!(patterns.lists_nothing() && !patterns.names_nothing() && !patterns.is_unconstrained());
    assert!(patterns.keys().is_none(), "only what is there says which keys");
    assert!(select(&schema, "run=to*,variable=t,step=0").keys().is_none());
    assert_eq!(rank(&schema, "run=to*,step=0/6", stored), Some(vec![1]));
    let bound = Request::parse("step=6").unwrap().within(Request::parse("run=x*").unwrap());
    assert!(!schema.select(&bound).unwrap().takes(&key(&schema, stored)));
    assert!(refused(&Schema::parse(FDB).unwrap(), "parm=t*").contains("parm"));
    // Numbers next to a pattern are compared as numbers.
    let typed = Schema::parse("step: Integer; [run [variable [step]]]").unwrap();
    let stored = key(&typed, "run=a,variable=t,step=7");
    assert!(select(&typed, "step=007/9*").takes(&stored) && !select(&typed, "step=8/9*").takes(&stored));
}

#[test]
fn a_slip_of_a_keyword_that_the_key_lacks_is_refused() {
    let schema = Schema::parse("[run, project? [variable [step?, *]]]").unwrap();
    let slips = |text: &str| {
        let pairs = Request::parse(text).unwrap().single_pairs().unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        schema.check_slips(&pairs, |keyword| Ok(keyword == "vriable")).map_err(|e| e.to_string())
    };
    for (key, meant) in [("stpe=0", "step"), ("steps=0", "step"), ("tep=0", "step"), ("step_=0", "step")] {
        let error = slips(&format!("run=a,variable=t,{key}")).unwrap_err();
        assert!(error.contains(&format!("did you mean `{meant}`?")), "{error}");
    }
    for key in ["step=0,steps=1", "member=1", "staep2=0", "level=1", "stop_time=1", "vriable=t"] {
        slips(&format!("run=a,variable=t,{key}")).unwrap();
    }
}

#[test]
fn a_bound_is_no_part_of_a_request() {
    let schema = Schema::builtin("simulation").unwrap();
    let parse = |text: &str| Request::parse(text).unwrap();
    let everything = schema.select(&Request::new().within(parse("run=a,step=0/to/90000000"))).unwrap();
    assert!(!everything.is_unconstrained() && everything.lists_nothing());
    assert!(everything.takes(&key(&schema, "run=a,variable=t,step=89999999")));
    assert!(!everything.takes(&key(&schema, "run=b,variable=t,step=6")));
    assert!(!everything.takes(&key(&schema, "run=a,variable=t")), "it has no step");
    let wide = parse("step=6/to/90000000/by/6").within(parse("step=4/to/90000000/by/4"));
    let wide = schema.select(&wide).unwrap();
    assert!(wide.takes(&key(&schema, "run=a,variable=t,step=60000000")));
    assert!(!wide.takes(&key(&schema, "run=a,variable=t,step=6")));
    // An empty bound does not restrict; the printed text is the original request.
    let unbound = Request::new().within(parse("step=*"));
    assert!(schema.select(&unbound).unwrap().is_unconstrained());
    let bound = parse("run=a").within(parse("step=6"));
    assert_eq!((bound.to_string().as_str(), bound.is_empty()), ("run=a", false));
    assert!(schema.select(&parse("run=a").within(parse("step=noon"))).is_err());
}

#[test]
fn a_keyword_that_must_not_be_there_selects_keys_that_lack_it() {
    let schema = Schema::builtin("mixed").unwrap();
    let grib = "centre=kwbc,date=20240229,param=11.2,step=6";
    let array = "run=a,variable=t,step=6";
    let other = "run=a,variable=t,source=0123";
    let selects =
        |request: &str| [grib, array, other].map(|k| select(&schema, request).takes(&key(&schema, k)));
    assert_eq!(selects("param=!*"), [false, true, true]);
    assert_eq!(selects("variable = !*"), [true, false, false]);
    assert_eq!(selects("step=!*"), [false, false, true], "one that may be absent");
    assert_eq!(selects("source=!*"), [true, true, false], "a further keyword");
    assert_eq!(selects("run=a,source=!*"), [false, true, false]);
    assert_eq!(selects("levtype=!*"), [true; 3]);
    assert!(!select(&schema, "param=!*").is_unconstrained() && select(&schema, "param=!*").names_nothing());
    let bound = Request::parse("run=a").unwrap().within(Request::parse("source=!*").unwrap());
    let bound = schema.select(&bound).unwrap();
    assert!(bound.takes(&key(&schema, array)) && !bound.takes(&key(&schema, other)));
    let never = Request::parse("run=a").unwrap().within(Request::parse("run=!*").unwrap());
    assert!(!schema.select(&never).unwrap().takes(&key(&schema, array)));
    let closed = Schema::parse("[a [b [c?]]] [a [b [d]]]").unwrap();
    let all = |request: &str| -> Vec<String> {
        select(&closed, request).keys().into_iter().flatten().map(|k| k.to_string()).collect()
    };
    assert_eq!(all("a=1,b=2,c=!*"), ["{a=1}{b=2}{}"]);
    assert_eq!(all("a=1,b=2,d=!*"), ["{a=1}{b=2}{}"], "a rule that wants it makes none");
    let years = Schema::parse("[a, date: Year [b [c]]]").unwrap();
    assert!(!select(&years, "date=!*").takes(&key(&years, "a=1,date=20240229,b=2,c=3")), "a part of it");
    assert!(refused(&closed, "e=!*").contains("no keyword `e`"));
    let key = Request::parse("run=a,source=!*").unwrap().single_pairs().unwrap();
    assert_eq!(key, [("run".into(), "a".into())], "it is not part of a key");
    assert_eq!(
        Request::parse(r#"step="!*""#).unwrap().single_pairs().unwrap(),
        [("step".into(), "!*".into())]
    );
}

#[test]
fn a_keyword_that_must_be_there_selects_keys_that_have_it() {
    let schema = Schema::builtin("mixed").unwrap();
    let grib = "centre=kwbc,date=20240229,param=11.2,step=6";
    let array = "run=a,variable=t,step=6";
    let other = "run=a,variable=t,member=3";
    let selects =
        |request: &str| [grib, array, other].map(|k| select(&schema, request).takes(&key(&schema, k)));
    assert_eq!(selects("param=?*"), [true, false, false]);
    assert_eq!(selects("variable=?*"), [false, true, true]);
    assert_eq!(selects("step = ?*"), [true, true, false], "one that may be absent");
    assert_eq!(selects("levtype=?*"), [false; 3]);
    assert_eq!(selects("member=?*"), [false, false, true], "a further keyword");
    assert_eq!(selects("step=6,variable=?*"), [false, true, false]);
    assert_eq!(selects("param=*"), [true; 3]);
    assert!(!select(&schema, "param=?*").is_unconstrained() && select(&schema, "param=?*").lists_nothing());
    let bound = Request::parse("step=6").unwrap().within(Request::parse("param=?*").unwrap());
    assert!(schema.select(&bound).unwrap().takes(&key(&schema, grib)));
    assert!(!schema.select(&bound).unwrap().takes(&key(&schema, array)));
    // It does not name keys: unknown keys must not be invented.
    assert!(select(&schema, "run=a,variable=t,step=6,param=?*").keys().is_none());
    assert!(select(&schema, "run=a,variable=t,step=?*").keys().is_none());
    let closed = Schema::parse("[a [b [c]]] [a [b [d?]]]").unwrap();
    let all: Vec<String> =
        select(&closed, "a=1,b=2,c=3,d=?*").keys().into_iter().flatten().map(|k| k.to_string()).collect();
    assert!(all.is_empty(), "{all:?}");
    let years = Schema::parse("[a, date: Year [b [c]]]").unwrap();
    assert!(select(&years, "date=?*").takes(&key(&years, "a=1,date=20240229,b=2,c=3")), "a part of it");
    assert!(refused(&closed, "e=?*").contains("no keyword `e`"));
    assert!(Request::parse("step=?*").unwrap().single_pairs().unwrap_err().to_string().contains("`?*`"));
    assert_eq!(
        Request::parse(r#"step="?*""#).unwrap().single_pairs().unwrap(),
        [("step".into(), "?*".into())]
    );
}

#[test]
fn all_rules_are_read_each_with_its_types() {
    let schema = Schema::parse("[k=a [b [s: Integer]]] [k=!a [b [s: Step]]] [k [b, c [s]]]").unwrap();
    assert!(rank(&schema, "s=6/60m", "k=a,b=1,s=6").is_some());
    assert_eq!(rank(&schema, "s=1/60m/7", "k=z,b=1,s=1"), Some(vec![0]));
    assert_eq!(rank(&schema, "s=30m/7", "k=z,b=1,s=30m"), Some(vec![0]));
    assert_eq!(rank(&schema, "s=x", "k=a,b=1,c=1,s=x"), Some(vec![0]));
}

#[test]
fn a_key_of_an_older_schema_is_still_found() {
    let old = Schema::parse("[run, machine [variable [step: Step]]]").unwrap();
    let new = Schema::builtin("simulation").unwrap();
    let stored = key(&old, "run=a,machine=m,variable=t,step=6");
    let matched =
        |request: &str| select(&new, request).for_shape(names(&stored)).and_then(|m| positions(&m, &stored));
    assert_eq!(matched("step=3/6,run=a"), Some(vec![0, 1]));
    assert_eq!(matched("step=7"), None);
    assert_eq!(matched("machine=m"), Some(vec![0]));
}

#[test]
fn candidate_keys_come_in_request_order() {
    let schema = Schema::parse("step: Integer; [run [variable [step]]]").unwrap();
    let keys = select(&schema, "step=6/0,run=a,variable=t/u").keys().unwrap();
    assert!(keys.exact());
    let texts: Vec<String> = keys.map(|k| k.to_string()).collect();
    assert_eq!(
        texts,
        [
            "{run=a}{variable=t}{step=6}",
            "{run=a}{variable=t}{step=0}",
            "{run=a}{variable=u}{step=6}",
            "{run=a}{variable=u}{step=0}"
        ]
    );
    assert!(select(&schema, "step=1,run=a").keys().is_none());
    assert!(select(&schema, "step=1,run=a,variable=*").keys().is_none());
    assert!(select(&schema, "").keys().is_none());
}

#[test]
fn candidate_keys_have_defaults_and_say_when_they_are_not_all() {
    let schema = Schema::parse("[a [b, d?g [c, e?]]]").unwrap();
    let keys = select(&schema, "a=1,b=2,c=3").keys().unwrap();
    assert!(!keys.exact());
    assert_eq!(keys.collect::<Vec<_>>(), [key(&schema, "a=1,b=2,c=3")]);
    let full = select(&schema, "a=1,b=2,c=3,d=x,e=y").keys().unwrap();
    assert!(full.exact());
    assert_eq!(full.collect::<Vec<_>>(), [key(&schema, "a=1,b=2,c=3,d=x,e=y")]);
    assert!(select(&schema, "a=1,b=2,c=3,e=*").keys().is_none());
    // A second rule needs a keyword that is not listed: there may be more keys.
    let two = Schema::parse("[a [b [c]]] [a [b [c, z]]]").unwrap();
    let keys = select(&two, "a=1,b=2,c=3").keys().unwrap();
    assert!(!keys.exact());
    assert_eq!(keys.count(), 1);
}

#[test]
fn candidate_keys_of_several_rules_follow_their_conditions() {
    let schema = Schema::parse("[k=a [b [s: Integer]]] [k=!a [b [s: Step]]] [k [b [z]]]").unwrap();
    let texts: Vec<String> =
        select(&schema, "k=x/a,b=1,s=60").keys().unwrap().map(|k| k.to_string()).collect();
    assert_eq!(texts, ["{k=x}{b=1}{s=60}", "{k=a}{b=1}{s=60}"]);
    let keys: Vec<FieldKey> = select(&schema, "k=x/a,b=1,s=60").keys().unwrap().collect();
    assert_eq!(keys, [key(&schema, "k=x,b=1,s=60"), key(&schema, "k=a,b=1,s=60")]);
    // No rule accepts these together: there is certainly no key.
    let none = select(&schema, "k=a,b=1,s=1,z=1").keys().unwrap();
    assert!(none.exact());
    assert_eq!(none.count(), 0);
}

#[test]
fn a_further_keyword_has_candidates_too() {
    let schema = Schema::builtin("simulation").unwrap();
    let request = "run=a,variable=t,step=1,zz=q,member=01/2";
    let keys: Vec<FieldKey> = select(&schema, request).keys().unwrap().collect();
    let made = ["1", "2"].map(|m| key(&schema, &format!("run=a,variable=t,step=1,zz=q,member={m}")));
    assert_eq!(keys, made);
    assert!(Arc::ptr_eq(&keys[0].levels[2].names, &made[0].levels[2].names));
}

#[test]
fn a_grid_of_two_numbers_is_one_value() {
    assert_eq!(values("Grid", "0.25/0.5"), "0.25+0.5");
    assert_eq!(values("Grid", "\"1/1\"/O32"), "1+1 O32");
}

#[test]
fn bounds_are_typed() {
    let schema = Schema::builtin("simulation").unwrap();
    let selection = select(&schema, "step=10/2/33");
    let (_, steps) = selection.listed_values().next().unwrap();
    assert_eq!((steps.min().unwrap().text(), steps.max().unwrap().text()), ("2".into(), "33".into()));
    assert_eq!(selection.describe(&[2]), "step=33");
    let selection = select(&schema, "step=10/to/0/by/-5");
    let (_, steps) = selection.listed_values().next().unwrap();
    assert_eq!((steps.min().unwrap().text(), steps.max().unwrap().text()), ("0".into(), "10".into()));
    assert!(select(&schema, "step=*").is_unconstrained());
}
