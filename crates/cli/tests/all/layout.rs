//! Output for people and for programs: tables for a width, bare lines, JSON, JSON lines.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use fieldstone_testkit::require::program;
use serde_json::{Value, json};

fn store() -> TestStore {
    let t = TestStore::with(&["run=a variable=t step=0", "run=a variable=t step=6"]);
    t.archive_floats("run=a-rather-long-name variable=pressure step=6", &[1.0, 2.0, 3.0, 4.0], "2,2");
    t
}

/// The lines, with the parts that differ from run to run replaced.
fn lines(text: &str) -> Vec<String> {
    let stable = |line: &str| {
        let words = line.split(' ').map(|word| match word {
            _ if word.len() == 20 && word.starts_with("20") && word.ends_with('Z') => "TIME",
            word => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(stable).collect()
}

#[test]
fn a_list_fits_every_width() {
    let t = store();
    let list = |width: &str, more: &[&str]| {
        let words = ["list", "store", "--width", width];
        lines(&t.run(words.iter().chain(more)).ok().out())
    };
    assert_eq!(
        list("200", &[]),
        [
            "bytes  type   shape  key",
            "   23  bytes  -      {run=a}{variable=t}{step=0}",
            "   23  bytes  -      {run=a}{variable=t}{step=6}",
            "   16  <f4    2x2    {run=a-rather-long-name}{variable=pressure}{step=6}",
        ]
    );
    assert_eq!(list("80", &[]), list("200", &[]));
    assert_eq!(
        list("40", &[]),
        [
            "bytes  shape  key",
            "   23  -      {run=a}{varia…e=t}{step=0}",
            "   23  -      {run=a}{varia…e=t}{step=6}",
            "   16  2x2    {run=a-rather…ure}{step=6}",
        ]
    );
    assert_eq!(
        list("80", &["--long"])[0].split_whitespace().collect::<Vec<_>>(),
        ["bytes", "type", "shape", "flushed", "key"]
    );
    let long = list("200", &["--long"]);
    assert_eq!(
        long[0].split_whitespace().collect::<Vec<_>>(),
        ["bytes", "type", "shape", "flushed", "owner", "location", "key"]
    );
    for width in ["1", "2", "17", "40", "80", "119", "200"] {
        for more in [&[][..], &["--long"], &["--compact"], &["--location"], &["--depth", "1"]] {
            let lines = list(width, more);
            let limit: usize = width.parse().unwrap();
            assert!(lines.iter().all(|line| line.chars().count() <= limit), "{width} {more:?}: {lines:#?}");
        }
    }
}

#[test]
fn other_verbs_fit_as_well() {
    let t = store();
    let axes = t.run(["axes", "store", "--width", "40"]).ok().out();
    assert_eq!(
        lines(&axes),
        [
            "keyword   values",
            "run            2  a/a-rather-long-name",
            "variable       2  pressure/t",
            "step           2  0/6",
        ]
    );
    for verb in ["axes", "where", "stats", "status", "dump", "show", "verify"] {
        for width in [20, 40, 80] {
            let text = t.run([verb, "store", "--width", &width.to_string()]).ok().out();
            assert!(!text.is_empty());
            assert!(text.lines().all(|line| line.chars().count() <= width), "{verb} {width}\n{text}");
        }
    }
}

#[test]
fn a_real_terminal_tells_its_width() {
    if !program("python3") {
        return;
    }
    let t = store();
    let program = env!("CARGO_BIN_EXE_fieldstone");
    // A terminal of its own, made by Python. The program starts when the terminal has its size, however
    // late that is on a busy machine.
    let script = "import fcntl, os, pty, struct, sys, termios\n\
        sized, set_size = os.pipe()\n\
        pid, fd = pty.fork()\n\
        if pid == 0:\n    os.read(sized, 1); os.execv(sys.argv[1], sys.argv[1:])\n\
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 40, 0, 0))\n\
        os.write(set_size, b'.')\n\
        out = b''\n\
        try:\n    while part := os.read(fd, 4096): out += part\n\
        except OSError: pass\n\
        sys.stdout.buffer.write(out)\n";
    let on_terminal = |variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script, program, "list", "store"]).current_dir(t.path());
        command.env_remove("COLUMNS").env_remove("NO_COLOR").env("TERM", "xterm");
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let plain = t.run(["list", "store", "--width", "40"]).ok().out();
    let message = on_terminal(&[]);
    assert!(message.starts_with("\x1b[2mbytes"), "the head is dim: {message:?}");
    assert_eq!(message.replace("\x1b[2m", "").replace("\x1b[0m", ""), plain);
    assert_eq!(on_terminal(&[("NO_COLOR", "1")]), plain);
    let wide = on_terminal(&[("COLUMNS", "100"), ("NO_COLOR", "1")]);
    assert_eq!(wide, t.run(["list", "store", "--width", "100"]).ok().out());
}

#[test]
fn without_a_terminal_lines_are_whole_and_stable() {
    let t = store();
    assert_eq!(
        t.run(["list", "store"]).ok().out(),
        "{run=a}{variable=t}{step=0}\n{run=a}{variable=t}{step=6}\n\
         {run=a-rather-long-name}{variable=pressure}{step=6}\n"
    );
    let long = t.run(["list", "store", "--long", "run=a,step=6"]).ok().out();
    let cells: Vec<&str> = long.trim_end().split('\t').collect();
    assert_eq!(
        (cells.len(), &cells[..3], cells[6]),
        (7, &["23", "bytes", "-"][..], "{run=a}{variable=t}{step=6}")
    );
    let at = t.run(["list", "store", "--location", "run=a,step=6"]).ok().out();
    assert!(at.starts_with("{run=a}{variable=t}{step=6}\tlogs/"), "{at}");
    assert_eq!(
        t.run(["list", "store", "--compact"]).ok().out(),
        "run=a,variable=t,step=0/6\nrun=a-rather-long-name,variable=pressure,step=6\n"
    );
    // A terminal's width is of no account where there is no terminal.
    let mut command = t.command(["list", "store"]);
    command.env("COLUMNS", "10");
    assert_eq!(crate::harness::finish(command, b"").ok().out(), t.run(["list", "store"]).ok().out());
}

#[test]
fn every_verb_that_tells_something_tells_it_as_json_and_as_lines() {
    let t = store();
    std::fs::write(t.file("my.schema"), "[a [b [c]]]").unwrap();
    for words in [
        &["list", "store"][..],
        &["list", "store", "--compact"],
        &["where", "store"],
        &["axes", "store"],
        &["stats", "store"],
        &["status", "store"],
        &["show", "store"],
        &["show", "store", "run=a", "step=6"],
        &["verify", "store"],
        &["version", "store"],
        &["dump", "store"],
        &["doctor", "."],
        &["plot", "store", "variable=pressure"],
        &["init", "store"],
        &["schema", "show", "mars"],
        &["schema", "check", "my.schema"],
        &["schema", "key", "simulation", "run=a", "variable=t"],
        &["schema", "expand", "simulation", "run=a", "variable=t", "step=0/6"],
    ] {
        let document = t.run(words.iter().chain(&["--json"])).ok().json();
        assert!(document.is_object(), "{words:?}");
        let text = t.run(words.iter().chain(&["--jsonl"])).ok().out();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!lines.is_empty() && lines.iter().all(Value::is_object), "{words:?}\n{text}");
        // A list is the same list; anything else the same document on one line.
        match document.as_object().unwrap().values().next().unwrap().as_array() {
            Some(items) if document.as_object().unwrap().len() == 1 && words[0] != "dump" => {
                assert_eq!(items, &lines, "{words:?}");
            }
            _ if ["axes", "dump", "doctor", "stats", "status"].contains(&words[0]) => {}
            _ => assert_eq!(lines, [document], "{words:?}"),
        }
    }
    let axes = t.run(["axes", "store", "run=a", "--jsonl"]).ok().out();
    assert_eq!(
        serde_json::from_str::<Value>(axes.lines().last().unwrap()).unwrap(),
        json!({"keyword": "step", "values": ["0", "6"]})
    );
    t.run(["list", "store", "--json", "--jsonl"]).code(2);
}

#[test]
fn requests_come_from_files_and_stdin_too() {
    let t = store();
    std::fs::write(t.file("a.req"), "retrieve,\n  run = a,\n  step = 0\n").unwrap();
    let expected = "{run=a}{variable=t}{step=0}\n";
    assert_eq!(t.run(["list", "store", "@a.req"]).ok().out(), expected);
    assert_eq!(t.run(["list", "store", "@a.req", "variable=t"]).ok().out(), expected);
    assert_eq!(t.run_with(["list", "store", "-"], b"run=a,step=0\n").ok().out(), expected);
    assert_eq!(t.run(["get", "store", "@a.req"]).ok().out(), "run=a variable=t step=0");
    t.run(["list", "store", "@absent.req"]).code(3).says(&["absent.req"]);
}

/// Every verb that takes requests accepts the output of `list --compact`.
#[test]
fn a_file_holds_a_request_a_line() {
    let t = store();
    let all = t.run(["list", "store"]).ok().out();
    let compact = t.run(["list", "store", "--compact"]).ok().out();
    assert!(compact.lines().count() > 1, "{compact}");
    std::fs::write(t.file("all.req"), format!("# of today\n{compact}\n")).unwrap();
    assert_eq!(t.run(["list", "store", "@all.req"]).ok().out(), all);
    assert_eq!(t.run(["list", "store", "@all.req", "--compact"]).ok().out(), compact);
    assert_eq!(t.run_with(["list", "store", "-"], compact.as_bytes()).ok().out(), all);
    let keys = t.run(["list", "store"]).ok().out();
    assert_eq!(t.run_with(["list", "store", "-"], keys.as_bytes()).ok().out(), all);
    for verb in ["axes", "where", "stats"] {
        let named = t.run([verb, "store", "@all.req", "--json"]).ok().json();
        assert_eq!(named, t.run([verb, "store", "--json"]).ok().json(), "{verb}");
    }
    let fields = all.lines().count();
    let verified = t.run(["verify", "store", "@all.req", "--json"]).ok().json();
    assert_eq!((&verified["ok"], &verified["fields"]), (&json!(true), &json!(fields)));
    t.run(["dump", "store", "@all.req"]).ok();
    let copied = t.run(["copy", "store", "@all.req", "--to", "copy", "--json"]).ok().json();
    assert_eq!(copied["fields"], json!(fields));
    let moved = t.run(["move", "copy", "@all.req", "--to", "moved", "--json"]).ok().json();
    assert_eq!((&moved["fields"], &moved["removed"]), (&json!(fields), &json!(fields)));
    assert_eq!(t.run(["list", "moved"]).ok().out(), all);
    // One request where one is taken, and no keyword twice.
    t.run(["show", "store", "@all.req"]).code(2).says(&["requests", "one"]);
    t.run(["list", "store", "@all.req", "run=a"]).code(2).says(&["`run` is given twice"]);
    std::fs::write(t.file("wrong.req"), "run=a\n\nstep 0\n").unwrap();
    t.run(["list", "store", "@wrong.req"]).code(2).says(&["line 3"]);
}

/// A damaged field ends neither a copy nor a move; both name it and end with 5.
#[test]
fn transfers_go_on_past_damage() {
    let t = store();
    let fields = t.run(["list", "store"]).ok().out().lines().count();
    t.damage(b"run=a variable=t step=0");
    let copied = t.run(["copy", "store", "--to", "copy", "--json"]).code(5);
    assert_eq!(copied.json()["fields"], json!(fields - 1));
    assert_eq!(copied.json()["damaged"][0]["key"], json!("{run=a}{variable=t}{step=0}"));
    let moved = t.run(["move", "store", "--to", "moved"]).code(5).err();
    assert!(moved.starts_with("damaged, and left where it is: {run=a}{variable=t}{step=0}"), "{moved}");
    assert_eq!(t.run(["list", "store"]).ok().out(), "{run=a}{variable=t}{step=0}\n");
}
