//! Exit codes, errors with hints, help, completions, pipes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::harness::TestStore;

const KEY: &str = "run=a variable=t step=6";
const VERBS: [&str; 57] = [
    "hand-over",
    "hold",
    "backup",
    "promote",
    "prefetch",
    "transaction",
    "arrays",
    "mesh",
    "annotate",
    "find",
    "runs",
    "steps",
    "variables",
    "tags",
    "sql",
    "delete",
    "remove",
    "wipe",
    "lock",
    "unlock",
    "locks",
    "hide",
    "unhide",
    "overlay",
    "reindex",
    "erase",
    "rebuild",
    "objects",
    "repoint",
    "repair",
    "show",
    "init",
    "schema",
    "help",
    "archive",
    "get",
    "list",
    "axes",
    "where",
    "ingest",
    "export",
    "plot",
    "stats",
    "status",
    "verify",
    "accept",
    "compact",
    "purge",
    "retain",
    "maintain",
    "upgrade",
    "dump",
    "version",
    "doctor",
    "completions",
    "man",
    "container",
];

#[test]
fn an_error_is_json_where_data_are() {
    let t = TestStore::with(&[KEY]);
    let of = |arguments: &[&str], exit: i32| {
        let ran = t.run(arguments.iter().copied());
        let report: serde_json::Value = serde_json::from_str(&ran.err()).unwrap();
        assert!(ran.bytes().is_empty());
        ran.code(exit);
        report["error"].clone()
    };
    let error = of(&["get", "store", "run=a,variable=t,step=7", "-o", "f", "--json"], 3);
    assert_eq!((&error["kind"], &error["code"]), (&"NotFound".into(), &"field-not-found".into()));
    assert_eq!(error["retryable"], false);
    assert!(error["message"].as_str().unwrap().contains("step=7") && error["hint"].is_string());
    assert_eq!(of(&["list", "nowhere", "--jsonl"], 3)["code"], "store-not-found");
    assert_eq!(of(&["lits", "store", "--json"], 2)["code"], "command-line");
    assert_eq!(of(&["list", "store", "step=0/too/6", "--json"], 2)["code"], "keyword-value");
}

#[test]
fn spans_are_told_to_who_asks_and_to_nobody_else() {
    let t = TestStore::with(&[KEY]);
    let run = |asked: Option<&str>| {
        let mut command = t.command(["archive", "store", "run=a", "variable=t", "step=7"]);
        command.env_remove("FIELDSTONE_LOG");
        if let Some(asked) = asked {
            command.env("FIELDSTONE_LOG", asked);
        }
        crate::harness::finish(command, b"x").ok()
    };
    let silent = run(None);
    assert!(!silent.err().contains("commit"), "{}", silent.err());
    let report = run(Some("debug"));
    assert_eq!(report.out(), silent.out());
    for words in ["open{store=\"store\"", "flush:commit{", "fields=1", "records=0", "syncs=1"] {
        assert!(report.err().contains(words), "{words}: {}", report.err());
    }
    assert!(!report.err().contains("look{"), "that is of level trace: {}", report.err());
    let part = run(Some("fieldstone_catalog=trace"));
    assert!(!part.err().contains("commit"), "{}", part.err());
    assert!(run(Some("fieldstone=loud")).err().contains("FIELDSTONE_LOG=fieldstone=loud"));
}

#[test]
fn not_found_is_3() {
    let t = TestStore::with(&[KEY]);
    t.run(["list", "nowhere"]).code(3).says(&["nowhere"]);
    t.run(["get", "store", "run=a,variable=t,step=7"]).code(3).says(&["step=7"]);
    t.run(["get", "store", "run=zz"]).code(3).says(&["run=zz"]);
    t.run(["archive", "store", "run=a", "variable=t", "absent.grib"]).code(3).says(&["absent.grib"]);
    for verb in ["get", "axes", "where", "plot", "stats", "status", "verify", "dump", "version"] {
        t.run([verb, "nowhere"]).code(3);
    }
    assert!(!t.file("nowhere").exists());
}

#[test]
fn invalid_is_2() {
    let t = TestStore::with(&[KEY]);
    let t2 = TestStore::empty();
    t2.run_with(["archive", "store", "runn=a", "--schema", "mars"], b"x").code(2).says(&["lacks"]);
    t.run(["list", "store", "run="]).code(2);
    t.run(["list", "store", "--depth", "4"]).code(2);
    t.run(["list", "store", "--no-such-option"]).code(2);
    t.run(["no-such-verb"]).code(2);
    t.run(["archive", "store"]).code(2).says(&["no key"]);
    t.run(["archive", "store", "run=a/b", "variable=t"]).code(2).says(&["run"]);
    t.run(["archive", "store", "run=a", "variable=t", "x", "y"]).code(2).says(&["'x' and 'y'"]);
    t.run_with(["archive", "store", "run=a", "variable=t", "--shape", "2,x", "--dtype", "f4"], b"")
        .code(2)
        .says(&["'x'"]);
    t.run(["archive", "store", "run=a", "variable=t", "--shape", "2"]).code(2);
    assert!(t.run(["get", "store", "run=a", "--json"]).code(2).err().contains("-o FILE"));
    t.run(["get", "store", "run=a", "--box", "0:1"]).code(2);
    t.run(["get", "store", "run=a", "--npy"]).code(2);
    t.run(["list", "store", "--at", "nonsense"]).code(2);
}

#[test]
fn conflict_is_4() {
    let t = TestStore::with(&[KEY]);
    t.run_with(["archive", "store", "run=a", "variable=t", "--schema", "mars"], b"x")
        .code(4)
        .says(&["schema"]);
}

#[test]
fn corrupt_is_5() {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.damage(KEY.as_bytes());
    t.run(["get", "store", "run=a"]).code(5).says(&["{run=a}{variable=t}{step=6}"]);
    t.run(["get", "store", "run=b"]).ok();
}

#[test]
fn denied_is_6() {
    let t = TestStore::with(&[KEY]);
    std::fs::write(t.file("secret"), b"x").unwrap();
    std::fs::set_permissions(t.file("secret"), PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::create_dir(t.file("closed")).unwrap();
    std::fs::set_permissions(t.file("closed"), PermissionsExt::from_mode(0o555)).unwrap();
    if std::fs::read(t.file("secret")).is_ok() {
        return denied_to_another_user(&t); // root may read everything
    }
    t.run(["archive", "store", "run=c", "variable=t", "secret"]).code(6).says(&["secret"]);
    t.run_with(["archive", "closed/store", "run=c", "variable=t"], b"x").code(6);
    t.run(["doctor", "closed"]).code(6);
}

/// As root: the dataset belongs to a log's owner, so that its file is given to somebody else.
fn denied_to_another_user(t: &TestStore) {
    for (path, _) in t.files("store") {
        std::os::unix::fs::chown(path, Some(12_345), None).unwrap();
    }
    t.run_with(["archive", "store", "run=a", "variable=t"], b"x").code(6).says(&["12345"]);
    t.run(["get", "store", "run=a"]).ok();
    // The owner that counts, not the one by whom it was written.
    let listed = t.run(["list", "store", "--long", "--width", "200"]).ok().out();
    assert!(listed.lines().nth(1).unwrap().split_whitespace().any(|word| word == "12345"), "{listed}");
}

#[test]
fn unavailable_is_7() {
    let t = TestStore::with(&[KEY]);
    let mut command = t.command(["list", "store"]);
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write the output"));
}

#[test]
fn a_closed_pipe_ends_quietly_with_0() {
    let t = TestStore::empty();
    t.archive(KEY, &vec![7; 4 << 20]);
    let mut child =
        t.command(["get", "store", "run=a"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 10];
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn help_lists_every_verb_and_each_has_examples() {
    let t = TestStore::empty();
    let help = t.run(["--help"]).ok().out();
    for verb in VERBS {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{verb} "))),
            "{verb}\n{help}"
        );
        let own = t.run([verb, "--help"]).ok().out();
        assert!(own.contains("Examples:\n"), "{verb}\n{own}");
        assert!(own.contains(&format!("fieldstone {verb} ")), "{verb}\n{own}");
        assert!(own.find("Examples:") < own.find("Usage:"), "examples come first: {verb}\n{own}");
    }
    assert!(!help.contains("Others:"), "a verb that stands in no group\n{help}");
    let bare = t.run::<&str>([]).code(2);
    assert!(bare.out().is_empty() && bare.err().contains("Usage:"));
    assert!(t.run(["--version"]).ok().out().starts_with("fieldstone 0."));
}

#[test]
fn a_wrong_word_is_answered_with_the_right_one() {
    let t = TestStore::with(&[KEY]);
    let wrong = |words: &[&str], message: &str, hint: &str| {
        let report = t.run(words).code(2).err();
        assert_eq!(report, format!("error: {message}\nhint: {hint}\n"), "{words:?}");
    };
    wrong(&["lst", "store"], "unrecognized subcommand 'lst'", "did you mean `list`? try: fieldstone --help");
    wrong(
        &["schema", "chek", "x"],
        "unrecognized subcommand 'chek'",
        "did you mean `check`? try: fieldstone schema --help",
    );
    wrong(
        &["list", "store", "--dept", "1"],
        "unexpected argument '--dept' found",
        "did you mean `--depth`? try: fieldstone list --help",
    );
    wrong(
        &["list"],
        "the following required arguments were not provided: <STORE>",
        "try: fieldstone list --help",
    );
    wrong(
        &["list", "store", "--depth", "9"],
        "invalid value '9' for '--depth <DEPTH>': 9 is not in 1..=3",
        "try: fieldstone list --help",
    );
    wrong(&["help", "requests"], "there is no verb and no topic 'requests'", "did you mean `request`?");
    t.run(["list", "stroe"]).code(3).says(&["no store at stroe", "did you mean `store`?"]);
    t.run(["list", "elsewhere"]).code(3).says(&["try: fieldstone init elsewhere"]);
}

#[test]
fn what_is_not_there_is_told_beside_what_is() {
    let t = TestStore::with(&[KEY, "run=a variable=t step=12", "run=b variable=u step=0"]);
    // The schema lets keys have further keywords, so this is valid.
    let none = t.run(["list", "store", "varable=t"]).ok();
    assert_eq!(
        (none.out(), none.err()),
        (
            "".into(),
            "nothing: the schema has no keyword `varable`: did you mean `variable`? try: fieldstone axes store\n"
                .into()
        )
    );
    for (request, reason, command) in [
        ("varable=t", "did you mean `variable`?", "fieldstone axes store"),
        ("run=a,step=7", "no field has step=7: there is step=0/6/12", "fieldstone axes store run=a"),
        ("run=b,step=6", "with run=b there is step=0", "fieldstone list store run=b"),
    ] {
        for verb in ["get", "plot"] {
            t.run([verb, "store", request]).code(3).says(&[reason, &format!("try: {command}\n")]);
        }
        let listed = t.run(["list", "store", request, "--json"]).ok();
        assert!(listed.err().contains(reason), "{}", listed.err());
        assert_eq!(listed.json()["fields"], serde_json::json!([]));
        assert_eq!(t.run(["list", "store", request, "-q"]).ok().err(), "");
    }
    t.run(["plot", "store", "run=a"]).code(2).says(&["more than one", "try: fieldstone list store run=a"]);
    t.run(["list", "store", "step=0/too/6"]).code(2).says(&["too"]);
}

#[test]
fn topics_and_verbs_have_help() {
    let t = TestStore::empty();
    for topic in ["request", "output", "errors", "completion"] {
        let text = t.run(["help", topic]).ok().out();
        assert!(text.contains("Examples:\n"), "{text}");
        assert!(t.run(["--help"]).ok().out().contains(topic));
    }
    assert_eq!(t.run(["help", "list"]).ok().out(), t.run(["list", "--help"]).ok().out());
    assert!(t.run(["help", "schema", "check"]).ok().out().contains("fieldstone schema check my.schema"));
    assert_eq!(t.run(["help"]).ok().out(), t.run(["--help"]).ok().out());
}
