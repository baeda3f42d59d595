//! Names of objects: every element is in exactly one, every name leads back to its box, and ambiguous names are
//! refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, HashSet};

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::template::{Names, ObjectGrid, Template, Words};
use proptest::prelude::*;

/// A grid of up to 4 dimensions, some cut to the size of objects, and a box of it.
fn grids() -> impl Strategy<Value = (ObjectGrid, IndexBox)> {
    let dimension = (0_u64..12, 1_u64..7, 0_u64..12, 0_u64..12);
    (prop::collection::vec(dimension, 0..5), prop::option::of(1_u64..200)).prop_map(|(dims, size)| {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let chunk: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let start: Vec<u64> = dims.iter().map(|d| d.2.min(d.0)).collect();
        let count = dims.iter().zip(&start).map(|(d, s)| d.3.min(d.0 - s)).collect();
        let grid = match size {
            None => ObjectGrid::new(shape.clone(), chunk),
            Some(size) => ObjectGrid::sized(shape.clone(), chunk, 4, size),
        };
        (grid.unwrap(), IndexBox::new(start, count, &shape).unwrap())
    })
}

/// A template that names every dimension in one of the ways.
fn template_for(rank: usize, way: u8) -> Template {
    let hole = |d: usize| match way % 3 {
        0 => format!("{{{d}}}"),
        1 => format!("{{{d}.n:03d}}"),
        _ => format!("{{{d}:02d}}"),
    };
    let dims: Vec<String> = (0..rank).map(hole).collect();
    let places = if way >= 6 { "{piece:04d}".to_owned() } else { dims.join("_") };
    let text = if way.is_multiple_of(2) {
        format!("{{job}}/{{run}}/{{step:06d}}/{{variable}}.{{version}}/{places}")
    } else {
        format!("{{run}}/{{variable}}_{{step}}-{places}.raw")
    };
    Template::parse(&text, &[]).unwrap()
}

fn elements(region: &IndexBox) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for d in 0..region.rank() {
        all = all
            .into_iter()
            .flat_map(|head: Vec<u64>| {
                (region.start()[d]..region.end(d)).map(move |i| [&head[..], &[i]].concat())
            })
            .collect();
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_box_is_in_its_objects_each_element_once(
        (grid, region) in grids(), way in 0_u8..8, step in -20_i64..2_000_000, version in 0_i64..30,
    ) {
        let rank = grid.shape().len();
        let names = Names::new(template_for(rank, way), grid.clone()).unwrap();
        let words =
            Words { job: "17", run: "astro_3d-42", variable: "a_b_1", step: Some(step), version, project: "" };
        let mut seen = HashSet::new();
        let mut named: HashMap<String, IndexBox> = HashMap::new();
        for object in names.objects(&words, &region).unwrap() {
            let object = object.unwrap();
            prop_assert!(object.piece.contains(&object.part) && region.contains(&object.part));
            prop_assert!(!object.part.is_empty());
            for element in elements(&object.part) {
                prop_assert!(seen.insert(element), "twice");
            }
            prop_assert_eq!(names.piece_of(&object.name, &words).unwrap(), object.piece.clone());
            prop_assert!(named.insert(object.name, object.piece).is_none(), "one name for two objects");
        }
        prop_assert_eq!(seen, elements(&region).into_iter().collect::<HashSet<_>>());
    }

    #[test]
    fn all_pieces_cover_the_variable((grid, _) in grids()) {
        let whole = IndexBox::whole(grid.shape()).unwrap();
        let pieces: Vec<IndexBox> =
            grid.overlapping(&whole).unwrap().map(|n| grid.piece(&n).unwrap()).collect();
        if !whole.is_empty() {
            prop_assert_eq!(pieces.len() as u64, grid.total());
        }
        let held: u64 = pieces.iter().map(|p| p.element_count().unwrap()).sum();
        prop_assert_eq!(held, whole.element_count().unwrap());
        for (i, piece) in pieces.iter().enumerate() {
            prop_assert!(!pieces[..i].iter().any(|p| p.overlaps(piece)));
            prop_assert_eq!(grid.at(i as u64).unwrap().len(), grid.shape().len());
        }
    }

    #[test]
    fn names_say_what_they_were_made_of(
        run in "[a-z_/.-]{1,8}", variable in "[a-z0-9_]{1,6}", step in -9_i64..9999, known in any::<bool>(),
    ) {
        let grid = ObjectGrid::new(vec![9, 9], vec![4, 9]).unwrap();
        for text in ["{run}/{variable}_{step:03d}_{x}.nc", "s{step}/{variable}-{x.n}", "{x}/{run}"] {
            let template = Template::parse(text, &[]).unwrap();
            let words = Words { run: &run, variable: &variable, step: Some(step), ..Words::default() };
            let Ok(name) = template.name(&words, &grid, &[1, 0]) else { continue };
            let given = if known { words } else { Words::default() };
            match template.read(&name, &given) {
                Ok(reading) => {
                    prop_assert!(reading.run.is_none_or(|r| r == run));
                    prop_assert!(reading.variable.is_none_or(|v| v == variable));
                    prop_assert!(reading.step.is_none_or(|s| s == step));
                }
                // Without help, a name may be ambiguous; with it, never.
                Err(e) => prop_assert!(!known && e.message().contains("is ambiguous"), "{e}"),
            }
        }
    }

    #[test]
    fn no_text_is_too_strange(text in ".{0,40}", name in ".{0,60}") {
        if let Ok(template) = Template::parse(&text, &[]) {
            let _ = template.read(&name, &Words::default());
        }
    }
}

#[test]
fn chunks_are_cut_along_their_first_dimension_to_the_size_of_objects() {
    // 20 x 8 x 8 elements of 8 bytes are 10,240 bytes: three pieces of at most 4096.
    let grid = ObjectGrid::sized(vec![50, 8, 8], vec![20, 8, 8], 8, 4096).unwrap();
    let ranges: Vec<_> = (0..grid.counts()[0]).map(|n| grid.range(0, n).unwrap()).collect();
    assert_eq!(ranges, [(0, 7), (7, 14), (14, 20), (20, 27), (27, 34), (34, 40), (40, 47), (47, 50)]);
    assert_eq!(grid.counts(), [8, 1, 1]);
    // One index of the first dimension is the minimum.
    let grid = ObjectGrid::sized(vec![3, 100], vec![3, 100], 8, 10).unwrap();
    assert_eq!(grid.counts(), [3, 1]);
}

#[test]
fn templates_that_cannot_work_say_why() {
    let wrong = |text: &str| Template::parse(text, &[]).unwrap_err().to_string();
    for (text, why) in [
        ("", "empty"),
        ("{run", "at character 0: this brace is not closed"),
        ("a}b", "at character 1: this closing brace has no opening brace"),
        ("{rum}/x", "at character 1: {rum} is unknown"),
        ("{run}{step}", "are adjacent"),
        ("{step}5", "a digit follows"),
        ("{run:05d}", "\"05d\" is not a width"),
        ("{step:7d}", "\"7d\" is not a width"),
        ("{step:099999999999999999999d}", "is not a width"),
    ] {
        assert!(wrong(text).contains(why), "{text}: {}", wrong(text));
    }
    let hint = Template::parse("{rum}/x", &[]).unwrap_err();
    assert!(hint.hint().unwrap().contains("run"), "{hint:?}");
    let grid = || ObjectGrid::new(vec![10, 10], vec![5, 10]).unwrap();
    let fits = |text: &str| Names::new(Template::parse(text, &[]).unwrap(), grid());
    assert!(fits("{run}_{x}").is_ok() && fits("{piece}").is_ok() && fits("{0.n}").is_ok());
    assert!(fits("{run}").unwrap_err().message().contains("dimension 0"));
    assert!(fits("{z}_{x}").unwrap_err().message().contains("dimension 2"));
    let dims = ["lat".to_owned(), "lon".to_owned()];
    assert_eq!(Template::parse("{lon}_{lat.n}", &dims).unwrap().dimensions().collect::<Vec<_>>(), [1, 0]);
    assert!(Template::parse("{x}", &dims).is_err());
    assert_eq!(
        Template::parse("{{{step}}}", &[])
            .unwrap()
            .name(&Words { step: Some(3), ..Words::default() }, &grid(), &[0, 0])
            .unwrap(),
        "{3}"
    );
}

#[test]
fn names_never_lead_out_of_their_folder() {
    let template = Template::parse("data/{run}/{x}.raw", &[]).unwrap();
    let grid = ObjectGrid::new(vec![4], vec![4]).unwrap();
    for run in ["..", "a/../b", "", "a//b", "a\0b", "./a", "/etc"] {
        let name = template.name(&Words { run, ..Words::default() }, &grid, &[0]);
        assert!(name.is_err(), "{run:?} gave {name:?}");
    }
    assert_eq!(
        template.name(&Words { run: "a/b", ..Words::default() }, &grid, &[0]).unwrap(),
        "data/a/b/0.raw"
    );
}

#[test]
fn foreign_names_are_refused() {
    let names = Names::new(
        Template::parse("{run}_{step:04d}_{x:02d}", &[]).unwrap(),
        ObjectGrid::new(vec![10], vec![4]).unwrap(),
    )
    .unwrap();
    assert_eq!(names.piece_of("a_0003_08", &Words::default()).unwrap().to_string(), "8:10");
    for name in ["", "a_0003_8", "a_003_08", "a_00003_08", "a_0003_08x", "a_0003_09", "a_0003_12", "_0003_08"]
    {
        assert!(names.piece_of(name, &Words::default()).is_err(), "{name}");
    }
    // Two ways: run "a" or "a_b".
    let template = Template::parse("{run}_{variable}", &[]).unwrap();
    let twice = template.read("a_b_c", &Words::default()).unwrap_err();
    assert!(twice.message().contains("is ambiguous"), "{twice}");
    let once = template.read("a_b_c", &Words { run: "a", ..Words::default() }).unwrap();
    assert_eq!(once.variable.as_deref(), Some("b_c"));
}
