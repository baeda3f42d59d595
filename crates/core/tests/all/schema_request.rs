//! The text of requests: parsing, printing, and the position of errors.

#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_core::ErrorKind;
use fieldstone_core::request::{Item, Request, Values, Wanted};
use proptest::prelude::*;

fn one(text: &str) -> Item {
    Item::One(text.to_owned())
}

fn parse(text: &str) -> Vec<(String, Values)> {
    Request::parse(text).unwrap().iter().map(|(k, v)| (k.to_owned(), v.clone())).collect()
}

#[test]
fn lists_ranges_and_stars_are_read_with_white_space_anywhere() {
    let range = Item::Range { from: "0".into(), to: "24".into(), by: Some("6".into()) };
    let expected = vec![
        ("run".to_owned(), Values::List(vec![one("a")])),
        ("variable".to_owned(), Values::List(vec![one("t"), one("u")])),
        ("step".to_owned(), Values::List(vec![range, one("36")])),
        ("level".to_owned(), Values::Any),
    ];
    assert_eq!(parse("run=a,variable=t/u,step=0/to/24/by/6/36,level=*"), expected);
    assert_eq!(
        parse("\n run = a ,\n\tvariable = t / u,\r\nstep=0 / TO / 24/ By /6\n/36,level\n=\n* \n"),
        expected
    );
    assert_eq!(parse("RETRIEVE,\n run=a,variable=t/u,step=0/to/24/by/6/36,level=*"), expected);
}

#[test]
fn an_empty_request_and_a_lone_verb_select_everything() {
    for text in ["", " \n", "list", "retrieve,", "Wipe , ", "{}", "{}{}{}"] {
        assert!(Request::parse(text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn a_keyword_may_be_called_as_a_verb() {
    assert_eq!(parse("list=1"), vec![("list".to_owned(), Values::list(["1"]))]);
}

#[test]
fn a_printed_key_is_a_request() {
    let parts = parse("{run=a}{variable=t}{step=6,x=\"a/b\"}");
    let words: Vec<&str> = parts.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(words, ["run", "variable", "step", "x"]);
    assert_eq!(parts[3].1, Values::list(["a/b"]));
    // A keyword of two levels has its deepest value.
    assert_eq!(parse("{date=2025}{}{date=20250101}"), vec![("date".to_owned(), Values::list(["20250101"]))]);
    // A value that is a word of the language is printed bare in a key.
    assert_eq!(
        parse("{run=to}{by=by}{}"),
        vec![("run".into(), Values::list(["to"])), ("by".into(), Values::list(["by"]))]
    );
}

#[test]
fn quotes_hold_any_character() {
    let text = r#"a="x,{}=\"\\/*\u00e9\ud83d\ude00\n\t é😀",b=" "#.to_owned() + "\n\"";
    let pairs = Request::parse(&text).unwrap().single_pairs().unwrap();
    assert_eq!(pairs[0].1, "x,{}=\"\\/*é😀\n\t é😀");
    assert_eq!(pairs[1].1, " \n");
}

#[test]
fn a_star_within_a_value_makes_it_a_pattern() {
    let glob = |text: &str| Wanted::Glob(text.to_owned());
    let one = |text: &str| Wanted::One(text.to_owned());
    let values = |text: &str| parse(text).remove(0).1;
    for pattern in ["tos*", "*_mean", "*emp*", "a*b", "**", "t?[0-9]*", "my run*"] {
        assert_eq!(values(&format!("run={pattern}")), Values::Like(vec![glob(pattern)]), "{pattern}");
    }
    assert_eq!(values("run=a/tos*/\"x*\""), Values::Like(vec![one("a"), glob("tos*"), one("x*")]));
    assert_eq!(values("run=*"), Values::Any);
    assert_eq!(values("run = * , step=1"), Values::Any);
    assert_eq!(values("run=\"a*\""), Values::list(["a*"]));
    // Without a star these mean themselves, as before.
    assert_eq!(values("run=a?[1]"), Values::list(["a?[1]"]));
    let error = Request::parse("run=a*/1/to/5").unwrap_err().to_string();
    assert!(error.contains("run has both a range and a pattern"), "{error}");
    let error = Request::parse("run=a*").unwrap().single_pairs().unwrap_err().to_string();
    assert!(error.contains("run has a pattern, but a key needs one value"), "{error}");
    let error = Request::parse("run=a\\b").unwrap_err().to_string();
    assert!(error.contains("does not end here") && error.contains("quote a value"), "{error}");
}

#[test]
fn words_of_a_line_are_one_value() {
    assert_eq!(parse("levtype = pressure   levels\n , a=b"), parse("levtype=\"pressure levels\",a=b"));
    assert_eq!(parse("a = x y / to z"), vec![("a".to_owned(), Values::list(["x y", "to z"]))]);
}

#[test]
fn single_quotes_and_comments_are_read() {
    assert_eq!(parse(r#"a='x "y" \'z\'', b="it's""#), parse(r#"a="x \"y\" 'z'",b='it\'s'"#));
    assert_eq!(parse("# all of it\na=1, # the first\n b=2 # end"), parse("a=1,b=2"));
    assert_eq!(
        parse("a=b#c, d=o'brien"),
        vec![("a".to_owned(), Values::list(["b#c"])), ("d".to_owned(), Values::list(["o'brien"]))]
    );
}

#[test]
fn later_requests_inherit_from_those_of_their_verb() {
    let text = "retrieve, class=od, levtype=pl, levelist=500/850, param=t, target='a.grib'\n
        list, class=rd
        RETRIEVE, LEVTYPE=sfc, LEVELIST=OFF, param=2t
        list, step=*";
    let all: Vec<String> = Request::parse_many(text).unwrap().iter().map(Request::to_string).collect();
    assert_eq!(
        all,
        [
            "class=od,levtype=pl,levelist=500/850,param=t,target=a.grib",
            "class=rd",
            "class=od,target=a.grib,LEVTYPE=sfc,param=2t",
            "class=rd,step=*",
        ]
    );
    assert_eq!(Request::parse_many("").unwrap(), []);
    // A value that restricts nothing.
    assert_eq!(Request::parse_many("run=off").unwrap(), [Request::parse("run=off").unwrap()]);
    assert_eq!(Request::parse_many("run=a,step=6").unwrap(), [Request::parse("run=a,step=6").unwrap()]);
    let error = Request::parse_many("list, a=1\nlist, a").unwrap_err().to_string();
    assert!(error.starts_with("request line 2, column 8: expected `=` after `a`"), "{error}");
}

#[test]
fn a_target_is_one_file() {
    let target = |text: &str| Request::parse(text).unwrap().target().map(str::to_owned);
    assert_eq!(target("a=1, TARGET = \"out put.grib\"").as_deref(), Some("out put.grib"));
    assert_eq!(target("a=1,target=x/y"), None);
    assert_eq!(target("a=1"), None);
}

#[test]
fn errors_name_line_and_column() {
    for (text, said) in [
        ("run", "request line 1, column 4: expected `=` after `run`, found the end"),
        ("run=", "request line 1, column 5: run has no value, found the end (hint: leave run out,"),
        ("run=a,\nstep=,x=1", "request line 2, column 6: step has no value, found `,`"),
        ("run=a/", "request line 1, column 7: expected a value, found the end"),
        (
            "run=a\nb",
            "request line 2, column 1: expected `,` or `/`, found `b` (hint: quote a value that contains white space",
        ),
        (
            "run=a step=6",
            "request line 1, column 11: expected `,` or `/`, found `=` (hint: separate pairs by a comma,",
        ),
        (
            "run=a\nlist, run=b",
            "request line 2, column 1: expected one request, but another begins here, found `l`",
        ),
        ("run='a\"", "request line 1, column 5: the quote has no end"),
        ("run=a=b", "request line 1, column 6: expected `,` or `/`, found `=`"),
        (
            "run=t\\x",
            "request line 1, column 6: the value that begins with `t` does not end here, found `\\`",
        ),
        ("run=a*/1/to/2", "request line 1, column 14: run has both a range and a pattern"),
        ("run=\"a", "request line 1, column 5: the quote has no end"),
        ("run=\"\\x\"", "request line 1, column 6: the escape is not one of JSON's"),
        ("run=\"\\ud800\"", "request line 1, column 6: the escape is not one of JSON's"),
        ("run=\"\\u+123\"", "request line 1, column 6: the escape is not one of JSON's"),
        ("run=a,run=b", "request line 1, column 7: `run` is given twice"),
        ("{run=a", "request line 1, column 7: expected `}`"),
        ("{run=a}x", "request line 1, column 8: expected `{`, found `x`"),
        ("run=a}", "request line 1, column 6: expected `,` or `/`, found `}`"),
        ("r:n=a", "request line 1, column 1: `r:n` cannot be a keyword"),
        ("step=1/to", "request line 1, column 10: step has a range without its end"),
        ("step=1/by/2", "request line 1, column 12: step has a misplaced `by`"),
        ("step=1/to/2/by", "request line 1, column 15: step has a range without its end or interval"),
        ("step=1/to/2/by/", "request line 1, column 16: expected a value"),
        ("step=1/to/by/2", "request line 1, column 15: step has a range without its end"),
        ("step=1/to/2/to/3", "request line 1, column 17: step has a misplaced `to`"),
        (",", "request line 1, column 1: expected a value, found `,`"),
        ("fetch, run=a", "request line 1, column 6: expected `=` after `fetch`, found `,`"),
    ] {
        let error = Request::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let got = error.to_string();
        assert!(got.starts_with(said), "{text}\n got: {got}\nwant: {said}");
    }
}

#[test]
fn setting_a_keyword_replaces_its_values_in_place() {
    let mut request = Request::parse("a=1,b=2").unwrap();
    request.set("a", Values::list(["x", "to"]));
    request.set("c", Values::Any);
    assert_eq!(request.to_string(), "a=x/\"to\",b=2,c=*");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(any::<char>(), 0..12).prop_map(|c| c.into_iter().collect()),
        proptest::sample::select(vec![
            "to", "by", "TO", "*", "", "a/b", "retrieve", "0", "\\\"", "\u{0}", " ", "'", "#", "a #b", "off",
            "x y"
        ])
        .prop_map(str::to_owned),
        proptest::collection::vec(0x20u8..0x7f, 0..12).prop_map(|b| b.into_iter().map(char::from).collect()),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        text().prop_map(Item::One),
        (text(), text(), proptest::option::of(text())).prop_map(|(from, to, by)| Item::Range {
            from,
            to,
            by
        }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let values = prop_oneof![
        Just(Values::Any),
        Just(Values::Present),
        Just(Values::Absent),
        proptest::collection::vec(item(), 1..5).prop_map(Values::List)
    ];
    proptest::collection::vec((text(), values), 0..5).prop_map(|pairs| {
        let mut request = Request::new();
        pairs.into_iter().for_each(|(k, v)| request.set(k, v));
        request
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(request in request()) {
        prop_assert_eq!(Request::parse(&request.to_string()).unwrap(), request);
    }

    #[test]
    fn no_text_panics(text in proptest::collection::vec(proptest::sample::select(
        "ab=,/{}\"'#\\*?\n tobyu0é".chars().collect::<Vec<_>>()), 0..40)) {
        let text: String = text.into_iter().collect();
        if let Ok(request) = Request::parse(&text) {
            prop_assert_eq!(Request::parse(&request.to_string()).unwrap(), request);
        }
    }
}
