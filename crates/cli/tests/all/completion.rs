//! Completion as shells call it: the scripts in a real bash, and the program's answers to each of them.
#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_testkit::require::program;
use std::process::Command;

use crate::harness::TestStore;

const KEYS: [&str; 6] = [
    "run=a variable=t step=0",
    "run=a variable=t step=6",
    "run=a variable=t step=12",
    "run=b variable=u step=1",
    "run=b/c variable=t step=1",
    "run=d variable=wind\u{a0}speed step=1",
];

fn store() -> TestStore {
    let t = TestStore::empty();
    for key in KEYS {
        let key: Vec<String> = key
            .split(' ')
            .map(|pair| match pair.split_once('=').unwrap() {
                (name, value) if value.contains(['/', '\u{a0}']) => {
                    format!("{name}=\"{}\"", value.replace('\u{a0}', " "))
                }
                _ => pair.to_owned(),
            })
            .collect();
        t.run_with([vec!["archive".to_owned(), "store".to_owned()], key].concat(), b"x").ok();
    }
    t
}

/// The content of COMPREPLY in bash after TAB at the end of `line`, and whether no blank follows.
fn bash(t: &TestStore, line: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_fieldstone");
    // Bash breaks the word at COMP_WORDBREAKS; inside quotes only at the quote.
    let open = ['\'', '"']
        .into_iter()
        .find(|q| line.matches(*q).count() % 2 == 1 && !line.contains(&format!("\\{q}")));
    let word = match open {
        Some(quote) => line.rsplit(quote).next().unwrap(),
        None => line.rsplit([' ', '=', ':', '@', '>', '<', '|', '&', '(', ';']).next().unwrap(),
    };
    let script = "source <(\"$P\" completions bash)\nCOMP_LINE=$1 COMP_POINT=${#1}\n_fieldstone \"$P\" \"$2\" \"\"\n\
                  printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    let output = Command::new("bash")
        .args(["-c", script, "bash", line, word])
        .env("P", program)
        .env("FIELDSTONE_PATIENCE", "60000")
        .current_dir(t.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    String::from_utf8(output.stdout).unwrap().lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_stores_keywords_and_values() {
    if !program("bash") {
        return;
    }
    let t = store();
    std::fs::create_dir(t.file("folder")).unwrap();
    std::fs::write(t.file("wanted.req"), "run=a").unwrap();
    for (line, expected) in [
        ("fieldstone li", &["list"][..]),
        ("fieldstone schema ", &["add", "check", "expand", "key", "show"]),
        ("fieldstone list ", &["folder/", "store"]),
        ("fieldstone list store --comp", &["--compact"]),
        ("fieldstone list store ", &["run=", "variable=", "step=", "project="]),
        ("fieldstone list store ru", &["run="]),
        ("fieldstone list store run=", &["a", "b", r#"\"b/c\""#, "d"]),
        ("fieldstone list store run=a st", &["step="]),
        ("fieldstone list store run=a step=", &["0", "6", "12"]),
        ("fieldstone list store run=a step=0/", &["0/to/", "0/6", "0/12"]),
        ("fieldstone list store run=a step=0/to/", &["0/to/6", "0/to/12"]),
        ("fieldstone list store run=a,step=1", &["12"]),
        ("fieldstone list store --long run=b variable=", &["u"]),
        ("fieldstone list store run=d variable=", &[r#"\"wind\ speed\""#]),
        ("fieldstone list store 'run=d,variable=", &["run=d,variable=\"wind speed\""]),
        ("fieldstone get store @wan", &["wanted.req"]),
        ("fieldstone get store run=a -o wan", &["wanted.req"]),
        ("fieldstone list store run=zz step=", &[]),
        ("fieldstone list nowhere run=", &[]),
        ("fieldstone list \"unclosed ", &[]),
        ("fieldstone nonsense ", &[]),
        ("fieldstone init x --schema ma", &["mars"]),
    ] {
        let mut found = bash(&t, line);
        if line.ends_with("schema ") {
            found.sort();
        }
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn each_shell_gets_its_form() {
    let t = store();
    let ask = |words: &[&str]| {
        let done = t.run(["__complete"].iter().chain(words)).ok();
        assert_eq!(done.err(), "");
        done.out()
    };
    assert_eq!(ask(&["fish", "list", "store", "run=a", "st"]), "step=\t5 values\n".replace('5', "4"));
    assert_eq!(ask(&["zsh", "list", "store", "run=d", "variable="]), "variable=\"wind speed\"\n");
    assert_eq!(ask(&["bash", "fieldstone list store run=a step=6/", "6/"]), "6/to/\n6/0\n6/12\n");
    // Never an error, whatever is asked.
    for words in [
        &[][..],
        &["bash"],
        &["bash", "x"],
        &["zsh", ""],
        &["ksh", "list", "store", "run="],
        &["fish", "--", "-"],
    ] {
        ask(words);
    }
    t.damage(b"run");
    ask(&["zsh", "list", "store", "run="]);
}

#[test]
fn completions_are_scripts_for_each_shell() {
    let t = TestStore::empty();
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef fieldstone"), ("fish", "complete -c fieldstone")]
    {
        let script = t.run(["completions", shell]).ok().out();
        assert!(script.contains(word) && script.contains(&format!("__complete {shell}")), "{shell}");
    }
    t.run(["completions", "tcsh"]).code(2).says(&["tcsh"]);
}

#[test]
fn pages_for_man_say_what_the_help_says() {
    let t = TestStore::empty();
    let page = t.run(["man"]).ok().out();
    assert!(page.contains(".TH fieldstone 1") && page.contains("fieldstone\\-list(1)"), "{page}");
    t.run(["man", "--into", "pages/man1"]).ok();
    let list = std::fs::read_to_string(t.file("pages/man1/fieldstone-list.1")).unwrap();
    for words in [".TH fieldstone-list 1", "\\-\\-jsonl", "Examples:", "fieldstone list store"] {
        assert!(list.contains(words), "{words}\n{list}");
    }
    let pages = std::fs::read_dir(t.file("pages/man1")).unwrap().count();
    assert_eq!(pages, 1 + fieldstone_cli::command().get_subcommands().count());
    std::fs::write(t.file("file"), "").unwrap();
    t.run(["man", "--into", "file/man1"]).code(7).says(&["file/man1"]);
}

#[test]
fn nobody_waits_long_for_a_store() {
    let t = store();
    let mut command = t.command(["__complete", "zsh", "list", "store", "run=a", "step="]);
    command.env("FIELDSTONE_PATIENCE", "0");
    assert_eq!(
        crate::harness::finish(command, b"").ok().out(),
        "",
        "what is not known in time is not offered"
    );
}

#[test]
fn queries_are_completed_with_the_names_of_the_catalog() {
    let t = store();
    t.run(["annotate", "store", "maximum", "3", "--run", "a"]).ok();
    t.run(["annotate", "store", "minimum", "1", "--run", "a"]).ok();
    let plain = |words: &[&str]| t.run(["__complete", "plain"].iter().chain(words)).ok().out();
    assert_eq!(plain(&["find", "store", "tag=m"]), "tag=maximum\ntag=minimum\n");
    assert_eq!(plain(&["find", "store", "run=a"]), "run=a\n");
    assert_eq!(plain(&["runs", "store", "tag=maximum", "an"]), "and\n");
    assert_eq!(plain(&["delete", "store", "tags", "tag=mi"]), "tag=minimum\n");
    assert_eq!(plain(&["delete", "store", "ta"]), "tags\n");
}
