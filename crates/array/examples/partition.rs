//! Partitions a random mesh, with threads as ranks: seconds, bytes exchanged and bytes read by the busiest rank.
//!
//! ```text
//! cargo run --release -p fieldstone-array --example partition -- \
//!     --ranks 4 --nodes 2000000 --edges 18000000 --method direct --vector replicated --folder /tmp/kept
//! ```
//!
//! Methods: direct, ring. Vectors: replicated, shares, block, hilbert. With `--folder`, the partition is kept there
//! and read again by parts, by edges, and by edges for another number of ranks (`--others N`). Edges are short, as in
//! a mesh numbered along a curve: `--reach N` sets the distance between the numbers of their ends. Prints one line of
//! JSON.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::distributed::partition::history::{HistoryWriter, read_edges, read_parts};
use fieldstone_array::distributed::partition::source::EdgeArrays;
use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
use fieldstone_array::distributed::partition::{
    Coordinates, Partition, PartitionKey, PartitionMethod, PartitionSettings, partition,
};
use fieldstone_core::Result;
use fieldstone_core::env::comm::{Comm, Team, single::SingleComm, threads};
use fieldstone_core::env::{Clock, Disk, Env};

struct Arguments {
    ranks: usize,
    others: usize,
    nodes: u64,
    edges: u64,
    reach: u64,
    method: PartitionMethod,
    vector: String,
    folder: Option<PathBuf>,
}

fn arguments() -> std::result::Result<Arguments, Box<dyn StdError>> {
    let mut found = Arguments {
        ranks: 4,
        others: 3,
        nodes: 2_000_000,
        edges: 18_000_000,
        reach: 20_000,
        method: PartitionMethod::Direct,
        vector: "replicated".to_owned(),
        folder: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--ranks" => found.ranks = value.parse()?,
            "--others" => found.others = value.parse()?,
            "--nodes" => found.nodes = value.parse()?,
            "--edges" => found.edges = value.parse()?,
            "--reach" => found.reach = value.parse()?,
            "--method" => found.method = PartitionMethod::parse(&value)?,
            "--vector" => found.vector = value,
            "--folder" => found.folder = Some(value.into()),
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    Ok(found)
}

/// The mixing function of the generator.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ x >> 29
}

fn share(total: u64, rank: u64, ranks: u64) -> std::ops::Range<u64> {
    total * rank / ranks..total * (rank + 1) / ranks
}

/// The input of a rank.
struct Given {
    first: Vec<i64>,
    second: Vec<i64>,
    vector: Vec<i32>,
    points: Vec<f64>,
}

impl Given {
    fn new(arguments: &Arguments, rank: u64, ranks: u64) -> Given {
        let (nodes, edges) = (arguments.nodes, arguments.edges);
        let end = |edge: u64| (edge * nodes / edges.max(1) + mix(edge) % arguments.reach) % nodes;
        let own = share(edges, rank, ranks);
        let first = own.clone().map(|edge| end(edge) as i64).collect();
        let second =
            own.map(|edge| ((end(edge) + mix(edge + edges) % arguments.reach) % nodes) as i64).collect();
        // Contiguous parts with ragged borders, as a partitioner makes them for such a numbering.
        let owner = |node: u64| ((node + mix(node / 64) % 4096).min(nodes - 1) * ranks / nodes) as i32;
        let own = share(nodes, rank, ranks);
        let (mut vector, mut points) = (Vec::new(), Vec::new());
        match &arguments.vector[..] {
            "replicated" => vector.extend((0..nodes).map(owner)),
            "shares" => vector.extend(own.map(owner)),
            "hilbert" => {
                points.extend(own.flat_map(|node| (0..3).map(move |dim| mix(3 * node + dim) as f64)))
            }
            _ => {}
        }
        Given { first, second, vector, points }
    }

    fn vector(&self, word: &str) -> Vector<'_> {
        match word {
            "replicated" => Vector::Replicated(self.vector[..].into()),
            "shares" => Vector::Shares(self.vector[..].into()),
            "hilbert" => Vector::Hilbert(Coordinates::Points { values: &self.points, dims: 3 }),
            _ => Vector::Block,
        }
    }
}

/// The cost of a phase on a rank.
#[derive(Clone)]
struct Phase {
    name: &'static str,
    seconds: f64,
    exchanged: u64,
    read: u64,
}

struct Phases<'a> {
    team: &'a Team,
    clock: Arc<dyn Clock>,
    list: Vec<Phase>,
}

impl Phases<'_> {
    fn time<T>(&mut self, name: &'static str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.team.barrier("phase")?;
        let (start, sent) = (self.clock.monotonic(), self.team.counters().sent);
        let done = act()?;
        let seconds = (self.clock.monotonic() - start) as f64 / 1e9;
        self.list.push(Phase { name, seconds, exchanged: self.team.counters().sent - sent, read: 0 });
        Ok(done)
    }

    /// Records the part that the phase just timed made.
    fn of(&mut self, part: Partition) -> Arc<Partition> {
        if let Some(last) = self.list.last_mut() {
            last.read = part.bytes_read();
        }
        Arc::new(part)
    }
}

fn kept(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    (folder.join(name), folder.join(format!("{name}.tmp")))
}

/// Partitions, keeps and reads again; returns the cost of each phase, and the key of the mesh.
fn rank(comm: Arc<dyn Comm>, arguments: &Arguments, env: &Env) -> Result<(Vec<Phase>, PartitionKey)> {
    let team = Team::new(comm);
    let given = Given::new(arguments, team.rank() as u64, team.size() as u64);
    let mut phases = Phases { team: &team, clock: env.clock.clone(), list: Vec::new() };
    let settings = PartitionSettings { method: arguments.method, ..PartitionSettings::default() };
    let vector = || NodeRanks::new(&team, &given.vector(&arguments.vector), Some(arguments.nodes));
    let checked = phases.time("vector", vector)?;
    let mut edges = EdgeArrays { first: &given.first, second: &given.second };
    let part = phases.time("partition", || partition(&team, &mut edges, &checked, &settings))?;
    let part = phases.of(part);
    let key = part.key();
    let Some(folder) = &arguments.folder else { return Ok((phases.list, key)) };
    let names = ["mesh.parts", "mesh.edges"].map(|name| kept(folder, name));
    let [parts, edges] = names.each_ref().map(|(path, temporary)| (&**path, &**temporary));
    let begin = || HistoryWriter::parts(&team, &*env.disk, parts, &part);
    let writer = phases.time("begin parts", begin)?;
    phases.time("write parts", || {
        let written = writer.write(&*env.disk);
        writer.finish(&team, &*env.disk, written)
    })?;
    let writer = phases.time("begin edges", || HistoryWriter::edges(&team, &*env.disk, edges, &part))?;
    phases.time("write edges", || {
        let written = writer.write(&*env.disk);
        writer.finish(&team, &*env.disk, written)
    })?;
    let again = phases.time("read parts", || read_parts(&team, parts.0, key.mesh, key.vector))?;
    phases.of(again);
    let read = || read_edges(&team, edges.0, key.mesh, &checked, settings.buffer);
    let again = phases.time("read edges", read)?;
    let again = phases.of(again);
    let is_equal =
        again.edges() == part.edges() && again.ends() == part.ends() && again.nodes() == part.nodes();
    team.agree(
        "compare",
        is_equal.then_some(()).ok_or_else(|| fieldstone_core::Error::internal("parts differ")),
    )?;
    Ok((phases.list, key))
}

/// Reads the edges on other ranks.
fn other_rank(
    comm: Arc<dyn Comm>,
    arguments: &Arguments,
    env: &Env,
    key: PartitionKey,
) -> Result<Vec<Phase>> {
    let Some(folder) = &arguments.folder else { return Ok(Vec::new()) };
    let team = Team::new(comm);
    let given = Given::new(arguments, team.rank() as u64, team.size() as u64);
    let mut phases = Phases { team: &team, clock: env.clock.clone(), list: Vec::new() };
    let vector = NodeRanks::new(&team, &given.vector(&arguments.vector), Some(arguments.nodes))?;
    let path = kept(folder, "mesh.edges").0;
    let buffer = PartitionSettings::default().buffer;
    let part =
        phases.time("read edges, other ranks", || read_edges(&team, &path, key.mesh, &vector, buffer))?;
    phases.of(part);
    Ok(phases.list)
}

fn on_ranks<T: Send>(
    ranks: usize,
    disk: &Arc<dyn Disk>,
    body: impl Fn(Arc<dyn Comm>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    match ranks {
        1 => vec![body(Arc::new(SingleComm::new(disk.clone())))],
        ranks => threads::run(ranks, None, disk.clone(), threads::Faults::none(), body),
    }
    .into_iter()
    .collect()
}

/// The maximum cost of each phase over all ranks.
fn json(ranks: &[Vec<Phase>]) -> Vec<String> {
    let phase = |(at, phase): (usize, &Phase)| {
        let all = || ranks.iter().filter_map(|rank| rank.get(at));
        let seconds = all().map(|phase| phase.seconds).fold(0.0, f64::max);
        let most = |of: fn(&Phase) -> u64| all().map(of).max().unwrap_or(0);
        format!(
            "{{\"name\": \"{}\", \"seconds\": {seconds:.6}, \"exchanged\": {}, \"read\": {}}}",
            phase.name,
            most(|phase| phase.exchanged),
            most(|phase| phase.read)
        )
    };
    ranks.first().map(|first| first.iter().enumerate().map(phase).collect()).unwrap_or_default()
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let (arguments, env) = (arguments()?, Env::real());
    if let Some(folder) = &arguments.folder {
        env.disk.create_dir_all(folder)?;
    }
    let (phases, keys): (Vec<_>, Vec<_>) =
        on_ranks(arguments.ranks, &env.disk, |comm| rank(comm, &arguments, &env))?.into_iter().unzip();
    let other = on_ranks(arguments.others, &env.disk, |comm| other_rank(comm, &arguments, &env, keys[0]))?;
    let phases = [json(&phases), json(&other)].concat().join(", ");
    let Arguments { ranks, nodes, edges, method, vector, .. } = &arguments;
    println!(
        "{{\"ranks\": {ranks}, \"nodes\": {nodes}, \"edges\": {edges}, \"method\": \"{}\", \"vector\": \"{vector}\", \
         \"mesh\": \"{}\", \"phases\": [{phases}]}}",
        method.word(),
        keys[0].mesh
    );
    Ok(())
}
