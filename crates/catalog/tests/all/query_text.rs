//! Queries as text: printed queries parse back, and errors point at the character.
use fieldstone_catalog::query::text::{parse, parse_expr, parse_value};
use fieldstone_catalog::query::{
    Dim, Expr, Key, NameTest, Pick, Query, Range, Relation, Scope, Term, Where, WriterPart,
};
use fieldstone_core::ErrorKind;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_testkit::seeded;
use proptest::collection::vec;
use proptest::prelude::*;

const WRITER_PARTS: [WriterPart; 3] = [WriterPart::Name, WriterPart::Rank, WriterPart::Attempt];

fn shown(text: &str) -> String {
    format!("{:?}", parse_expr(text).unwrap())
}

fn name(word: &str) -> NameTest {
    NameTest::Is(word.to_owned())
}

#[test]
fn terms_mean_what_they_say() {
    let term = |term: Term| format!("{:?}", Expr::Term(term));
    let not = |term: Term| format!("{:?}", Expr::Not(Box::new(Expr::Term(term))));
    let z = |range| vec![(Dim::Name("z".into()), range)];
    for (text, expected) in [
        ("run=astro3d-42", term(Term::Run(name("astro3d-42")))),
        ("RUN = 42", term(Term::Run(name("42")))),
        ("tag=temp*", term(Term::Tag(NameTest::Typed("temp*".into())))),
        ("tag=\"temp*\"", term(Term::Tag(name("temp*")))),
        ("tag!=x", not(Term::Tag(name("x")))),
        (
            "tag not in (x, 'y z', a?)",
            not(Term::Tag(NameTest::Any(vec![name("x"), name("y z"), NameTest::Typed("a?".into())]))),
        ),
        ("variable contains 'te[m'", term(Term::Variable(NameTest::Glob("*te[[]m*".into())))),
        ("unit=K", term(Term::Unit(name("K")))),
        ("job like '12'", term(Term::Job(NameTest::Glob("12".into())))),
        ("param.nx>=256", term(Term::Param("nx".into(), Test::AtLeast(Value::Int(256))))),
        ("param.\"a b\" exists", term(Term::Param("a b".into(), Test::Exists))),
        ("attr.units=K", term(Term::Attr("units".into(), Test::Equal(Value::Text("K".into()))))),
        ("attr.standard_name=sea*", term(Term::Attr("standard_name".into(), Test::Typed("sea*".into())))),
        ("created>2026-01-01", term(Term::Created(Test::Above(Value::DateTime(1_767_225_600_000_000_000))))),
        ("time between 0.5 and 2", term(Term::Time(Test::Between(Value::Float(0.5), Value::Int(2))))),
        ("step=6", term(Term::Step(vec![(6, 6)]))),
        ("step=0:10", term(Term::Step(vec![(0, 9)]))),
        ("step=0/to/24/by/6", term(Term::Step(vec![(0, 0), (6, 6), (12, 12), (18, 18), (24, 24)]))),
        ("step=0/to/24/48", term(Term::Step(vec![(0, 24), (48, 48)]))),
        ("step>3", term(Term::Step(vec![(4, i64::MAX)]))),
        ("step in (-3, 5:)", term(Term::Step(vec![(-3, -3), (5, i64::MAX)]))),
        ("step!=3", not(Term::Step(vec![(3, 3)]))),
        ("version=1", term(Term::VariableVersion(vec![1]))),
        ("level=1", term(Term::Level(vec![(1, 1)]))),
        ("level in (0, 2)", term(Term::Level(vec![(0, 0), (2, 2)]))),
        ("LEVEL>=1", term(Term::Level(vec![(1, i64::MAX)]))),
        ("level!=1", not(Term::Level(vec![(1, 1)]))),
        ("level=0:2", term(Term::Level(vec![(0, 1)]))),
        ("level between 1 and 2", term(Term::Level(vec![(1, 2)]))),
        ("tag_version in (0,1)", term(Term::TagVersion(vec![0, 1]))),
        ("value>9000", term(Term::Value(Test::Above(Value::Int(9000))))),
        ("value = tur*", term(Term::Value(Test::Typed("tur*".into())))),
        ("value=\"tur*\"", term(Term::Value(Test::Equal(Value::Text("tur*".into()))))),
        ("value!=true", term(Term::Value(Test::Not(Box::new(Test::Equal(Value::Bool(true))))))),
        ("value contains 7", term(Term::Value(Test::Contains(Value::Int(7))))),
        ("value=5..9", term(Term::Value(Test::Equal(Value::IntRange(5, 9))))),
        (
            "value in (1, 2.5, -inf)",
            term(Term::Value(Test::IsIn(vec![
                Value::Int(1),
                Value::Float(2.5),
                Value::Float(f64::NEG_INFINITY),
            ]))),
        ),
        (
            "value=[1, \"a\", {k: null}]",
            term(Term::Value(Test::Equal(Value::List(vec![
                Value::Int(1),
                Value::Text("a".into()),
                Value::Map(vec![("k".into(), Value::Null)]),
            ])))),
        ),
        (
            "value (>3 and <5 or =7)",
            term(Term::Value(Test::Any(vec![
                Test::All(vec![Test::Above(Value::Int(3)), Test::Below(Value::Int(5))]),
                Test::Equal(Value::Int(7)),
            ]))),
        ),
        ("value=18446744073709551615", term(Term::Value(Test::Equal(Value::UInt(u64::MAX))))),
        ("value=0x0aff", term(Term::Value(Test::Equal(Value::Bytes(vec![10, 255]))))),
        ("scope!=run", not(Term::Scope(Scope::Run))),
        ("box=z:50:100", term(Term::Region(z(Range::Index(Some(50), Some(100))), Relation::Overlaps))),
        ("within box=z::100", term(Term::Region(z(Range::Index(None, Some(100))), Relation::Within))),
        ("contains box(z=0.5..1)", term(Term::Region(z(Range::Physical(0.5, 1.0)), Relation::Contains))),
        (
            "box=50:100,0:20",
            term(Term::Region(
                vec![
                    (Dim::Index(0), Range::Index(Some(50), Some(100))),
                    (Dim::Index(1), Range::Index(Some(0), Some(20))),
                ],
                Relation::Overlaps,
            )),
        ),
        (
            "box(y:0:20, \"my z\"=1..2, 2:5:)",
            term(Term::Region(
                vec![
                    (Dim::Name("y".into()), Range::Index(Some(0), Some(20))),
                    (Dim::Name("my z".into()), Range::Physical(1.0, 2.0)),
                    (Dim::Index(2), Range::Index(Some(5), None)),
                ],
                Relation::Overlaps,
            )),
        ),
        ("extent.z>5", term(Term::Extent(Dim::Name("z".into()), Test::Above(Value::Int(5))))),
        ("extent.0>5", term(Term::Extent(Dim::Index(0), Test::Above(Value::Int(5))))),
        ("extent.\"0\">5", term(Term::Extent(Dim::Name("0".into()), Test::Above(Value::Int(5))))),
        ("keyword.number=3", term(Term::Keyword("number".into(), Test::Equal(Value::Int(3))))),
        ("user=ann", term(Term::User(name("ann")))),
        ("writer.rank<4", term(Term::Writer(WriterPart::Rank, Test::Below(Value::Int(4))))),
        (
            "writer='node7:4711'",
            term(Term::Writer(WriterPart::Name, Test::Equal(Value::Text("node7:4711".into())))),
        ),
        ("volume<=1000", term(Term::Volume(Test::AtMost(Value::Int(1000))))),
        ("everything", format!("{:?}", Expr::All(Vec::new()))),
        ("", format!("{:?}", Expr::All(Vec::new()))),
        ("nothing", format!("{:?}", Expr::Any(Vec::new()))),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn and_binds_tighter_than_or() {
    let t = |word: &str| Expr::Term(Term::Tag(name(word)));
    let b = |expr: Expr| Box::new(expr);
    for (text, expected) in [
        ("tag=a and tag=b or tag=c", Expr::Any(vec![Expr::All(vec![t("a"), t("b")]), t("c")])),
        ("tag=a and (tag=b or tag=c)", Expr::All(vec![t("a"), Expr::Any(vec![t("b"), t("c")])])),
        ("not tag=a and tag=b", Expr::All(vec![Expr::Not(b(t("a"))), t("b")])),
        ("NOT (tag=a AND tag=b)", Expr::Not(b(Expr::All(vec![t("a"), t("b")])))),
        ("tag=a with same step (tag=b)", Expr::All(Vec::new())),
        (
            "tag=a and with same step (tag=b)",
            Expr::All(vec![t("a"), Expr::Related(Where::SameStep, b(t("b")))]),
        ),
        ("without overlapping (tag=b)", Expr::Not(b(Expr::Related(Where::Overlapping, b(t("b")))))),
        ("with same variable ()", Expr::Related(Where::SameVariable, b(Expr::All(Vec::new())))),
        (
            "with same run (with same step (tag=a))",
            Expr::Related(Where::SameRun, b(Expr::Related(Where::SameStep, b(t("a"))))),
        ),
    ] {
        match parse_expr(text) {
            Ok(expr) => assert_eq!(format!("{expr:?}"), format!("{expected:?}"), "{text}"),
            Err(error) => assert!(
                text.starts_with("tag=a with") && error.message().contains("expected `and`"),
                "{error}"
            ),
        }
    }
}

#[test]
fn what_follows_is_read_in_any_order() {
    let query = parse(
        "tag=a last limit 3 order by -value, step desc, run asc transaction=0123456789abcdef0123456789abcdef",
    )
    .unwrap();
    assert_eq!(query.pick, Some(Pick::Last));
    assert_eq!(query.limit, Some(3));
    assert_eq!(query.order, [(Key::Value, true), (Key::Step, true), (Key::Run, false)]);
    assert_eq!(query.session.transaction(), Id::parse("0123456789abcdef0123456789abcdef"));
    assert_eq!(
        query.to_string(),
        "tag=a last order by -value, -step, run limit 3 transaction=0123456789abcdef0123456789abcdef"
    );
    let all = parse(" order by volume first ").unwrap();
    assert_eq!(all.to_string(), "first order by volume");
    assert_eq!(parse("").unwrap().to_string(), "");
}

/// The place of the caret, the message, and the hint.
#[test]
fn errors_point_at_the_character() {
    for (text, column, message, hint) in [
        ("tag=maximum and vlaue>9000", 16, "`vlaue` is not a known term", "`value`"),
        ("tag=maximum and value>", 22, "expected a value, found the end", "a number"),
        ("tag=maximum value>3", 12, "expected `and`, `or` or the end, found `value`", "join terms"),
        ("tag=a adn tag=b", 6, "`adn` does not belong here", "`and`"),
        ("tag>5", 3, "`>` compares values", "= != in like contains"),
        ("value 5", 6, "expected a test, found `5`", "exists"),
        ("value>nan", 6, "NaN cannot be compared", "not value>=-inf"),
        ("value=9..5", 6, "`9..5` is not a valid range", "LOW at most HIGH"),
        ("value=0x1", 6, "is not valid as bytes", "two hexadecimal digits"),
        ("value in 5", 9, "expected `(`", "in (a, b)"),
        ("value in (5 6)", 12, "expected `,` or `)`, found `6`", ""),
        ("value between 1 or 2", 16, "expected `and`", "between 1 and 5"),
        ("tag='abc", 4, "the quote has no end", "end it with '"),
        ("tag=\"a\\q\"", 6, "not one of JSON", "twice"),
        ("(tag=a", 6, "expected `)`, found the end", ""),
        ("tag=a)", 5, "found `)`", ""),
        ("step=1.5", 5, "`1.5` is not a valid step: steps are integers", "step=0:10"),
        ("step=10:5", 5, "no step is in 10:5", "step=0:10"),
        ("step=0/to", 5, "the range has no end", ""),
        ("step=0/to/9000000000/by/2", 5, "more than 100000 steps", ""),
        ("box=z:50", 4, "DIMENSION:FROM:TO", "box=z:50:100"),
        ("box=z:9:9", 4, "the box from 9 to 9 has no", "excludes its end"),
        ("box=z:0.5:1", 4, "`0.5` is not an index of an element", "coordinates"),
        ("box=z=0..1", 5, "must be in parentheses", "box(z=0.5..0.7)"),
        ("box(z=2..1)", 6, "LOW..HIGH", ""),
        ("box=z:0:1,z:1:2", 10, "given twice", ""),
        ("box z:0:1", 4, "expected `=` or `(`", "box=z:50:100"),
        ("within value=3", 7, "expected `box` after `within`", ""),
        ("with same place (tag=a)", 10, "`place` is not a known place", "run, step, variable"),
        ("with same step tag=a", 15, "expected `(`", "with same step (tag=b)"),
        ("param>3", 5, "expected `.` and a name", "param.nx=256"),
        ("tag=a limit x", 12, "expected a number after `limit`", "limit 10"),
        ("tag=a limit 1 limit 2", 14, "given twice", ""),
        ("tag=a order by valeu", 15, "`valeu` is not a known order", "`value`"),
        ("tag=a transaction=1", 18, "the id of a transaction", "32"),
        ("scope=steps", 6, "`steps` is not a known scope", "`step`"),
        ("version=a", 8, "expected an integer", ""),
        ("level=fine", 6, "`fine` is not a valid level: levels are integers", "level=0:10"),
        ("level=-1", 5, "there is no level -1", "from 0"),
        ("tag=a and level<0", 15, "there is no level -1", "from 0"),
        ("level like 1", 6, "expected a test after `level`", "levels take = !="),
        ("lvel=1", 0, "`lvel` is not a known term", "`level`"),
        ("tag=ä and\n  valu=3", 2, "line 2, character 3", "`value`"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = error.message().to_owned();
        assert!(said.contains(message), "{text}: {said}");
        assert!(error.hint().unwrap_or("").contains(hint), "{text}: {:?}", error.hint());
        let lines: Vec<&str> = said.lines().collect();
        let [_, line, caret] = lines[..] else { panic!("{said}") };
        assert_eq!(caret.find('^'), Some(2 + column), "{text}\n{said}");
        let at = text.lines().last().unwrap().chars().nth(column);
        assert_eq!(line.chars().nth(2 + column), at, "{said}");
    }
    // For a long line, the part around the character.
    let long = format!("tag in ({}) and x=1", "abc, ".repeat(500));
    let error = parse(&long).unwrap_err();
    let lines: Vec<&str> = error.message().lines().collect();
    assert!(lines[1].chars().count() < 80 && lines[1].starts_with("  …"), "{error}");
    let caret = lines[2].chars().count() - 1;
    assert!(lines[1].chars().skip(caret).collect::<String>().starts_with(") and"), "{error}");
    let deep = format!("{}tag=a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&deep).unwrap_err().message().contains("more than 100 levels"));
    let deep = format!("value={}", "[".repeat(100_000));
    assert!(parse(&deep).unwrap_err().message().contains("more than 100 levels"));
}

#[test]
fn what_is_nested_too_deeply_is_refused_shown_in_part_and_dropped() {
    const DEEP: usize = 1_000_000;
    let run = || Expr::Term(Term::Run(name("a")));
    let test = || (0..DEEP).fold(Test::Exists, |inner, _| Test::Not(Box::new(inner)));
    for deep in [
        (0..DEEP).fold(run(), |inner, _| Expr::Not(Box::new(inner))),
        (0..DEEP).fold(run(), |inner, _| Expr::All(vec![run(), inner])),
        (0..DEEP).fold(run(), |inner, _| Expr::Any(vec![inner])),
        (0..DEEP).fold(run(), |inner, _| Expr::Related(Where::SameRun, Box::new(inner))),
        Expr::Term(Term::Value(test())),
        Expr::Not(Box::new(Expr::Term(Term::Param("nx".into(), test())))),
    ] {
        let output = deep.size().check().unwrap_err();
        assert!(output.to_string().contains("more than 100 levels"), "{output}");
        assert!(deep.to_string().contains('…'));
    }
    // Text has the same limits, even if it needs no parentheses.
    let related = |levels: usize| {
        let (before, after) = ("not with same run (run=a and ".repeat(levels), ")".repeat(levels));
        parse(&format!("{before}run=b{after}"))
    };
    let most = related(33).unwrap();
    assert_eq!(parse(&most.to_string()).unwrap().to_string(), most.to_string());
    assert!(related(34).unwrap_err().message().contains("more than 100 levels"));
}

#[test]
fn values_are_read_alone() {
    for (text, value) in [
        ("9000", Value::Int(9000)),
        (" 1e3 ", Value::Float(1000.0)),
        ("nan", Value::Float(f64::NAN)),
        ("2026-11-21T06:00", Value::DateTime(1_795_240_800_000_000_000)),
        ("2026-11-21 06:00", Value::DateTime(1_795_240_800_000_000_000)),
        ("0.5..9", Value::FloatRange(0.5, 9.0)),
        ("\"7\"", Value::Text("7".into())),
        ("free text, with signs = < >", Value::Text("free text, with signs = < >".into())),
        ("", Value::Text("".into())),
        ("infernal", Value::Text("infernal".into())),
        ("e5", Value::Text("e5".into())),
        ("[1,2]", Value::List(vec![Value::Int(1), Value::Int(2)])),
    ] {
        assert_eq!(format!("{:?}", parse_value(text).unwrap()), format!("{value:?}"), "{text}");
    }
    assert!(parse_value("[1,2").is_err());
    assert!(parse_value("\"a\" b").is_err());
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_.*?/-]{1,5}",
        "[ a-z\"'\\\\(),=<>\\[\n\u{1}é]{0,6}",
        Just("like".to_owned()),
        Just("and".to_owned())
    ]
}

fn name_test() -> impl Strategy<Value = NameTest> {
    let typed = "[a-z]{0,2}[*?\\[][a-z]{0,2}".prop_map(NameTest::Typed);
    let one = || prop_oneof![word().prop_map(NameTest::Is), word().prop_map(NameTest::Glob), typed.clone()];
    prop_oneof![3 => one(), 1 => vec(one(), 0..4).prop_map(NameTest::Any)]
}

fn literal() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Value::UInt),
        any::<f64>().prop_filter("NaN", |n| !n.is_nan()).prop_map(Value::Float),
        word().prop_map(Value::Text),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::DateTime),
        vec(any::<u8>(), 0..3).prop_map(Value::Bytes),
        (any::<i64>(), any::<i64>()).prop_map(|(a, b)| Value::IntRange(a.min(b), a.max(b))),
        (-1e9..1e9, 0.0..1e20).prop_map(|(a, n)| Value::FloatRange(a, a + n)),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            proptest::collection::btree_map(word(), inner, 0..3)
                .prop_map(|map| Value::Map(map.into_iter().collect())),
        ]
    })
    .boxed()
}

fn test() -> BoxedStrategy<Test> {
    let leaf = prop_oneof![
        Just(Test::Exists),
        literal().prop_map(Test::Above),
        literal().prop_map(Test::AtLeast),
        literal().prop_map(Test::Below),
        literal().prop_map(Test::AtMost),
        literal().prop_map(Test::Equal),
        literal().prop_map(Test::Contains),
        (literal(), literal()).prop_map(|(a, b)| Test::Between(a, b)),
        vec(literal(), 0..4).prop_map(Test::IsIn),
        word().prop_map(Test::Glob),
        "[a-z]{1,2}[*?\\[][a-z]{0,2}".prop_map(Test::Typed),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Test::All),
            vec(inner.clone(), 2..4).prop_map(Test::Any),
            inner.prop_map(|test| Test::Not(Box::new(test))),
        ]
    })
    .boxed()
}

fn dim() -> impl Strategy<Value = Dim> {
    prop_oneof![word().prop_map(Dim::Name), (0..9usize).prop_map(Dim::Index)]
}

fn region() -> impl Strategy<Value = Term> {
    let range = prop_oneof![
        (any::<i64>(), any::<i64>()).prop_map(|(a, b)| Range::Index(
            Some(a.min(b)),
            Some(a.max(b).saturating_add(1).max(a.min(b).saturating_add(1)))
        )),
        any::<i64>().prop_map(|a| Range::Index(None, Some(a))),
        any::<i64>().prop_map(|a| Range::Index(Some(a), None)),
        Just(Range::Index(None, None)),
        (-1e9..1e9, 0.0..1e20).prop_map(|(a, n)| Range::Physical(a, a + n)),
        Just(Range::Physical(f64::NEG_INFINITY, f64::INFINITY)),
    ];
    let relation = proptest::sample::select(vec![Relation::Overlaps, Relation::Within, Relation::Contains]);
    (vec((dim(), range), 1..4), relation).prop_filter_map("one range a dimension", |(parts, relation)| {
        let sound = |i: usize| {
            let empty = matches!(parts[i].1, Range::Index(Some(a), Some(b)) if a >= b);
            !empty && parts[..i].iter().all(|(dim, _)| *dim != parts[i].0)
        };
        (0..parts.len()).all(sound).then_some(Term::Region(parts, relation))
    })
}

fn term() -> BoxedStrategy<Term> {
    let step = (any::<i64>(), 0..1000i64).prop_map(|(a, n)| (a, a.saturating_add(n)));
    prop_oneof![
        name_test().prop_map(Term::Run),
        name_test().prop_map(Term::Project),
        name_test().prop_map(Term::Job),
        name_test().prop_map(Term::Variable),
        name_test().prop_map(Term::Tag),
        name_test().prop_map(Term::Unit),
        (word(), test()).prop_map(|(name, test)| Term::Param(name, test)),
        (word(), test()).prop_map(|(name, test)| Term::Attr(name, test)),
        (word(), test()).prop_map(|(name, test)| Term::Keyword(name, test)),
        name_test().prop_map(Term::User),
        (prop::sample::select(WRITER_PARTS.to_vec()), test())
            .prop_map(|(part, test)| Term::Writer(part, test)),
        test().prop_map(Term::Created),
        test().prop_map(Term::Time),
        test().prop_map(Term::Value),
        test().prop_map(Term::Volume),
        (dim(), test()).prop_map(|(dim, test)| Term::Extent(dim, test)),
        vec(any::<i64>(), 0..3).prop_map(Term::VariableVersion),
        vec((any::<i64>(), 0..1000i64), 0..3).prop_map(|all| {
            Term::Level(all.into_iter().map(|(a, n)| (a, a.saturating_add(n).max(n))).collect())
        }),
        vec(any::<i64>(), 0..3).prop_map(Term::TagVersion),
        vec(
            prop_oneof![
                step,
                Just((i64::MIN, i64::MAX)),
                any::<i64>().prop_map(|a| (i64::MIN, a)),
                any::<i64>().prop_map(|a| (a, i64::MAX))
            ],
            0..3
        )
        .prop_map(Term::Step),
        proptest::sample::select(vec![Scope::Run, Scope::Step, Scope::Variable]).prop_map(Term::Scope),
        region(),
    ]
    .boxed()
}

fn expr() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![8 => term().prop_map(Expr::Term), 1 => Just(Expr::All(Vec::new())), 1 => Just(Expr::Any(Vec::new()))];
    let places = vec![Where::SameRun, Where::SameStep, Where::SameVariable, Where::Overlapping];
    leaf.prop_recursive(4, 16, 3, move |inner| {
        let place = proptest::sample::select(places.clone());
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Expr::All),
            vec(inner.clone(), 2..4).prop_map(Expr::Any),
            inner.clone().prop_map(|expr| Expr::Not(Box::new(expr))),
            (place, inner).prop_map(|(place, expr)| Expr::Related(place, Box::new(expr))),
        ]
    })
    .boxed()
}

fn query() -> impl Strategy<Value = Query> {
    let keys =
        vec![Key::Run, Key::Created, Key::Step, Key::Time, Key::Variable, Key::Tag, Key::Value, Key::Volume];
    (
        expr(),
        proptest::option::of(any::<[u8; 16]>().prop_map(Id)),
        proptest::sample::select(vec![None, Some(Pick::First), Some(Pick::Last)]),
        vec((proptest::sample::select(keys), any::<bool>()), 0..3),
        proptest::option::of(any::<u64>()),
    )
        .prop_map(|(expr, transaction, pick, order, limit)| Query {
            expr,
            session: Session::from(transaction),
            pick,
            order,
            limit,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn queries_are_read_back(query in query()) {
        let text = query.to_string();
        let back = parse(&text);
        prop_assert!(back.is_ok(), "{}\n{:?}", text, back);
        prop_assert_eq!(format!("{:?}", back.unwrap()), format!("{query:?}"), "{}", text);
    }

    #[test]
    fn noise_is_no_panic(text in "[a-z=<>!()'\",:. 0-9\\[\\]{}é*/-]{0,60}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.message().ends_with('^'));
        }
    }
}

/// Random mutations of valid queries: each gives an answer, or an error that points at a character.
#[test]
fn mutations_are_no_panic() {
    let seeds = [
        "tag=maximum and variable=temp* and value>9000 and box=z:50:100 limit 5",
        "run in (a, \"b c\", like 'x') or not (step=0/to/24/by/6 and within box(z=0.5..0.7, 0:1:))",
        "with overlapping (tag='b\\u00e9' and value (>3 and <5 or =[1, {\"k\": 0x0aff}])) last order by -value, step",
        "created between 2026-01-01 and 2026-11-21T07:00Z and extent.\"a b\">=2 and param.nx!=5..9 first",
    ];
    let pool: Vec<char> = "abz09 =<>!()[]{}\"'\\:,./*?-_&é\n\t\u{0}\u{fffd}𝄞".chars().collect();
    let mut random = seeded(1);
    let (mut sound, mut refused) = (0, 0);
    for i in 0..50_000 {
        let mut text: Vec<char> = seeds[i % seeds.len()].chars().collect();
        for _ in 0..1 + random.index(4) {
            if text.is_empty() {
                break;
            }
            let at = random.index(text.len());
            match random.index(4) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, pool[random.index(pool.len())]),
                2 => text[at] = pool[random.index(pool.len())],
                _ => text.truncate(at),
            }
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            Ok(query) => {
                sound += 1;
                let again = query.to_string();
                assert_eq!(parse(&again).unwrap().to_string(), again, "{text}");
            }
            Err(error) => {
                refused += 1;
                assert!(error.message().ends_with('^'), "{text}: {error}");
            }
        }
    }
    assert!(sound > 1000 && refused > 1000, "{sound} {refused}");
}
