//! Extensions of schemas: existing keys keep their bytes, new keys are found, and a rule that would make no key is
//! refused; by hand, and for random schemas against all keys of a small world.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;

use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, ErrorKind};
use proptest::prelude::*;

fn key(schema: &Schema, request: &str) -> Result<String, String> {
    let pairs = Request::parse(request).unwrap().single_pairs().unwrap();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    schema.resolve(&pairs).map(|k| k.to_string()).map_err(|e| e.message().to_owned())
}

#[test]
fn an_optional_keyword_is_taken_by_every_closed_rule_and_stands_only_where_it_is_given() {
    let before =
        Schema::parse("step: Integer; [run [variable [step]]] [run, member [variable [*]]]").unwrap();
    let after = before.extend("number: Integer; number?; tile?: Text;").unwrap();
    assert_eq!(key(&after, "run=a,variable=t,step=6").unwrap(), "{run=a}{variable=t}{step=6}");
    assert_eq!(
        key(&after, "run=a,variable=t,step=6,number=03").unwrap(),
        "{run=a}{variable=t}{step=6,number=3}"
    );
    assert_eq!(key(&after, "run=a,variable=t,step=6,tile=1").unwrap(), "{run=a}{variable=t}{step=6,tile=1}");
    // A rule that already accepted the keyword still accepts it in the same way.
    let open = "run=a,member=1,variable=t,number=03";
    assert_eq!(key(&before, open), key(&after, open));
    assert_eq!(key(&after, open).unwrap(), "{run=a,member=1}{variable=t}{number=03}");
    let text: Vec<String> = after.rules().iter().map(ToString::to_string).collect();
    assert_eq!(text.last().unwrap(), "[run [variable [step, number?, tile?]]]");
    assert_eq!(after.extensions(), 1);
}

#[test]
fn the_text_of_an_extended_schema_is_one() {
    let base = Schema::parse("[run [variable [step]]] # no line end").unwrap();
    let once = base.extend("number?: Integer;").unwrap();
    let twice = once.extend("tile?;\n[centre [x [y]]]").unwrap();
    let read = Schema::parse(twice.text()).unwrap();
    assert_eq!(read, twice);
    assert_eq!((read.extensions(), read.rules().len()), (2, 4));
    for schema in [&base, &once, &twice] {
        assert!(twice.grew_from(schema.text()), "{}", schema.text());
    }
    assert!(!once.grew_from(twice.text()));
    assert!(!twice.grew_from("[run [variable [step]]]"), "the comment is part of the text");
    assert_eq!(
        key(&read, "run=a,variable=t,step=1,number=2,tile=3").unwrap(),
        "{run=a}{variable=t}{step=1,number=2,tile=3}"
    );
    assert_eq!(key(&read, "run=a,variable=t,step=1,tile=3").unwrap(), "{run=a}{variable=t}{step=1,tile=3}");
}

#[test]
fn what_would_make_no_key_or_change_a_meaning_is_refused() {
    let base = Schema::parse("param: Param; [class, expver [type [param, levelist]]]").unwrap();
    for (text, code, says) in [
        ("[class=od, expver [type [param, levelist]]]", Code::RuleTaken, "accepts all keys of"),
        ("[a [b [c]]] [a=x [b [c]]]", Code::RuleTaken, "rule [a [b [c]]] accepts all keys"),
        ("param?;", Code::RuleTaken, "every rule accepts `param` already"),
        ("[a [b [level]]]", Code::KeywordUnknown, "`level` is another name of `levelist`"),
        ("[a [b [param: Text]]]", Code::KeywordValue, "`param` is a Param in one part"),
        ("catalog run = a; [a [b [c]]]", Code::SchemaSyntax, "line 1, column 1: expected a type"),
        ("compression = zstd; [a [b [c]]]", Code::SchemaSyntax, "expected a type"),
        ("number: Integer;", Code::SchemaSyntax, "has no rule and no optional keyword"),
        ("number?: Integer;\n[a [b", Code::SchemaSyntax, "line 2, column 6"),
        ("x?; extension; y?;", Code::SchemaSyntax, "contains `extension;` itself"),
        ("", Code::SchemaSyntax, "has no rule"),
    ] {
        let error = base.extend(text).unwrap_err();
        assert_eq!((error.code(), error.kind()), (code, ErrorKind::Invalid), "{text}: {error}");
        assert!(error.message().contains(says), "{text}: {error}");
    }
    let open = Schema::builtin("simulation").unwrap().extend("number?: Integer;").unwrap_err();
    assert_eq!(open.code(), Code::RuleTaken);
}

#[test]
fn types_of_an_extension_hold_for_its_own_rules() {
    let base = Schema::builtin("simulation").unwrap();
    let after = base.extend("number: Integer; step: Step; [class [type [step, number]]]").unwrap();
    let old = "run=a,variable=t,step=06,number=03";
    assert_eq!(key(&after, old).unwrap(), "{run=a}{variable=t}{step=6,number=03}");
    assert_eq!(key(&after, old), key(&base, old));
    let selection = after.select(&Request::parse("number=03").unwrap()).unwrap();
    let pairs = [("run", "a"), ("variable", "t"), ("step", "6"), ("number", "03")];
    assert!(selection.takes(&base.resolve(&pairs).unwrap()), "a text stays one");
    assert_eq!(
        key(&after, "class=od,type=fc,step=30m,number=03").unwrap(),
        "{class=od}{type=fc}{step=30m,number=3}"
    );
    assert_eq!(
        key(&after, "run=a,variable=t,step=30m"),
        key(&base, "run=a,variable=t,step=30m"),
        "still refused"
    );
}

#[test]
fn a_spelling_that_was_a_keyword_of_its_own_stays_one() {
    let base = Schema::parse("[run [variable [*]]]").unwrap();
    let after = base.extend("[class [type [step]]]").unwrap();
    let key_of_before = key(&base, "run=a,variable=t,CLASS=x").unwrap();
    assert_eq!(key_of_before, "{run=a}{variable=t}{CLASS=x}");
    assert_eq!(key(&after, "run=a,variable=t,CLASS=x").unwrap(), key_of_before);
    assert_eq!(key(&after, "CLASS=x,TYPE=fc,step=1").unwrap(), "{class=x}{type=fc}{step=1}");
}

#[test]
fn a_request_names_each_key_once_and_finds_old_and_new() {
    let base = Schema::parse("step: Integer; [run [variable [step]]]").unwrap();
    let after = base.extend("number?: Integer;").unwrap();
    let keys = |schema: &Schema, text: &str| -> Vec<String> {
        let selection = schema.select(&Request::parse(text).unwrap()).unwrap();
        let keys = selection.keys().unwrap();
        assert_eq!(keys.count_keys() as usize, keys.clone().count(), "{text}");
        keys.map(|k| k.to_string()).collect()
    };
    let steps = "run=a,variable=t,step=0/to/12/by/6";
    assert_eq!(keys(&after, steps), keys(&base, steps));
    assert_eq!(
        keys(&after, "run=a,variable=t,step=6,number=1/2"),
        ["{run=a}{variable=t}{step=6,number=1}", "{run=a}{variable=t}{step=6,number=2}"]
    );
    assert!(!after.select(&Request::parse(steps).unwrap()).unwrap().keys().unwrap().exact());
    let takes = |text: &str, key: &[(&str, &str)]| {
        after.select(&Request::parse(text).unwrap()).unwrap().takes(&after.resolve(key).unwrap())
    };
    let (old, new) = (
        [("run", "a"), ("variable", "t"), ("step", "6")],
        [("run", "a"), ("variable", "t"), ("step", "6"), ("number", "1")],
    );
    assert!(takes("run=a", &old) && takes("run=a", &new), "one request for both");
    assert!(!takes("number=1", &old) && takes("number=1", &new) && !takes("number=2", &new));
}

#[test]
fn who_owns_a_run_does_not_change() {
    let base = Schema::parse("catalog run = run; [run, project [variable [step]]]").unwrap();
    let after = base.extend("[run, version?1 [member [z]]]").unwrap();
    assert_eq!(base.run_level("", "a"), after.run_level("", "a"));
    let base = Schema::parse("catalog run = class/date; [class=od, date [x [y]]]").unwrap();
    let after = base.extend("[class, date, centre? [x [z]]]").unwrap();
    assert_eq!(base.run_level("", "od/1"), after.run_level("", "od/1"));
    assert_ne!(base.run_level("", "rd/1"), after.run_level("", "rd/1"), "it was not a run");
}

const KEYWORDS: [&str; 4] = ["a", "b", "c", "d"];
const VALUES: [&str; 3] = ["x", "y", "w"];

/// A rule: for each keyword its level, or none, and its mark; and which level is open, if any.
fn rule() -> impl Strategy<Value = String> {
    let place = (0usize..5, 0usize..8);
    (proptest::array::uniform4(place), 0usize..12).prop_map(|(places, open)| {
        let mut levels: [Vec<String>; 3] = Default::default();
        for (keyword, (level, mark)) in KEYWORDS.iter().zip(places) {
            // The last two numbers mean "in no level".
            let Some(level) = levels.get_mut(level) else { continue };
            let mark = ["", "", "?", "?x", "-", "=x", "=x/y", "=!x"][mark];
            level.push(format!("{keyword}{mark}"));
        }
        if let Some(level) = levels.get_mut(open) {
            level.push("*".into());
        }
        format!("[{} [{} [{}]]]", levels[0].join(", "), levels[1].join(", "), levels[2].join(", "))
    })
}

/// An extension: optional keywords and rules.
fn extension() -> impl Strategy<Value = String> {
    let optional = proptest::sample::subsequence(vec!["c?; ", "d?: Text; ", "e?; "], 0..2);
    (optional, proptest::collection::vec(rule(), 0..3))
        .prop_map(|(optional, rules)| format!("{}{}", optional.concat(), rules.join(" ")))
}

/// Every key of the small world: each keyword absent or with one of the values, one keyword that no rule names.
fn world() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = vec![Vec::new()];
    for keyword in ["a", "b", "c", "d", "e", "f"] {
        let values: &[&str] = if keyword == "f" { &["x"] } else { &VALUES };
        let with = |key: &Vec<_>| {
            let given = values.iter().map(|value| key.iter().copied().chain([(keyword, *value)]).collect());
            given.collect::<Vec<Vec<_>>>()
        };
        let further: Vec<Vec<_>> = all.iter().flat_map(with).collect();
        all.extend(further);
    }
    all
}

fn request(pairs: &[(&str, &str)]) -> Request {
    Request::parse(&pairs.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_extensions_keep_all_keys_and_every_new_rule_makes_one(
        base in proptest::collection::vec(rule(), 1..3),
        text in extension(),
    ) {
        // The rules of the base may hide each other, which is not refused.
        let base = Schema::parse(&base.join(" ")).unwrap();
        let world = world();
        let after = match base.extend(&text) {
            Ok(after) => after,
            Err(error) => {
                if error.code() == Code::RuleTaken && !error.message().contains("already") {
                    // Then an earlier rule accepts all keys of a rule in the text: checked by trial.
                    let whole = Schema::parse(&format!("{} extension; {text}", base.text())).unwrap();
                    let alone: Vec<Schema> =
                        whole.rules().iter().map(|r| Schema::parse(&r.to_string()).unwrap()).collect();
                    let taken = |new: &usize, old: &usize| {
                        world.iter().all(|key| alone[*new].resolve(key).is_err() || alone[*old].resolve(key).is_ok())
                    };
                    let new = base.rules().len()..alone.len();
                    prop_assert!(new.clone().any(|n| (0..n).any(|o| taken(&n, &o))), "{error}");
                }
                return Ok(());
            }
        };
        let alone: Vec<Schema> = after.rules().iter().map(|r| Schema::parse(&r.to_string()).unwrap()).collect();
        let mut makes = vec![vec![false; alone.len()]; alone.len()];
        let mut found = HashMap::new();
        for key in &world {
            let takes: Vec<bool> = alone.iter().map(|schema| schema.resolve(key).is_ok()).collect();
            for new in (base.rules().len()..alone.len()).filter(|n| takes[*n]) {
                (0..new).filter(|old| !takes[*old]).for_each(|old| makes[new][old] = true);
            }
            let (then, now) = (base.resolve(key), after.resolve(key));
            if let Ok(then) = &then {
                prop_assert_eq!(Some(then), now.as_ref().ok(), "{:?} is another key", key);
            }
            prop_assert_eq!(now.is_ok(), takes.iter().any(|t| *t), "{:?}", key);
            if let Ok(now) = now {
                // A key is found by the pairs with which it was archived.
                prop_assert!(after.select(&request(key)).unwrap().takes(&now), "{:?} does not find {}", key, now);
                found.insert(now, key);
            }
        }
        for (new, makes) in makes.iter().enumerate().skip(base.rules().len()) {
            let taken = makes.iter().take(new).position(|makes| !makes);
            prop_assert!(taken.is_none(), "rule {:?} accepts all keys of {}, and it was added", taken, new);
        }
        // An earlier request finds what it found before.
        for pairs in world.iter().step_by(7) {
            let (Ok(then), Ok(now)) = (base.select(&request(pairs)), after.select(&request(pairs))) else { continue };
            for key in found.keys() {
                prop_assert!(!then.takes(key) || now.takes(key), "{:?} lost {}", pairs, key);
            }
        }
    }
}
