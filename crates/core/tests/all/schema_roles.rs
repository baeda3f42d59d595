//! The run, variable and step of a key, and the key of a run's name.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::ErrorKind;
use fieldstone_core::key::FieldKey;
use fieldstone_core::schema::{Schema, step_number};
use proptest::prelude::*;

fn key(schema: &Schema, text: &str) -> FieldKey {
    let pairs: Vec<(&str, &str)> = text.split(',').map(|pair| pair.split_once('=').unwrap()).collect();
    schema.resolve(&pairs).unwrap()
}

fn run(schema: &Schema, text: &str) -> (String, String) {
    schema.run_of(&key(schema, text)).unwrap()
}

fn back(schema: &Schema, project: &str, name: &str) -> String {
    let pairs = schema.pairs_of(project, name).unwrap();
    pairs.iter().map(|(keyword, value)| format!("{keyword}={value}")).collect::<Vec<_>>().join(",")
}

fn refused(schema: &Schema, project: &str, name: &str) -> String {
    let error = schema.pairs_of(project, name).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

#[test]
fn a_run_of_one_keyword_is_called_by_its_value_as_it_is() {
    let schema = Schema::builtin("simulation").unwrap();
    assert_eq!(run(&schema, "run=a/b%2F,variable=t,step=6"), (String::new(), "a/b%2F".into()));
    assert_eq!(run(&schema, "project=p,run=a,variable=t"), ("p".into(), "a".into()));
    assert_eq!(back(&schema, "p", "a/b%2F"), "project=p,run=a/b%2F");
    assert_eq!(back(&schema, "", "a"), "run=a");
    let of = key(&schema, "run=a,variable=t,step=-6");
    assert_eq!((schema.variable_of(&of).as_deref(), schema.step_of(&of)), (Some("t"), Some(-6)));
    assert_eq!(schema.step_of(&key(&schema, "run=a,variable=t")), None);
}

#[test]
fn a_forecast_is_a_run_of_several_keywords() {
    let schema = Schema::builtin("mars").unwrap();
    let forecast =
        "class=od,expver=1,stream=oper,date=20240229,time=12,domain=g,type=fc,levtype=sfc,param=167";
    assert_eq!(run(&schema, forecast).1, "od/0001/oper/20240229/1200");
    assert_eq!(
        back(&schema, "", "od/0001/oper/20240229/1200"),
        "class=od,expver=0001,stream=oper,date=20240229,time=1200"
    );
    // An absent keyword leaves its place empty, so that no two runs share a name.
    let without =
        |gone: &str| forecast.split(',').filter(|p| !p.starts_with(gone)).collect::<Vec<_>>().join(",");
    assert_eq!(run(&schema, &without("date")).1, "od/0001/oper//1200");
    assert_eq!(back(&schema, "", "od/0001/oper//1200"), "class=od,expver=0001,stream=oper,time=1200");
    assert_eq!(run(&schema, &without("time")).1, "od/0001/oper/20240229/");
    assert_eq!(back(&schema, "", "od/0001/oper//"), "class=od,expver=0001,stream=oper");
    let other = "centre=kwbc,date=20240229,time=0,levtype=sfc,param=167,step=0-24";
    assert_eq!(run(&schema, other).1, "kwbc/20240229/0000");
    assert_eq!(back(&schema, "", "kwbc/20240229/0000"), "centre=kwbc,date=20240229,time=0000");
    let number = schema.step_of(&key(&schema, other)).unwrap();
    assert_eq!((step_number::text(number).as_str(), step_number::whole(number)), ("0-24", None));
    // A keyword of a run that is elsewhere in the key is not part of the name.
    assert_eq!(run(&schema, &format!("{forecast},centre=98")).1, "od/0001/oper/20240229/1200");
    for wrong in
        ["od", "od/1/oper/20240229/1200", "od/0001/oper/yesterday/1200", "/0001/oper//", "a/b/c/d", ""]
    {
        let message = refused(&schema, "", wrong);
        assert!(message.contains("class/expver/stream/date/time or centre/date/time"), "{message}");
    }
    assert!(refused(&schema, "p", "od/0001/oper//").contains("no projects"));
}

#[test]
fn a_key_that_lacks_the_date_of_its_run_is_noticed() {
    let schema = Schema::builtin("mars").unwrap();
    let undated = |pairs: &[(&str, &str)]| schema.undated(pairs).map(|keyword| keyword.to_string());
    let key = [("class", "od"), ("expver", "1"), ("stream", "oper"), ("type", "an"), ("param", "167")];
    assert_eq!(undated(&key).as_deref(), Some("date"));
    assert_eq!(undated(&[("centre", "kwbc"), ("param", "167")]).as_deref(), Some("date"));
    for more in [("date", "20260101"), ("DATE", "jan"), ("date_text", "115")] {
        assert_eq!(undated(&[&key[..], &[more]].concat()), None, "{more:?}");
    }
    let arrays = [("run", "a"), ("variable", "t")];
    assert_eq!(Schema::builtin("mixed").unwrap().undated(&arrays), None);
    assert_eq!(Schema::builtin("simulation").unwrap().undated(&arrays), None);
}

#[test]
fn schemas_without_roles_and_wrong_roles_say_so() {
    let schema = Schema::parse("[a[b[c]]]").unwrap();
    let of = key(&schema, "a=1,b=2,c=3");
    assert_eq!((schema.run_of(&of), schema.variable_of(&of), schema.step_of(&of)), (None, None, None));
    assert!(refused(&schema, "", "1").contains("catalog run = KEYWORD"));
    for (text, why) in [
        ("catalog run = a/b; [a[b[c]]]", "no rule has `b` in its first level"),
        ("catalog run = a/a; [a,b[c[d]]]", "`a` is named twice"),
        ("catalog run = a; run = b; [a[b[c]]]", "the role `run` is given twice"),
        ("catalog step = a/b; [a[b[c]]]", "expected `;`"),
        ("catalog job = a; [a[b[c]]]", "`job` is not a role of the catalog"),
        ("catalog run = a/z; [a[b[c]]]", "no rule has `z`"),
    ] {
        let error = Schema::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn the_level_of_a_run_is_that_of_its_fields() {
    let simulation = Schema::builtin("simulation").unwrap();
    let mars = Schema::builtin("mars").unwrap();
    let oper = "class=od,expver=1,stream=oper,date=20240229,time=12,type=fc,levtype=pl,step=6,param=130";
    for (schema, text) in [
        (&simulation, "run=a,variable=t,step=6"),
        (&simulation, "project=p,run=a,variable=t"),
        (&mars, oper),
        (&mars, "centre=edzw,date=20240229,time=12,param=130"),
        (
            &Schema::parse("catalog run = r; variable = v; [ k=x, r [ v [ s ]]] [ r, m? [ v [ s ]]]")
                .unwrap(),
            "r=1,v=2,s=3",
        ),
    ] {
        let key = key(schema, text);
        let (project, name) = schema.run_of(&key).unwrap();
        let level = schema.run_level(&project, &name);
        assert_eq!((&level.names, &level.values), (&key.levels[0].names, &key.levels[0].values), "{text}");
    }
    // Fields of another domain, and of a schema that requires more, are not in the level of their run.
    let limited = key(&mars, &format!("{oper},domain=m"));
    let (project, name) = mars.run_of(&limited).unwrap();
    assert!(mars.run_level(&project, &name).values != limited.levels[0].values);
    let more = Schema::parse("catalog run = r; variable = v; [ r, model [ v [ s ]]]").unwrap();
    assert_eq!(more.run_level("", "a").names.iter().map(|name| &**name).collect::<Vec<_>>(), ["r"]);
    // A name that no key has is still a run.
    let (a, b) = (mars.run_level("", "a"), mars.run_level("", "b"));
    assert!(a.names == b.names && a.values != b.values);
}

/// Two schemas, one after the other, form one: each keeps its types and its roles.
#[test]
fn a_schema_of_sections_gives_each_rule_its_types_and_roles() {
    let [mars, simulation, mixed] = ["mars", "simulation", "mixed"].map(|n| Schema::builtin(n).unwrap());
    let both = Schema::parse(&format!("{}\n{}", mars.text(), simulation.text())).unwrap();
    let fields = [
        (&mars, "class=od,expver=1,stream=oper,date=20240229,time=12,type=fc,levtype=sfc,param=167,step=30m"),
        (&mars, "centre=kwbc,date=20240229,time=0,levtype=sfc,param=11.2,step=0-24,member=x"),
        (&simulation, "run=a,variable=t,step=6"),
        (
            &simulation,
            "project=p,run=od/0001,variable=t,step=6,member=3,time=0.5,levelist=surface,type=x,date=y",
        ),
    ];
    for schema in [&both, &mixed] {
        assert_eq!(schema.catalog_roles().len(), 2);
        for (own, text) in fields {
            let of = key(schema, text);
            assert_eq!(of, key(own, text), "{text}");
            assert_eq!(schema.run_of(&of), own.run_of(&of), "{text}");
            assert_eq!(
                (schema.variable_of(&of), schema.step_of(&of)),
                (own.variable_of(&of), own.step_of(&of))
            );
            let (project, name) = own.run_of(&of).unwrap();
            assert_eq!(schema.pairs_of(&project, &name).unwrap(), own.pairs_of(&project, &name).unwrap());
            assert_eq!(schema.roles_of_run(&project, &name).unwrap(), schema.roles_of(&of));
            assert_eq!(schema.run_level(&project, &name), own.run_level(&project, &name));
        }
    }
    assert!(both.unreachable().is_empty());
    // A section without roles has those of the section before it.
    let more = Schema::parse("catalog run = a; [a[b[c]]] c: Integer; [d, a[b[c]]]").unwrap();
    assert_eq!(more.catalog_roles().len(), 1);
    assert_eq!(run(&more, "d=1,a=x,b=y,c=7").1, "x");
    // The types of a section do not apply to the next.
    let apart = Schema::parse("c: Integer; [a [b [c]]] d: Text; [x [y [c]]]").unwrap();
    assert_eq!(key(&apart, "x=1,y=2,c=word").to_string(), "{x=1}{y=2}{c=word}");
    // An extension belongs to the last section.
    let two = Schema::parse("catalog run = x; [x [y [z]]] catalog run = a; [a [b [c]]]").unwrap();
    let extended = two.extend("[x, a [b [d]]]").unwrap();
    assert_eq!(run(&extended, "x=1,a=r,b=t,d=1").1, "r");
}

/// A name that looks like a run of another section is escaped so that it does not, and can be parsed again.
#[test]
fn names_of_runs_mean_one_run_in_a_schema_of_sections() {
    let mixed = Schema::builtin("mixed").unwrap();
    let of = |run: &str| FieldKey::clone(&mixed.resolve(&[("run", run), ("variable", "t")]).unwrap());
    for (value, name) in [
        ("a", "a"),
        ("a/b", "a/b"),
        ("a%2Fb", "a%2Fb"),
        ("kwbc/20240229/0000", "kwbc%2F20240229%2F0000"),
        ("kwbc%2F20240229%2F0000", "kwbc%252F20240229%252F0000"),
        ("kwbc//", "kwbc%2F%2F"),
        ("od/0001/oper//", "od%2F0001%2Foper%2F%2F"),
        ("kwbc/20240229/noon", "kwbc/20240229/noon"),
    ] {
        assert_eq!(mixed.run_of(&of(value)).unwrap().1, name);
        assert_eq!(back(&mixed, "", name), format!("run={value}"));
    }
    assert_eq!(back(&mixed, "", "kwbc/20240229/0000"), "centre=kwbc,date=20240229,time=0000");
    // GRIB has no projects: with a project, the name is a run's.
    assert_eq!(back(&mixed, "p", "kwbc/20240229/0000"), "project=p,run=kwbc/20240229/0000");
    let with_project = mixed.resolve(&[("project", "p"), ("run", "kwbc/20240229/0000"), ("variable", "t")]);
    assert_eq!(mixed.run_of(&with_project.unwrap()).unwrap().1, "kwbc/20240229/0000");
}

proptest! {
    #[test]
    fn a_name_and_its_key_lead_to_each_other(
        a in "[a%/2F]{1,6}",
        b in proptest::option::of("[b%/2F]{1,6}"),
        c in "[c%/5]{1,3}",
        project in proptest::option::of("[p/%]{1,3}"),
    ) {
        let schema = Schema::parse(
            "catalog project = p; run = c/a/b; variable = v; step = s; [ p?, a, b?, c [ v [ s ]]] [ p?, a, c [ v [ s ]]]"
        ).unwrap();
        let mut pairs = vec![("a", a.as_str()), ("c", c.as_str()), ("v", "t"), ("s", "1")];
        pairs.extend(b.as_deref().map(|b| ("b", b)));
        pairs.extend(project.as_deref().map(|p| ("p", p)));
        let key = schema.resolve(&pairs).unwrap();
        let (of, name) = schema.run_of(&key).unwrap();
        prop_assert_eq!(&of, project.as_deref().unwrap_or_default());
        let mut found: Vec<(String, String)> = schema.pairs_of(&of, &name).unwrap()
            .into_iter().map(|(keyword, value)| (keyword.to_string(), value)).collect();
        found.extend([("v".to_owned(), "t".to_owned()), ("s".to_owned(), "1".to_owned())]);
        let found: Vec<(&str, &str)> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        prop_assert_eq!(schema.resolve(&found).unwrap(), key);
        // Any other text is another run, or none.
        if let Ok(other) = schema.pairs_of(&of, &name.replace("%2F", "%2f").replace("%25", "%")) {
            let same = schema.pairs_of(&of, &name).unwrap() == other;
            prop_assert!(!same || !name.contains('%'));
        }
    }
}
