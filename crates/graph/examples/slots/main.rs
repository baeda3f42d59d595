//! A graph in slots that are threads: what putting it takes, what walks take and count. `bench/slots.py` runs it.
//!
//! `slots edges=FILE [slots=8] [scheme=dido] [labels=low] [threshold=128] [clients=1] [batch=1000] [property=128]
//! [delays=NS,NS,...]`: FILE has pairs of little-endian u32, source and target; vertices are files with the paths that
//! `bench/graph_data.py` gives them. It puts all, waits until no split goes on, and prints one JSON object. Then each
//! line of its input is answered by one:
//!
//! | line | |
//! |---|---|
//! | `walk ENGINE STEPS START KIND` | the time of a walk, what it counts, and for each slot and step where the time went; KIND `-`: along all relations |
//! | `model` | computes where all is (`slot_model`), compares it with what slots have, and says how much of it is with its far end |
//! | `expect STEPS START KIND` | what such a walk counts by the model |

mod counting;
#[path = "../../tests/all/slot_model.rs"]
mod slot_model;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;

use counting::{Counting, OneNetwork};
use fieldstone_core::env::{Clock, Env};
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning, SlotLabels};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_graph::segment::{CommitOrder, Rows};
use fieldstone_graph::slot::network::Networks;
use fieldstone_graph::slot::shelf::all_splits;
use fieldstone_graph::slot::{Engine, SlotCluster, SlotOptions, travels};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::{Travel, TravelStep, VertexTest};
use slot_model::{Half, Model};

const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

fn file(vertex: u32) -> VertexName {
    VertexName::new("file", &format!("/scratch/run/{vertex:08}"))
}

/// What was asked for on the command line, by name.
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
    text.parse().map_err(|_| Error::invalid(format!("'{text}' is no number")))
}

/// Processor seconds of this process, and those of its busiest slot.
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

/// Slots with a graph in them.
struct Bench {
    edges: Vec<(u32, u32)>,
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

    /// The relations in batches, each ready to be put: a property of random characters, a stamp.
    fn batches(&self, asked: &Asked) -> Result<Vec<Rows>> {
        let (batch, property) = (asked.number("batch", 1000)?, asked.number("property", 128)?);
        let mut random = 88_172_645_463_325_252u64;
        let mut text = || -> String {
            let letter = |_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                char::from(LETTERS[random as usize % 64])
            };
            (0..property).map(letter).collect()
        };
        let (mut batches, mut stamp) = (Vec::new(), 0);
        for edges in self.edges.chunks(batch) {
            let mut relations = Vec::with_capacity(edges.len());
            for (source, target) in edges {
                stamp += 1;
                let props = Props::of([("note", &Value::Text(text()))])?;
                let (source, target) = (file(*source), file(*target));
                let version = Version { stamp, time: stamp as i64, deleted: false };
                relations.push(RelationRow {
                    kind: "has".into(),
                    source,
                    target,
                    version,
                    until: None,
                    props,
                });
            }
            let mut rows = Rows::default();
            let known = CommitKnown { since: 1, stamp };
            rows.add(CommitOrder { known, user: 1000 }, &Record::Relations(relations).encode())?;
            batches.push(rows);
        }
        Ok(batches)
    }

    /// Puts all, each client in a thread of its own.
    fn load(&mut self, asked: &Asked) -> Result<String> {
        let clients = asked.number("clients", 1)?;
        let batches = self.batches(asked)?;
        let (begun, before) = (self.clock.monotonic(), cpu());
        let cluster = &self.cluster;
        let put = |nth: usize| -> Result<u64> {
            let mut client = cluster.client();
            for rows in batches.iter().skip(nth).step_by(clients) {
                client.insert(rows)?;
            }
            Ok(client.redirects())
        };
        let redirects = std::thread::scope(|scope| -> Result<u64> {
            let threads: Vec<_> = (0..clients).map(|nth| scope.spawn(move || put(nth))).collect();
            let ended = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(Error::internal("a client panicked"))));
            ended.sum()
        })?;
        let put = self.seconds(begun);
        self.cluster.settle()?;
        let settled = self.seconds(begun);
        let after = cpu();
        drop(batches);
        let contents: Vec<_> = self.cluster.shelves().iter().map(|shelf| shelf.content()).collect();
        let splits: usize = all_splits(&contents).values().map(|of| of.known.len()).sum();
        let segments = contents.into_iter().flat_map(|content| content.segments);
        self.state = Arc::new(GraphState::of(segments.collect()));
        let [frames, bytes, moved] = self.network.sent();
        Ok(format!(
            "{{\"edges\":{},\"put\":{put},\"settled\":{settled},\"cpu\":{},\"busiest_cpu\":{},\
             \"redirects\":{redirects},\"splits\":{splits},\"moved\":{moved},\"frames\":{frames},\"bytes\":{bytes}}}",
            self.edges.len(),
            after.0 - before.0,
            after.1 - before.1,
        ))
    }

    fn walk(&self, engine: &str, steps: &str, start: &str, kind: &str) -> Result<String> {
        let engine = Engine::ALL.into_iter().find(|one| one.name() == engine);
        let engine = engine.ok_or_else(|| Error::invalid("there is no such engine"))?;
        let named = Some(vec![file(number(start)? as u32)]);
        let mut all = vec![TravelStep::Vertices(VertexTest { named, ..VertexTest::default() })];
        let kinds: Vec<String> = if kind == "-" { Vec::new() } else { vec![kind.to_owned()] };
        let hop = TravelStep::Edges { kinds, versions: None };
        all.extend(std::iter::repeat_n(hop, number(steps)?));
        let plan = Travel { steps: all, ..Travel::default() }.plan(self.state.vocabulary())?;
        let (begun, before) = (self.clock.monotonic(), cpu());
        let walked = travels::begin(&self.cluster, &self.state, &[], plan, engine)?.run()?;
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

    /// How many relations each slot shows.
    fn held(&self) -> Result<Vec<usize>> {
        let partitioner = self.cluster.partitioner();
        let mut held = Vec::new();
        for (number, shelf) in (0..).zip(self.cluster.shelves()) {
            let content = shelf.content();
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
        let kind: Arc<str> = "has".into();
        let mut places: HashMap<u32, VertexPlace> = HashMap::new();
        let mut place = |vertex: u32| *places.entry(vertex).or_insert_with(|| VertexPlace::of(&file(vertex)));
        let relations: Vec<_> =
            self.edges.iter().map(|(from, to)| (kind.clone(), place(*from), place(*to))).collect();
        let model = Model::of(self.partitioning, &relations);
        drop(relations);
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
        let cost = model.walk(VertexPlace::of(&file(number(start)? as u32)), number(steps)?, wanted);
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
            _ => Err(Error::invalid(format!("'{line}' is no question"))),
        }
    }
}

fn run() -> Result<()> {
    let asked = Asked::of(std::env::args().skip(1))?;
    let path = asked.0.get("edges").ok_or_else(|| Error::invalid("edges=FILE is missing"))?;
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path.as_ref(), e))?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let edges = bytes.chunks_exact(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect();
    let delays = asked.0.get("delays").map_or("", String::as_str);
    let delays = delays.split(',').filter(|text| !text.is_empty()).map(|text| Ok(number(text)? as u64));
    let (partitioning, clock) = (asked.partitioning()?, Env::real().clock);
    let network = Arc::new(Counting::default());
    let networks = Some(Arc::new(OneNetwork(network.clone())) as Arc<dyn Networks>);
    let options = SlotOptions { networks, delays: delays.collect::<Result<_>>()? };
    let cluster = Arc::new(SlotCluster::start(partitioning, Vec::new(), &clock, &options)?);
    let state = Arc::new(GraphState::of(Vec::new()));
    let mut bench = Bench { edges, partitioning, cluster, network, clock, state, model: None };
    println!("{}", bench.load(&asked)?);
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
