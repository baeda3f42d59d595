//! MARS's words: enumerations, parameters, relative dates, capitals, `target`, and the behaviours that FDB's own
//! tests show (numbers as in the comparison with FDB).

#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{KeywordType, Schema};

/// The schema of FDB's own tests.
const FDB: &str =
    "expver: Expver; date: Date; time: Time; step: Step; levelist: Double; param: Param; number: Integer;
[ class, expver, stream, date, time, domain?g
  [ type, levtype
    [ step, levelist?, param, number? ] ] ]";

const BASE: &str = "class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,domain=g,type=fc,levtype=pl,step=0,levelist=500,param=130";

const LISTING_1: &str = r#"retrieve ,
class = od ,
type = pf ,
stream = enfo ,
expver = 0001 ,
levelist = 1/ to /90 ,
param = t/u/v ,
date = 20190109 ,
time = 1200 ,
step = 1/ to /240/ by /3 ,
number = 13 ,
target = "output.grib""#;

fn mars() -> Schema {
    Schema::builtin("mars").unwrap()
}

/// Noon of 2 January 2025.
const NOW: i64 = 1_735_819_200_000_000_000;

/// The texts of a keyword's values, as a request selects them.
fn values(schema: &Schema, request: &str, keyword: &str) -> String {
    let selection = schema.select_at(&Request::parse(request).unwrap(), NOW).unwrap();
    let found = selection.listed().into_iter().find(|(k, _)| **k == *keyword);
    found.map_or_else(|| "*".to_owned(), |(_, values)| values.join(" "))
}

fn refused(schema: &Schema, request: &str) -> String {
    schema.select_at(&Request::parse(request).unwrap(), NOW).unwrap_err().to_string()
}

fn resolve(schema: &Schema, text: &str) -> fieldstone_core::Result<FieldKey> {
    let pairs = Request::parse(text)?.single_pairs()?;
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    schema.resolve(&pairs)
}

/// Whether a request selects the key that `text` archives.
fn selects(schema: &Schema, request: &str, text: &str) -> bool {
    let key = resolve(schema, text).unwrap();
    let selection = schema.select_at(&Request::parse(request).unwrap(), NOW).unwrap();
    let names = [&key.levels[0].names, &key.levels[1].names, &key.levels[2].names];
    let Some(matcher) = selection.for_shape(names) else { return false };
    (0..3).all(|level| matcher.matches_level(level, &key.levels[level].values))
}

/// `BASE` with other values of some keywords.
fn base(changes: &[(&str, &str)]) -> String {
    let mut request = Request::parse(BASE).unwrap();
    for (keyword, value) in changes {
        request.set(*keyword, fieldstone_core::request::Values::list([*value]));
    }
    request.to_string()
}

#[test]
fn b11_steps_in_hours_minutes_and_spans() {
    let schema = Schema::parse(FDB).unwrap();
    for (given, kept) in
        [("1", "1"), ("60m", "1"), ("30m", "30m"), ("30m-60m", "30m-1"), ("0-24", "0-24"), ("24", "24")]
    {
        let key = resolve(&schema, &base(&[("step", given)])).unwrap();
        assert_eq!(key.get("step").unwrap().text(), kept);
    }
    assert!(selects(&schema, "step=60m", &base(&[("step", "1")])));
    assert!(!selects(&schema, "step=24", &base(&[("step", "0-24")])));
    assert_eq!(values(&schema, "step=0/to/2/by/30m", "step"), "0 30m 1 1h30m 2");
}

#[test]
fn b12_times_of_day() {
    let schema = Schema::parse(FDB).unwrap();
    for (given, kept) in
        [("12", "1200"), ("6", "0600"), ("06:21", "0621"), ("00:18:00", "0018"), ("0", "0000")]
    {
        assert_eq!(values(&schema, &format!("time={given}"), "time"), kept);
    }
    for wrong in ["7700", "01:23:45:67"] {
        assert!(refused(&schema, &format!("time={wrong}")).contains("is not a time of day"), "{wrong}");
        assert!(resolve(&schema, &base(&[("time", wrong)])).is_err());
    }
}

#[test]
fn b13_levels_are_decimals() {
    let schema = Schema::parse(FDB).unwrap();
    for (given, kept) in [("200.0", "200"), ("925", "925"), ("0.333333", "0.333333")] {
        let key = resolve(&schema, &base(&[("levelist", given)])).unwrap();
        assert_eq!(key.get("levelist").unwrap().text(), kept);
    }
    assert!(selects(&schema, "levelist=500.0", BASE));
}

#[test]
fn b14_other_spellings_find_the_canonical_field() {
    let schema = Schema::parse(FDB).unwrap();
    for request in [
        "param=t",
        "param=130.128",
        "param=Temperature",
        "time=12",
        "date=2025-01-01",
        "date=-1",
        "date=2025-001",
    ] {
        assert!(selects(&schema, request, BASE), "{request}");
    }
    assert!(selects(&schema, "expver=1", &base(&[("expver", "0001")])));
    assert!(!selects(&schema, "date=0", BASE));
}

#[test]
fn b15_an_optional_keyword_may_be_left_out() {
    let schema = Schema::parse(FDB).unwrap();
    let without = BASE.replace("domain=g,", "");
    assert!(selects(&schema, &without, BASE) && selects(&schema, BASE, &without));
    let key = resolve(&schema, &without).unwrap();
    assert_eq!(key.get("domain").unwrap().text(), "g");
    assert!(key.get("number").is_none());
}

#[test]
fn b16_a_removed_keyword_is_empty() {
    let schema = Schema::parse(&FDB.replace("domain?g", "domain-")).unwrap();
    let key = resolve(&schema, BASE).unwrap();
    assert!(key.get("domain").is_none());
    assert!(selects(&schema, "domain=g", BASE));
}

#[test]
fn b17_short_forms_of_text_and_dates() {
    let text = |kind: KeywordType, text: &str| kind.canonical("k", text).unwrap().text().into_owned();
    assert_eq!(text(KeywordType::First3, "ecmf"), "ecm");
    assert_eq!(text(KeywordType::YearMonth, "20021201"), "200212");
    assert_eq!(text(KeywordType::ClimateDaily, "20210427"), "0427");
    assert_eq!(text(KeywordType::ClimateDaily, "apr-27"), "0427");
    assert_eq!(text(KeywordType::ClimateDaily, "4-7"), "0407");
    assert_eq!(text(KeywordType::ClimateMonthly, "20210427"), "4");
    assert!(KeywordType::ClimateDaily.canonical("k", "feb-30").is_err());
    let month = Schema::parse("[ a [ b [ month: Month ]]]").unwrap();
    assert_eq!(values(&month, "month=nov/12", "month"), "11 12");
}

#[test]
fn b18_a_date_of_three_levels_is_found_by_both_dates() {
    let schema = Schema::parse(
        "time: Time; [ class, date: Year [ date: Month, type [ date: Date, time, step: Step ]]]",
    )
    .unwrap();
    let key = |date: &str| format!("class=rd,date={date},type=fc,time=12,step=0");
    let [january, february] = [key("20250101"), key("20250215")];
    assert_eq!(
        resolve(&schema, &january).unwrap().to_string(),
        "{class=rd,year=2025}{month=1,type=fc}{date=20250101,time=1200,step=0}"
    );
    assert_eq!(
        resolve(&schema, &february).unwrap().to_string(),
        "{class=rd,year=2025}{month=2,type=fc}{date=20250215,time=1200,step=0}"
    );
    let both = "class=rd,date=20250101/20250215,type=fc,time=12,step=0";
    assert!(selects(&schema, both, &january) && selects(&schema, both, &february));
    assert!(!selects(&schema, both, &key("20250116")));
    let selection = schema.select(&Request::parse(both).unwrap()).unwrap();
    let keys: Vec<String> = selection.keys().unwrap().map(|k| k.to_string()).collect();
    assert_eq!(keys, [&january, &february].map(|text| resolve(&schema, text).unwrap().to_string()));
    assert!(selects(&schema, "year=2025,month=2", &february) && !selects(&schema, "month=2", &january));
    assert!(selects(&schema, "date=-1/0", &key("20250102")));
}

#[test]
fn b19_what_no_schema_knows_is_refused() {
    let schema = mars();
    let error = refused(&schema, "class=notaclass");
    assert!(
        error.starts_with("class=\"notaclass\" is not a MARS word for it (hint: the words are "),
        "{error}"
    );
    assert!([" od,", " rd,", " ea,"].iter().all(|word| error.contains(word)), "{error}");
    let error = refused(&schema, "levtype=plx");
    assert!(
        error.contains("al, cat, dp, fl, hhl, hl, hpl, layer, ml, o2d, o3d, pl, pt, pv, sfc, sol, wv"),
        "{error}"
    );
    let error = resolve(&schema, &base(&[("stream", "openr")])).unwrap_err();
    assert!(error.hint().unwrap().starts_with("did you mean `oper`? the words are "), "{error}");
    let closed = Schema::parse(FDB).unwrap();
    let error = refused(&closed, "levlist=500");
    assert_eq!(error, "the schema has no keyword `levlist` (hint: did you mean `levelist`?)");
    let error = Schema::parse("[a\n [b\n  [c\n   [d]]]]").unwrap_err().to_string();
    assert!(
        error.starts_with("schema line 4, column 4: a rule has three levels, but this is a fourth"),
        "{error}"
    );
    let error = Schema::parse("# two\n[a\n [b]]").unwrap_err().to_string();
    assert!(
        error.starts_with("schema line 3, column 2: a rule has three levels, but this one ends"),
        "{error}"
    );
}

#[test]
fn listing_1_of_the_fdb_paper_names_its_fields() {
    for text in [LISTING_1.to_owned(), LISTING_1.to_uppercase().replace("OUTPUT.GRIB", "output.grib")] {
        let request = Request::parse(&text).unwrap();
        assert_eq!(request.target(), Some("output.grib"));
        let selection = mars().select(&request).unwrap();
        assert_eq!(selection.count_listed(), Some(21_600));
        let mut keys = selection.keys().unwrap();
        assert_eq!(keys.count_keys(), 21_600);
        assert_eq!(
            keys.next().unwrap().to_string(),
            "{class=od,expver=0001,stream=enfo,date=20190109,time=1200,domain=g}{type=pf}{step=1,levelist=1,param=130,number=13}"
        );
        assert_eq!(keys.count(), 21_599);
    }
}

#[test]
fn a_request_that_names_no_keys_says_what_it_lacks() {
    let error = |schema: &Schema, request: &str| {
        schema.select(&Request::parse(request).unwrap()).unwrap().expand().unwrap_err().to_string()
    };
    let closed = Schema::parse(FDB).unwrap();
    let said =
        error(&closed, "class=od,expver=1,stream=oper,date=20250101,levtype=pl,step=0,domain=*,param=t");
    assert!(
        said.starts_with("the request leaves time, domain, type open, so it does not name keys completely"),
        "{said}"
    );
    let parts = Schema::parse("[ a, date: Year [ date: Month [ date: Date, b ]]]").unwrap();
    assert!(error(&parts, "a=1").contains("leaves date, b open"));
}

#[test]
fn words_have_other_names_and_no_case() {
    let schema = mars();
    for (given, kept) in [
        ("type=forecast", "fc"),
        ("TYPE=FC", "fc"),
        ("type=Perturbed Forecast", "pf"),
        ("levtype=pressure levels", "pl"),
        ("levtype=surface", "sfc"),
        ("class=era5", "ea"),
        ("class=no", "no"),
        ("stream=climate", "clte"),
        ("domain=europe", "e"),
        ("stream=1043", "1043"),
        ("levtype=unknown", "unknown"),
    ] {
        let keyword = given.split('=').next().unwrap().to_lowercase();
        assert_eq!(values(&schema, given, &keyword), kept, "{given}");
    }
    // A schema that leaves them without a type accepts any text, and knows the words.
    let untyped = Schema::parse(FDB).unwrap();
    assert_eq!(values(&untyped, "class=notaclass/RD/Operations", "class"), "notaclass rd od");
    assert!(selects(&untyped, "type=forecast", &base(&[("type", "FC")])));
    assert_eq!(values(&Schema::parse("[ class [ b [ c ]]]").unwrap(), "class=RD", "class"), "RD");
    let own = Schema::parse("[ model: Model [ b [ c ]]]").unwrap();
    assert_eq!(values(&own, "model=glob", "model"), "global");
}

#[test]
fn parameters_are_ecmwfs() {
    let number = |text: &str| values(&Schema::parse(FDB).unwrap(), &format!("param={text}"), "param");
    for (given, kept) in [
        ("t", "130"),
        ("T", "130"),
        ("130", "130"),
        ("130.128", "130"),
        ("t/u/v", "130 131 132"),
        ("2t", "167"),
        ("10u", "165"),
        ("geopotential", "129"),
        ("2 metre temperature", "167"),
        ("tp", "228"),
        ("229.140", "140229"),
        ("999999", "999999"),
        ("11.2", "11.2"),
    ] {
        assert_eq!(number(given), kept, "{given}");
    }
    assert!(refused(&Schema::parse(FDB).unwrap(), "param=tempr").contains("is not a parameter"));
    assert!(resolve(&Schema::parse(FDB).unwrap(), &base(&[("param", "1.2.3")])).is_err());
}

#[test]
fn a_parameters_name_means_what_its_context_says() {
    for schema in [mars(), Schema::parse(FDB).unwrap()] {
        let wave = "class=od,stream=wave,type=an,levtype=sfc,param=swh";
        assert_eq!(values(&schema, wave, "param"), "140229");
        assert_eq!(values(&schema, &wave.to_uppercase().replace("SWH", "swh"), "param"), "140229");
        assert_eq!(values(&schema, "levtype=o2d,param=tos", "param"), "262101");
        assert_eq!(values(&schema, "param=tos/130", "param"), "151189 130");
        assert_eq!(values(&schema, "levtype=o2d,param=151189", "param"), "151189");
        let key = format!("{wave},expver=1,date=20250101,time=0,step=0");
        assert_eq!(resolve(&schema, &key).unwrap().get("param").unwrap().text(), "140229");
        assert!(selects(&schema, wave, &key) && selects(&schema, "param=140229", &key));
    }
}

#[test]
fn dates_are_relative_to_the_clock_in_requests_only() {
    let schema = mars();
    assert_eq!(values(&schema, "date=0", "date"), "20250102");
    assert_eq!(values(&schema, "date=-1/-2", "date"), "20250101 20241231");
    assert_eq!(values(&schema, "date=-3/to/0", "date"), "20241230 20241231 20250101 20250102");
    assert_eq!(values(&schema, "date=0/to/-4/by/2", "date"), "20250102 20241231 20241229");
    assert_eq!(values(&schema, "date=20241231/to/-1", "date"), "20241231 20250101");
    assert_eq!(values(&Schema::parse("[a [b [d: YearMonth]]]").unwrap(), "d=-2", "d"), "202412");
    assert_eq!(values(&Schema::parse("[a [b [n: Integer]]]").unwrap(), "n=-1/0", "n"), "-1 0");
    assert!(refused(&schema, "date=-999999999").contains("outside the years"));
    let error = schema.select(&Request::parse("date=-1").unwrap()).unwrap_err().to_string();
    assert!(error.contains("relative to today, but this call does not know the date"), "{error}");
    let error = resolve(&schema, &base(&[("date", "-1")])).unwrap_err().to_string();
    assert!(error.contains("requests accept days relative to today; a key needs the day itself"), "{error}");
    // Two digits after a year mean a month to many people, but the day of the year to MARS.
    assert!(refused(&schema, "date=2025-02").contains("is not a date"));
    assert_eq!(values(&schema, "date=2024-366", "date"), "20241231");
    assert!(refused(&schema, "date=2025-366").contains("is not a date"));
}

#[test]
fn capitals_and_other_names_are_the_schemas_keywords() {
    let closed = Schema::parse(FDB).unwrap();
    assert!(selects(&closed, "CLASS=rd,LEVELIST=500", BASE));
    assert!(selects(&closed, "level=500,levtyp=pl,parameter=t", BASE));
    let key = resolve(&closed, &BASE.replace("levelist", "LEVEL").replace("class", "CLASS")).unwrap();
    assert_eq!(key, resolve(&closed, BASE).unwrap());
    assert!(refused(&closed, "CLASS=rd,class=od").contains("`class` is given twice"));
    let twice = &Request::parse_many("CLASS=rd,class=od").unwrap()[0];
    assert!(closed.select_at(twice, NOW).unwrap_err().to_string().contains("`class` is given twice"));
    for schema in [&closed, &mars()] {
        let some = BASE.replace("class", "Class").replace("levelist", "LevelIst").replace("date", "dATE");
        assert_eq!(resolve(schema, &some).unwrap(), resolve(schema, BASE).unwrap());
        assert!(selects(schema, "Class=rd,dATE=*", BASE) && !selects(schema, "Class=od", BASE));
        assert!(refused(schema, "Class=rd,class=od").contains("`class` is given twice"));
    }
    // If further keywords are accepted, they mean themselves.
    let key = resolve(&mars(), &format!("{BASE},level=2")).unwrap();
    assert_eq!((&*key.get("level").unwrap().text(), &*key.get("levelist").unwrap().text()), ("2", "500"));
    let key = resolve(&Schema::builtin("simulation").unwrap(), "run=a,variable=t,X=1,x=2").unwrap();
    assert_eq!(key.to_string(), "{run=a}{variable=t}{X=1,x=2}");
}

#[test]
fn all_and_off_are_words_of_the_language() {
    let schema = mars();
    assert_eq!(values(&schema, "step=all,param=ALL", "step"), "*");
    assert!(selects(&schema, "levelist=off,step=all", BASE));
    let text = Schema::builtin("simulation").unwrap();
    assert_eq!(values(&text, "run=all", "run"), "all");
}

#[test]
fn a_target_selects_nothing_and_is_no_part_of_a_key() {
    for schema in [mars(), Schema::parse(FDB).unwrap()] {
        assert!(selects(&schema, &format!("{BASE},target=\"x.grib\""), BASE));
        let error = resolve(&schema, &format!("{BASE},TARGET=x")).unwrap_err().to_string();
        assert!(error.contains("`target` names the file for an answer"), "{error}");
    }
    let own = Schema::parse("[ target [ b [ c ]]]").unwrap();
    assert!(selects(&own, "target=x", "target=x,b=1,c=1") && !selects(&own, "target=y", "target=x,b=1,c=1"));
}
