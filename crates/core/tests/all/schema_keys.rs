//! Keys made by a schema: canonical forms, optional keywords, conditions, and refused pairs.

#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_core::ErrorKind;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{KeywordType, Schema, Typed};

/// A schema with the behaviours that FDB's own tests show.
const FDB: &str =
    "expver: Expver; date: Date; time: Time; step: Step; levelist: Double; param: Param; number: Integer;
[ class, expver, stream, date, time, domain?g
  [ type, levtype
    [ step, levelist?, param, number? ] ] ]";

fn key(schema: &Schema, request: &str) -> Result<String, String> {
    let pairs = Request::parse(request).and_then(|r| r.single_pairs()).map_err(|e| e.to_string())?;
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    schema.resolve(&pairs).map(|k| k.to_string()).map_err(|e| {
        assert_eq!(e.kind(), ErrorKind::Invalid);
        e.to_string()
    })
}

fn base(more: &str) -> String {
    format!("class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,type=fc,levtype=pl,{more}")
}

#[test]
fn builtins_parse_and_know_their_names() {
    for name in ["simulation", "mars", "mixed"] {
        let schema = Schema::builtin(name).unwrap();
        assert_eq!(schema.name(), Some(name));
        // Every log repeats it.
        assert!(schema.text().len() < 1300, "{name} is {} bytes", schema.text().len());
        assert_eq!(Schema::parse(schema.text()).unwrap(), schema);
    }
    assert!(Schema::builtin("other").is_none());
    assert_eq!(Schema::parse("[a[b[c]]]").unwrap().name(), None);
    let roles = Schema::builtin("simulation").unwrap().catalog_roles()[0].clone();
    assert_eq!(roles.run.iter().map(|keyword| &**keyword).collect::<Vec<_>>(), ["run"]);
    assert_eq!(roles.project.as_deref(), Some("project"));
    assert_eq!(roles.step.as_deref(), Some("step"));
    assert_eq!(roles.variable.as_deref(), Some("variable"));
}

#[test]
fn simulation_takes_run_variable_step_and_more() {
    let schema = Schema::builtin("simulation").unwrap();
    let text = key(&schema, "variable=t,run=a,step=06,member=3,level=850.0").unwrap();
    assert_eq!(text, "{run=a}{variable=t}{step=6,level=850,member=3}");
    assert_eq!(key(&schema, "run=a,variable=t").unwrap(), "{run=a}{variable=t}{}");
    assert_eq!(key(&schema, "run=a,variable=t,project=p").unwrap(), "{project=p,run=a}{variable=t}{}");
}

#[test]
fn keys_of_a_kind_share_their_names() {
    let schema = Schema::builtin("simulation").unwrap();
    let make = |step: &str| {
        schema.resolve(&[("run", "a"), ("variable", "t"), ("step", step), ("zz", "1"), ("aa", "2")]).unwrap()
    };
    let (a, b) = (make("1"), make("2"));
    for (a, b) in a.levels.iter().zip(&b.levels) {
        assert!(std::sync::Arc::ptr_eq(&a.names, &b.names));
    }
    let names: Vec<&str> = a.levels[2].names.iter().map(|n| &**n).collect();
    assert_eq!(names, ["step", "aa", "zz"]);
}

#[test]
fn a_full_mars_key_is_printed_level_by_level() {
    let schema = Schema::parse(FDB).unwrap();
    assert_eq!(
        key(&schema, &base("step=0,levelist=500,param=130")).unwrap(),
        "{class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,domain=g}{type=fc,levtype=pl}{step=0,levelist=500,param=130}"
    );
}

#[test]
fn step_units_are_one_value() {
    let schema = Schema::parse("step: Step; [a [b [step]]]").unwrap();
    for (given, kept) in [
        ("1", "1"),
        ("60m", "1"),
        ("30m", "30m"),
        ("30m-60m", "30m-1"),
        ("0-24", "0-24"),
        ("24", "24"),
        ("1h", "1"),
        ("1d", "24"),
        ("90m", "1h30m"),
        ("3600s", "1"),
        ("15s", "15s"),
        ("90s", "1m30s"),
        ("3601s", "1h1s"),
        ("-30s", "-30s"),
        ("0-45s", "0-45s"),
        ("6-6", "6"),
        ("006", "6"),
        ("-6", "-6"),
        ("-30m", "-30m"),
        ("-90m", "-1h30m"),
        ("-1h30m", "-1h30m"),
        ("-6-0", "-6-0"),
        ("-12--6", "-12--6"),
        ("-0", "0"),
    ] {
        assert_eq!(
            key(&schema, &format!("a=1,b=1,step={given}")).unwrap(),
            format!("{{a=1}}{{b=1}}{{step={kept}}}")
        );
    }
    for refused in [
        "1.5s",
        "x",
        "6-0",
        "1-2-3",
        "--6",
        "-6--12",
        "-",
        "1.5",
        "6x",
        "h",
        "99999999999999999999",
        "999999999999999999d",
    ] {
        let error = key(&schema, &format!("a=1,b=1,step={refused}")).unwrap_err();
        assert!(error.contains("step=") && error.contains("is not a step"), "{error}");
    }
}

#[test]
fn time_forms_are_one_value() {
    let schema = Schema::parse("time: Time; [a [b [time]]]").unwrap();
    for (given, kept) in [
        ("12", "1200"),
        ("6", "0600"),
        ("06:21", "0621"),
        ("00:18:00", "0018"),
        ("0", "0000"),
        ("0000", "0000"),
        ("600", "0600"),
        ("120000", "1200"),
    ] {
        assert_eq!(
            key(&schema, &format!("a=1,b=1,time={given}")).unwrap(),
            format!("{{a=1}}{{b=1}}{{time={kept}}}")
        );
    }
    for refused in ["7700", "01:23:45:67", "2400", "0060", "06:21:30", "6:1", "", "x", "-1", "+6", "00600"] {
        assert!(key(&schema, &format!("a=1,b=1,time=\"{refused}\"")).is_err(), "{refused}");
    }
}

#[test]
fn levels_are_exact_decimals() {
    let level = |text: &str| KeywordType::Double.canonical("levelist", text).map(|v| v.text().into_owned());
    for (given, kept) in [
        ("200.0", "200"),
        ("925", "925"),
        ("0.333333", "0.333333"),
        ("500.0", "500"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-0.0", "0"),
        ("+1.50", "1.5"),
        ("1e3", "1000"),
        ("12.5e-3", "0.0125"),
        ("-007", "-7"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
    ] {
        assert_eq!(level(given).unwrap(), kept);
    }
    for refused in
        ["nan", "inf", "1e400", "1e999999999999", "1,5", "0x10", ".", "", "-", "1 ", "1_000", "e5", "١"]
    {
        assert!(level(refused).is_err(), "{refused}");
    }
    assert_ne!(level("0.1").unwrap(), level("0.10000000000000000001").unwrap());
}

#[test]
fn names_and_other_spellings_mean_the_canonical_field() {
    let schema = Schema::parse(FDB).unwrap();
    let canonical = key(&schema, &base("step=0,levelist=500,param=130")).unwrap();
    for spelled in [
        "class=rd,expver=xxxx,stream=oper,date=2025-01-01,time=12,type=fc,levtype=pl,step=0,levelist=500.0,param=t",
        "class=rd,expver=xxxx,stream=oper,date=20250101,time=12:00,type=fc,levtype=pl,step=0m,levelist=500,param=130.128",
    ] {
        assert_eq!(key(&schema, spelled).unwrap(), canonical);
    }
    let expver = |text: &str| KeywordType::Expver.canonical("expver", text).unwrap().text().into_owned();
    assert_eq!(
        [expver("1"), expver("0001"), expver("abcd"), expver("longer")],
        ["0001", "0001", "abcd", "longer"]
    );
    let param = |text: &str| KeywordType::Param.canonical("param", text).unwrap().text().into_owned();
    assert_eq!(param("229.140"), "140229");
    // Tables of other centres are kept as they are.
    assert_eq!([param("11.2"), param("11.20"), param("011.2")], ["11.2", "11.20", "11.2"]);
    let error = KeywordType::Param.canonical("param", "mls").unwrap_err().to_string();
    assert_eq!(
        error,
        "param=\"mls\" is not a parameter of ECMWF's table (hint: the nearest names are mld, msl, msls; any number is valid)"
    );
}

#[test]
fn an_absent_optional_keyword_is_absent_or_its_default() {
    let schema = Schema::parse(FDB).unwrap();
    let pairs = Request::parse(&base("step=0,param=130")).unwrap().single_pairs().unwrap();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let key = schema.resolve(&pairs).unwrap();
    assert_eq!(key.get("domain").unwrap().text(), "g");
    assert!(key.get("number").is_none());
    assert_eq!(key.levels[2].values[3], KeyValue::Absent);
    assert_eq!(&*key.levels[2].names[3], "number");
}

#[test]
fn a_hidden_keyword_is_taken_and_dropped() {
    let schema = Schema::parse("[a, domain- [b [c]]]").unwrap();
    assert_eq!(key(&schema, "a=1,domain=g,b=2,c=3").unwrap(), "{a=1}{b=2}{c=3}");
    assert_eq!(key(&schema, "a=1,b=2,c=3").unwrap(), "{a=1}{b=2}{c=3}");
    let schema = Schema::parse("[a, domain-x [b [c]]]").unwrap();
    assert_eq!(key(&schema, "a=1,domain=g,b=2,c=3").unwrap(), "{a=1,domain=x}{b=2}{c=3}");
}

#[test]
fn parts_of_dates_and_short_forms() {
    let canonical = |kind: KeywordType, text: &str| kind.canonical("k", text).unwrap().text().into_owned();
    assert_eq!(canonical(KeywordType::First3, "ecmf"), "ecm");
    assert_eq!(canonical(KeywordType::YearMonth, "20021201"), "200212");
    assert_eq!(canonical(KeywordType::ClimateDaily, "20210427"), "0427");
    assert_eq!(canonical(KeywordType::ClimateDaily, "0229"), "0229");
    assert_eq!(canonical(KeywordType::ClimateMonthly, "20210427"), "4");
    assert_eq!(canonical(KeywordType::ClimateMonthly, "nov"), "11");
    assert_eq!(canonical(KeywordType::MonthOfDate, "20210427"), "04");
    assert_eq!(canonical(KeywordType::Year, "2021-04-27"), "2021");
    assert_eq!(canonical(KeywordType::Grid, "0.25/0.25"), "0.25+0.25");
    assert!(KeywordType::ClimateDaily.canonical("k", "0230").is_err());
    assert!(KeywordType::Month.canonical("k", "13").is_err());
    assert!(KeywordType::YearMonth.canonical("k", "202213").is_err());
}

#[test]
fn a_date_of_three_levels_is_listed_as_year_month_date() {
    for text in [
        "[ a, date: Year [ date: Month [ date: Date, b ]]]",
        "year: Year; month: Month; date: Date; [ a, year [ month [ date, b ]]]",
    ] {
        let schema = Schema::parse(text).unwrap();
        let first = key(&schema, "a=1,b=2,date=20250101").unwrap();
        assert_eq!(first, "{a=1,year=2025}{month=1}{date=20250101,b=2}");
        assert_eq!(key(&schema, &first).unwrap(), first);
        assert_eq!(
            key(&schema, "a=1,b=2,date=20250215").unwrap(),
            "{a=1,year=2025}{month=2}{date=20250215,b=2}"
        );
        let error = key(&schema, "a=1,b=2,date=20250215,year=2024").unwrap_err();
        assert_eq!(error, "year=2024 contradicts date=20250215");
    }
}

#[test]
fn dates_are_days_of_the_calendar() {
    let date = |text: &str| KeywordType::Date.canonical("date", text);
    assert_eq!(date("2024-02-29").unwrap().text(), "20240229");
    assert_eq!(date("20000229").unwrap().text(), "20000229");
    for refused in [
        "20230229",
        "19000229",
        "20251301",
        "20250100",
        "2025-1-1",
        "2025",
        "00000101",
        "nonsense",
        "2025:01:01",
        "2025-01-0é",
    ] {
        let error = date(refused).unwrap_err();
        let expected = "is not a date: YYYYMMDD or YYYY-MM-DD, or jan-15 or jan in a climatology";
        assert_eq!(error.message(), format!("date={refused:?} {expected}"));
    }
    for (given, kept) in [
        ("jan-15", "0115"),
        ("0115", "0115"),
        ("February-29", "0229"),
        ("jan", "0100"),
        ("0100", "0100"),
        ("dec-1", "1201"),
        ("00010115", "00010115"),
    ] {
        assert_eq!(date(given).unwrap().text(), kept);
    }
    for refused in ["jan-32", "feb-30", "1-15", "01-15", "1315", "0132", "115", "10115", "jan-0", "01"] {
        assert!(date(refused).is_err(), "{refused}");
    }
    for relative in ["0", "-1", "-30"] {
        assert!(date(relative).unwrap_err().hint().unwrap().contains("relative"), "{relative}");
    }
}

#[test]
fn typed_values_are_numbers_and_days() {
    let typed = |kind: KeywordType, text: &str| kind.typed(&kind.canonical("k", text).unwrap());
    assert_eq!(typed(KeywordType::Integer, "7"), Typed::Int(7));
    assert_eq!(typed(KeywordType::Double, "0.5"), Typed::Float(0.5));
    assert_eq!(typed(KeywordType::Date, "20240229"), Typed::Date { y: 2024, m: 2, d: 29 });
    assert_eq!(typed(KeywordType::Step, "6"), Typed::Int(6));
    assert_eq!(typed(KeywordType::Step, "30m"), Typed::Float(0.5));
    assert_eq!(typed(KeywordType::Step, "90s"), Typed::Float(0.025));
    assert_eq!(typed(KeywordType::Step, "0-24"), Typed::Text("0-24".into()));
    assert_eq!(typed(KeywordType::Text, "7"), Typed::Text("7".into()));
    assert_eq!(KeywordType::Integer.typed(&KeyValue::Absent), Typed::Absent);
}

#[test]
fn a_missing_keyword_is_named() {
    let schema = Schema::parse(FDB).unwrap();
    assert!(key(&schema, &base("levelist=500,param=130")).unwrap_err().starts_with("the key lacks `step`"));
    let error = key(&schema, &base("stpe=0,levelist=500,param=130")).unwrap_err();
    assert_eq!(
        error,
        "the key lacks `step` and the schema has no keyword `stpe` (hint: instead of `stpe`, did you mean `step`?)"
    );
    let simulation = Schema::builtin("simulation").unwrap();
    let error = key(&simulation, "run=a,variabel=t,step=1").unwrap_err();
    assert_eq!(error, "the key lacks `variable` (hint: instead of `variabel`, did you mean `variable`?)");
}

#[test]
fn a_surplus_keyword_is_named_with_its_neighbours() {
    let schema = Schema::parse(FDB).unwrap();
    let error = key(&schema, &base("step=0,levelist=500,param=130,levelst=3")).unwrap_err();
    assert!(
        error.starts_with("the schema has no keyword `levelst` (hint: did you mean `levelist`"),
        "{error}"
    );
}

#[test]
fn a_list_is_no_value_of_a_key() {
    let schema = Schema::parse(FDB).unwrap();
    for (list, what) in [("0/1", "a list"), ("0/to/6", "a range"), ("*", "`*`")] {
        let error = key(&schema, &base(&format!("step={list},param=130"))).unwrap_err();
        assert!(error.starts_with(&format!("step has {what}, but a key needs one value")), "{error}");
    }
}

#[test]
fn conditions_choose_the_rule_and_name_what_they_take() {
    let schema = Schema::parse("[class=od/rd, x [b [c]]]\n[class=ea, x [b [d]]]").unwrap();
    assert_eq!(key(&schema, "class=ea,x=1,b=2,d=3").unwrap(), "{class=ea,x=1}{b=2}{d=3}");
    assert_eq!(key(&schema, "class=od,x=1,b=2,c=3").unwrap(), "{class=od,x=1}{b=2}{c=3}");
    let error = key(&schema, "class=notaclass,x=1,b=2,c=3").unwrap_err();
    assert_eq!(error, "class=\"notaclass\" is not allowed: the schema accepts only od, rd, ea");
}

#[test]
fn one_excluded_value_is_excluded() {
    let schema = Schema::parse("[stream=!wave [b [c]]]").unwrap();
    assert!(key(&schema, "stream=oper,b=1,c=1").is_ok());
    assert!(key(&schema, "stream=wave,b=1,c=1").unwrap_err().contains("any value but wave"));
    for text in ["n=!1/!2", "n=!1/2"] {
        let schema = Schema::parse(&format!("n: Integer; [{text} [b [c]]]")).unwrap();
        assert!(key(&schema, "n=2,b=1,c=1").is_err() && key(&schema, "n=3,b=1,c=1").is_ok(), "{text}");
    }
    let schema = Schema::parse("n: Integer; [n=!1/!2 [b [c]]]").unwrap();
    assert!(key(&schema, "n=3,b=1,c=1").is_ok());
    assert!(key(&schema, "n=02,b=1,c=1").is_err());
}

#[test]
fn the_first_rule_that_takes_the_whole_key_makes_it() {
    let schema = Schema::parse("[a [b [c]] [b, d [e]]]\n[a, c, f [b [g?]]]").unwrap();
    assert_eq!(key(&schema, "a=1,b=2,c=3").unwrap(), "{a=1}{b=2}{c=3}");
    assert_eq!(key(&schema, "a=1,b=2,d=3,e=4").unwrap(), "{a=1}{b=2,d=3}{e=4}");
    assert_eq!(key(&schema, "a=1,b=2,c=3,f=4").unwrap(), "{a=1,c=3,f=4}{b=2}{}");
}

#[test]
fn values_are_kept_whole_or_refused() {
    let schema = Schema::builtin("simulation").unwrap();
    let long = "x".repeat(100_000);
    for value in [
        "a:b",
        "/",
        "a,b=c",
        "{}",
        "\"",
        "\\",
        "*",
        " ",
        "\n\u{0}\u{7f}",
        "日本語",
        "to",
        "33 bytes and more than thirty-two",
        &long,
    ] {
        let made = schema.resolve(&[("run", value), ("variable", "t")]).unwrap();
        assert_eq!(made.get("run").unwrap().text(), value);
        assert_eq!(key(&schema, &made.to_string()).unwrap(), made.to_string());
    }
    let error = schema.resolve(&[("run", ""), ("variable", "t")]).unwrap_err();
    assert_eq!(error.message(), "run has an empty value");
    assert!(error.hint().unwrap().contains("None"));
}

#[test]
fn a_further_keyword_must_read_back() {
    let schema = Schema::builtin("simulation").unwrap();
    for keyword in ["", "a b", "a=b", "a,b", "{", "\"", "a/b", &"k".repeat(256)] {
        let made = schema.resolve(&[("run", "a"), ("variable", "t"), (keyword, "1")]);
        assert!(made.unwrap_err().message().contains("cannot be a keyword"), "{keyword}");
    }
    assert!(schema.resolve(&[("run", "a"), ("variable", "t"), ("hybrid_level-1.x", "1")]).is_ok());
}

#[test]
fn a_keyword_given_twice_is_refused() {
    let schema = Schema::builtin("simulation").unwrap();
    for twice in ["run", "extra"] {
        let error =
            schema.resolve(&[("run", "a"), ("variable", "t"), ("extra", "1"), (twice, "b")]).unwrap_err();
        assert_eq!(error.message(), format!("keyword `{twice}` is given twice"));
    }
    let many: Vec<String> = (0..70_000).map(|i| format!("k{i}")).collect();
    let pairs: Vec<(&str, &str)> = many.iter().map(|k| (k.as_str(), "1")).collect();
    assert!(schema.resolve(&pairs).is_err());
}

#[test]
fn every_common_mars_message_has_a_key() {
    let schema = Schema::builtin("mars").unwrap();
    for message in [
        "class=od,expver=1,stream=oper,date=20250101,time=0,domain=g,type=fc,levtype=pl,step=6,levelist=500,param=130.128",
        "class=od,expver=1,stream=enfo,date=20250101,time=0,type=pf,levtype=sfc,step=0-24,param=228,number=50",
        "class=ea,expver=1,stream=moda,date=20250101,type=an,levtype=sfc,param=167.128",
        "class=od,expver=1,stream=wave,date=20250101,time=12,type=fc,levtype=sfc,step=6,param=229.140",
        "class=od,expver=1,stream=wave,date=20250101,time=12,type=fc,levtype=sfc,step=6,param=251.140,direction=1,frequency=2",
        "class=od,expver=1,stream=msmm,date=20250101,time=0,type=em,levtype=sfc,fcmonth=1,param=167,method=1,system=5,origin=ecmf",
        "class=od,expver=1,stream=enfh,date=20250101,time=0,type=cf,levtype=sfc,step=0,param=167,hdate=20050101",
        "class=od,expver=1,stream=efhs,date=20250101,time=0,type=cd,levtype=sfc,step=0-168,param=228,quantile=1:10",
    ] {
        let text = key(&schema, message).unwrap_or_else(|e| panic!("{message}: {e}"));
        assert_eq!(key(&schema, &text).unwrap(), text);
    }
    assert_eq!(
        key(&schema, "centre=kwbc,date=20250101,time=6,levtype=pl,levelist=85000,step=3,param=11.2").unwrap(),
        "{centre=kwbc,date=20250101,time=0600}{levtype=pl}{step=3,levelist=85000,param=11.2}"
    );
    let lacking =
        key(&schema, "expver=1,stream=oper,date=20250101,time=0,type=fc,levtype=sfc,step=0,param=228");
    assert!(lacking.unwrap_err().starts_with("the key lacks `class`"));
}
