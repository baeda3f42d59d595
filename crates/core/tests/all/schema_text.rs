//! The schema language: what it accepts, and the position of errors.

#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_core::ErrorKind;
use fieldstone_core::compression::Compression;
use fieldstone_core::schema::{KeywordType, Schema};

fn error(text: &str) -> String {
    let error = Schema::parse(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

#[test]
fn errors_name_line_and_column() {
    for (text, said) in [
        ("", "schema line 1, column 1: the schema has no rule, found the end"),
        ("step: Integer;", "schema line 1, column 15: the schema has no rule, found the end"),
        (
            "step: Intger; [a[b[c]]]",
            "schema line 1, column 7: `Intger` is not a type (hint: did you mean `Integer`?)",
        ),
        ("# two\n# comments\n  step Integer;", "schema line 3, column 8: expected `:`, found `I`"),
        ("[a]", "schema line 1, column 1: a rule has three levels, but this one ends at level 1"),
        ("[a\n [b]]", "schema line 2, column 2: a rule has three levels, but this one ends at level 2"),
        (
            "[a\n [b\n  [c\n   [d]]]]",
            "schema line 4, column 4: a rule has three levels, but this is a fourth, found `[`",
        ),
        ("[a[b[c]]", "schema line 1, column 9: expected `]`, found the end"),
        ("[a[b[c]]]]", "schema line 1, column 10: expected `[` or the end of the schema, found `]`"),
        ("[a, a[b[c]]]", "schema line 1, column 5: `a` occurs twice in one level"),
        ("[a=x/!y[b[c]]]", "schema line 1, column 4: a value with `!` follows one without"),
        ("[a=[b[c]]]", "schema line 1, column 4: expected a value, found `[`"),
        ("n: Integer; [n?x[b[c]]]", "schema line 1, column 16: n=\"x\" is not a whole number"),
        ("[*[b[c,*]]]", "schema line 1, column 5: a rule has `*` at more than one level"),
        ("a: Date; a: Time; [a[b[c]]]", "schema line 1, column 10: `a` has two types"),
        ("catalog run = r; [a[b[c]]]", "schema line 1, column 15: no rule has `r`"),
        (
            "catalog run = a; [a[b[c]]] catalog run = a; [r[b[c]]]",
            "schema line 1, column 42: no rule has `a`",
        ),
        ("[a[b[c]]] a: Date; a: Time; [r[b[c]]]", "schema line 1, column 20: `a` has two types"),
        ("[a[b[c]]] a: Date;", "schema line 1, column 19: expected a rule after these declarations"),
        ("catalog rum = a; [a[b[c]]]", "schema line 1, column 9: `rum` is not a role of the catalog"),
        ("[a b[b[c]]]", "schema line 1, column 4: expected `,`, `[` or `]`, found `b`"),
        ("[é!, a[b[c]]]", "schema line 1, column 3: expected `,`, `[` or `]`, found `!`"),
    ] {
        let got = error(text);
        assert!(got.starts_with(said), "{text}\n got: {got}\nwant: {said}");
    }
}

#[test]
fn types_may_stand_in_the_rule_and_hold_inside_it() {
    let schema =
        Schema::parse("k: Integer;\n[a, k: Date [b [k, n: Integer?7, m?: Integer]]]\n[z [y [k]]]").unwrap();
    assert_eq!(schema.type_of("n"), Some(KeywordType::Integer));
    let key = schema.resolve(&[("a", "1"), ("b", "1"), ("k", "2025-01-01"), ("m", "05")]).unwrap();
    assert_eq!(key.to_string(), "{a=1,k=20250101}{b=1}{k=20250101,n=7,m=5}");
    let key = schema.resolve(&[("z", "1"), ("y", "1"), ("k", "05")]).unwrap();
    assert_eq!(key.to_string(), "{z=1}{y=1}{k=5}");
}

#[test]
fn keywords_are_listed_once_in_the_order_of_the_rules() {
    let schema = Schema::parse("[a, h-[b [c?]] [d [c]]] [a [e [*]]]").unwrap();
    let names: Vec<String> = schema.keywords().iter().map(|k| k.to_string()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_text_is_kept_exactly() {
    let text = "  # comment\n[a[b[c]]]\n\n";
    assert_eq!(Schema::parse(text).unwrap().text(), text);
}

#[test]
fn every_type_has_a_word() {
    for (word, kind) in KeywordType::ALL {
        assert_eq!(KeywordType::parse(word), Some(kind));
        assert_eq!(KeywordType::parse(kind.name()), Some(kind));
    }
}

/// Names and positions come from outside: no schema may make the parser panic.
#[test]
fn no_cut_or_changed_schema_panics() {
    let text = Schema::builtin("mars").unwrap().text().to_owned();
    for end in 0..text.len() {
        let _ = Schema::parse(&text[..end]);
        for c in "[]:;,?-=!/*# é".chars() {
            let mut changed = text.clone();
            changed.insert(end, c);
            let _ = Schema::parse(&changed);
        }
    }
}

#[test]
fn a_schema_sets_the_compression_of_its_store() {
    let compression = |text: &str| Schema::parse(text).map(|s| s.compression());
    assert_eq!(compression("compression = zstd:7;\n[a [b [c]]]").unwrap(), Some(Compression::Zstd(7)));
    assert_eq!(compression("compression=none; a: Integer; [a [b [c]]]").unwrap(), Some(Compression::None));
    assert_eq!(compression("compression: Integer; [a [b [compression]]]").unwrap(), None);
    let message = compression("a: Integer;\ncompression = lzma;\n[a [b [c]]]").unwrap_err().to_string();
    assert!(message.contains("lzma") && message.contains("line 2"), "{message}");
    assert!(compression("compression = zstd; compression = none; [a [b [c]]]").is_err());
}
