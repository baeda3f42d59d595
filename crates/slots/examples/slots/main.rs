//! A graph in slots that are threads: the cost of putting it, and of walks. `bench/slots.py` runs it.
//!
//! | input | |
//! |---|---|
//! | `edges=FILE` | pairs of little-endian u32, source and target; vertices are files with the paths that `bench/graph_data.py` gives them |
//! | `relations=FILE` | lines of type, type and id of the source, type and id of the target, separated by tabs |
//! | `files=N` | each client puts N files of one directory (`mdtest`), `batch` in a call; with `folder=DIR` it creates empty files there instead, without slots |
//!
//! Further arguments: `[slots=8] [scheme=dido] [labels=low] [threshold=128] [clients=1] [batch=1000]
//! [property=128] [delays=NS,NS,...]`. The program puts everything, waits until all splits have ended, and
//! prints one JSON object. Then it answers each line of its input with one more:
//!
//! | line | answer |
//! |---|---|
//! | `walk ENGINE STEPS START KIND` | the time of a walk, its counts, and the time spent in each slot and step; KIND `-`: along all relations |
//! | `model` | computes where everything belongs (`slot_model`), compares it with the slots, and reports the share that is in the slot of its far end |
//! | `expect STEPS START KIND` | the counts of such a walk according to the model |
//! | `held` | relations of the fullest slot, and of all slots |

mod counting;
mod mdtest;
mod relations;
#[path = "../../../graph/tests/all/slot_model.rs"]
mod slot_model;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use counting::{Counting, OneNetwork};
use fieldstone_core::env::{Clock, Env};
use fieldstone_core::{Error, Result};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning, SlotLabels};
use fieldstone_graph::slot::{Engine, Slots, all_splits};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::{Travel, TravelStep, VertexTest};
use fieldstone_journal::session::Limits;
use fieldstone_slots::network::Networks;
use fieldstone_slots::{SlotClient, SlotCluster, SlotOptions, travels};
use mdtest::SharedDirectory;
use relations::Relations;
use slot_model::{Half, Model};

/// The command line's arguments, by name.
struct Asked(HashMap<String, String>);

impl Asked {
    fn of(arguments: impl Iterator<Item = String>) -> Result<Asked> {
        let named = |argument: String| match argument.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(Error::invalid(format!("'{argument}' is not NAME=VALUE"))),
        };
        Ok(Asked(arguments.map(named).collect::<Result<_>>()?))
    }

    fn number(&self, name: &str, default: usize) -> Result<usize> {
        self.0.get(name).map_or(Ok(default), |text| number(text))
    }

    fn one_of<T: Copy>(&self, name: &str, default: T, all: &[T], called: fn(T) -> &'static str) -> Result<T> {
        let Some(text) = self.0.get(name) else { return Ok(default) };
        let found = all.iter().copied().find(|one| called(*one) == text);
        found.ok_or_else(|| Error::invalid(format!("there is no {name} '{text}'")))
    }

    /// The files that clients create, if requested.
    fn files(&self) -> Result<Option<SharedDirectory>> {
        let Some(files) = self.0.get("files") else { return Ok(None) };
        let (clients, batch) = (self.number("clients", 1)?, self.number("batch", 1)?);
        Ok(Some(SharedDirectory { clients, files: number(files)?, batch }))
    }

    fn partitioning(&self) -> Result<Partitioning> {
        Ok(Partitioning {
            slots: self.number("slots", 8)? as u16,
            scheme: self.one_of(
                "scheme",
                PartitionScheme::Dido,
                &PartitionScheme::ALL,
                PartitionScheme::name,
            )?,
            threshold: self.number("threshold", 128)? as u32,
            labels: self.one_of("labels", SlotLabels::Low, &SlotLabels::ALL, SlotLabels::name)?,
        })
    }
}

fn number(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Error::invalid(format!("'{text}' is not a number")))
}

/// Processor seconds of this process, and of its busiest slot.
fn cpu() -> (f64, f64) {
    let ticks = |path: &str| -> f64 {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        let field =
            |i| after.split_whitespace().nth(i).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
        (field(11) + field(12)) / 100.0
    };
    let mut busiest = 0.0f64;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = task.path().display().to_string();
        let name = std::fs::read_to_string(format!("{path}/comm")).unwrap_or_default();
        if name.starts_with("graph-slot") {
            busiest = busiest.max(ticks(&format!("{path}/stat")));
        }
    }
    (ticks("/proc/self/stat"), busiest)
}

/// Runs clients, each in its own thread; returns the sum of their results.
fn together(clients: usize, client: impl Fn(usize) -> Result<u64> + Sync) -> Result<u64> {
    std::thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..clients).map(|nth| scope.spawn(move || client(nth))).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Error::internal("a client panicked"))));
        ended.sum()
    })
}

/// Slots with a graph in them.
struct Bench {
    relations: Relations,
    partitioning: Partitioning,
    cluster: Arc<SlotCluster>,
    network: Arc<Counting>,
    clock: Arc<dyn Clock>,
    state: Arc<GraphState>,
    model: Option<Model>,
}

impl Bench {
    fn seconds(&self, from: u64) -> f64 {
        (self.clock.monotonic() - from) as f64 * 1e-9
    }

    /// Puts everything, each client in its own thread.
    fn load(&mut self, asked: &Asked) -> Result<String> {
        let clients = asked.number("clients", 1)?;
        let batches = self.relations.batches(asked.number("batch", 1000)?, asked.number("property", 128)?)?;
        let figures = self.put(clients, |nth, client| {
            batches.iter().skip(nth).step_by(clients).try_for_each(|rows| client.insert(rows))
        })?;
        Ok(format!("{{\"edges\":{},{figures}}}", self.relations.len()))
    }

    /// Creates the files of one directory.
    fn create(&mut self, files: SharedDirectory) -> Result<String> {
        self.cluster.insert(&files.directory()?)?;
        let calls: Vec<_> = (0..files.clients).map(|nth| files.calls(nth)).collect::<Result<_>>()?;
        let figures = self
            .put(files.clients, |nth, client| calls[nth].iter().try_for_each(|rows| client.insert(rows)))?;
        let (all, found) = (files.all(), files.found(&self.state)?);
        Ok(format!("{{\"files\":{all},\"found\":{found},{figures}}}"))
    }

    /// Measures the time until clients have put everything, and until all splits have ended.
    fn put(
        &mut self,
        clients: usize,
        put: impl Fn(usize, &mut SlotClient) -> Result<()> + Sync,
    ) -> Result<String> {
        let (begun, before) = (self.clock.monotonic(), cpu());
        let cluster = &self.cluster;
        let redirects = together(clients, |nth| {
            let mut client = cluster.client();
            put(nth, &mut client)?;
            Ok(client.redirects())
        })?;
        let put = self.seconds(begun);
        self.cluster.settle()?;
        let settled = self.seconds(begun);
        let after = cpu();
        let contents = self.cluster.contents()?;
        let splits: usize = all_splits(&contents).values().map(|of| of.known.len()).sum();
        let segments = contents.into_iter().flat_map(|content| content.segments);
        self.state = Arc::new(GraphState::of(segments.collect()));
        let [frames, bytes, moved] = self.network.sent();
        Ok(format!(
            "\"put\":{put},\"settled\":{settled},\"cpu\":{},\"busiest_cpu\":{},\
             \"redirects\":{redirects},\"splits\":{splits},\"moved\":{moved},\"frames\":{frames},\"bytes\":{bytes}",
            after.0 - before.0,
            after.1 - before.1,
        ))
    }

    fn walk(&self, engine: &str, steps: &str, start: &str, kind: &str) -> Result<String> {
        let engine = Engine::ALL.into_iter().find(|one| one.name() == engine);
        let engine = engine.ok_or_else(|| Error::invalid("there is no such engine"))?;
        let named = Some(vec![self.relations.vertex(number(start)?)?]);
        let mut all = vec![TravelStep::Vertices(VertexTest { named, ..VertexTest::default() })];
        let kinds: Vec<String> = if kind == "-" { Vec::new() } else { vec![kind.to_owned()] };
        let hop = TravelStep::Edges { kinds, versions: None };
        all.extend(std::iter::repeat_n(hop, number(steps)?));
        let plan = Travel { steps: all, ..Travel::default() }.plan(self.state.vocabulary())?;
        let (begun, before) = (self.clock.monotonic(), cpu());
        let walked =
            travels::begin(&self.cluster, &self.state, &[], plan, engine, Limits::default())?.run()?;
        let (seconds, after) = (self.seconds(begun), cpu());
        let Some(figures) = walked.slots() else { return Err(Error::internal("no figures of slots")) };
        let found = walked.sets().last().copied().unwrap_or(0);
        let (frames, bytes) = figures.sent();
        let mut steps = String::new();
        for (slot, own) in figures.steps.iter().enumerate() {
            for step in own {
                let comma = if steps.is_empty() { "" } else { "," };
                let (hop, vertex, edge) = (step.hop, step.vertex_time, step.edge_time);
                let _ = write!(steps, "{comma}[{slot},{hop},{vertex},{edge},{}]", step.prefetch_time);
            }
        }
        Ok(format!(
            "{{\"seconds\":{seconds},\"cpu\":{},\"found\":{found},\"requests\":{},\"forwards\":{},\"reads\":{},\
             \"frames\":{frames},\"bytes\":{bytes},\"steps\":[{steps}]}}",
            after.0 - before.0,
            figures.requests(),
            figures.forwards(),
            figures.reads(),
        ))
    }

    /// Number of relations that each slot shows.
    fn held(&self) -> Result<Vec<usize>> {
        let partitioner = self.cluster.partitioner();
        let mut held = Vec::new();
        for (number, content) in (0..).zip(self.cluster.contents()?) {
            let state = GraphState::of(content.segments.clone());
            let mut places = Vec::new();
            for segment in &content.segments {
                for i in 0..segment.vertices() {
                    places.push(segment.place(i)?);
                }
            }
            places.sort_unstable();
            places.dedup();
            let mut own = 0;
            for vertex in places {
                let splitting = content.splits.get(&vertex).cloned().unwrap_or_default();
                let top = partitioner.top(vertex, number);
                let shown = |far: VertexPlace| {
                    let path = partitioner.path(vertex, far);
                    let leaf = partitioner.leaf_below(top, path, &|part| splitting.finished.has(part));
                    partitioner.slot(vertex, leaf) == number
                };
                own += state.edges(vertex, &|_, _| true)?.iter().filter(|edge| shown(edge.far)).count();
            }
            held.push(own);
        }
        Ok(held)
    }

    fn compare(&mut self) -> Result<String> {
        let model = Model::of(self.partitioning, &self.relations.places());
        let held = self.held()?;
        let expected: Vec<usize> = model.slots().iter().map(|slot| slot.len()).collect();
        let (mut with, mut all, mut with_many, mut many) = (0, 0, 0, 0);
        for halves in model.halves.values() {
            let own = halves.iter().filter(|((_, _, far), slot)| model.home(*far) == **slot).count();
            (with, all) = (with + own, all + halves.len());
            if halves.len() > self.partitioning.threshold as usize {
                (with_many, many) = (with_many + own, many + halves.len());
            }
        }
        let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
        let most = held.iter().max().copied().unwrap_or(0);
        let line = format!(
            "{{\"same\":{},\"splits\":{},\"with_far_end\":{},\"with_far_end_many\":{},\"most\":{most},\
             \"most_over_mean\":{}}}",
            held == expected,
            model.splits.values().map(|splits| splits.len()).sum::<usize>(),
            share(with, all),
            share(with_many, many),
            share(most * held.len(), held.iter().sum()),
        );
        self.model = Some(model);
        Ok(line)
    }

    fn expect(&self, steps: &str, start: &str, kind: &str) -> Result<String> {
        let Some(model) = &self.model else { return Err(Error::invalid("ask for the model first")) };
        let wanted = |half: &Half| kind == "-" || (&*half.0 == kind && !half.1);
        let start = VertexPlace::of(&self.relations.vertex(number(start)?)?);
        let cost = model.walk(start, number(steps)?, wanted);
        let line =
            format!("\"requests\":{},\"forwards\":{},\"reads\":{}", cost.requests, cost.forwards, cost.reads);
        Ok(format!("{{{line}}}"))
    }

    fn answer(&mut self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["walk", engine, steps, start, kind] => self.walk(engine, steps, start, kind),
            ["model"] => self.compare(),
            ["expect", steps, start, kind] => self.expect(steps, start, kind),
            ["held"] => {
                let held = self.held()?;
                let most = held.iter().max().copied().unwrap_or(0);
                Ok(format!("{{\"most\":{most},\"all\":{}}}", held.iter().sum::<usize>()))
            }
            _ => Err(Error::invalid(format!("'{line}' is not a valid question"))),
        }
    }
}

/// Creates the same files in a folder instead of slots.
fn create_in(folder: &Path, files: SharedDirectory) -> Result<String> {
    let clock = Env::real().clock;
    let (begun, before) = (clock.monotonic(), cpu());
    together(files.clients, |nth| files.create_in(nth, folder).map(|()| 0))?;
    let seconds = (clock.monotonic() - begun) as f64 * 1e-9;
    let after = cpu();
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io("list", folder, e))?;
    let (all, found) = (files.all(), entries.count());
    let cpu = after.0 - before.0;
    Ok(format!("{{\"files\":{all},\"found\":{found},\"put\":{seconds},\"settled\":{seconds},\"cpu\":{cpu}}}"))
}

fn run() -> Result<()> {
    let asked = Asked::of(std::env::args().skip(1))?;
    let files = asked.files()?;
    if let (Some(files), Some(folder)) = (files, asked.0.get("folder")) {
        println!("{}", create_in(folder.as_ref(), files)?);
        return Ok(());
    }
    let relations = match (asked.0.get("edges"), asked.0.get("relations")) {
        (Some(path), _) => Relations::pairs(path.as_ref())?,
        (_, Some(path)) => Relations::lines(path.as_ref())?,
        _ if files.is_some() => Relations::Pairs(Vec::new()),
        _ => return Err(Error::invalid("edges=FILE, relations=FILE or files=N is missing")),
    };
    let delays = asked.0.get("delays").map_or("", String::as_str);
    let delays = delays.split(',').filter(|text| !text.is_empty()).map(|text| Ok(number(text)? as u64));
    let (partitioning, env) = (asked.partitioning()?, Env::real());
    let clock = env.clock.clone();
    let network = Arc::new(Counting::default());
    let networks = Some(Arc::new(OneNetwork(network.clone())) as Arc<dyn Networks>);
    let options = SlotOptions { networks, delays: delays.collect::<Result<_>>()? };
    let cluster = Arc::new(SlotCluster::start(partitioning, Vec::new(), &env, &options)?);
    let state = Arc::new(GraphState::of(Vec::new()));
    let mut bench = Bench { relations, partitioning, cluster, network, clock, state, model: None };
    let put = match files {
        Some(files) => bench.create(files)?,
        None => bench.load(&asked)?,
    };
    println!("{put}");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Error::unavailable(format!("the input cannot be read: {e}")))?;
        println!("{}", bench.answer(&line)?);
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}
