//! run: runs a command and records it, its inputs and outputs, and its end.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::TestStore;

/// The program, for scripts.
const FIELDSTONE: &str = env!("CARGO_BIN_EXE_fieldstone");

/// `fieldstone run store … -- sh -c script`, free of the surroundings of the test.
fn script(t: &TestStore, options: &[&str], script: &str) -> Command {
    let start = ["run", "store"].into_iter().chain(options.iter().copied());
    let mut command = t.command(start.chain(["--", "sh", "-c", script]));
    plain(&mut command);
    command.env("F", FIELDSTONE);
    command
}

fn plain(command: &mut Command) {
    for (name, _) in std::env::vars() {
        if name.starts_with("SLURM_") || name.starts_with("FIELDSTONE_") {
            command.env_remove(name);
        }
    }
}

/// Far ends of relations of one type, with their properties.
fn edges(t: &TestStore, vertex: &str, kind: &str) -> Vec<(String, Value)> {
    let edges = t.run(["graph", "edges", "store", vertex, kind, "--json"]).ok().json();
    let name = |end: &Value| format!("{}:{}", end[0].as_str().unwrap(), end[1].as_str().unwrap());
    edges["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| (name(&edge["dst"]), edge["props"].clone()))
        .collect()
}

/// The jobs of a store, by name.
fn job(t: &TestStore, name: &str) -> (String, Value) {
    let uid = Command::new("id").arg("-u").output().unwrap().stdout;
    let user = format!("user:{}", String::from_utf8(uid).unwrap().trim());
    let mut jobs = edges(t, &user, "run").into_iter().map(|(job, _)| (job.clone(), props(t, &job)));
    jobs.find(|(_, props)| props["name"] == name).unwrap_or_else(|| panic!("no job {name}"))
}

fn props(t: &TestStore, vertex: &str) -> Value {
    t.run(["graph", "get", "store", vertex, "--json"]).ok().json()["versions"][0]["props"].clone()
}

fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_bytes(&path));
        } else {
            all.extend(std::fs::read(path).unwrap());
        }
    }
    all
}

#[test]
fn it_ends_as_the_command_does_and_says_how() {
    let t = TestStore::empty();
    for (name, script_text, code) in [
        ("good", "echo out; echo err >&2", 0),
        ("bad", "exit 3", 3),
        ("killed", "kill -9 $$", 137),
        ("asked", "kill -TERM $$", 143),
    ] {
        let output = script(&t, &["--name", name], script_text).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}");
        if code == 0 {
            assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
        }
    }
    let facts = |name: &str| {
        let (_, props) = job(&t, name);
        assert!(props["start"].is_string() && props["end"].is_string());
        (props["exit"].clone(), props["signal"].clone())
    };
    assert_eq!(facts("good"), (json!(0), Value::Null));
    assert_eq!(facts("bad"), (json!(3), Value::Null));
    assert_eq!(facts("killed"), (Value::Null, json!(9)));
    assert_eq!(facts("asked"), (Value::Null, json!(15)));
}

#[test]
fn a_command_that_cannot_be_started_is_recorded_and_ends_as_in_a_shell() {
    let t = TestStore::empty();
    let mut absent = t.command(["run", "store", "--name", "absent", "--", "no-such-command", "x"]);
    plain(&mut absent);
    let output = absent.output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no-such-command"));
    let (id, props) = job(&t, "absent");
    assert_eq!((&props["exit"], &props["argv"]), (&json!(127), &json!(["no-such-command", "x"])));
    assert!(props["error"].as_str().unwrap().contains("no-such-command"));
    assert!(edges(&t, &id, "exe").is_empty());
    std::fs::write(t.path().join("plain"), "text").unwrap();
    let mut plain_file = t.command(["run", "store", "--", "./plain"]);
    plain(&mut plain_file);
    assert_eq!(plain_file.output().unwrap().status.code(), Some(126));
    t.run(["run", "store"]).code(2);
}

#[test]
fn what_ran_and_what_it_ran_on_is_recorded() {
    let t = TestStore::empty();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(t.path());
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(t.path().join("code"), "1").unwrap();
    git(&["add", "code"]);
    git(&["commit", "-q", "-m", "x"]);
    git(&["remote", "add", "origin", "https://me:hunter2@host/r.git"]);
    std::fs::write(t.path().join("code"), "2").unwrap();
    let done = script(&t, &["--name", "x", "--env", "MODEL_*"], "true")
        .env("MODEL_A", "1")
        .env("OTHER", "2")
        .output()
        .unwrap();
    assert!(done.status.success());
    let (id, props) = job(&t, "x");
    assert_eq!(props["argv"], json!(["sh", "-c", "true"]));
    assert_eq!(Path::new(props["cwd"].as_str().unwrap()), t.path().canonicalize().unwrap());
    assert_eq!(props["env"]["MODEL_A"], "1");
    assert!(props["env"]["PATH"].is_string() && props["env"]["OTHER"].is_null());
    assert_eq!((&props["git"]["dirty"], props["git"]["commit"].as_str().unwrap().len()), (&json!(true), 40));
    assert_eq!(props["git"]["remote"], "https://***@host/r.git");
    let [(program, facts)] = &edges(&t, &id, "exe")[..] else { panic!("one program") };
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(*program, format!("file:{}", shell.display()));
    assert_eq!(facts["bytes"], json!(std::fs::metadata(&shell).unwrap().len()));
    assert_eq!(facts["checksum"].as_str().unwrap().len(), 37);
}

#[test]
fn a_secret_is_nowhere_in_the_store() {
    let t = TestStore::empty();
    let body = "$F archive store run=a variable=t step=0 < code; $F run store -- true --token hunter-four; true --password hunter-five";
    std::fs::write(t.path().join("code"), "1").unwrap();
    let mut command = script(&t, &["--name", "x"], body);
    command.args(["--password=hunter-one", "--api-key", "hunter-two", "https://me:hunter-three@host/"]);
    command.env("MY_PASSWORD", "hunter-six").env("SECRET", "hunter-seven").env("SLURM_JWT", "hunter-eight");
    command.arg("is hunter-seven in it");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_, props) = job(&t, "x");
    let argv = props["argv"].as_array().unwrap();
    assert_eq!(argv[3], "--password=${FIELDSTONE_SECRET_3}");
    assert_eq!(argv[6], "https://${FIELDSTONE_SECRET_5}@host/");
    assert_eq!(props["masked"], json!([2, 3, 5, 6, 7]));
    let stored = all_bytes(&t.path().join("store"));
    for secret in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        let secret = format!("hunter-{secret}");
        assert!(!stored.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
    // Records may be compressed: what they say is looked at, too.
    let (id, _) = job(&t, "x");
    let processes = edges(&t, &id, "contains").into_iter().map(|(process, _)| process);
    let all: Vec<String> = [id.clone()].into_iter().chain(processes).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    for vertex in all {
        let whole = t.run(["graph", "get", "store", &vertex, "--versions", "--json"]).ok().out();
        assert!(!whole.contains("hunter-") && whole.contains("argv"), "{whole}");
    }
}

#[test]
fn children_and_grandchildren_belong_to_the_job() {
    let t = TestStore::empty();
    let body = "echo 0 | $F archive store run=a variable=t step=0
        $F run store --name inner -- sh -c 'echo 1 | $F archive store run=a variable=t step=1'
        $F get store run=a variable=t step=0 > out.txt";
    let output = script(&t, &["--name", "outer", "--writes", "*.txt"], body).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (id, _) = job(&t, "outer");
    let processes: Vec<String> = edges(&t, &id, "contains").into_iter().map(|(process, _)| process).collect();
    assert_eq!(processes.len(), 4, "{processes:?}");
    let all: Vec<Value> = processes.iter().map(|process| props(&t, process)).collect();
    let inner = all.iter().position(|props| props["name"] == "inner").unwrap();
    let grandchild = all.iter().position(|props| props["argv"][5] == "step=1").unwrap();
    assert_eq!(format!("process:{}", all[grandchild]["parent"].as_str().unwrap()), processes[inner]);
    assert!(all[inner]["parent"].is_null() && all[inner]["exit"] == 0);
    let fields = t.run(["graph", "fields", "store", &id]).ok().out();
    assert_eq!(fields, "{run=a}{variable=t}{step=0}\t2\n{run=a}{variable=t}{step=1}\t2\n");
    // The file that the command wrote came of the field that one of its processes read.
    let up = t.run(["trace", "store", "out.txt"]).ok().out();
    assert!(up.contains("commit:") && up.contains("(1 field)"), "{up}");
    let of_field = t.run(["trace", "store", "run=a", "variable=t", "step=1"]).ok().out();
    assert!(of_field.contains(&processes[grandchild]), "{of_field}");
    t.run(["trace", "store", "run=b"]).code(3);
}

#[test]
fn files_are_recorded_whatever_they_are_called() {
    let t = TestStore::empty();
    let root = t.path().canonicalize().unwrap();
    for name in ["in 1.nc", "in'2\n.nc", "old"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    let body = "cat in* > 'out \"$\".nc'; echo more >> old; mkdir sub; echo x > 'sub/é ü'; printf x > \"$(printf 'sub/\\377')\"";
    let options = ["--name", "x", "--reads", "in*", "--writes", "out*", "--watch", ".", "--reads", "absent"];
    let output = script(&t, &options, body).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("absent") && said.contains("not UTF-8"), "{said}");
    let (id, _) = job(&t, "x");
    let names = |kind: &str| {
        let mut names: Vec<(String, Value)> = edges(&t, &id, kind)
            .into_iter()
            .map(|(file, props)| {
                (file.replace(&format!("file:{}/", root.display()), ""), props["replaces"].clone())
            })
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names
    };
    let read: Vec<String> = names("read").into_iter().map(|(name, _)| name).collect();
    assert_eq!(read, ["in 1.nc", "in'2\n.nc"]);
    let written = names("write");
    let expected = [("old", Value::Null), ("out \"$\".nc", json!(true)), ("sub/é ü", json!(true))];
    assert_eq!(
        written,
        expected.map(|(name, replaces)| (name.to_owned(), replaces)),
        "and nothing of the store"
    );
    let target = root.join("out \"$\".nc").display().to_string();
    assert!(t.run(["trace", "store", &target]).ok().out().contains("in 1.nc"));
}

#[test]
fn fields_are_compared_exported_and_rebuilt_by_their_requests() {
    let t = TestStore::empty();
    for (name, variable) in [("first", "t"), ("second", "u")] {
        let body = format!("echo {name} | $F archive store run=a variable={variable} step=0");
        assert!(script(&t, &["--name", name], &body).output().unwrap().status.success());
    }
    let [t_field, u_field] = ["run=a,variable=t", "run=a,variable=u,step=0"];
    let rows = t.run(["trace", "store", "--compare", t_field, u_field]).ok().out();
    assert!(rows.contains("variable=t step=0") && rows.contains("variable=u step=0"), "{rows}");
    let compared = t.run(["trace", "store", "--compare", t_field, u_field, "--json"]).ok().json();
    assert_eq!(compared["compared"][1][0], "commit");
    t.run(["trace", "store", "--compare", t_field, "run=b"]).code(3).says(&["run=b"]);
    let dot = t.run(["graph", "export", "store", "run=a", "variable=u", "--format", "dot"]).ok().out();
    assert!(dot.contains("second") && !dot.contains("first"), "{dot}");
    let both = t.run(["trace", "store", "run=a", "--script"]).ok().out();
    assert!(both.contains("variable=t step=0") && both.contains("variable=u step=0"), "{both}");
    t.run(["graph", "export", "store", "job:1", "job:2"]).code(2);
}

#[test]
fn what_was_read_from_another_store_is_followed_there() {
    let t = TestStore::empty();
    shell(&t, "$F run other --name model -- sh -c 'echo 1 | $F archive other run=a variable=t step=0'");
    let body = "$F get other run=a variable=t step=0 > x; $F archive store run=a variable=n step=0 < x";
    shell(&t, &format!("$F run store --name mean -- sh -c '{body}'"));
    let trace = |options: &[&str]| {
        t.run(["trace", "store", "run=a"].into_iter().chain(options.iter().copied()).chain(["--json"]))
    };
    let jobs = |options: &[&str]| {
        let found = trace(options).ok().json();
        let jobs =
            found["vertices"].as_array().unwrap().iter().filter(|vertex| vertex["type"] == "job").count();
        (jobs, found["stores"].as_array().unwrap().len())
    };
    assert_eq!(jobs(&[]), (2, 1));
    assert_eq!(jobs(&["--one-store"]), (1, 0));
    let dot = t.run(["graph", "export", "store", "run=a", "--format", "dot"]).ok().out();
    assert!(dot.contains("model"), "{dot}");
    std::fs::rename(t.file("other"), t.file("gone")).unwrap();
    let found = trace(&[]).ok().json();
    assert!(found["stores"][0]["left"].as_str().unwrap().contains("other"), "{found}");
    assert_eq!((jobs(&[]).0, &found["stores"][0]["commits"]), (1, &json!(1)));
}

/// Runs text of a shell in the folder of the test; `$F` is the program.
fn shell(t: &TestStore, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-euc", text]).current_dir(t.path()).env("F", FIELDSTONE).stdin(Stdio::null());
    plain(&mut command);
    command.env("FIELDSTONE_PROGRAM", FIELDSTONE);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{text}: {output:?}");
}

/// Removes a file and makes it again by the script of its lineage.
fn rebuild(t: &TestStore, name: &str) -> String {
    let before = std::fs::read(t.file(name)).unwrap();
    let made = t.run(["trace", "store", name, "--script"]).ok().out();
    std::fs::write(t.file("rebuild.sh"), &made).unwrap();
    std::fs::remove_file(t.file(name)).unwrap();
    shell(t, "cd / && sh \"$OLDPWD/rebuild.sh\"");
    assert_eq!(std::fs::read(t.file(name)).unwrap(), before, "{made}");
    made
}

#[test]
fn files_that_a_command_is_redirected_to_are_what_it_reads_and_writes() {
    let t = TestStore::empty();
    let root = t.path().canonicalize().unwrap();
    std::fs::write(t.file("in 1.txt"), "b\na\n").unwrap();
    shell(&t, "$F run store --name older -- echo older > out.txt");
    shell(&t, "$F run store --name sort --writes 'out*' -- sort < 'in 1.txt' > out.txt 2> err.txt");
    let (id, facts) = job(&t, "sort");
    let file = |name: &str| format!("file:{}", root.join(name).display());
    let [(input, read)] = &edges(&t, &id, "read")[..] else { panic!("one input") };
    assert_eq!((input, &read["bytes"]), (&file("in 1.txt"), &json!(4)));
    assert!(read["checksum"].as_str().unwrap().starts_with("xxh3:"));
    let written = edges(&t, &id, "write");
    let out = &written.iter().find(|(name, _)| *name == file("out.txt")).unwrap().1;
    assert_eq!(
        (&out["bytes"], &out["replaces"]),
        (&json!(4), &json!(true)),
        "it was emptied for the command"
    );
    assert!(written.len() == 2 && written.iter().any(|(name, _)| *name == file("err.txt")), "{written:?}");
    assert_eq!(facts["streams"]["stdout"]["mode"], "write");
    let up = t.run(["trace", "store", "out.txt"]).ok().out();
    assert!(up.contains("in 1.txt") && !up.contains(&job(&t, "older").0), "{up}");
    let made = rebuild(&t, "out.txt");
    assert!(made.contains(&format!(" < '{0}/in 1.txt' > {0}/out.txt\n", root.display())), "{made}");

    // Appending keeps older writers among the ancestors.
    shell(&t, "$F run store --name more -- echo more >> out.txt");
    let (more, _) = job(&t, "more");
    assert_eq!(edges(&t, &more, "write")[0].1["replaces"], Value::Null);
    assert!(t.run(["trace", "store", "out.txt"]).ok().out().contains(&id));
    assert!(rebuild(&t, "out.txt").contains(" >> "));
    let rows = t.run(["trace", "store", "--compare", &id, &more]).ok().out();
    assert!(rows.contains(&format!("argument\tstdin\t{}/in 1.txt\t-\n", root.display())), "{rows}");
}

#[test]
fn streams_are_redirected_again_as_they_were() {
    let t = TestStore::empty();
    std::fs::write(t.file("in"), "head\nrest\n").unwrap();
    shell(&t, "{ read line; $F run store --name rest -- cat; } < in > rest.txt");
    assert_eq!(std::fs::read(t.file("rest.txt")).unwrap(), b"rest\n");
    assert!(rebuild(&t, "rest.txt").contains("tail -c +6 -- "));
    shell(&t, "$F run store --name both -- sh -c 'echo a; echo b >&2; echo c' > both.txt 2>&1");
    assert!(rebuild(&t, "both.txt").contains(" 2>&1\n"));
    shell(&t, "{ $F run store --name one -- echo 1; $F run store --name two -- echo 2; } > twice.txt");
    assert_eq!(edges(&t, &job(&t, "two").0, "write")[0].1["replaces"], Value::Null);
    rebuild(&t, "twice.txt");
    std::fs::write(t.file("over.txt"), "12345").unwrap();
    shell(&t, "$F run store --name over -- printf xy 1<> over.txt");
    assert_eq!(job(&t, "over").1["streams"]["stdout"]["mode"], "update");
    // Renamed by the command, as one does with what is not finished.
    shell(&t, "$F run store --name renames -- sh -c 'echo x; mv part whole' > part");
    let (name, facts) = edges(&t, &job(&t, "renames").0, "write").remove(0);
    assert!(name.ends_with("/whole") && facts["replaces"] == json!(true), "{name} {facts}");
    assert!(job(&t, "renames").1["streams"]["stdout"]["renamed"].as_str().unwrap().ends_with("/whole"));
    assert!(rebuild(&t, "whole").contains("/part\n"));
}

#[test]
fn streams_that_are_no_files_leave_no_trace() {
    let t = TestStore::empty();
    t.run(["init", "store"]).ok();
    for (name, text) in [
        ("pipe", "echo x | $F run store --name pipe -- cat 2> /dev/null | cat"),
        ("gone", "{ rm gone; $F run store --name gone -- echo x; } > gone"),
        ("inside", "$F run store --name inside -- echo x > store/inside"),
        ("closed", "$F run store --name closed -- true <&- >&- 2>&-"),
        ("same", "$F run store --name same -- true >> same"),
    ] {
        shell(&t, text);
        let (id, facts) = job(&t, name);
        assert!(edges(&t, &id, "read").is_empty() && edges(&t, &id, "write").is_empty(), "{name}");
        match name {
            "pipe" => assert_eq!(facts["streams"], json!({"stdin": {"mode": "pipe"}})),
            "same" => assert!(facts["streams"]["stdout"].is_object()),
            _ => assert!(facts["streams"].is_null(), "{name}"),
        }
    }
}

/// Waits until a file is there.
fn wait_for(path: &Path) {
    for _ in 0..1000 {
        if path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} never came", path.display());
}

#[test]
fn signals_are_passed_on_to_the_command() {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let t = TestStore::empty();
        let body = format!("trap 'exit {}' {signal}; touch ready; while :; do sleep 0.05; done", 40 + number);
        // The process that runs the tests may ignore signals, and its children inherit that.
        let asked = script(&t, &["--name", "x"], &body);
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(asked.get_program()).args(asked.get_args());
        command.current_dir(t.path());
        plain(&mut command);
        let mut running = command.process_group(0).stdin(Stdio::null()).spawn().unwrap();
        wait_for(&t.path().join("ready"));
        let sent =
            Command::new("kill").args([format!("-{signal}"), running.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(running.wait().unwrap().code(), Some(40 + number), "the command decides");
        assert_eq!(job(&t, "x").1["exit"], json!(40 + number));
    }
}

#[test]
fn a_job_that_is_killed_with_its_wrapper_has_no_end() {
    let t = TestStore::empty();
    let mut command = script(&t, &["--name", "x"], "touch ready; exec sleep 60");
    let mut running = command.process_group(0).spawn().unwrap();
    wait_for(&t.path().join("ready"));
    let group = format!("-{}", running.id());
    assert!(Command::new("kill").args(["-9", "--", &group]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().signal(), Some(9));
    let (_, props) = job(&t, "x");
    assert!(props["start"].is_string() && props["end"].is_null() && props["exit"].is_null());
}

#[test]
fn jobs_of_slurm_have_its_numbers() {
    let t = TestStore::empty();
    let slurm = |name: &str, variables: &[(&str, &str)]| {
        let mut command = script(&t, &["--name", name], "echo x | $F archive store run=a variable=t step=0");
        command.envs(variables.iter().copied());
        assert!(command.output().unwrap().status.success());
    };
    slurm("batch", &[("SLURM_JOB_ID", "17"), ("SLURM_JOB_PARTITION", "big")]);
    let props = props(&t, "job:17");
    assert_eq!(
        (&props["name"], &props["slurm"]),
        (&json!("batch"), &json!({"job": "17", "partition": "big"}))
    );
    // Another command of the same script is a job of its own, within the first's number.
    slurm("again", &[("SLURM_JOB_ID", "17")]);
    let (id, _) = job(&t, "again");
    assert!(id.starts_with("job:17."), "{id}");
    assert!(edges(&t, "job:17", "contains").iter().any(|(part, _)| *part == id));
    let step = [("SLURM_JOB_ID", "17"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "2")];
    for rank in ["0", "1"] {
        slurm("rank", &step.into_iter().chain([("SLURM_PROCID", rank)]).collect::<Vec<_>>());
    }
    let ranks = edges(&t, "job:17.0", "contains");
    assert!(ranks.iter().any(|(rank, _)| rank == "process:17.0/0"), "{ranks:?}");
    assert_eq!(ranks.len(), 4, "two ranks, each with a process that it started: {ranks:?}");
}

/// The text of a script that rebuilds a file, and its job's id.
fn rebuilds(t: &TestStore, file: &str) -> String {
    let path = std::fs::canonicalize(t.path()).unwrap().join(file);
    t.run(["trace", "store", path.to_str().unwrap(), "--script"]).ok().out()
}

/// Runs text as a script of sh, in the folder.
fn sh(t: &TestStore, text: &str) -> std::process::Output {
    let mut shell = Command::new("sh");
    let program = std::path::Path::new(FIELDSTONE).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    plain(&mut shell);
    shell.args(["-c", text]).current_dir(t.path()).env("PATH", path).env("F", FIELDSTONE);
    shell.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_script_that_rebuilds_leaves_logs_of_old_jobs_alone() {
    let t = TestStore::empty();
    let batch = "mkdir logs && exec > logs/17.out 2> logs/17.err
        $F run store -q --writes x -- sh -c 'echo printed; echo 1 > x'
        $F run store -q --reads x -- sh -c 'cat x' > y
        echo 'a note of the batch script' >&2";
    assert!(sh(&t, batch).status.success());
    let log = || std::fs::read_to_string(t.path().join("logs/17.err")).unwrap();
    let (before, script) = (log(), rebuilds(&t, "y"));
    std::fs::remove_file(t.path().join("x")).unwrap();
    let again = sh(&t, &script);
    assert!(again.status.success(), "{again:?} {script}");
    assert_eq!((log(), String::from_utf8_lossy(&again.stdout).trim()), (before, "printed"), "{script}");
    assert_eq!(std::fs::read_to_string(t.path().join("y")).unwrap(), "1\n");
    std::fs::remove_dir_all(t.path().join("logs")).unwrap();
    let again = sh(&t, &script);
    assert!(again.status.success() && !t.path().join("logs").exists(), "{again:?}");
}

#[test]
fn a_script_says_where_a_command_read_a_pipe() {
    let t = TestStore::empty();
    assert!(sh(&t, "echo 1 | $F run store -q --writes x -- sh -c 'cat > x'").status.success());
    assert!(rebuilds(&t, "x").contains("# Its input came through a pipe"));
    assert!(sh(&t, "$F run store -q --writes y -- sh -c 'echo 1 > y'").status.success());
    assert!(!rebuilds(&t, "y").contains("came through a pipe"));
}

#[test]
fn files_of_a_folder_that_was_written_have_a_maker() {
    for (writes, reads) in [("out", "out/f"), ("out/**", "out/f"), ("out/f", "out"), ("o*", "out/**")] {
        let t = TestStore::empty();
        let make = format!(
            "$F run store -q --name maker --writes '{writes}' -- sh -c 'mkdir -p out/sub; echo 1 > out/f'"
        );
        assert!(sh(&t, &make).status.success());
        let read = format!("$F run store -q --reads '{reads}' --writes sum -- sh -c 'cat out/f > sum'");
        assert!(sh(&t, &read).status.success());
        let path = std::fs::canonicalize(t.path()).unwrap().join("sum");
        let tree = t.run(["trace", "store", path.to_str().unwrap()]).ok().out();
        assert!(tree.contains(&job(&t, "maker").0), "{writes} {reads}: {tree}");
    }
}

#[test]
fn an_edited_script_of_an_interpreter_is_a_difference() {
    for command in ["sh x.sh", "env A=1 sh -e x.sh", "nice sh ./x.sh"] {
        let t = TestStore::empty();
        for n in ["1", "2"] {
            std::fs::write(t.path().join("x.sh"), format!("echo {n} > o\n")).unwrap();
            assert!(sh(&t, &format!("$F run store -q --name r{n} --writes o -- {command}")).status.success());
        }
        let (first, second) = (job(&t, "r1").0, job(&t, "r2").0);
        let rows = t.run(["trace", "store", "--compare", &first, &second]).ok().out();
        assert!(rows.contains("x.sh"), "{command}: {rows}");
    }
}

#[test]
fn a_row_of_accounting_adds_to_what_was_recorded_and_hides_nothing() {
    let t = TestStore::empty();
    std::fs::write(t.path().join("in"), "1\n").unwrap();
    let run = "SLURM_JOB_ID=4711 $F run store -q --env HOME --reads in --writes out -- sh -c 'cat in > out'";
    assert!(sh(&t, run).status.success());
    let before = props(&t, "job:4711");
    let listing = "JobID|JobName|UID|Start|End|State|ExitCode|Comment\n\
        4711|model|0|2026-01-01T01:00:00|2037-01-01T00:00:00|NODE_FAIL|0:0|token=hunter-nine\n";
    std::fs::write(t.path().join("jobs"), listing).unwrap();
    t.run(["ingest", "store", "jobs", "-q", "--tz", "+01:00"]).ok();
    let after = t.run(["graph", "find", "store", "job", "state = NODE_FAIL", "--json"]).ok().json();
    let after = &after["vertices"][0]["props"];
    for name in ["argv", "cwd", "env", "host", "start", "end", "exit"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert_eq!((&after["state"], &after["sacct"]["name"]), (&json!("NODE_FAIL"), &json!("model")));
    assert_eq!(after["sacct"]["start"], "2026-01-01T00:00:00Z");
    assert_eq!(after["sacct"]["slurm"]["Comment"], "token=***");
    assert!(rebuilds(&t, "out").contains("cat in > out"));
    let path = std::fs::canonicalize(t.path()).unwrap().join("out");
    let export = t.run(["graph", "export", "store", path.to_str().unwrap(), "--format", "openlineage"]).ok();
    assert!(export.out().contains("\"FAIL\"") && !export.out().contains("\"COMPLETE\""));
}
