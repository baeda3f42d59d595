//! Define mode of one rank: what it accepts, what it refuses, and its error messages.

use fieldstone_array::container::Format;
use fieldstone_array::container::define::{Change, Definitions, DimColumn, RECORD, Types, VarColumns};
use fieldstone_core::ErrorKind;
use fieldstone_format::netcdf::{Attr, Attrs, Names, NcType, Version};

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
fn a_variable_is_defined_with_all_its_attributes_or_not_at_all() {
    let mut d = cdf5();
    d.def_dim("x", Some(1)).unwrap();
    let attr = |name, ty, value| Attr { name, ty, value };
    let units = attr("units", NcType::Char, b"K");
    for wrong in [
        attr("_FillValue", NcType::Int, &[0, 0, 0, 1]),
        attr("half", NcType::Int, &[0, 0]),
        attr("a/b", NcType::Byte, &[1]),
    ] {
        let (kind, message) = refused(d.def_var_with("v", NcType::Float, &["x"], &[units, wrong]));
        assert_eq!(kind, ErrorKind::Invalid);
        assert!(message.contains(wrong.name), "{message}");
        assert_eq!((d.find_var("v"), d.counts().vars), (None, 0));
    }
    assert_eq!(refused(d.def_var_with("v", NcType::Float, &["y"], &[units])).0, ErrorKind::Invalid);
    let fill = attr("_FillValue", NcType::Float, &[0; 4]);
    let v = d.def_var_with("v", NcType::Float, &["x"], &[units, fill]).unwrap();
    let held = d.attrs_of(v).unwrap();
    assert_eq!(held.names.iter().collect::<Vec<_>>(), ["units", "_FillValue"]);
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
    assert!(kind == ErrorKind::Conflict && message.contains("after `t`"), "{message}");
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
    // The refused calls left nothing behind.
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
    assert!(refused(many.def_dims(names(&["p"]), &[RECORD])).1.contains("at most one"));
}

/// One variable with one attribute, in columns.
fn with_attr(d: &mut Definitions, ty: NcType, attr: (&str, NcType, &[u8])) -> fieldstone_core::Result<()> {
    let mut attrs = Attrs::default();
    attrs.push(attr.0, attr.1, attr.2);
    let columns = VarColumns {
        names: &names(&["v"]),
        types: Types::One(ty),
        dims: DimColumn::SameIds(&[]),
        attrs: Some((&attrs, &[1])),
    };
    columns.check_fill_values()?;
    d.def_many(&columns).map(|_| ())
}

#[test]
fn attributes_in_columns_are_checked_as_single_ones() {
    let cdf2 = || Definitions::new(Format::Classic(Version::Cdf2));
    for (new, ty, name, attr_ty, value) in [
        (cdf5 as fn() -> Definitions, NcType::Float, "a", NcType::Double, &[0; 3][..]),
        (cdf5, NcType::Float, "_FillValue", NcType::Char, b"text"),
        (cdf5, NcType::Float, "_FillValue", NcType::Float, &[0; 8]),
        (cdf5, NcType::Float, "_FillValue", NcType::Float, &[]),
        (cdf5, NcType::Float, "a/b", NcType::Int, &[0; 4]),
        (cdf2, NcType::Float, "a", NcType::Int64, &[0; 8]),
    ] {
        let mut single = new();
        let var = single.def_var("v", ty, &[]).unwrap();
        let expected = refused(single.put_att(Some(var), name, attr_ty, value));
        assert_eq!(expected.0, ErrorKind::Invalid, "{}", expected.1);
        let mut many = new();
        assert_eq!(refused(with_attr(&mut many, ty, (name, attr_ty, value))), expected);
        assert_eq!(many.counts().vars, 0);
    }
    with_attr(&mut cdf5(), NcType::Float, ("_FillValue", NcType::Float, &[0; 4])).unwrap();
    // Fill values of foreign files are copied unchanged.
    let mut attrs = Attrs::default();
    attrs.push("_FillValue", NcType::Double, &[1; 8]);
    let columns = VarColumns {
        names: &names(&["v"]),
        types: Types::One(NcType::Short),
        dims: DimColumn::SameIds(&[]),
        attrs: Some((&attrs, &[1])),
    };
    let mut d = cdf5();
    d.def_many(&columns).unwrap();
    assert_eq!(d.attrs_of(0).unwrap(), attrs);
}

#[test]
fn a_variable_may_have_any_number_of_attributes() {
    for count in [31, 32, 33, 34, 500] {
        let mut attrs = Attrs::default();
        (0..count).for_each(|i| attrs.push(&format!("a{i}"), NcType::Short, &[0, i as u8]));
        let (vars, ends) = (names(&["v", "w"]), [0, count as u64]);
        let columns = |attrs| VarColumns {
            names: &vars,
            types: Types::One(NcType::Int),
            dims: DimColumn::SameIds(&[]),
            attrs: Some((attrs, &ends)),
        };
        let mut many = cdf5();
        many.def_many(&columns(&attrs)).unwrap();
        let mut one = cdf5();
        one.def_var("v", NcType::Int, &[]).unwrap();
        one.def_var("w", NcType::Int, &[]).unwrap();
        attrs.iter().for_each(|attr| one.put_att(Some(1), attr.name, attr.ty, attr.value).unwrap());
        assert_eq!(one.header(), many.header(), "{count}");

        // Replaced attributes stay in their place, also when attributes of several variables alternate, after
        // queries, and in a redefinition.
        let base = one.header().clone();
        let redefined = Definitions::from_header(Format::Classic(Version::Cdf5), base);
        for mut d in [one, redefined] {
            for i in (0..count).step_by(3) {
                d.put_att(Some(1), &format!("a{i}"), NcType::Char, b"new").unwrap();
                d.put_att(Some(0), &format!("b{i}"), NcType::Char, b"v").unwrap();
                if i % 5 == 0 {
                    assert_eq!(d.header().vars.get(0).attrs().len(), i / 3 + 1);
                }
            }
            d.del_att(Some(1), "a1").unwrap();
            d.put_att(Some(1), "a2", NcType::Char, b"two").unwrap();
            d.put_att(Some(1), "a1", NcType::Char, b"last").unwrap();
            let shown = d.attrs_of(1).unwrap();
            let listed: Vec<_> = shown.names.iter().map(str::to_owned).collect();
            let rest = (0..count).filter(|i| *i != 1).chain([1]);
            assert_eq!(listed, rest.map(|i| format!("a{i}")).collect::<Vec<_>>());
            for attr in shown.iter() {
                let i: usize = attr.name[1..].parse().unwrap();
                let expected = match i {
                    1 => &b"last"[..],
                    2 => b"two",
                    _ if i.is_multiple_of(3) => b"new",
                    _ => &[0, i as u8],
                };
                assert_eq!(attr.value, expected, "{}", attr.name);
            }
        }
        let mut twice = attrs.clone();
        twice.push("a0", NcType::Char, b"again");
        let ends = [0, count as u64 + 1];
        let (kind, message) =
            refused(cdf5().def_many(&VarColumns { attrs: Some((&twice, &ends)), ..columns(&attrs) }));
        assert_eq!(
            (kind, message.as_str()),
            (ErrorKind::Conflict, "attribute `a0` of variable `w` is given twice")
        );
    }
}

#[test]
fn what_is_done_to_a_thing_of_the_file_is_told_once() {
    let mut d = cdf5();
    let many: Vec<String> = (0..500).map(|i| format!("v{i}")).collect();
    d.def_dim("x", Some(3)).unwrap();
    for var in &many {
        d.def_var(var, NcType::Int, &["x"]).unwrap();
    }
    d.put_att(None, "title", NcType::Char, b"old").unwrap();
    d.put_att(None, "history", NcType::Char, b"old").unwrap();
    let base = d.header().clone();
    let mut d = Definitions::from_header(Format::Classic(Version::Cdf5), base);
    for round in ["a", "b", "c"] {
        for var in 0..500 {
            d.put_att(Some(var), "units", NcType::Char, round.as_bytes()).unwrap();
        }
        d.put_att(None, "title", NcType::Char, round.as_bytes()).unwrap();
        d.rename_dim(0, round).unwrap();
        d.rename_var(7, round).unwrap();
        d.header();
    }
    d.del_att(None, "history").unwrap();
    d.put_att(None, "history", NcType::Char, b"new").unwrap();
    d.put_att(None, "own", NcType::Char, b"new").unwrap();
    let changes = d.changes();
    assert_eq!(changes.len(), 500 + 4);
    let units = |id| {
        let mut attrs = Attrs::default();
        attrs.push("units", NcType::Char, b"c");
        Change::VarAttrs(id, attrs)
    };
    assert!((0..500).all(|id| changes.contains(&units(id))));
    for change in [
        Change::DimName(0, "c".into()),
        Change::VarName(7, "c".into()),
        Change::PutGlobal("title".into(), NcType::Char, b"c".to_vec()),
        Change::DelGlobal("history".into()),
    ] {
        assert!(changes.contains(&change), "{change:?}");
    }
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
