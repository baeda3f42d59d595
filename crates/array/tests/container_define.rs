//! Define mode of one rank: what it takes, what it refuses and how it says so.

use fieldstone_array::container::Format;
use fieldstone_array::container::define::{Definitions, DimColumn, RECORD, Types, VarColumns};
use fieldstone_core::ErrorKind;
use fieldstone_format::netcdf::{Attrs, Names, NcType, Version};

fn cdf5() -> Definitions {
    Definitions::new(Format::Classic(Version::Cdf5))
}

fn names(list: &[&str]) -> Names {
    list.iter().collect()
}

/// The error of a call, as kind and message.
fn refused<T: std::fmt::Debug>(result: fieldstone_core::Result<T>) -> (ErrorKind, String) {
    match result {
        Err(error) => (error.kind(), error.message().to_owned()),
        Ok(value) => (ErrorKind::Internal, format!("nothing was refused: {value:?}")),
    }
}

#[test]
fn a_dimension_is_looked_up_from_the_variable_outwards() {
    let mut d = cdf5();
    let x = d.def_dim("x", Some(1)).unwrap();
    let ax = d.def_dim("a/x", Some(2)).unwrap();
    let abx = d.def_dim("a/b/x", Some(3)).unwrap();
    let cy = d.def_dim("c/y", Some(4)).unwrap();
    for (var, dim, id) in [
        ("v", "x", x),
        ("a/v", "x", ax),
        ("a/b/v", "x", abx),
        ("a/b/c/v", "x", abx),
        ("b/v", "x", x),
        ("a/w", "b/x", abx),
        ("a/u", "c/y", cy),
    ] {
        let var = d.def_var(var, NcType::Int, &[dim]).unwrap();
        assert_eq!(d.header().vars.get(var as usize).dims(), [id]);
    }
    let (kind, message) = refused(d.def_var("a/b/z", NcType::Int, &["y"]));
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("tried `a/b/y`, `a/y`, `y`"), "{message}");
}

#[test]
fn what_is_illegal_is_refused_at_once() {
    let mut d = cdf5();
    d.def_dim("x", Some(4)).unwrap();
    let t = d.def_dim("t", None).unwrap();
    assert_eq!(refused(d.def_dim("x", Some(4))).0, ErrorKind::Conflict);
    let (kind, message) = refused(d.def_dim("u", None));
    assert!(kind == ErrorKind::Conflict && message.contains("`t` is"), "{message}");
    assert!(refused(d.def_dim("zero", Some(0))).1.contains("length 0"));
    for name in ["", "a//b", "/a", "a/", " a", "a b ", "a\u{1}", "a\u{7f}", &"n".repeat(257)] {
        assert_eq!(refused(d.def_dim(name, Some(1))).0, ErrorKind::Invalid, "{name:?}");
        assert_eq!(refused(d.def_var(name, NcType::Int, &[])).0, ErrorKind::Invalid, "{name:?}");
        let (kind, message) = refused(d.def_dims(names(&["good", name]), &[1, 1]));
        assert_eq!((kind, message), refused(d.def_dim(name, Some(1))), "{name:?}");
    }
    let (_, message) = refused(d.def_var("v", NcType::Int, &["x", "t"]));
    assert!(message.contains("may only be the first"), "{message}");
    assert!(refused(d.def_var_by_ids("v", NcType::Int, &[7])).1.contains("number 7"));
    d.def_var_by_ids("v", NcType::Int, &[t]).unwrap();
    assert_eq!(refused(d.def_var("v", NcType::Int, &[])).0, ErrorKind::Conflict);
    assert_eq!(refused(d.put_att(Some(9), "a", NcType::Int, &[])).0, ErrorKind::NotFound);
    assert!(refused(d.put_att(Some(0), "a", NcType::Int, &[1, 2])).1.contains("2 bytes"));
    assert!(refused(d.put_att(Some(0), "_FillValue", NcType::Float, &[0; 4])).1.contains("int"));
    assert!(refused(d.put_att(None, "fieldstone_paths", NcType::Char, b"x")).1.contains("reserved"));
    let mut old = Definitions::new(Format::Classic(Version::Cdf2));
    assert!(refused(old.def_var("v", NcType::Int64, &[])).1.contains("CDF-2 has no type int64"));
    assert!(refused(old.def_dim("x", Some(1 << 31))).1.contains("2147483647"));
    // What was refused left nothing behind.
    assert_eq!((d.counts().dims, d.counts().vars, d.counts().attrs), (2, 1, 0));
}

#[test]
fn names_are_kept_in_normal_form_and_found_in_any() {
    let mut d = cdf5();
    d.def_dim("e\u{301}", Some(2)).unwrap();
    assert_eq!(d.header().dims.names.get(0), "\u{e9}");
    assert_eq!(d.find_dim("e\u{301}"), Some(0));
    d.def_dims(names(&["o\u{308}"]), &[3]).unwrap();
    assert_eq!(d.find_dim("\u{f6}"), Some(1));
    d.def_var("v", NcType::Int, &["\u{e9}", "o\u{308}"]).unwrap();
}

#[test]
fn columns_define_what_single_calls_do() {
    let mut one = cdf5();
    let mut many = cdf5();
    one.def_dim("t", None).unwrap();
    one.def_dim("a/x", Some(3)).unwrap();
    one.def_dim("x", Some(5)).unwrap();
    many.def_dims(names(&["t", "a/x", "x"]), &[RECORD, 3, 5]).unwrap();
    for (var, ty, dims) in
        [("a/v", NcType::Int, &["t", "x"][..]), ("a/w", NcType::Char, &["x"]), ("s", NcType::Int, &[])]
    {
        let var = one.def_var(var, ty, dims).unwrap();
        one.put_att(Some(var), "units", NcType::Char, b"m").unwrap();
    }
    let mut attrs = Attrs::default();
    (0..3).for_each(|_| attrs.push("units", NcType::Char, b"m"));
    let range = many.def_many(&VarColumns {
        names: &names(&["a/v", "a/w", "s"]),
        types: Types::Each(&[NcType::Int, NcType::Char, NcType::Int]),
        dims: DimColumn::Names(&names(&["t", "x", "x"]), &[2, 3, 3]),
        attrs: Some((&attrs, &[1, 2, 3])),
    });
    assert_eq!(range.unwrap(), 0..3);
    assert_eq!(one.header(), many.header());
    for ((dims, var), expected) in [
        (DimColumn::SameNames(&names(&["t", "x"])), "a/z1"),
        (DimColumn::SameIds(&[0, 1]), "a/z2"),
        (DimColumn::Ids(&[0, 1], &[2]), "a/z3"),
    ]
    .into_iter()
    .zip([[0, 1]; 3])
    {
        let columns = VarColumns { names: &names(&[var]), types: Types::One(NcType::Int), dims, attrs: None };
        let id = many.def_many(&columns).unwrap().start;
        assert_eq!(many.header().vars.get(id as usize).dims(), expected);
    }
    let wrong = VarColumns {
        names: &names(&["p", "q"]),
        types: Types::One(NcType::Int),
        dims: DimColumn::Ids(&[1, 0], &[0, 2]),
        attrs: None,
    };
    let (_, message) = refused(many.def_many(&wrong));
    assert!(message.contains("`q`") && message.contains("only be the first"), "{message}");
    assert!(refused(many.def_dims(names(&["p"]), &[])).1.contains("0 lengths"));
    assert!(refused(many.def_dims(names(&["p"]), &[RECORD])).1.contains("one at most"));
}

#[test]
fn attributes_may_come_late_and_be_replaced() {
    let mut d = cdf5();
    for var in ["a", "b", "c"] {
        d.def_var(var, NcType::Int, &[]).unwrap();
    }
    d.put_att(Some(0), "units", NcType::Char, b"m").unwrap();
    d.put_att(Some(2), "units", NcType::Char, b"s").unwrap();
    d.put_att(Some(2), "units", NcType::Char, b"hours").unwrap();
    d.put_att(Some(0), "note", NcType::Short, &[0, 7]).unwrap();
    d.put_att(None, "title", NcType::Char, b"old").unwrap();
    d.put_att(None, "event_7/weight", NcType::Char, b"1").unwrap();
    d.put_att(None, "title", NcType::Char, b"new title").unwrap();
    let header = d.header();
    let shown = |i: usize| header.vars.get(i).attrs().map(|a| (a.name, a.value)).collect::<Vec<_>>();
    assert_eq!(shown(0), [("units", &b"m"[..]), ("note", &[0, 7])]);
    assert!(shown(1).is_empty());
    assert_eq!(shown(2), [("units", &b"hours"[..])]);
    let global: Vec<_> = header.attrs.iter().map(|a| (a.name, a.value)).collect();
    assert_eq!(global, [("title", &b"new title"[..]), ("event_7/weight", b"1")]);
    d.del_att(Some(0), "units").unwrap();
    d.del_att(None, "title").unwrap();
    assert_eq!(refused(d.del_att(None, "title")).0, ErrorKind::NotFound);
    assert_eq!(d.header().vars.get(0).attrs().len(), 1);
    assert_eq!(d.header().attrs.names.iter().collect::<Vec<_>>(), ["event_7/weight"]);
}

#[test]
fn a_redefinition_keeps_numbers_and_knows_the_old_names() {
    let mut d = cdf5();
    d.def_dim("x", Some(3)).unwrap();
    d.def_var("v", NcType::Int, &["x"]).unwrap();
    let base = d.header().clone();
    let mut d = Definitions::from_header(Format::Classic(Version::Cdf5), base);
    assert_eq!(refused(d.def_dims(names(&["x"]), &[3])).0, ErrorKind::Conflict);
    d.rename_dim(0, "y").unwrap();
    assert_eq!(d.find_dim("x"), None);
    assert_eq!(d.def_dim("x", Some(9)).unwrap(), 1);
    assert_eq!(refused(d.rename_var(0, "a//b")).0, ErrorKind::Invalid);
    d.rename_var(0, "p/v").unwrap();
    d.put_att(Some(0), "units", NcType::Char, b"m").unwrap();
    let w = d.def_var("p/w", NcType::Int, &["y", "x"]).unwrap();
    assert_eq!((w, d.header().vars.get(1).dims()), (1, &[0, 1][..]));
    assert_eq!(refused(d.rename_var(1, "p/v")).0, ErrorKind::Conflict);
}
