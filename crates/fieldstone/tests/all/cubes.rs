//! Cubes compared with the answers of `list`, on stores with gaps, absent keywords and fields that differ.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone::{
    ArchiveOptions, Cube, DType, FieldStore, Grouping, ListOptions, OpenOptions, ReadOptions, Request, Value,
    cubes,
};

fn store() -> fieldstone::Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn put(store: &dyn FieldStore, key: &[(&str, &str)], shape: &[u64], chunks: Option<&[u64]>) {
    let data = vec![0; shape.iter().product::<u64>() as usize * 4];
    let options = ArchiveOptions { chunks: chunks.map(<[u64]>::to_vec), ..ArchiveOptions::default() };
    let dtype = DType::parse("<f4").unwrap();
    store.archive(key, Value::Array { data: &data, dtype, shape }, &options).unwrap();
}

fn found(store: &dyn FieldStore, requests: &[&str], grouping: Grouping<'_>) -> Vec<Cube> {
    let requests: Vec<Request> = requests.iter().map(|text| Request::parse(text).unwrap()).collect();
    cubes(store, &requests, grouping, &ReadOptions::default()).unwrap().cubes
}

/// The keys of a cube, as sorted pairs.
fn keys(cube: &Cube) -> Vec<Vec<(String, String)>> {
    let sizes: Vec<u64> = cube.axes.iter().map(|axis| axis.values.len() as u64).collect();
    let all = || (0..sizes.iter().product()).collect();
    let places: Vec<u64> = cube.places.clone().unwrap_or_else(all);
    let key = |mut place: u64| {
        let mut key: Vec<(String, String)> =
            cube.key.iter().map(|(k, v)| (k.to_string(), v.text().into_owned())).collect();
        for (axis, size) in cube.axes.iter().zip(&sizes).rev() {
            let value = &axis.values[(place % size) as usize];
            if !value.is_absent() {
                key.push((axis.keyword.to_string(), value.text().into_owned()));
            }
            place /= size;
        }
        key.sort();
        key
    };
    places.into_iter().map(key).collect()
}

fn listed(store: &dyn FieldStore, request: &str) -> BTreeSet<Vec<(String, String)>> {
    let request = Request::parse(request).unwrap();
    let entries = store.list(&request, &ListOptions::default()).unwrap();
    let key = |entry: fieldstone::Result<fieldstone::ListEntry>| {
        let mut key: Vec<(String, String)> =
            entry.unwrap().key.iter().map(|(k, v)| (k.to_string(), v.text().into_owned())).collect();
        key.sort();
        key
    };
    entries.map(key).collect()
}

fn filled() -> fieldstone::Store {
    let store = store();
    for run in ["a", "b"] {
        for variable in ["t", "u"] {
            for step in ["0", "6", "12", "100"] {
                put(&store, &[("run", run), ("variable", variable), ("step", step)], &[2, 3], None);
                if run == "b" && step != "6" {
                    for member in ["2", "10"] {
                        let key = [("run", run), ("variable", variable), ("step", step), ("member", member)];
                        put(&store, &key, &[2, 3], None);
                    }
                }
            }
        }
        put(&store, &[("project", "p"), ("run", run), ("variable", "orography")], &[5], None);
    }
    store.flush(None).unwrap();
    store
}

#[test]
fn cubes_hold_the_keys_that_list_gives_however_they_are_grouped() {
    let store = filled();
    let by = [&["run", "variable"][..], &["project", "run", "variable"], &["variable"], &[], &["member"]];
    let groupings = by.into_iter().map(Grouping::By).chain([Grouping::Along(&["step"])]);
    for grouping in groupings.chain([Grouping::Along(&["member", "run"]), Grouping::Along(&[])]) {
        for request in ["", "run=b", "step=0/6", "member=2", "variable=orography"] {
            let cubes = found(&store, &[request], grouping);
            let all: Vec<_> = cubes.iter().flat_map(keys).collect();
            let distinct: BTreeSet<_> = all.iter().cloned().collect();
            assert_eq!(all.len(), distinct.len(), "{grouping:?} {request}");
            assert_eq!(distinct, listed(&store, request), "{grouping:?} {request}");
        }
    }
}

#[test]
fn a_complete_cube_says_so_and_values_stand_in_typed_order() {
    let store = filled();
    let cubes = found(&store, &["run=a,variable=t/u"], Grouping::By(&["variable"]));
    assert_eq!(cubes.len(), 2);
    for cube in &cubes {
        assert!(cube.places.is_none());
        let step = cube.axes.iter().find(|axis| &*axis.keyword == "step").unwrap();
        let texts: Vec<_> = step.values.iter().map(|value| value.text()).collect();
        assert_eq!(texts, ["0", "6", "12", "100"]);
    }
    // Equal axes are one object, so that thousands of runs share it.
    assert!(Arc::ptr_eq(&cubes[0].axes[0].values, &cubes[1].axes[0].values));
    // With gaps: run b has members, and at step 6 none.
    let cubes = found(&store, &["run=b,variable=t"], Grouping::By(&["run", "variable"]));
    let member = cubes[0].axes.iter().find(|axis| &*axis.keyword == "member").unwrap();
    assert!(member.values[0].is_absent());
    assert_eq!(cubes[0].places.as_ref().map(Vec::len), Some(10));
}

#[test]
fn fields_that_two_requests_name_count_once() {
    let store = filled();
    let cubes = found(&store, &["variable=t,run=a", "step=0/6,run=a,variable=t"], Grouping::By(&["run"]));
    assert_eq!(cubes.iter().flat_map(keys).count(), 4);
    assert!(cubes[0].places.is_none());
}

#[test]
fn fields_of_another_shape_and_of_most_bytes_are_named() {
    let store = store();
    put(&store, &[("run", "a"), ("variable", "t"), ("step", "1")], &[4], Some(&[2]));
    put(&store, &[("run", "a"), ("variable", "t"), ("step", "2")], &[6], None);
    store.flush(None).unwrap();
    let cubes = found(&store, &[""], Grouping::By(&["variable"]));
    assert_eq!(cubes[0].odd.as_ref().unwrap().key.get("step").unwrap().text(), "2");
    assert_eq!(cubes[0].chunks.as_deref(), Some(&[2][..]));
    assert_eq!(cubes[0].longest.1.get("step").unwrap().text(), "2");
    assert_eq!(cubes[0].shortest.0, 16);
}

#[test]
fn a_keyword_at_several_levels_counts_at_the_deepest() {
    let schema = "step: Integer; place: Text; [ place, a? [ place, b? [ place, step ]]]";
    let options = OpenOptions { schema: Some(schema.into()), ..OpenOptions::default() };
    let store = fieldstone::open("memory:", &options).unwrap();
    for place in ["x", "y", "z"] {
        for step in ["0", "6"] {
            put(&store, &[("place", place), ("step", step)], &[1], None);
        }
    }
    store.flush(None).unwrap();
    let cubes = found(&store, &[""], Grouping::By(&["place"]));
    let places: Vec<_> =
        cubes.iter().map(|cube| (cube.key.len(), cube.key[0].1.text().into_owned())).collect();
    assert_eq!(places, [(1, "x".to_owned()), (1, "y".to_owned()), (1, "z".to_owned())]);
    let cubes = found(&store, &[""], Grouping::Along(&["place"]));
    assert_eq!(
        cubes.iter().map(|cube| (cube.axes.len(), cube.axes[0].values.len())).collect::<Vec<_>>(),
        [(1, 3); 2]
    );
    assert!(cubes[0].places.is_none());
}
