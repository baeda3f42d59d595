//! Data outside the store: boxes read from raw files equal the array in the files; files that are absent, short or
//! foreign are named.

use std::path::Path;

use fieldstone::catalog::value::Value;
use fieldstone::outside::{Outside, read_raw};
use fieldstone::{DType, Env, ErrorKind, IndexBox};
use fieldstone_format::catalog::{RunDecl, RunName, VariableDecl, VariableName};
use fieldstone_testkit::seeded;

fn run() -> RunDecl {
    RunDecl {
        run: RunName { project: String::new(), name: "astro".into() },
        job: Some("17".into()),
        params: Vec::new(),
        created: 0,
        grid: None,
        notes: None,
        outside: None,
        annotate: Default::default(),
        if_exists: None,
        state: None,
    }
}

fn variable(shape: &[u64], dtype: &str) -> VariableDecl {
    VariableDecl {
        variable: VariableName { name: "t".into(), version: 0 },
        dtype: Some(DType::parse(dtype).unwrap()),
        shape: Some(shape.to_vec()),
        dims: Vec::new(),
        attrs: Vec::new(),
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    }
}

fn map(parts: &[(&str, Value)]) -> Value {
    Value::Map(parts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(numbers: &[u64]) -> Value {
    Value::List(numbers.iter().map(|&n| Value::Int(n as i64)).collect())
}

/// The elements of a box of an array whose elements are their indices.
fn elements(shape: &[u64], region: &IndexBox) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..region.element_count().unwrap() {
        let (mut rest, mut place) = (i, vec![0; shape.len()]);
        for d in (0..shape.len()).rev() {
            place[d] = region.start()[d] + rest % region.count()[d];
            rest /= region.count()[d];
        }
        let at = place.iter().zip(shape).fold(0, |at, (p, s)| at * s + p);
        out.extend((at as u32).to_le_bytes());
    }
    out
}

fn read(
    outside: &Outside,
    variable: &VariableDecl,
    region: Option<&IndexBox>,
) -> fieldstone::Result<Vec<u8>> {
    let plan = outside.plan(&run(), variable, Some(3), region)?;
    let mut out = vec![0; plan.region.element_count()? as usize * plan.dtype.size()];
    read_raw(&*Env::real().disk, &plan, &mut out)?;
    Ok(out)
}

#[test]
fn boxes_read_from_raw_files_are_those_of_the_array() {
    let mut random = seeded(3);
    for round in 0..150 {
        let folder = tempfile::tempdir().unwrap();
        let rank = random.below(4) as usize;
        let shape: Vec<u64> = (0..rank).map(|_| 1 + random.below(14)).collect();
        let chunks: Vec<u64> = (0..rank).map(|_| 1 + random.below(9)).collect();
        let offset = random.below(3) * 100;
        let names = ["{run}/{variable}_{step:04d}", "_{0}", "_{1.n}", "_{2}"][..=rank].concat();
        let mut parts = vec![
            ("template", text(&names)),
            ("format", text("raw")),
            ("root", text(folder.path().to_str().unwrap())),
            ("chunks", list(&chunks)),
            ("offset", Value::Int(offset as i64)),
        ];
        if round % 2 == 0 {
            parts.push(("object_bytes", Value::Int(1 + random.below(600) as i64)));
        }
        let (outside, variable) = (Outside::parse(&map(&parts)).unwrap(), variable(&shape, "<u4"));
        let whole = outside.plan(&run(), &variable, Some(3), None).unwrap();
        std::fs::create_dir(folder.path().join("astro")).unwrap();
        for object in &whole.reads {
            assert_eq!(object.part, object.piece);
            let mut bytes = vec![0xee; offset as usize];
            bytes.extend(elements(&shape, &object.piece));
            std::fs::write(&object.path, bytes).unwrap();
        }
        for _ in 0..8 {
            let start: Vec<u64> = shape.iter().map(|s| random.below(s + 1)).collect();
            let count = shape.iter().zip(&start).map(|(s, a)| random.below(s - a + 1)).collect();
            let region = IndexBox::new(start, count, &shape).unwrap();
            let got = read(&outside, &variable, Some(&region)).unwrap();
            assert!(got == elements(&shape, &region), "{shape:?} in {chunks:?}: {region}");
        }
        let everything = IndexBox::whole(&shape).unwrap();
        assert_eq!(read(&outside, &variable, None).unwrap(), elements(&shape, &everything));
    }
}

#[test]
fn a_file_may_hold_all_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.bin");
    let bytes: Vec<u8> = (0..5 * 6_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&path, bytes).unwrap();
    let outside = Outside::parse(&map(&[
        ("template", text(path.with_file_name("{variable}.bin").to_str().unwrap())),
        ("format", text("raw")),
        ("steps", text("index")),
        ("dtype", text("<u4")),
    ]))
    .unwrap();
    let got = read(&outside, &variable(&[2, 3], "<f8"), Some(&IndexBox::parse("1:2,0:2").unwrap())).unwrap();
    assert_eq!(got, [21_u32, 22].map(u32::to_le_bytes).concat());
    let plan = outside.plan(&run(), &variable(&[2, 3], "<u4"), Some(5), None).unwrap();
    let error = read_raw(&*Env::real().disk, &plan, &mut [0; 24]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(outside.plan(&run(), &variable(&[2, 3], "<u4"), None, None).is_err());
}

#[test]
fn only_the_objects_of_the_box_are_opened_and_those_at_fault_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let outside = Outside::parse(&map(&[
        ("template", text("{variable}_{x}.raw")),
        ("format", text("raw")),
        ("root", text(folder.path().to_str().unwrap())),
        ("chunks", list(&[4])),
    ]))
    .unwrap();
    let v = variable(&[10], "<u4");
    let file = |start: u64| folder.path().join(format!("t_{start}.raw"));
    let put = |path: &Path, range: std::ops::Range<u32>| {
        std::fs::write(path, range.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    };
    put(&file(4), 4..8);
    let boxed = |text: &str| read(&outside, &v, Some(&IndexBox::parse(text).unwrap()));
    assert_eq!(boxed("5:7").unwrap(), [5_u32, 6].map(u32::to_le_bytes).concat());
    let absent = boxed("3:5").unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    assert!(absent.message().contains("t_0.raw") && absent.message().contains("0:4"), "{absent}");
    for range in [4..7, 4..9] {
        put(&file(4), range);
        let foreign = boxed("5:7").unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::Corrupt);
        assert!(foreign.message().contains("t_4.raw") && foreign.message().contains("4:8"), "{foreign}");
        assert!(foreign.hint().is_some());
    }
    assert_eq!(boxed("5:11").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn declarations_that_cannot_work_are_refused() {
    let good = [("template", text("{variable}_{x}.nc")), ("format", text("netcdf"))];
    assert!(Outside::parse(&map(&good)).is_ok());
    let with = |key: &'static str, value: Value| {
        let mut parts: Vec<_> = good.iter().filter(|(known, _)| *known != key).cloned().collect();
        parts.push((key, value));
        Outside::parse(&map(&parts)).unwrap_err()
    };
    for (key, value, why) in [
        ("format", text("grib"), "format is"),
        ("template", Value::Null, "template is missing"),
        ("template", Value::Int(3), "give a text"),
        ("chunks", text("x"), "chunks"),
        ("chunks", map(&[("t", text("x"))]), "list of extents"),
        ("object_bytes", Value::Int(0), "object_bytes"),
        ("offset", Value::Int(-1), "offset"),
        ("steps", text("often"), "steps"),
        ("dtype", text("f7"), "f7"),
        ("datset", text("x"), "did you mean `dataset`"),
    ] {
        let error = with(key, value);
        let said = format!("{} {}", error.message(), error.hint().unwrap_or(""));
        assert!(error.kind() == ErrorKind::Invalid && said.contains(why), "{key}: {said}");
    }
    let outside = Outside::parse(&map(&good)).unwrap();
    let unshaped = VariableDecl { shape: None, ..variable(&[], "<f8") };
    assert!(outside.plan(&run(), &unshaped, Some(0), None).unwrap_err().message().contains("no shape"));
    let plan = outside.plan(&run(), &variable(&[4], "<f8"), Some(0), None).unwrap();
    assert_eq!((plan.reads[0].path.as_str(), plan.reads[0].dataset.as_str()), ("t_0.nc", "t"));
    let refused = read_raw(&*Env::real().disk, &plan, &mut [0; 32]).unwrap_err();
    assert!(refused.message().contains("netcdf"), "{refused}");
}
