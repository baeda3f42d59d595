//! A filter over a store: the fields that it hides, from which users, and the behaviour that it leaves unchanged. The
//! conformance suite runs on it in `conformance.rs`.

use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::ErrorKind::{Conflict, Corrupt, Denied, Invalid, NotFound};
use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Opening, put_file};
use fieldstone_store::frontends::FilterStore;

/// The store under the filter, of any type.
type Store = Arc<dyn FieldStore>;

fn open(world: &SimWorld, host: &str) -> Store {
    crate::common::open(world, host)
}

fn open_in(env: &Env, how: &Opening) -> Result<Store> {
    Ok(crate::common::open_in(env, how)?)
}

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world
}

fn filtered(store: &Store, filter: &str) -> Store {
    Arc::new(FilterStore::new(store.clone(), request(filter)).unwrap())
}

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn keys(store: &Store, text: &str) -> Result<Vec<String>> {
    let list = store.list(&request(text), &ListOptions::default())?;
    list.map(|entry| Ok(entry?.key.to_string())).collect()
}

fn lenient() -> RetrieveOptions {
    RetrieveOptions { strict: false, ..RetrieveOptions::default() }
}

/// A store of the variables t and u in two runs, four steps each, and a handle that sees only u.
fn winds() -> (Store, Store) {
    let store = open(&world(), "a");
    for run in ["a", "b"] {
        for variable in ["t", "u"] {
            for step in 0..4 {
                put(&store, &format!("run={run},variable={variable},step={step}"), b"four").unwrap();
            }
        }
    }
    put(&store, "run=c,variable=t,step=0", b"alone").unwrap();
    store.flush(&Session::default()).unwrap();
    let shown = filtered(&store, "variable=u");
    (store, shown)
}

#[test]
fn what_is_outside_is_not_there() {
    let (_, shown) = winds();
    assert_eq!(keys(&shown, "run=a").unwrap().len(), 4);
    assert_eq!(keys(&shown, "variable=t").unwrap(), [""; 0]);
    assert_eq!(keys(&shown, "variable=t/u,step=1").unwrap().len(), 2);
    for depth in [1, 2] {
        let options = ListOptions { depth, ..ListOptions::default() };
        assert_eq!(shown.list(&Request::new(), &options).unwrap().count(), 2, "depth {depth}");
    }
    error(get(&shown, "run=a,variable=t,step=1"), NotFound);
    assert_eq!(get(&shown, "run=a,variable=u,step=1").unwrap(), b"four");
    let axes = shown.axes(&Request::new(), &ReadOptions::default()).unwrap();
    let axes: Vec<String> = axes.iter().map(|(name, values)| format!("{name} {}", values.len())).collect();
    assert_eq!(axes, ["run 2", "variable 1", "step 4"]);
    let stats = shown.stats(&Request::new()).unwrap();
    assert_eq!((stats.datasets, stats.indexes, stats.fields, stats.bytes), (2, 2, 8, 32));
    let lines = shown.dump(&Request::new()).unwrap();
    assert!(lines.iter().any(|line| line.contains("variable=u")));
    assert!(!lines.iter().any(|line| line.contains("variable=t")), "{lines:?}");
    assert_eq!(shown.select(&request("run=a,variable=t/u,step=0")).unwrap().expand().unwrap().count(), 1);
}

/// A field that only the filter lists is neither missing nor in the order; a field that the caller lists and the
/// filter hides is missing.
#[test]
fn a_retrieve_is_as_strict_as_its_own_request() {
    let (store, shown) = winds();
    let wide = filtered(&store, "variable=u/v/w,step=0/1/2/99,run=a/b");
    for (store, text, found) in [
        (&shown, "run=b", 4),
        (&shown, "run=b,variable=u,step=3/1", 2),
        (&shown, "", 8),
        (&wide, "run=b", 3),
        (&wide, "step=2/0", 4),
        (&wide, "", 6),
    ] {
        let fields = store.retrieve(&request(text), &RetrieveOptions::default()).unwrap();
        assert_eq!((fields.len(), fields.missing_count()), (found, 0), "{text}");
    }
    let order = shown.retrieve(&request("step=3/0,run=b"), &RetrieveOptions::default()).unwrap();
    let order: Vec<String> = order.iter().map(|field| field.unwrap().key().unwrap().to_string()).collect();
    assert_eq!(order, ["{run=b}{variable=u}{step=3}", "{run=b}{variable=u}{step=0}"]);
    // By look-ups, and by a walk over the index: hidden fields behave like absent ones.
    let many: Vec<String> = (0..300).map(|step| step.to_string()).collect();
    for (steps, missing) in [("0/1".to_owned(), 2), (many.join("/"), 596)] {
        let both = request(&format!("run=a,variable=t/u,step={steps}"));
        let refused = error(shown.retrieve(&both, &RetrieveOptions::default()), NotFound);
        assert!(refused.message().contains("variable=t,step=0"), "{refused}");
        let fields = shown.retrieve(&both, &lenient()).unwrap();
        assert_eq!(
            (fields.len() as u64 + missing, fields.missing_count()),
            (2 * steps.split('/').count() as u64, missing)
        );
        assert!(fields.iter().all(|field| field.unwrap().key().unwrap().to_string().contains("variable=u")));
    }
    assert_eq!(
        filtered(&store, "variable=x").retrieve(&Request::new(), &RetrieveOptions::default()).unwrap().len(),
        0
    );
}

#[test]
fn a_hidden_field_is_in_nobodys_way() {
    let (store, shown) = winds();
    // Incomplete or contradictory hidden fields: a strict retrieve of the shown fields does not meet them.
    let spec = FieldSpec { dtype: DType::F8, shape: &[4], fill: None, chunks: None };
    let plain = ArchiveOptions::default();
    store.create_field(&[("run", "a"), ("variable", "holes")], &spec, &plain).unwrap();
    for shape in [[2], [3]] {
        let piece = Value::Piece { data: &[0; 8], dtype: DType::F8, start: &[0], count: &[1], shape: &shape };
        archive(&store, "run=a,variable=at_odds", piece, &plain).unwrap();
        // The fields of one flush are refused.
        store.flush(&Session::default()).unwrap();
    }
    error(store.retrieve(&request("run=a"), &RetrieveOptions::default()), Conflict);
    error(store.retrieve(&request("run=a,variable=holes"), &RetrieveOptions::default()), NotFound);
    assert_eq!(shown.retrieve(&request("run=a"), &RetrieveOptions::default()).unwrap().len(), 4);
    assert_eq!(shown.list(&request("run=a"), &ListOptions::default()).unwrap().count(), 4);
    error(get(&store, "run=a,variable=at_odds"), Conflict);
    error(get(&shown, "run=a,variable=at_odds"), NotFound);
}

#[test]
fn damage_outside_is_not_verified() {
    let world = world();
    let env = world.process("a");
    let store = open_in(&env, &Opening::default()).unwrap();
    let path = put_file(&env, Path::new("/shared/source").into(), Some(b"0123456789")).unwrap();
    let content = ExternalContent::Bytes(10);
    let spec = ExternalSpec { path: &path, offset: 0, parts: 1, stride: 0, content, seen: None };
    for variable in ["t", "u"] {
        let key = [("run", "a"), ("variable", variable)];
        store.archive_external(&key, &spec, &ArchiveOptions::default()).unwrap();
    }
    put(&store, "run=a,variable=v", b"sound").unwrap();
    store.flush(&Session::default()).unwrap();
    put_file(&env, path.clone(), Some(b"0123456780")).unwrap();
    let damaged = |store: &Store| store.verify(&Request::new()).unwrap().damaged.len();
    assert_eq!(damaged(&store), 2);
    assert_eq!(damaged(&filtered(&store, "variable=u/v")), 1);
    let sound = filtered(&store, "variable=v").verify(&Request::new()).unwrap();
    assert_eq!((sound.damaged.len(), sound.fields, sound.bytes), (0, 1, 5));
    error(get(&filtered(&store, "variable=u"), "run=a,variable=u"), Corrupt);
}

/// A key that matches one shown field when it is used as a request.
#[test]
fn a_partial_key_means_what_is_shown() {
    let (store, shown) = winds();
    put(&store, "run=d,variable=t,step=7", b"t7").unwrap();
    put(&store, "run=d,variable=u,step=7,member=1", b"u71").unwrap();
    put(&store, "run=d,variable=u", b"no step").unwrap();
    store.flush(&Session::default()).unwrap();
    error(get(&store, "run=d,step=7"), Invalid);
    assert_eq!(get(&shown, "run=d,step=7").unwrap(), b"u71");
    assert_eq!(get(&shown, "run=d,variable=u,step=7").unwrap(), b"u71");
    assert_eq!(get(&shown, "run=d,variable=u").unwrap(), b"no step");
    // In the store underneath, this is the only field of another variable.
    assert_eq!(get(&store, "run=c").unwrap(), b"alone");
    error(get(&shown, "run=c"), NotFound);
    let several = error(get(&shown, "run=a"), Invalid);
    assert!(
        several.message().contains("variable=u") && !several.message().contains("variable=t"),
        "{several}"
    );
    let one = FieldStoreExt::get_one(&*shown, &request("run=d,step=7"), &ReadOptions::default());
    assert_eq!(one.unwrap().read().unwrap(), b"u71");
    // The exact key is hidden; as a request it selects a field that is not.
    let members = filtered(&store, "member=1");
    assert_eq!(get(&members, "run=d,variable=u").unwrap(), b"u71");
}

/// An older version does not pass as the newest here either, even if the key is used as a request.
#[test]
fn lost_commits_are_corrupt_through_a_filter() {
    let world = world();
    let writer = open(&world, "a");
    for (i, key) in
        ["run=a,variable=t,step=0", "run=a,variable=u,step=0,member=1", "run=b,variable=v"].iter().enumerate()
    {
        flush_one(&writer, key, &pattern(400, i as u64));
    }
    let log = files(&world, "logs").remove(0);
    let length = world.read(&log).unwrap().len() as u64;
    world.truncate(&log, length - 300).unwrap();
    let store = open(&world, "b");
    for (filter, key) in [
        ("variable=u", "run=a,variable=u,step=0,member=1"),
        ("variable=u", "run=a,step=0"),
        ("variable=u", "run=a,variable=t,step=0"),
        ("member=1", "run=a,variable=u,step=0"),
        ("run=c", "run=b,variable=v"),
    ] {
        error(get(&filtered(&store, filter), key), Corrupt);
    }
    assert_eq!(filtered(&store, "variable=u").retrieve(&Request::new(), &lenient()).unwrap().len(), 1);
}

/// A default completes a key that is being made, but not a request.
#[test]
fn a_key_with_a_default_finds_nothing_hidden() {
    let schema = Schema::parse("[ run, domain?g [ variable [ step ] ] ]").unwrap();
    let how = Opening { schema: Some(schema), ..Opening::default() };
    let store = open_in(&world().process("a"), &how).unwrap();
    put(&store, "run=a,domain=m,variable=t,step=0", b"hidden").unwrap();
    store.flush(&Session::default()).unwrap();
    let shown = filtered(&store, "domain=g");
    assert_eq!(get(&store, "run=a,variable=t,step=0").unwrap(), b"hidden");
    error(get(&shown, "run=a,variable=t,step=0"), NotFound);
}

#[test]
fn what_is_outside_is_not_taken() {
    let (store, shown) = winds();
    let (plain, spec) =
        (ArchiveOptions::default(), FieldSpec { dtype: DType::F8, shape: &[4], fill: None, chunks: None });
    let outside: &Pairs<'_> = &[("run", "a"), ("variable", "t"), ("step", "9")];
    let inside: &Pairs<'_> = &[("run", "a"), ("variable", "u"), ("step", "9")];
    let external = ExternalSpec {
        path: Path::new("/none"),
        offset: 0,
        parts: 1,
        stride: 0,
        content: ExternalContent::Bytes(1),
        seen: None,
    };
    let many = [(inside, Value::Bytes(b"x")), (outside, Value::Bytes(b"x"))];
    for refused in [
        error(shown.archive(outside, Value::Bytes(b"x"), &plain), Denied),
        error(shown.archive_many(&many, &plain), Denied),
        error(shown.create_field(outside, &spec, &plain), Denied),
        error(shown.archive_external(outside, &external, &plain), Denied),
    ] {
        let text = refused.to_string();
        assert!(text.contains("{run=a}{variable=t}{step=9}") && text.contains("variable=u"), "{text}");
    }
    assert!(error(shown.archive_many(&many, &plain), Denied).message().contains("field 1"));
    assert_eq!(shown.unflushed(), 0, "nothing that was refused is archived");
    shown.archive_many(&many[..1], &plain).unwrap();
    shown.flush(&Session::default()).unwrap();
    assert_eq!(get(&store, "run=a,variable=u,step=9").unwrap(), b"x");
    error(shown.archive(&[("run", "a")], Value::Bytes(b"x"), &plain), Invalid);
}

#[test]
fn what_is_outside_is_not_removed() {
    let (store, shown) = winds();
    let plain = RemoveOptions::default();
    error(shown.remove(&Request::new(), &plain), Invalid);
    error(filtered(&shown, "run=a").remove(&Request::new(), &plain), Invalid);
    // The same for fields that are archived and not flushed.
    put(&store, "run=a,variable=t,step=50", b"x").unwrap();
    put(&store, "run=a,variable=u,step=50", b"x").unwrap();
    assert_eq!(shown.remove(&request("run=a"), &plain).unwrap(), 5);
    shown.flush(&Session::default()).unwrap();
    assert_eq!((keys(&store, "run=a").unwrap().len(), keys(&shown, "").unwrap().len()), (5, 4));
    assert_eq!(shown.remove(&request("variable=t"), &plain).unwrap(), 0);
    let hidden = field(&store, "run=b,variable=t,step=0", None).unwrap();
    let own = field(&shown, "run=b,variable=u,step=0", None).unwrap();
    let refused = error(shown.remove_fields(&[own.clone(), hidden], &plain), Denied);
    assert!(refused.message().contains("variable=t"), "{refused}");
    assert_eq!(shown.unflushed(), 0);
    // A field of the filter is a field of the store underneath, and the reverse.
    let beneath = field(&store, "run=b,variable=u,step=1", None).unwrap();
    store.remove_fields(&[own], &plain).unwrap();
    shown.remove_fields(&[beneath], &plain).unwrap();
    shown.flush(&Session::default()).unwrap();
    assert_eq!(keys(&shown, "").unwrap().len(), 2);
}

#[test]
fn the_rest_passes_through() {
    let (store, shown) = winds();
    assert_eq!((shown.url(), shown.schema()), (store.url(), store.schema()));
    assert_eq!(shown.version().unwrap(), store.version().unwrap());
    let id = shown.begin().unwrap();
    put_in(&shown, "run=x,variable=u", b"x", id).unwrap();
    put_in(&store, "run=x,variable=t", b"x", id).unwrap();
    assert_eq!(store.unflushed(), 2);
    shown.flush(&Session::from(id)).unwrap();
    assert_eq!(shown.status().unwrap().transactions[0].fields, 2);
    let own = ListOptions { session: Session::from(id), ..ListOptions::default() };
    assert_eq!(shown.list(&request("run=x"), &own).unwrap().count(), 1);
    shown.decide(id, true, &Session::default()).unwrap();
    assert_eq!((keys(&store, "run=x").unwrap().len(), keys(&shown, "run=x").unwrap().len()), (2, 1));
    // A checkpoint covers the whole store.
    error(shown.checkpoint(Path::new("/other"), &CheckpointOptions::default(), &Session::default()), Denied);
}

#[test]
fn filters_nest() {
    let (store, shown) = winds();
    let both = filtered(&shown, "run=a,step=0/to/2");
    assert_eq!(keys(&both, "").unwrap().len(), 3);
    assert_eq!(keys(&both, "step=2/3").unwrap(), ["{run=a}{variable=u}{step=2}"]);
    error(get(&both, "run=b,variable=u,step=0"), NotFound);
    error(put(&both, "run=a,variable=t,step=0", b"x"), Denied);
    error(put(&both, "run=b,variable=u,step=0", b"x"), Denied);
    put(&both, "run=a,variable=u,step=0", b"x").unwrap();
    assert_eq!(both.remove(&request("step=0/3"), &RemoveOptions::default()).unwrap(), 1);
    let everything = filtered(&store, "step=*");
    assert_eq!(keys(&everything, "").unwrap().len(), 17);
    assert!(everything.verify(&Request::new()).unwrap().files > 0);
}

#[test]
fn filters_that_are_refused() {
    let how = Opening { schema: Schema::builtin("mars"), ..Opening::default() };
    let store = open_in(&world().process("a"), &how).unwrap();
    let refused = |filter: &str| error(FilterStore::new(store.clone(), request(filter)), Invalid).to_string();
    assert!(refused("step=noon").contains("step"));
    assert!(refused("date=-1").contains("relative to today"));
    assert!(refused("date=-1").contains("the filter date=-1"));
}

/// Compares with a plain check of each key, over many keys, filters and requests.
#[test]
fn a_filter_shows_what_both_select() {
    let store = open(&world(), "a");
    let mut rng = seeded(11);
    for _ in 0..300 {
        let mut key = format!("run={},variable={}", rng.pick(&["a", "b", "c"]), rng.pick(&["t", "u", "v"]));
        for (keyword, bound) in [("step", 12), ("member", 3), ("level", 4)] {
            if rng.below(3) > 0 {
                key += &format!(",{keyword}={}", rng.below(bound));
            }
        }
        put(&store, &key, key.as_bytes()).unwrap();
    }
    store.flush(&Session::default()).unwrap();
    let everything: Vec<ListEntry> =
        store.list(&Request::new(), &ListOptions::default()).unwrap().map(Result::unwrap).collect();
    let mut random = || {
        let mut text = Vec::new();
        for (keyword, lists) in [
            ("run", &["a", "b/c", "c/a", "x/b"][..]),
            ("variable", &["t", "u/v", "v/x"]),
            ("step", &["0/to/11/by/3", "5", "0/1/2/3/4/5", "11/to/0/by/1", "*"]),
            ("member", &["0", "1/2", "*"]),
            ("level", &["3/1", "2"]),
        ] {
            if rng.below(3) == 0 {
                text.push(format!("{keyword}={}", rng.pick(lists)));
            }
        }
        text.join(",")
    };
    let mut found = 0;
    for round in 0..400 {
        let (filter, asked) = (random(), random());
        let shown = filtered(&store, &filter);
        let schema = store.schema();
        let (bound, own) =
            (schema.select(&request(&filter)).unwrap(), schema.select(&request(&asked)).unwrap());
        let expected: Vec<String> = everything
            .iter()
            .filter(|entry| bound.takes(&entry.key) && own.takes(&entry.key))
            .map(|entry| entry.key.to_string())
            .collect();
        assert_eq!(keys(&shown, &asked).unwrap(), expected, "round {round}: {asked} within {filter}");
        let fields = shown.retrieve(&request(&asked), &lenient()).unwrap();
        assert_eq!(fields.len(), expected.len(), "round {round}: {asked} within {filter}");
        assert_eq!(shown.stats(&request(&asked)).unwrap().fields as usize, expected.len());
        found += expected.len();
    }
    assert!(found > 5_000, "{found} are too few for a meaningful test");
}
