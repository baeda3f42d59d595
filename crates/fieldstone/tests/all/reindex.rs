//! Fields that another store names: at both ends of a connection, arrays in pieces and in files.

use fieldstone::catalog::CatalogSettings;
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, DType, ErrorKind, FieldSpec, IndexBox, ListOptions, Mode, OpenOptions, ReadOptions,
    Request, Store, Value, end_reindex, loopback, pointers, reindex,
};

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn open(folder: &tempfile::TempDir, name: &str) -> Store {
    fieldstone::open(&folder.path().join(name).display().to_string(), &OpenOptions::default()).unwrap()
}

fn key(step: &str) -> [(&str, &str); 3] {
    [("run", "a"), ("variable", "t"), ("step", step)]
}

#[test]
fn r34_stores_at_the_far_end_name_fields_alike() {
    let folder = tempfile::tempdir().unwrap();
    let near = open(&folder, "from");
    for step in ["0", "6"] {
        near.archive(&key(step), Value::Bytes(step.as_bytes()), &ArchiveOptions::default()).unwrap();
    }
    near.flush(None).unwrap();
    let far = |store: &Store| Store::over(loopback(store.backend().clone()), CatalogSettings::default());
    for (name, from) in [("near", near.clone()), ("far", far(&near))] {
        let to = open(&folder, name);
        let to = if name == "far" { far(&to) } else { to };
        let report = reindex(&from, &request("run=a"), &to).unwrap();
        assert_eq!((report.fields, report.kept, report.left.len()), (2, true, 0));
        assert_eq!(to.get(&key("6"), &ReadOptions::default()).unwrap().read().unwrap(), b"6");
        assert_eq!(to.list(&Request::new(), &ListOptions::default()).unwrap().count(), 2);
        assert_eq!(pointers(&from).unwrap().len(), 1);
        let url = &pointers(&from).unwrap()[0].url;
        assert!(url.ends_with(name), "{url}");
        end_reindex(&from, &request("run=a"), &to).unwrap();
        assert_eq!(pointers(&from).unwrap(), []);
        let nothing = reindex(&from, &request("run=z"), &to).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::NotFound);
        let same = reindex(&from, &request("run=a"), &from).unwrap_err();
        assert_eq!(same.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn r34_pieces_and_boxes_of_arrays_are_read_through() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (open(&folder, "from"), open(&folder, "to"));
    let shape = [40, 50];
    let dtype = DType::parse("<f8").unwrap();
    let spec = FieldSpec { dtype, shape: &shape, fill: None, chunks: None };
    from.create_field(&key("0"), &spec, &ArchiveOptions::default()).unwrap();
    let all: Vec<u8> = (0..2000u32).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    for half in [0u64, 20] {
        let data = &all[half as usize * 400..][..20 * 400];
        let value = Value::Piece { data, dtype, start: &[half, 0], count: &[20, 50], shape: &shape };
        from.archive(&key("0"), value, &ArchiveOptions::default()).unwrap();
    }
    from.flush(None).unwrap();
    assert_eq!(reindex(&from, &request("run=a"), &to).unwrap().fields, 1);
    let read = |store: &Store| store.get(&key("0"), &ReadOptions::default()).unwrap().read().unwrap();
    assert_eq!(read(&to), all);
    let region = IndexBox::new(vec![19, 3], vec![2, 4], &shape).unwrap();
    let some = |store: &Store| {
        let field = store.get(&key("0"), &ReadOptions::default()).unwrap();
        field.read_box(Some(&region)).unwrap()
    };
    assert_eq!(some(&to), some(&from));
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let reader = fieldstone::open(&folder.path().join("to").display().to_string(), &reading).unwrap();
    let refused = reindex(&from, &request("run=a"), &reader).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
}
