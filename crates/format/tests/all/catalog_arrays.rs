//! Records of distributed arrays: declarations of a group that agree, and content that no record may hold.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::DType;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, FileSums, HistoryContent, HistoryDecl, ImportDecl,
    ImportFormat, ImportedVariable, MeshDecl, MeshLocation, ROWS_MAX, RankSizes, Record, RunName,
    StorageOrder, VariableName, merge_group,
};
use fieldstone_format::log::kinds;

use crate::catalog::said;

fn simple_group() -> ArrayGroup {
    let set = |name: &str| ArraySet {
        variable: VariableName { name: name.into(), version: 0 },
        dtype: DType::F8,
        shape: vec![Some(4), None],
        dims: vec!["y".into(), "x".into()],
        fill: Some(Value::Float(f64::NAN)),
        attrs: vec![("a".into(), Value::Int(1)), ("b".into(), Value::Float(f64::NAN))],
        pattern: BasicPattern::Regular,
        view: "block 2x1".into(),
    };
    ArrayGroup {
        name: "g".into(),
        level: 2,
        layout: ArrayLayout::Files,
        method: "auto".into(),
        order: StorageOrder::C,
        mesh: Some("wing".into()),
        location: Some(MeshLocation::Node),
        chunks: Some(vec![1, 2]),
        compression: Some("zstd".into()),
        attrs: vec![("a".into(), Value::Int(1)), ("b".into(), Value::Int(2))],
        sets: vec![set("t"), set("u")],
    }
}

#[test]
fn a_group_takes_more_sets_and_nothing_that_contradicts() {
    let whole = simple_group();
    let merged = |change: &dyn Fn(&mut ArrayGroup)| {
        let (mut one, mut again) = (simple_group(), simple_group());
        change(&mut again);
        let outcome = merge_group(&mut one, &again);
        (outcome.err(), one.sets.len())
    };
    assert_eq!(merged(&|_| {}), (None, 2), "NaN is the same NaN");
    assert_eq!(merged(&|g| g.attrs.reverse()), (None, 2));
    assert_eq!(merged(&|g| g.sets[0].attrs.reverse()), (None, 2));
    assert_eq!(merged(&|g| g.sets.truncate(1)), (None, 2));
    assert_eq!(merged(&|g| g.sets[1].variable.version = 1), (None, 3));
    let mut both = whole.clone();
    let mut again = whole.clone();
    again.sets[1].variable.name = "w".into();
    merge_group(&mut both, &again).unwrap();
    assert_eq!(both.sets.iter().map(|set| set.variable.name.as_str()).collect::<Vec<_>>(), ["t", "u", "w"]);
    // A view where none was known does not make another set, and is known from then on.
    let mut bare = whole.clone();
    bare.sets[0].view.clear();
    let mut viewed = whole.clone();
    viewed.sets[0].pattern = BasicPattern::Irregular;
    merge_group(&mut bare, &viewed).unwrap();
    let (pattern, view) = (bare.sets[0].pattern, &bare.sets[0].view);
    assert!(pattern == BasicPattern::Irregular && !view.is_empty() && *view == viewed.sets[0].view);
    // Nothing new is merged from a declaration that contradicts.
    let set = |change: fn(&mut ArraySet)| {
        merged(&move |g| {
            g.sets[1].variable.name = "w".into();
            change(&mut g.sets[0]);
        })
    };
    let conflict = (Some("set 't'".to_owned()), 2);
    assert_eq!(set(|s| s.dtype = DType::parse("<f4").unwrap()), conflict);
    assert_eq!(set(|s| s.shape[1] = Some(0)), conflict);
    assert_eq!(set(|s| s.dims[0] = "z".into()), conflict);
    assert_eq!(set(|s| s.fill = None), conflict);
    assert_eq!(set(|s| s.attrs[0].1 = Value::Int(2)), conflict);
    assert_eq!(set(|s| s.pattern = BasicPattern::Irregular), conflict);
    assert_eq!(set(|s| s.view = "cyclic".into()), conflict);
    let property = |change: fn(&mut ArrayGroup)| merged(&change).0.unwrap_or_default();
    assert_eq!(property(|g| g.level = 3), "level");
    assert_eq!(property(|g| g.layout = ArrayLayout::Fields), "layout");
    assert_eq!(property(|g| g.method = "direct".into()), "method");
    assert_eq!(property(|g| g.order = StorageOrder::Fortran), "storage order");
    assert_eq!(property(|g| g.mesh = Some("tail".into())), "mesh");
    assert_eq!(property(|g| g.location = None), "location");
    assert_eq!(property(|g| g.chunks = None), "chunks");
    assert_eq!(property(|g| g.compression = None), "compression");
    assert_eq!(property(|g| g.attrs[0].1 = Value::Int(9)), "attributes");
}

#[test]
fn what_a_record_of_arrays_may_not_hold_is_refused() {
    let refused = |record: Record, part: &str| {
        let error = record.check().unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(part), "{error}");
        let error = Record::decode(&record.encode()).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(part), "{error}");
    };
    let run = RunName { project: String::new(), name: "r".into() };
    let group = |change: fn(&mut ArrayGroup), part: &str| {
        let mut group = simple_group();
        change(&mut group);
        refused(Record::Groups(run.clone(), vec![group]), part);
    };
    Record::Groups(run.clone(), vec![simple_group()]).check().unwrap();
    group(|g| g.name.clear(), "a group has an empty name");
    group(|g| g.level = 4, "a level is 1, 2 or 3, not 4");
    group(|g| g.mesh = None, "a location needs a mesh");
    group(|g| g.chunks = Some(vec![0]), "chunks");
    group(|g| g.sets[1].variable.name = "t".into(), "two sets are named 't'");
    group(|g| g.sets[0].dims.truncate(1), "1 names for 2");
    group(|g| g.sets[0].dims[1] = "y".into(), "another one are both named 'y'");
    group(|g| g.sets[0].shape[0] = Some(1 << 63), "too large");
    let import = ImportDecl {
        name: "uns3d".into(),
        source: "/data/uns3d.msh".into(),
        format: ImportFormat::Raw,
        size: 10,
        mtime: 0,
        checksum: None,
        variables: Vec::new(),
    };
    let x = ImportedVariable { name: "x".into(), dtype: DType::F8, offset: 0, shape: vec![3] };
    let bad = |change: &dyn Fn(&mut ImportDecl), part: &str| {
        let mut import = import.clone();
        change(&mut import);
        refused(Record::Imports(run.clone(), vec![import]), part);
    };
    bad(&|i| i.source.clear(), "source of an import has an empty name");
    bad(&|i| i.checksum = Some(vec![1; 65]), "1 to 64 bytes, not 65");
    bad(&|i| i.variables = vec![x.clone(), x.clone()], "two variables are named 'x'");
    bad(&|i| i.variables = vec![ImportedVariable { offset: u64::MAX, ..x.clone() }], "too large");
    let mesh = MeshDecl {
        name: "wing".into(),
        checksum: vec![1],
        path: "m/a".into(),
        counts: [1; 4],
        attrs: vec![],
        sums: None,
    };
    for path in ["", "/m/a", "../a", "m//a", "m/./a", "m/..", "m/\0"] {
        refused(
            Record::Meshes(vec![MeshDecl { path: path.into(), ..mesh.clone() }]),
            "not a path relative to the store",
        );
    }
    refused(Record::Meshes(vec![MeshDecl { checksum: vec![], ..mesh.clone() }]), "not 0");
    for (size, block, sums) in [(1, 0, 1), (u64::MAX, 1 << 40, 1), (1 << 20, 1 << 10, 1), (0, 1, 1)] {
        let sums = Some(FileSums { size, block, sums: vec![7; sums].into() });
        let error = Record::Meshes(vec![MeshDecl { sums, ..mesh.clone() }]).check().unwrap_err();
        assert!(error.message().contains("mesh 'wing'"), "{}", error.message());
    }
    let parts = |n: usize| HistoryDecl {
        path: "h".into(),
        mesh: vec![1],
        nodes: 4,
        edges: 5,
        content: HistoryContent::Parts {
            vector: vec![2],
            ranks: vec![RankSizes { nodes: 1, ghosts: 0, edges: 2 }; n],
        },
    };
    let error = Record::Histories(vec![parts(0)]).check().unwrap_err();
    assert!(error.to_string().contains("a partition has parts of 1 to 65536 ranks, not 0"), "{error}");
    // A few bytes must not request much memory: the limit is for all histories of a record together.
    let two = Record::Histories(vec![parts(ROWS_MAX), parts(1)]);
    let error = Record::decode(&two.encode()).unwrap_err();
    assert!(error.to_string().contains("impossible number of ranks"), "{error}");
    let split = two.split();
    assert_eq!(split.len(), 2);
    assert!(split.iter().all(|part| said(&Record::decode(&part.encode()).unwrap()) == said(part)));
}

#[test]
fn arrays_belong_to_the_kinds_of_what_they_stand_on() {
    let run = RunName { project: String::new(), name: "r".into() };
    assert_eq!(Record::Groups(run.clone(), Vec::new()).kind_bit(), kinds::VARIABLE);
    assert_eq!(Record::Imports(run, Vec::new()).kind_bit(), kinds::RUN);
    assert_eq!(Record::Meshes(Vec::new()).kind_bit(), kinds::TAG);
    assert_eq!(Record::Histories(Vec::new()).kind_bit(), kinds::TAG);
}
