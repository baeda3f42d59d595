//! Keys in and out: schemas, types, listing and axes.

use fieldstone_core::Result;

use super::*;

/// Keys of the `simulation` schema: further keywords, absent ones, any order of pairs.
pub fn simulation_keys_come_back(harness: &dyn Harness) -> Result<()> {
    let store = open_as(harness, 0, "simulation")?;
    let keys = [
        ("variable=t,step=6,run=a", "{run=a}{variable=t}{step=6}"),
        ("run=a,variable=t", "{run=a}{variable=t}{}"),
        ("run=a,variable=t,step=-6", "{run=a}{variable=t}{step=-6}"),
        (
            "project=p,run=a,variable=t,step=12,member=3,level=500.0",
            "{project=p,run=a}{variable=t}{step=12,level=500,member=3}",
        ),
    ];
    for (i, (key, _)) in keys.iter().enumerate() {
        put(&store, key, &[i as u8])?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let mut all = listed(&reader, "")?;
    let mut expected: Vec<&str> = keys.iter().map(|(_, text)| *text).collect();
    all.sort();
    expected.sort_unstable();
    assert_eq!(all, expected);
    for (i, (key, text)) in keys.iter().enumerate() {
        assert_eq!(get(&reader, key)?, [i as u8], "{key}");
        assert_eq!(get(&reader, text)?, [i as u8], "{text}");
    }
    Ok(())
}

/// Keys of the `mars` schema: canonical dates, times, steps, a default, absent keywords.
pub fn mars_keys_come_back(harness: &dyn Harness) -> Result<()> {
    let store = open_as(harness, 0, "mars")?;
    let base = "class=rd,expver=xxxx,stream=oper,date=2025-01-01,time=12,type=fc,levtype=pl";
    put(&store, &format!("{base},step=0,levelist=500.0,param=130.128"), b"t")?;
    put(&store, &format!("{base},step=30m,param=129,domain=m"), b"z")?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    assert_eq!(reader.schema().name(), Some("mars"));
    let dataset = "class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,domain";
    assert_eq!(
        listed(&reader, "")?,
        [
            format!("{{{dataset}=g}}{{type=fc,levtype=pl}}{{step=0,levelist=500,param=130}}"),
            format!("{{{dataset}=m}}{{type=fc,levtype=pl}}{{step=30m,param=129}}"),
        ]
    );
    let other = "class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,type=fc,levtype=pl";
    assert_eq!(get(&reader, &format!("{other},step=0,levelist=500,param=130"))?, b"t");
    assert_eq!(get(&reader, &format!("{other},domain=m,step=30m,param=129"))?, b"z");
    assert_eq!(listed(&reader, "date=2025-01-01,param=129/130")?.len(), 2);
    Ok(())
}

/// Long values, and values with every sign the language uses, come back as they were.
pub fn b32_odd_keys_come_back(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let long = "x".repeat(5000);
    let values = [
        "a value of thirty-three characters",
        "a:b",
        "2025-01-01",
        "a/b",
        "a,b=c",
        "*",
        "{curly}",
        "say \"so\" \\ or not",
        " spaces ",
        "línea\nÅ\u{1F30D}\u{0}",
        "to",
        "by",
        "None",
        &long,
    ];
    for value in values {
        store.archive(
            &[("run", value), ("variable", "v"), ("note", value)],
            Value::Bytes(value.as_bytes()),
            &ArchiveOptions::default(),
        )?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let all = listed(&reader, "")?;
    assert_eq!(all.len(), values.len());
    for value in values {
        let pairs = [("run", value), ("variable", "v"), ("note", value)];
        assert_eq!(reader.get(&pairs, &ReadOptions::default())?.read()?, value.as_bytes());
    }
    for text in &all {
        let bytes = get(&reader, text)?;
        assert!(listed(&reader, text)? == [text.clone()], "{text}");
        assert!(values.iter().any(|v| v.as_bytes() == bytes));
    }
    Ok(())
}

/// Lists and axes are in typed order: 2 before 10, whichever process wrote them.
pub fn typed_values_sort(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for (i, step) in [10, 2, -1, 100, 0, 33].iter().enumerate() {
        let store = if i % 2 == 0 { &a } else { &b };
        put(store, &format!("run=a,variable=t,step={step}"), b"x")?;
        flush(harness, store)?;
    }
    let keys = listed(&a, "")?;
    let steps: Vec<&str> = keys.iter().filter_map(|k| k.rsplit("step=").next()?.strip_suffix('}')).collect();
    assert_eq!(steps, ["-1", "0", "2", "10", "33", "100"]);
    Ok(())
}

/// An exact key finds the field without its optional keywords, though others have them; a key that
/// names one of several as a request is an error that says so.
pub fn get_finds_absent_optionals(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    put(&store, "run=a,variable=t", b"plain")?;
    put(&store, "run=a,variable=t,step=1", b"one")?;
    put(&store, "run=a,variable=t,step=1,member=1", b"one of one")?;
    put(&store, "run=a,variable=u,step=7,member=2", b"alone")?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    assert_eq!(get(&reader, "run=a,variable=t")?, b"plain");
    assert_eq!(get(&reader, "run=a,variable=t,step=1")?, b"one");
    assert_eq!(get(&reader, "run=a,variable=t,step=1,member=1")?, b"one of one");
    assert_eq!(get(&reader, "run=a,variable=u")?, b"alone");
    assert_eq!(get(&reader, "variable=u,step=7")?, b"alone");
    fails("a key of two fields", ErrorKind::Invalid, get(&reader, "variable=t,step=1"));
    let missing = fails("no such field", ErrorKind::NotFound, get(&reader, "run=a,variable=t,step=9"));
    names(&missing, "step=9");
    Ok(())
}

/// Axes: every value present, once, over all processes; a request narrows them.
pub fn axes_hold_what_is_there(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for (store, run) in [(&a, "a"), (&b, "b")] {
        for (variable, step) in [("t", "6"), ("t", "12"), ("u", "0")] {
            put(store, &format!("run={run},variable={variable},step={step}"), b"x")?;
        }
        put(store, &format!("run={run},variable=mask"), b"x")?;
        flush(harness, store)?;
    }
    let axes = |text: &str| -> Result<Vec<String>> {
        let axes = a.axes(&request(text)?, &ReadOptions::default())?;
        let show = |(name, values): &(Arc<str>, Vec<_>)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{name}={}", values.join("/"))
        };
        Ok(axes.iter().map(show).collect())
    };
    assert_eq!(axes("")?, ["run=a/b", "variable=mask/t/u", "step=0/6/12"]);
    assert_eq!(axes("run=b,variable=t")?, ["run=b", "variable=t", "step=6/12"]);
    assert_eq!(axes("variable=mask")?, ["run=a/b", "variable=mask"]);
    assert_eq!(axes("run=none")?, [""; 0]);
    Ok(())
}

/// A list of datasets and of indexes names each once.
pub fn list_by_depth(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for step in 0..5 {
        for store in [&a, &b] {
            put(store, &format!("run=x,variable=t,step={step}"), b"1")?;
            put(store, &format!("run=x,variable=u,step={step}"), b"1")?;
            put(store, &format!("run=y,variable=t,step={step}"), b"1")?;
        }
        flush(harness, &a)?;
        flush(harness, &b)?;
    }
    let at = |depth: u8, text: &str| -> Result<Vec<String>> {
        let options = ListOptions { depth, ..ListOptions::default() };
        let entries: Vec<ListEntry> = a.list(&request(text)?, &options)?.collect::<Result<_>>()?;
        assert!(entries.iter().all(|e| e.depth == depth));
        let cut = |e: &ListEntry| -> String {
            e.key.to_string().split_inclusive('}').take(usize::from(depth)).collect()
        };
        Ok(entries.iter().map(cut).collect())
    };
    assert_eq!(at(1, "")?, ["{run=x}", "{run=y}"]);
    assert_eq!(at(2, "")?, ["{run=x}{variable=t}", "{run=x}{variable=u}", "{run=y}{variable=t}"]);
    assert_eq!(at(3, "")?.len(), 15);
    assert_eq!(at(1, "variable=u")?, ["{run=x}"]);
    assert_eq!(at(2, "variable=u,step=3")?, ["{run=x}{variable=u}"]);
    assert_eq!(at(1, "step=9")?, [""; 0]);
    for depth in [0, 4] {
        let options = ListOptions { depth, ..ListOptions::default() };
        fails("a list of that depth", ErrorKind::Invalid, a.list(&Request::new(), &options));
    }
    Ok(())
}

/// A masked list has the hidden versions too, newest first, marked.
pub fn list_masked(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for (i, store) in [&a, &b, &a].into_iter().enumerate() {
        put(store, "run=a,variable=t", &vec![1; i + 1])?;
        flush(harness, store)?;
    }
    put(&a, "run=a,variable=u", b"u")?;
    flush(harness, &a)?;
    let options = ListOptions { masked: true, ..ListOptions::default() };
    let list: Vec<ListEntry> = b.list(&Request::new(), &options)?.collect::<Result<_>>()?;
    let seen: Vec<(u64, bool)> = list.iter().map(|e| (e.nbytes, e.masked)).collect();
    assert_eq!(seen, [(3, false), (2, true), (1, true), (1, false)]);
    assert!(list[0].time >= list[2].time || list[0].place != list[2].place);
    Ok(())
}
