//! Records of the catalog: they survive a round trip, damage is named, and they are as short as promised.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers outside #[test] functions, too

use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::DType;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    Annotate, ArrayGroup, ArrayLayout, ArraySet, AttributeBatch, AttributeId, BasicPattern, Boxes, CellSets,
    Column, Coordinate, FileSums, HistoryContent, HistoryDecl, ImportDecl, ImportFormat, ImportedVariable,
    KeywordColumn, MeshDecl, MeshLocation, ROWS_MAX, RankSizes, Record, Removal, RunDecl, RunName, RunPhase,
    RunState, StepDecl, StorageOrder, TagDecl, Values, VariableDecl, VariableName, batch_kind, batch_rows,
    check_batch, split_batch,
};
use fieldstone_format::log::{SideRecord, kinds};
use fieldstone_format::setting::IfExists;
use fieldstone_testkit::seeded;
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    "[a-zé/* ]{1,6}"
}

fn run_name() -> impl Strategy<Value = RunName> {
    ("[a-z]{0,3}", name()).prop_map(|(project, name)| RunName { project, name })
}

fn tag() -> impl Strategy<Value = TagDecl> {
    (name(), any::<i64>(), 0..11usize, "[a-z/]{0,4}").prop_map(|(name, version, kind, unit)| TagDecl {
        name,
        version,
        kind: ValueType::ALL[kind],
        unit,
    })
}

fn of_kind(kind: ValueType) -> BoxedStrategy<Value> {
    match kind {
        ValueType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ValueType::Int => any::<i64>().prop_map(Value::Int).boxed(),
        ValueType::UInt => any::<u64>().prop_map(Value::UInt).boxed(),
        ValueType::Float => {
            prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0)].prop_map(Value::Float).boxed()
        }
        ValueType::Text => ".{0,4}".prop_map(Value::Text).boxed(),
        ValueType::Bytes => vec(any::<u8>(), 0..4).prop_map(Value::Bytes).boxed(),
        ValueType::DateTime => any::<i64>().prop_map(Value::DateTime).boxed(),
        ValueType::IntRange => {
            (any::<i64>(), any::<i64>()).prop_map(|(a, b)| Value::IntRange(a.min(b), a.max(b))).boxed()
        }
        ValueType::FloatRange => (-9e9..9e9, 0.0..9e9).prop_map(|(a, n)| Value::FloatRange(a, a + n)).boxed(),
        ValueType::Array => (0..6usize)
            .prop_flat_map(|kind| {
                let kinds = [1, 2, 3, 4, 5, 7].map(|n| ValueType::from_u8(n).unwrap());
                vec(of_kind(kinds[kind]), 0..4)
            })
            .prop_map(Value::Array)
            .boxed(),
        ValueType::Json => any_value().boxed(),
    }
}

fn any_value() -> BoxedStrategy<Value> {
    let leaf =
        prop_oneof![Just(Value::Null), (0..10usize).prop_flat_map(|kind| of_kind(ValueType::ALL[kind]))];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            proptest::collection::btree_map(".{0,2}", inner, 0..3)
                .prop_map(|map| Value::Map(map.into_iter().collect())),
        ]
    })
    .boxed()
}

fn named() -> impl Strategy<Value = Vec<(String, Value)>> {
    proptest::collection::btree_map("[a-z]{0,3}", any_value(), 0..3).prop_map(|map| map.into_iter().collect())
}

fn batch() -> impl Strategy<Value = AttributeBatch> {
    let head = (run_name(), tag(), 1..40usize, 0..4usize, 0..4usize, 0..3u8, any::<[bool; 5]>());
    head.prop_flat_map(|(run, tag, rows, variables, rank, stepped, flags)| {
        let rank = if variables == 0 { 0 } else { rank };
        let boxed = if flags[3] { 1 } else { rows };
        let step = prop_oneof![-5..5i64, i64::MIN + 1..=i64::MAX];
        (
            vec(step, rows),
            vec((name(), -3..3i64), variables),
            vec(0..variables.max(1) as u32, rows),
            vec((0..1i64 << 40, 1..1i64 << 20), boxed * rank),
            vec(of_kind(tag.kind), if flags[0] { 1 } else { rows }),
            keywords(rows),
        )
            .prop_map(move |(steps, variables, variable, sides, values, keywords)| AttributeBatch {
                keywords,
                run: run.clone(),
                rows,
                step: match stepped {
                    0 => None,
                    1 => Some(Column::One(steps[0])),
                    _ => Some(Column::Each(steps)),
                },
                variable: Column::Each(variable),
                variables: variables
                    .into_iter()
                    .map(|(name, version)| VariableName { name, version })
                    .collect(),
                boxes: (rank > 0).then(|| Boxes {
                    rank,
                    start: sides.iter().map(|side| side.0).collect(),
                    count: sides.iter().map(|side| side.1).collect(),
                    cells: flags[4].then(|| cells(rank, &sides)),
                }),
                values: Values::of(tag.kind, values),
                tag: tag.clone(),
                one_value: flags[0],
                continues: flags[1],
                singles: flags[2],
            })
    })
}

/// Up to two keywords, with a value for all rows or for each row, some of them empty.
fn keywords(rows: usize) -> impl Strategy<Value = Vec<KeywordColumn>> {
    let value = prop_oneof![Just(String::new()), "[0-9]{1,3}", "\\PC{1,9}"];
    let column = (vec(value, rows), any::<bool>());
    vec(column, 0..3).prop_map(|columns| {
        let mut found = Vec::new();
        for ((mut values, one), keyword) in columns.into_iter().zip(["level", "number"]) {
            if one || values.iter().all(String::is_empty) {
                values = vec!["3".to_owned()];
            }
            let values = values.into_iter().map(Arc::from).collect();
            found.push(KeywordColumn { keyword: keyword.into(), values });
        }
        found
    })
}

/// Cells along the last dimension of boxes: their ends, and some in between.
fn cells(rank: usize, sides: &[(i64, i64)]) -> CellSets {
    let set = |(start, count): &(i64, i64)| {
        let mut set: Vec<i64> = [0, count / 3, count / 2, count - 1].map(|cell| start + cell).to_vec();
        set.dedup();
        set.into()
    };
    CellSets { dim: rank - 1, sets: sides.chunks(rank).map(|of_row| set(&of_row[rank - 1])).collect() }
}

fn variable() -> impl Strategy<Value = VariableDecl> {
    let dtype = proptest::sample::select(vec![None, Some("<f8"), Some(">i2"), Some("<M8[ns]"), Some("|S3")]);
    (name(), any::<i64>(), dtype, proptest::option::of(vec(1..1000u64, 0..4)), named(), 0..3u8, any::<bool>())
        .prop_map(|(name, version, dtype, shape, attrs, coords, cut)| {
            let rank = shape.as_ref().map_or(0, Vec::len);
            let coordinate = |dim: usize| match coords {
                0 => Coordinate::Uniform { first: 0.5, spacing: -0.25 },
                1 => Coordinate::Rectilinear(
                    (0..shape.as_ref().map_or(0, |s| s[dim])).map(|i| (i as f64).sqrt()).collect(),
                ),
                _ => Coordinate::Other("reduced_gaussian".into()),
            };
            VariableDecl {
                variable: VariableName { name, version },
                dtype: dtype.map(|text| DType::parse(text).unwrap()),
                dims: (0..rank).map(|dim| format!("d{dim}")).collect(),
                attrs,
                coords: (0..rank).map(|dim| (dim as u32, coordinate(dim))).collect(),
                decomposition: if cut { shape.clone() } else { None },
                finders: cut.then_some(Value::Bool(true)),
                shape,
            }
        })
}

fn set() -> impl Strategy<Value = ArraySet> {
    let dtype = proptest::sample::select(vec!["<f8", ">i2", "|b1", "<c16"]);
    let extent = proptest::option::of(0..1u64 << 40);
    (
        name(),
        any::<i64>(),
        dtype,
        vec(extent, 0..4),
        proptest::option::of(any_value()),
        named(),
        any::<bool>(),
    )
        .prop_map(|(name, version, dtype, shape, fill, attrs, regular)| ArraySet {
            variable: VariableName { name, version },
            dtype: DType::parse(dtype).unwrap(),
            dims: if regular { (0..shape.len()).map(|dim| format!("d{dim}")).collect() } else { Vec::new() },
            shape,
            fill,
            attrs,
            pattern: if regular { BasicPattern::Regular } else { BasicPattern::Irregular },
            view: if regular { "block 2x2x1 halo 1".into() } else { String::new() },
        })
}

fn group() -> impl Strategy<Value = ArrayGroup> {
    let locations = [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
    let location = proptest::option::of(proptest::sample::select(locations.to_vec()));
    let chunks = proptest::option::of(vec(1..1u64 << 40, 0..4));
    (name(), 1..4u8, any::<bool>(), location, chunks, named(), vec(set(), 0..3)).prop_map(
        |(name, level, fields, location, chunks, attrs, mut sets)| {
            sets.iter_mut().zip(0..).for_each(|(set, version)| set.variable.version = version);
            ArrayGroup {
                name,
                level,
                layout: if fields { ArrayLayout::Fields } else { ArrayLayout::Files },
                method: "exchange".into(),
                order: if fields { StorageOrder::Fortran } else { StorageOrder::C },
                mesh: location.map(|_| "wing".into()),
                location,
                compression: chunks.as_ref().map(|_| "zstd".into()),
                chunks,
                attrs,
                sets,
            }
        },
    )
}

fn arrays() -> impl Strategy<Value = Record> {
    let sum = || vec(any::<u8>(), 1..65);
    let size = || 0..1u64 << 63;
    let imported =
        (any::<bool>(), size(), vec(size(), 0..4)).prop_map(|(wide, offset, shape)| ImportedVariable {
            name: "x".into(),
            dtype: DType::parse(if wide { "<f8" } else { ">i4" }).unwrap(),
            offset,
            shape,
        });
    let import = (
        name(),
        name(),
        any::<bool>(),
        size(),
        any::<i64>(),
        proptest::option::of(sum()),
        vec(imported, 0..3),
    )
        .prop_map(|(name, source, raw, size, mtime, checksum, mut variables)| {
            variables.iter_mut().enumerate().for_each(|(i, variable)| variable.name = format!("v{i}"));
            let format = if raw { ImportFormat::Raw } else { ImportFormat::NetCdf };
            ImportDecl { name, source, format, size, mtime, checksum, variables }
        });
    let sums = (1..64u64 << 20, vec(any::<u32>(), 1..9)).prop_map(|(block, sums)| FileSums {
        size: block * sums.len() as u64 - block / 2,
        block,
        sums: sums.into(),
    });
    let mesh = (
        name(),
        sum(),
        "[a-z]{1,5}/[a-z]{1,5}",
        [size(), size(), size(), size()],
        named(),
        proptest::option::of(sums),
    )
        .prop_map(|(name, checksum, path, counts, attrs, sums)| MeshDecl {
            name,
            checksum,
            path,
            counts,
            attrs,
            sums,
        });
    let rank = (size(), size(), size()).prop_map(|(nodes, ghosts, edges)| RankSizes { nodes, ghosts, edges });
    let parts = proptest::option::of((sum(), vec(rank, 1..20)));
    let history =
        (sum(), size(), size(), "[a-z]{1,5}", parts).prop_map(|(mesh, nodes, edges, path, parts)| {
            let parts = parts.map(|(vector, ranks)| HistoryContent::Parts { vector, ranks });
            HistoryDecl { path, mesh, nodes, edges, content: parts.unwrap_or(HistoryContent::Edges) }
        });
    prop_oneof![
        (run_name(), vec(group(), 1..3)).prop_map(|(run, all)| Record::Groups(run, all)),
        (run_name(), vec(import, 1..3)).prop_map(|(run, all)| Record::Imports(run, all)),
        vec(mesh, 1..3).prop_map(Record::Meshes),
        vec(history, 1..3).prop_map(Record::Histories),
    ]
}

pub fn record() -> impl Strategy<Value = Record> {
    let run = (
        run_name(),
        proptest::option::of(name()),
        named(),
        any::<i64>(),
        proptest::option::of(any_value()),
        proptest::option::of(".{0,9}"),
        proptest::option::of(any_value()),
        proptest::bool::ANY,
    )
        .prop_map(|(run, job, params, created, grid, notes, outside, all)| RunDecl {
            run,
            job,
            params,
            created,
            grid,
            notes,
            outside,
            annotate: if all { Annotate::All } else { Annotate::Owner },
            if_exists: [None, Some(IfExists::Error), Some(IfExists::New)]
                [(created.unsigned_abs() % 3) as usize],
            state: (created % 2 == 0).then(|| RunState {
                phase: RunPhase::Failed,
                note: "why".into(),
                writer: Some(Id([7; 16])),
            }),
        });
    let step = (i64::MIN + 1..=i64::MAX, proptest::option::of(any::<f64>()))
        .prop_map(|(number, time)| StepDecl { number, time });
    let id = (any::<[u8; 16]>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
        |(writer, sequence, record, row)| AttributeId { writer: Some(Id(writer)), sequence, record, row },
    );
    let variable_name = (name(), any::<i64>()).prop_map(|(name, version)| VariableName { name, version });
    let removal = prop_oneof![
        run_name().prop_map(Removal::Run),
        (run_name(), any::<i64>()).prop_map(|(run, step)| Removal::Step(run, step)),
        (run_name(), variable_name).prop_map(|(run, variable)| Removal::Variable(run, variable)),
        tag().prop_map(Removal::Tag),
        vec(id, 1..9).prop_map(Removal::Attributes),
    ];
    prop_oneof![
        1 => vec(run, 1..4).prop_map(Record::Runs),
        1 => (run_name(), vec(step, 1..30)).prop_map(|(run, steps)| Record::Steps(run, steps)),
        1 => (run_name(), vec(variable(), 1..4)).prop_map(|(run, all)| Record::Variables(run, all)),
        1 => vec(tag(), 1..4).prop_map(Record::Tags),
        1 => vec((run_name(), any_value()), 1..4).prop_map(Record::Moved),
        1 => vec((run_name(), run_state()), 1..4).prop_map(Record::States),
        4 => batch().prop_map(Record::Attributes),
        1 => vec(removal, 1..4).prop_map(Record::Remove),
        4 => arrays(),
    ]
}

fn run_state() -> impl Strategy<Value = RunState> {
    let phase = prop_oneof![Just(RunPhase::Running), Just(RunPhase::Finished), Just(RunPhase::Failed)];
    (phase, ".{0,9}").prop_map(|(phase, note)| RunState { phase, note, writer: None })
}

/// The content of a record, row by row, independent of the form of its columns.
pub fn said(record: &Record) -> String {
    let Record::Attributes(batch) = record else { return format!("{record:?}") };
    let mut text = format!("{:?} {:?} {} {}", batch.run, batch.tag, batch.continues, batch.singles);
    for row in 0..batch.rows {
        let at = (batch.step_of(row), batch.variable_of(row), batch.box_of(row));
        let cells = batch.boxes.as_ref().and_then(|boxes| boxes.cells(row));
        text.push_str(&format!("\n{at:?} {cells:?} {:?}", batch.value_of(row)));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn records_come_back(record in record()) {
        record.check().unwrap();
        let side = record.encode();
        let back = Record::decode(&side).unwrap();
        prop_assert_eq!(said(&back), said(&record));
        prop_assert_eq!(back.kind_bit(), record.kind_bit());
        prop_assert_eq!(back.encode(), side);
    }

    #[test]
    fn damage_is_named_or_harmless(record in record(), at in any::<u32>(), byte in any::<u8>(), cut in any::<bool>()) {
        let SideRecord { kind, bytes } = record.encode();
        let mut bytes = bytes.to_vec();
        let at = at as usize % bytes.len();
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        // Also under a compressed body.
        let mut bare = vec![0];
        bare.extend_from_slice(&bytes);
        match Record::decode(&SideRecord { kind, bytes: bytes.into() }) {
            // The commit's checksum finds all damage; a record that gets past it must still be sound.
            Ok(sound) => sound.check().unwrap(),
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
                prop_assert!(error.to_string().contains("kind 0x01"), "{}", error);
            }
        }
        if let Err(error) = Record::decode(&SideRecord { kind, bytes: bare.into() }) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn noise_is_refused(kind in 0x0100u16..0x010b, mut bytes in vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first %= 2;
        }
        if let Err(error) = Record::decode(&SideRecord { kind, bytes: bytes.into() }) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}

fn floats(rows: usize, rank: usize) -> AttributeBatch {
    let n = (rows * rank) as i64;
    AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: "r".into() },
        tag: TagDecl { name: "t".into(), version: 0, kind: ValueType::Float, unit: String::new() },
        rows,
        step: Some(Column::Each((0..rows as i64).collect())),
        variables: vec![VariableName { name: "v".into(), version: 0 }],
        variable: Column::One(0),
        boxes: (rank > 0).then(|| Boxes {
            rank,
            start: (0..n).collect(),
            count: (0..n).map(|i| 1 + i % 7).collect(),
            cells: None,
        }),
        values: Values::Float((0..rows).map(|i| i as f64 * 0.1).collect()),
        one_value: false,
        continues: false,
        singles: false,
    }
}

#[test]
fn a_call_is_split_into_records_that_are_read() {
    for (rows, rank, parts) in [(ROWS_MAX, 3, 1), (ROWS_MAX + 1, 3, 2), (200_000, 0, 4), (ROWS_MAX, 32, 2)] {
        let whole = floats(rows, rank);
        let split = split_batch(whole.clone());
        assert_eq!(split.len(), parts, "{rows} rows of rank {rank}");
        let mut row = 0;
        for (i, part) in split.into_iter().enumerate() {
            assert_eq!(part.continues, i > 0);
            let Record::Attributes(back) = Record::decode(&Record::Attributes(part).encode()).unwrap() else {
                unreachable!()
            };
            for k in [0, back.rows - 1] {
                assert_eq!(back.step_of(k), whole.step_of(row + k));
                assert_eq!(back.box_of(k), whole.box_of(row + k));
                assert_eq!(back.value_of(k), whole.value_of(row + k));
            }
            row += back.rows;
        }
        assert_eq!(row, rows);
    }
    // Long values are split by their bytes; a call of single annotations has no continuation.
    let mut texts = floats(5, 0);
    texts.tag.kind = ValueType::Text;
    texts.singles = true;
    texts.values = Values::Text(vec!["x".repeat(12 << 20); 5]);
    let split = split_batch(texts);
    assert_eq!(split.iter().map(|part| part.rows).collect::<Vec<usize>>(), [1, 1, 1, 1, 1]);
    assert!(split.iter().all(|part| !part.continues && part.singles));
    let steps = (0..100_000).map(|number| StepDecl { number, time: Some(number as f64 * 0.25) }).collect();
    let split = Record::Steps(RunName { project: String::new(), name: "r".into() }, steps).split();
    assert_eq!(split.len(), 2);
    assert!(split.iter().all(|part| said(&Record::decode(&part.encode()).unwrap()) == said(part)));
    let ids = |n: u32| {
        let id = |row| AttributeId { writer: Some(Id([7; 16])), sequence: 1, record: 0, row };
        Removal::Attributes((0..n).map(id).collect())
    };
    let split = Record::Remove(vec![ids(100_000), ids(3)]).split();
    assert_eq!(split.len(), 2);
    assert!(split.iter().all(|part| said(&Record::decode(&part.encode()).unwrap()) == said(part)));
}

#[test]
fn what_a_record_may_not_hold_is_refused() {
    let broken = |change: &dyn Fn(&mut AttributeBatch), part: &str| {
        let mut batch = floats(3, 2);
        check_batch(&batch).unwrap();
        change(&mut batch);
        let error = check_batch(&batch).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    };
    broken(&|b| b.rows = 0, "no rows");
    broken(&|b| b.run.name.clear(), "need a name");
    broken(&|b| b.step = Some(Column::Each(vec![1, 2])), "'step' does not have 3 rows");
    broken(&|b| b.step = Some(Column::One(i64::MIN)), "is not a valid step");
    broken(&|b| b.variable = Column::Each(vec![0, 0]), "'variable' does not have 3 rows");
    broken(&|b| b.variable = Column::One(1), "a row names a missing variable");
    broken(&|b| b.variables.clear(), "a box needs a variable");
    broken(&|b| b.values = Values::Float(vec![1.0]), "'value' does not have 3 rows");
    broken(&|b| b.values = Values::Int(vec![1, 2, 3]), "not of type float");
    broken(&|b| b.boxes.as_mut().unwrap().count[3] = 0, "row 1: a box from 3 with 0 elements in dimension 1");
    broken(&|b| b.boxes.as_mut().unwrap().start[0] = -1, "row 0: a box from -1");
    broken(&|b| b.boxes.as_mut().unwrap().start[0] = i64::MAX, "is not valid");
    broken(&|b| b.boxes.as_mut().unwrap().rank = 65, "1 to 64 dimensions");
    let on_cells = |change: fn(&mut Boxes)| {
        move |b: &mut AttributeBatch| {
            let boxes = b.boxes.as_mut().unwrap();
            boxes.count.fill(5);
            let sets = boxes.start.chunks(2).map(|at| [at[1], at[1] + 4].into()).collect();
            boxes.cells = Some(CellSets { dim: 1, sets });
            change(boxes);
        }
    };
    let mut right = floats(3, 2);
    on_cells(|_| {})(&mut right);
    check_batch(&right).unwrap();
    broken(
        &on_cells(|b| b.cells.as_mut().unwrap().dim = 2),
        "cells are along dimension 2 of boxes of rank 2",
    );
    broken(&on_cells(|b| drop(b.cells.as_mut().unwrap().sets.pop())), "2 sets of cells for 3 boxes");
    broken(&on_cells(|b| b.cells.as_mut().unwrap().sets[1] = [].into()), "not the smallest around its cells");
    broken(
        &on_cells(|b| b.cells.as_mut().unwrap().sets[1] = [3, 7, 9].into()),
        "not the smallest around its cells",
    );
    broken(&on_cells(|b| b.cells.as_mut().unwrap().sets[1] = [3, 5, 5, 7].into()), "cell 5 follows cell 5");
    let ranges = |b: &mut AttributeBatch| {
        b.tag.kind = ValueType::IntRange;
        b.values = Values::Any(vec![Value::IntRange(1, 2), Value::IntRange(2, 1), Value::IntRange(1, 1)]);
    };
    broken(&ranges, "row 1: 2..1 is");
    let decl = VariableDecl {
        variable: VariableName { name: "v".into(), version: 0 },
        dtype: None,
        shape: Some(vec![3, 4]),
        dims: Vec::new(),
        attrs: Vec::new(),
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    };
    let run = RunName { project: String::new(), name: "r".into() };
    let broken = |change: &dyn Fn(&mut VariableDecl), part: &str| {
        let mut decl = decl.clone();
        change(&mut decl);
        let error = Record::Variables(run.clone(), vec![decl]).check().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    broken(&|d| d.dims = vec!["z".into()], "1 names for 2");
    broken(&|d| d.dims = vec!["z".into(), "z".into()], "another one are both named 'z'");
    broken(&|d| d.decomposition = Some(vec![0, 4]), "decomposition");
    broken(&|d| d.coords = vec![(2, Coordinate::Other("x".into()))], "coordinates for dimension 2");
    broken(&|d| d.coords = vec![(0, Coordinate::Rectilinear(vec![1.0, 2.0]))], "2 coordinates for 3");
    broken(&|d| d.coords = vec![(0, Coordinate::Rectilinear(vec![1.0, 3.0, 2.0]))], "neither rise nor fall");
    broken(&|d| d.coords = vec![(0, Coordinate::Uniform { first: 0.0, spacing: 0.0 })], "do not differ");
    assert!(
        Record::Tags(vec![TagDecl {
            name: String::new(),
            version: 0,
            kind: ValueType::Int,
            unit: String::new()
        }])
        .check()
        .is_err()
    );
}

#[test]
fn kinds_are_told_apart() {
    let mut batch = floats(1, 1);
    assert_eq!(batch_kind(&batch), kinds::VARIABLE_ATTRIBUTE);
    batch.boxes = None;
    batch.variables.clear();
    assert_eq!(batch_kind(&batch), kinds::STEP_ATTRIBUTE);
    batch.step = None;
    assert_eq!(Record::Attributes(batch.clone()).kind_bit(), kinds::RUN_ATTRIBUTE);
    let both = Record::Remove(vec![Removal::Run(batch.run.clone()), Removal::Step(batch.run.clone(), 1)]);
    assert_eq!(both.kind_bit(), kinds::RUN | kinds::STEP);
    let tag = Removal::Tag(batch.tag.clone());
    assert_eq!(tag.kind_bit(), kinds::TAG);
    let variable = Removal::Variable(batch.run.clone(), VariableName { name: "v".into(), version: 0 });
    assert_eq!(variable.kind_bit(), kinds::VARIABLE);
    let attributes = kinds::RUN_ATTRIBUTE | kinds::STEP_ATTRIBUTE | kinds::VARIABLE_ATTRIBUTE;
    assert_eq!(Removal::Attributes(Vec::new()).kind_bit(), attributes);
    let later = Record::decode(&SideRecord { kind: 0x01fe, bytes: vec![0].into() }).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Conflict);
}

/// Runs without flags keep the form that every release reads.
#[test]
fn only_runs_with_flags_have_the_form_with_flags() {
    let plain = RunDecl::named(RunName { project: String::new(), name: "r".into() });
    let closed = RunDecl { annotate: Annotate::Owner, ..plain.clone() };
    let body = |flags: &[u8]| [&[1, 0, 1, b'r', 0, 0][..], &[0; 8], &[0; 3], flags].concat();
    let side = |kind: u16, body: Vec<u8>| SideRecord { kind, bytes: [vec![0], body].concat().into() };
    assert_eq!(Record::Runs(vec![plain.clone()]).encode(), side(0x0100, body(&[])));
    assert_eq!(Record::Runs(vec![closed.clone()]).encode(), side(0x0106, body(&[1])));
    let both = Record::decode(&Record::Runs(vec![plain, closed]).encode()).unwrap();
    let Record::Runs(runs) = both else { panic!("{both:?}") };
    assert_eq!([runs[0].annotate, runs[1].annotate], [Annotate::All, Annotate::Owner]);
    for (flags, part) in
        [(&[16][..], "unknown flags"), (&[6], "unknown flags"), (&[], "kind 0x0106"), (&[1, 0], "longer")]
    {
        let error = Record::decode(&side(0x0106, body(flags))).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(part), "{error}");
    }
}

/// A few bytes must not request much memory.
#[test]
fn small_records_stay_small_in_memory() {
    let mut ids = vec![0u8, 2];
    for _ in 0..2 {
        ids.extend([4, 1]);
        ids.extend([7; 16]);
        ids.extend([0x80, 0x80, 0x04]); // 65,536 attributes in constant columns
        ids.extend([0, 0].repeat(4));
    }
    let error = Record::decode(&SideRecord { kind: 0x0105, bytes: ids.into() }).unwrap_err();
    assert!(error.to_string().contains("impossible number of attributes"), "{error}");
    // run "", "r"; tag "t"; 65,536 rows of the variable "v".
    let head = |kind: u8, flags: u8| {
        let mut bytes = vec![0, 0, 1, b'r', 1, b't', 0, kind, 0, flags, 0x80, 0x80, 0x04, 1, 1, b'v', 0];
        if flags & 1 != 0 {
            bytes.extend([0, 0]);
        }
        bytes
    };
    let refused = |bytes: Vec<u8>, part: &str| {
        let error = Record::decode(&SideRecord { kind: 0x0104, bytes: bytes.into() }).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    // 65,536 boxes of rank 64, each side and dimension in two bytes.
    let mut boxes = head(4, 2);
    boxes.push(64);
    boxes.extend([0, 0, 0, 2].repeat(64));
    boxes.extend([3, 2, 0, 0]);
    refused(boxes, "impossible number of dimensions");
    // 65,536 times the same text of 2 KiB.
    let mut texts = head(5, 0);
    texts.extend([4, 1, 1, 0, 0x80, 0x20]);
    texts.extend([b'x'; 2048]);
    texts.extend([0, 0]);
    refused(texts, "expands to too long a column");
    // Lists inside one another, deeper than any reader's stack.
    let mut nested = head(11, 32);
    nested.push(5);
    nested.extend([11, 1].repeat(100));
    nested.push(0);
    refused(nested, "nested too deeply");
}

/// The EMPRESS paper's volume, in the worst order: attributes of each tag and step in the arrival order of
/// many clients.
#[test]
fn the_papers_volume_takes_few_bytes() {
    const EDGE: i64 = 170;
    let tags: [(&str, ValueType, u64); 10] = [
        ("blob_freq", ValueType::Bool, 2500),
        ("blob_ifreq", ValueType::Bool, 500),
        ("blob_rare", ValueType::Bool, 10),
        ("maximum", ValueType::Float, 10_000),
        ("minimum", ValueType::Float, 10_000),
        ("note_freq", ValueType::Text, 2000),
        ("note_ifreq", ValueType::Text, 250),
        ("note_rare", ValueType::Text, 50),
        ("range_ifreq", ValueType::IntRange, 1000),
        ("range_rare", ValueType::IntRange, 100),
    ];
    let mut numbers = seeded(1);
    let (mut rows, mut bytes) = ([0usize; 2], [0usize; 2]);
    for step in 0..3 {
        for (tag, kind, odds) in tags {
            let (mut variable, mut sides, mut values) = (Vec::new(), (Vec::new(), Vec::new()), Vec::new());
            for chunk in 0..1000i64 {
                for v in 0..10 {
                    if numbers.below(10_000) >= odds {
                        continue;
                    }
                    variable.push(v);
                    for cell in [chunk % 10, chunk / 10 % 10, chunk / 100] {
                        let ends = [numbers.below(170) as i64, numbers.below(170) as i64];
                        let (low, high) = match kind {
                            ValueType::Float | ValueType::Text => (0, EDGE - 1),
                            _ => (ends[0].min(ends[1]), ends[0].max(ends[1])),
                        };
                        sides.0.push(cell * EDGE + low);
                        sides.1.push(high - low + 1);
                    }
                    values.push(match kind {
                        ValueType::Bool => Value::Bool(numbers.below(2) == 1),
                        ValueType::Float => Value::Float(numbers.below(1 << 31) as f64 * 4.656_612_875),
                        ValueType::Text => Value::Text(format!("attr data for var{v} timestep{step}")),
                        _ => {
                            let a = numbers.below(1 << 31) as i64;
                            Value::IntRange(a, a + 10_000)
                        }
                    });
                }
            }
            let n = variable.len();
            let name = |v: u32| VariableName { name: format!("velocity_{v}"), version: 0 };
            let whole = AttributeBatch {
                keywords: Vec::new(),
                run: RunName { project: String::new(), name: "astro3d-42".into() },
                tag: TagDecl { name: tag.into(), version: 0, kind, unit: "K".into() },
                rows: n,
                step: Some(Column::One(step)),
                variables: (0..10).map(name).collect(),
                variable: Column::Each(variable.clone()),
                boxes: Some(Boxes { rank: 3, start: sides.0, count: sides.1, cells: None }),
                values: Values::of(kind, values),
                one_value: false,
                continues: false,
                singles: false,
            };
            // One call for each tag and step, and one call for each tag, step and variable.
            rows[0] += n;
            bytes[0] += Record::Attributes(whole.clone()).encode().bytes.len();
            for v in 0..10 {
                let of: Vec<usize> = (0..n).filter(|row| variable[*row] == v).collect();
                if of.is_empty() {
                    continue;
                }
                let boxes: Vec<(&[i64], &[i64])> = of.iter().map(|row| whole.box_of(*row).unwrap()).collect();
                let part = AttributeBatch {
                    rows: of.len(),
                    variables: vec![name(v)],
                    variable: Column::One(0),
                    boxes: Some(Boxes {
                        rank: 3,
                        start: boxes.iter().flat_map(|b| b.0).copied().collect(),
                        count: boxes.iter().flat_map(|b| b.1).copied().collect(),
                        cells: None,
                    }),
                    values: Values::of(kind, of.iter().map(|row| whole.value_of(*row)).collect()),
                    ..whole.clone()
                };
                rows[1] += of.len();
                bytes[1] += Record::Attributes(part).encode().bytes.len();
            }
        }
    }
    let each = |i: usize| bytes[i] as f64 / rows[i] as f64;
    println!(
        "{} attributes: {:.1} bytes each by tag and step, {:.1} by variable too",
        rows[0],
        each(0),
        each(1)
    );
    assert_eq!(rows[0], rows[1]);
    assert!(each(0) < 14.0 && each(1) < 16.0, "{:.1} {:.1}", each(0), each(1));
}

fn column(keyword: &str, values: &[&str]) -> KeywordColumn {
    KeywordColumn { keyword: keyword.into(), values: values.iter().map(|value| (*value).into()).collect() }
}

#[test]
fn keywords_go_with_their_rows_and_only_sound_ones_are_taken() {
    let whole = AttributeBatch { keywords: vec![column("number", &["1", "2", "", "4"])], ..floats(4, 1) };
    check_batch(&whole).unwrap();
    let of_row = |batch: &AttributeBatch, row| -> Vec<String> {
        batch.keywords_of(row).map(|(keyword, value)| format!("{keyword}={value}")).collect()
    };
    let part = batch_rows(&whole, 2, 4);
    check_batch(&part).unwrap();
    assert_eq!((of_row(&part, 0), of_row(&part, 1)), (vec![], vec!["number=4".to_owned()]));
    assert!(batch_rows(&whole, 2, 3).keywords.is_empty(), "no row has it");
    for wrong in [
        vec![column("number", &["1", "2"])],
        vec![column("number", &["", "", "", ""])],
        vec![column("number", &["1"]), column("level", &["1"])],
        vec![column("number", &["1"]), column("number", &["2"])],
        vec![column("", &["1"])],
        vec![column("number", &["1".repeat(1025).as_str()])],
    ] {
        let batch = AttributeBatch { keywords: wrong.clone(), ..floats(4, 1) };
        assert_eq!(check_batch(&batch).unwrap_err().kind(), ErrorKind::Invalid, "{wrong:?}");
        // A writer that ignores the check writes damage.
        let read = Record::decode(&Record::Attributes(batch).encode());
        assert!(wrong[0].values.len() == 2 || read.unwrap_err().kind() == ErrorKind::Corrupt, "{wrong:?}");
    }
}
