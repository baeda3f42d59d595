//! Measures how fast the engine takes attributes, how large it gets, and the costs of growth.
//!
//! ```text
//! growth paper FILE W         the paper's volume: W pieces, 10 variables, 3 steps, 10 tags
//! growth layouts FILE W       the same rows in other layouts
//! growth many FILE N [RUNS]   N attributes over RUNS runs (1000), rates and probes at the first million
//!                             and at the end
//! ```
//!
//! `paper` also inserts the same rows with a bare loop over one prepared statement, at the same time: on a
//! busy machine only the ratio is meaningful.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use fieldstone_catalog::engine::{
    Flow, Index, NO_STEP, Probe, RunSelect, Sqlite, Tables, Wait, curve, schema,
};
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, Boxes, Column, Record, RunDecl, RunName, TagDecl, Values, VariableName, split_batch,
};
use fieldstone_journal::feed::Commit;
use fieldstone_testkit::Random;

type Outcome<T> = Result<T, Box<dyn Error>>;

const EDGE: i64 = 170;
/// Name, type of the values, and the number of pieces among a thousand that have it: the paper's Table II.
const TAGS: [(&str, ValueType, u64); 10] = [
    ("blob_freq", ValueType::Bool, 250),
    ("blob_ifreq", ValueType::Bool, 50),
    ("blob_rare", ValueType::Bool, 1),
    ("maximum", ValueType::Float, 1000),
    ("minimum", ValueType::Float, 1000),
    ("note_freq", ValueType::Text, 200),
    ("note_ifreq", ValueType::Text, 25),
    ("note_rare", ValueType::Text, 5),
    ("range_ifreq", ValueType::IntRange, 100),
    ("range_rare", ValueType::IntRange, 10),
];

fn variables() -> Vec<VariableName> {
    (0..10).map(|v| VariableName { name: format!("variable_{v}"), version: 1 }).collect()
}

/// One tag of one step on `pieces` pieces of all variables.
fn batch(dice: &mut Random, run: &str, step: i64, tag: usize, pieces: u64) -> AttributeBatch {
    let (name, kind, odds) = TAGS[tag];
    let (nx, ny) = (10, if pieces > 2000 { 20 } else { 10 });
    let (mut variable, mut start, mut count) = (Vec::new(), Vec::new(), Vec::new());
    for v in 0..10_u32 {
        for piece in 0..pieces as i64 {
            if dice.below(1000) >= odds {
                continue;
            }
            variable.push(v);
            let origin = [piece % nx * EDGE, piece / nx % ny * EDGE, piece / (nx * ny) * EDGE];
            for at in origin {
                let whole = matches!(kind, ValueType::Float | ValueType::Text);
                let (a, b) = (dice.below(EDGE as u64) as i64, dice.below(EDGE as u64) as i64);
                start.push(at + if whole { 0 } else { a.min(b) });
                count.push(if whole { EDGE } else { (a - b).abs() + 1 });
            }
        }
    }
    let rows = variable.len();
    let values = match kind {
        ValueType::Bool => Values::Bool((0..rows).map(|_| dice.below(2) == 1).collect()),
        ValueType::Float => Values::Float((0..rows).map(|_| dice.next_u64() as f64 / 1e9).collect()),
        ValueType::Text => Values::Text((0..rows).map(|_| format!("attr data for timestep{step}")).collect()),
        _ => {
            let mut range = || {
                let low = dice.below(1 << 31) as i64;
                Value::IntRange(low, low + 10_000)
            };
            Values::Any((0..rows).map(|_| range()).collect())
        }
    };
    AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: run.to_owned() },
        tag: TagDecl { name: name.to_owned(), version: 1, kind, unit: String::new() },
        rows,
        step: Some(Column::One(step)),
        variables: variables(),
        variable: Column::Each(variable),
        boxes: Some(Boxes { rank: 3, start, count, cells: None }),
        values,
        one_value: false,
        continues: false,
        singles: false,
    }
}

/// Processor seconds of this process; elapsed seconds if the system does not report them.
fn cpu(begun: Instant) -> f64 {
    let ticks = |text: String| {
        let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        let of = |i: usize| fields.get(i)?.parse::<f64>().ok();
        Some((of(11)? + of(12)?) / 100.0)
    };
    let known = std::fs::read_to_string("/proc/self/stat").ok().and_then(ticks);
    known.unwrap_or_else(|| begun.elapsed().as_secs_f64())
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
}

/// Encoded commits, one for each record.
struct Log {
    sequence: u64,
}

impl Log {
    fn apply(&mut self, index: &mut Index, side: &[fieldstone_format::log::SideRecord]) -> Outcome<()> {
        self.sequence += 1;
        let writer = Id([9; 16]);
        index.apply_commit(&Commit {
            writer,
            owner: 0,
            sequence: self.sequence,
            stamp: self.sequence,
            time: 0,
            transaction: None,
            order: None,
            side: side.to_vec(),
        })?;
        Ok(index.set_watermark(writer, self.sequence)?)
    }
}

fn declare(run: &str) -> Record {
    let run = RunName { project: String::new(), name: run.to_owned() };
    let params = vec![("nx".to_owned(), Value::Int(100))];
    Record::Runs(vec![RunDecl { params, created: 1, ..RunDecl::named(run) }])
}

fn size(path: &Path) -> Outcome<i64> {
    let db = rusqlite::Connection::open(path)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let (mut names, mut total) = (String::new(), 0);
    let mut tables =
        db.prepare("SELECT name, SUM(pgsize), SUM(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC")?;
    let mut rows = tables.query([])?;
    while let Some(row) = rows.next()? {
        let (name, bytes, unused): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        total += bytes;
        if bytes > 100_000 {
            names += &format!("  {name} {bytes} ({unused} unused)");
        }
    }
    println!("file {} pages {total}{names}", std::fs::metadata(path)?.len());
    Ok(total)
}

fn paper(path: &Path, pieces: u64, rounds: u64) -> Outcome<()> {
    let mut dice = Random::new(1);
    let mut commits = Vec::new();
    let (mut rows, mut log_bytes) = (0, 0);
    for step in 0..3 {
        let mut side = Vec::new();
        for tag in 0..10 {
            for part in split_batch(batch(&mut dice, "run0", step, tag, pieces)) {
                rows += part.rows;
                side.push(Record::Attributes(part).encode());
            }
        }
        log_bytes += side.iter().map(|side| side.bytes.len()).sum::<usize>();
        commits.push(side);
    }
    println!("{rows} attributes, {:.1} B each in the log", log_bytes as f64 / rows as f64);
    for round in 0..rounds {
        remove(path);
        let (begun, used) = (Instant::now(), cpu(Instant::now()));
        let mut index = Index::open(Box::new(Sqlite::open(path)?), Id([1; 16]))?;
        let mut log = Log { sequence: 0 };
        index.begin_apply(Wait::Yes)?;
        log.apply(&mut index, &[declare("run0").encode()])?;
        index.end_apply()?;
        for side in &commits {
            index.begin_apply(Wait::Yes)?;
            log.apply(&mut index, side)?;
            index.end_apply()?;
        }
        let (ours, ours_cpu) = (begun.elapsed().as_secs_f64(), cpu(begun) - used);
        drop(index);
        let pages = size(path)?;
        let tables = schema::create(fieldstone_catalog::engine::Dialect::Sqlite);
        let copy = path.with_extension("bare");
        let (bare, bare_cpu) = bare(&copy, &rows_of(path)?, 4096, &tables, 1)?;
        remove(&copy);
        let rate = |seconds: f64| rows as f64 / seconds;
        println!(
            "round {round}: {:.0} attributes/s ({:.0} a CPU second), a bare loop {:.0} ({:.0}); {:.1} B each",
            rate(ours),
            rate(ours_cpu),
            rate(bare),
            rate(bare_cpu),
            pages as f64 / rows as f64
        );
    }
    Ok(())
}

type Cells = Vec<rusqlite::types::Value>;

/// The rows of attr, in order of arrival.
fn rows_of(path: &Path) -> Outcome<Vec<Cells>> {
    let from = rusqlite::Connection::open(path)?;
    let mut read = from.prepare("SELECT * FROM attr ORDER BY batch, run, tag, step, variable, curve, row")?;
    let mut rows = read.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push((0..11).map(|i| row.get(i)).collect::<Result<_, _>>()?);
    }
    Ok(all)
}

/// Inserts rows into a new file with a plain loop, `at_once` in a statement; returns seconds and processor
/// seconds.
fn bare(path: &Path, all: &[Cells], page: u32, tables: &str, at_once: usize) -> Outcome<(f64, f64)> {
    remove(path);
    let (begun, used) = (Instant::now(), cpu(Instant::now()));
    let db = rusqlite::Connection::open(path)?;
    db.execute_batch(&format!("PRAGMA page_size = {page}"))?;
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536")?;
    db.execute_batch(tables)?;
    let places = vec!["(?,?,?,?,?,?,?,?,?,?,?)"; at_once].join(",");
    let mut insert = db.prepare(&format!("INSERT INTO attr VALUES {places}"))?;
    let mut one = db.prepare("INSERT INTO attr VALUES (?,?,?,?,?,?,?,?,?,?,?)")?;
    for commit in all.chunks(all.len().div_ceil(3)) {
        db.execute_batch("BEGIN")?;
        let whole = commit.chunks_exact(at_once);
        for row in whole.remainder() {
            one.execute(rusqlite::params_from_iter(row))?;
        }
        for rows in whole {
            insert.execute(rusqlite::params_from_iter(rows.iter().flatten()))?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok((begun.elapsed().as_secs_f64(), cpu(begun) - used))
}

/// The costs of other layouts of attr, on the paper's volume.
fn layouts(path: &Path, pieces: u64) -> Outcome<()> {
    paper(path, pieces, 1)?;
    let sorted = rows_of(path)?;
    let mut mixed = sorted.clone();
    let mut dice = Random::new(3);
    for third in mixed.chunks_mut(sorted.len().div_ceil(3)) {
        for i in (1..third.len()).rev() {
            third.swap(i, dice.below(i as u64 + 1) as usize);
        }
    }
    let ours = schema::create(fieldstone_catalog::engine::Dialect::Sqlite);
    let number = "CREATE INDEX attr_number ON attr (run, tag, num) WHERE num IS NOT NULL;";
    let text = "CREATE INDEX attr_text ON attr (run, tag, payload) WHERE kind = 5;";
    if !ours.contains(number) || !ours.contains(text) {
        return Err("the definition of the indexes has changed".into());
    }
    let rowid = ours
        .replace("batch, row)) WITHOUT ROWID;\nCREATE INDEX attr_n", "batch, row));\nCREATE INDEX attr_n");
    let all_numbers = ours.replace(number, "CREATE INDEX attr_number ON attr (run, tag, num);");
    let none = ours.replace(number, "").replace(text, "");
    let variants: [(&str, &[Cells], u32, &str, usize); 10] = [
        ("as it is, one row a statement", &sorted, 4096, &ours, 1),
        ("8 rows a statement", &sorted, 4096, &ours, 8),
        ("32 rows a statement", &sorted, 4096, &ours, 32),
        ("pages of 8 KiB", &sorted, 8192, &ours, 8),
        ("pages of 16 KiB", &sorted, 16384, &ours, 8),
        ("rows in any order", &mixed, 4096, &ours, 8),
        ("with rowid", &sorted, 4096, &rowid, 8),
        ("bools and texts in the index of numbers, too", &sorted, 4096, &all_numbers, 8),
        ("no index of texts", &sorted, 4096, &ours.replace(text, ""), 8),
        ("no index of values", &sorted, 4096, &none, 8),
    ];
    let copy = path.with_extension("bare");
    for (name, rows, page, tables, at_once) in variants {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            best = best.min(bare(&copy, rows, page, tables, at_once)?.1);
        }
        let n = rows.len() as f64;
        println!("{name}: {:.0} rows a CPU second", n / best);
        println!("  {:.1} B each", size(&copy)? as f64 / n);
    }
    remove(&copy);
    Ok(())
}

/// Milliseconds, the best of several runs.
fn best(mut act: impl FnMut() -> Outcome<u64>) -> Outcome<(f64, u64)> {
    let (mut least, mut n) = (f64::INFINITY, 0);
    for _ in 0..15 {
        let begun = Instant::now();
        n = act()?;
        least = least.min(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok((least, n))
}

fn probes(path: &Path, runs: i64) -> Outcome<()> {
    let mut index = Index::open(Box::new(Sqlite::open(path)?), Id([1; 16]))?;
    index.begin_read()?;
    let tags = index.tags()?;
    let tag = tags.iter().find(|tag| tag.decl.name == "maximum").map_or(1, |tag| tag.id);
    let run = runs / 2 + 1;
    let count = |index: &mut Index, probes: &[Probe]| Ok(index.scan(probes, &mut |_| Ok(Flow::More))?);
    let say = |what: &str, (ms, n): (f64, u64)| println!("  {what}: {ms:.3} ms, {n} rows");
    let key = Probe::Key { run, tag, steps: 1..=1, variable: Some(3), curve: None };
    say("one series of one run", best(|| count(&mut index, std::slice::from_ref(&key)))?);
    let number = Probe::Number { run, tag, numbers: 1.8e10..=f64::INFINITY };
    say("values over all steps of one run", best(|| count(&mut index, std::slice::from_ref(&number)))?);
    let (from, to) = ([300, 300, 300], [420, 420, 420]);
    let in_box = best(|| {
        let mut probes = Vec::new();
        for one in index.series(run, tag, 0..=2)? {
            let ranges = curve::ranges(one.levels, one.extent, &from, &to);
            let (step, variable) = (one.step, Some(one.variable));
            probes.extend(ranges.into_iter().map(|range| Probe::Key {
                run,
                tag,
                steps: step..=step,
                variable,
                curve: Some(range),
            }));
        }
        count(&mut index, &probes)
    })?;
    say("a small box in one run", in_box);
    let over_all = best(|| {
        let mut n = 0;
        for span in index.spans(tag, None)? {
            let probe = Probe::Number { run: span.run, tag, numbers: 1.838e10..=f64::INFINITY };
            n += count(&mut index, std::slice::from_ref(&probe))?;
        }
        Ok(n)
    })?;
    say("values over all runs", over_all);
    say("what exists: tags of a run", best(|| Ok(index.spans_of_run(run)?.len() as u64))?);
    say("what exists: steps", best(|| Ok(index.steps(run, NO_STEP..=i64::MAX)?.len() as u64))?);
    say("what exists: runs", best(|| Ok(index.runs(&RunSelect::All)?.len() as u64))?);
    index.end_read()?;
    Ok(())
}

fn many(path: &Path, total: u64, runs: u64) -> Outcome<()> {
    remove(path);
    let mut index = Index::open(Box::new(Sqlite::open(path)?), Id([1; 16]))?;
    let mut log = Log { sequence: 0 };
    let per_run = total / runs;
    // About 26.4 attributes a piece and step.
    let pieces = (per_run as f64 / 79.2).round().max(1.0) as u64;
    let (mut rows, mut shown, mut dice) = (0_u64, 0_u64, Random::new(7));
    let (mut applying, mut since) = (0.0, 0_u64);
    let mut rates = Vec::new();
    for run in 0..runs {
        let name = format!("run{run:05}");
        let mut side = vec![declare(&name).encode()];
        let mut n = 0;
        for step in 0..3 {
            for tag in 0..10 {
                for part in split_batch(batch(&mut dice, &name, step, tag, pieces)) {
                    n += part.rows as u64;
                    side.push(Record::Attributes(part).encode());
                }
            }
        }
        let begun = Instant::now();
        index.begin_apply(Wait::Yes)?;
        log.apply(&mut index, &side)?;
        index.end_apply()?;
        applying += begun.elapsed().as_secs_f64();
        rows += n;
        since += n;
        if rows / 1_000_000 > shown || run + 1 == runs {
            shown = rows / 1_000_000;
            rates.push(since as f64 / applying);
            println!("{rows} attributes: {:.0}/s", since as f64 / applying);
            (applying, since) = (0.0, 0);
            if rates.len() == 1 {
                probes(path, run as i64)?;
            }
        }
    }
    drop(index);
    let pages = size(path)?;
    probes(path, runs as i64)?;
    let (first, last) = (rates.first().copied().unwrap_or(0.0), rates.iter().rev().nth(1).copied());
    let last = last.unwrap_or(first);
    println!(
        "{:.1} B each; the last million at {:.2} of the first's rate",
        pages as f64 / rows as f64,
        last / first
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, other: u64| words.get(i).map_or(Ok(other), |word| word.parse());
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["paper", path, ..] => paper(Path::new(path), number(2, 4000)?, 3),
        ["layouts", path, ..] => layouts(Path::new(path), number(2, 4000)?),
        ["many", path, ..] => many(Path::new(path), number(2, 3_000_000)?, number(3, 1000)?),
        _ => Err("growth paper FILE W | growth layouts FILE W | growth many FILE N [RUNS]".into()),
    }
}
