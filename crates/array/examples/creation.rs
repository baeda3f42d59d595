//! Creates the paper's data set, with threads as ranks, and reports the cost of each phase, and what the largest rank
//! exchanges, compares and holds.
//!
//! ```text
//! cargo run --release -p fieldstone-array --example creation -- \
//!     --ranks 4 --variables 568480 --strategy scalable --file /tmp/made.nc
//! ```
//!
//! Strategies: scalable, app, library-sort, library-hash:SLOTS; partitioned, which makes the other header and puts
//! each event's variables and dimensions under a path of their own. Each rank defines its share of the variables,
//! with one or two dimensions of their own, in columns; names and lengths are those of `bench/creation.py`. Without
//! `--file`, the file is in memory and only counts are kept. Prints one line of JSON: seconds and peak bytes of each
//! phase (those of the largest rank), counters of the largest rank, and for each rank the header bytes that it wrote
//! and the maximum bytes that it held.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::container::define::{Definitions, DimColumn, Types, VarColumns};
use fieldstone_array::container::enddef::{EnddefOptions, EnddefOutcome, Phase, enddef};
use fieldstone_array::container::{Format, Strategy};
use fieldstone_core::Result;
use fieldstone_core::env::comm::{Comm, FileMode, Team, single::SingleComm, threads};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_format::netcdf::{Names, NcType, Version};

const PARTS: [&str; 8] = ["x", "y", "edge_index", "nhits", "charge", "plane_u_id", "label", "vtx"];

/// The mixing function of the generator.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ x >> 29
}

/// The columns of variables `first..end`.
struct Columns {
    dims: Names,
    lens: Vec<u64>,
    vars: Names,
    dim_ids: Vec<u32>,
    dim_ends: Vec<u64>,
}

fn columns(first: u64, end: u64, format: Format) -> Columns {
    // In the partitioned header, an event is a path.
    let (path, joint) = match format {
        Format::Partitioned => (true, '/'),
        Format::Classic(_) => (false, '.'),
    };
    let event = |i: u64| if path { format!("event_{:07}/", i / 8) } else { String::new() };

    let (mut dims, mut vars) = (Names::default(), Names::default());
    let (mut lens, mut dim_ids, mut dim_ends) = (Vec::new(), Vec::new(), Vec::new());
    for i in first..end {
        for k in 0..1 + i % 2 {
            dim_ids.push(lens.len() as u32);
            dims.push(&format!("{}dim_{i:08}_{k}.{:016x}.pad", event(i), mix(i)));
            lens.push(4 + mix(2 * i + k) % 61);
        }
        let part = PARTS[(i % 8) as usize];
        vars.push(&format!("event_{:07}{joint}node.{part}.{:06x}", i / 8, mix(i + 7) & 0xff_ffff));
        dim_ends.push(dim_ids.len() as u64);
    }
    Columns { dims, lens, vars, dim_ids, dim_ends }
}

struct Arguments {
    ranks: usize,
    variables: u64,
    strategy: Strategy,
    file: Option<PathBuf>,
}

fn arguments() -> std::result::Result<Arguments, Box<dyn StdError>> {
    let mut found = Arguments { ranks: 1, variables: 568_480, strategy: Strategy::Scalable, file: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--ranks" => found.ranks = value.parse()?,
            "--variables" => found.variables = value.parse()?,
            "--file" => found.file = Some(value.into()),
            "--strategy" => {
                found.strategy = match value.split_once(':') {
                    None if value == "scalable" => Strategy::Scalable,
                    None if value == "partitioned" => Strategy::Partitioned,
                    None if value == "app" => Strategy::App,
                    None if value == "library-sort" => Strategy::LibrarySort,
                    Some(("library-hash", slots)) => Strategy::LibraryHash { slots: slots.parse()? },
                    _ => return Err(format!("unknown strategy {value}").into()),
                }
            }
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    Ok(found)
}

/// One rank's part.
fn rank(comm: Arc<dyn Comm>, arguments: &Arguments, path: &Path) -> Result<EnddefOutcome> {
    let clock = Env::real().clock;
    let team = Team::new(comm);
    let (rank, ranks) = (team.rank() as u64, team.size() as u64);
    let share = |rank: u64| arguments.variables * rank / ranks;
    let format = match arguments.strategy {
        Strategy::Partitioned => Format::Partitioned,
        _ => Format::Classic(Version::Cdf5),
    };
    let own = columns(share(rank), share(rank + 1), format);
    let file = team.open("create", path, FileMode::CreateNew)?;
    let start = clock.monotonic();
    let mut definitions = Definitions::new(format);
    definitions.def_dims(&own.dims, &own.lens)?;
    definitions.def_many(&VarColumns {
        names: &own.vars,
        types: Types::One(NcType::Float),
        dims: DimColumn::Ids(&own.dim_ids, &own.dim_ends),
        attrs: None,
    })?;
    let seconds = (clock.monotonic() - start) as f64 / 1e9;
    let definition = Phase { name: "definition", seconds, peak_bytes: definitions.memory() };
    let options = EnddefOptions::new(arguments.strategy, &*clock);
    let mut defined = enddef(&file, &mut definitions, &options)?;
    defined.report.phases.insert(0, definition);
    Ok(defined)
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let arguments = arguments()?;
    let in_memory = arguments.file.is_none();
    let disk: Arc<dyn Disk> = if in_memory { SimWorld::memory().disk } else { Env::real().disk };
    let path = arguments.file.clone().unwrap_or_else(|| "/made.nc".into());
    let results = match arguments.ranks {
        1 => vec![rank(Arc::new(SingleComm::new(disk.clone())), &arguments, &path)],
        ranks => threads::run(ranks, None, disk.clone(), threads::Faults::none(), |comm| {
            rank(comm, &arguments, &path)
        }),
    };
    let ranks = results.into_iter().collect::<Result<Vec<EnddefOutcome>>>()?;
    println!("{}", json(&arguments, &ranks));
    Ok(())
}

fn json(arguments: &Arguments, ranks: &[EnddefOutcome]) -> String {
    let phases = ranks[0].report.phases.iter().enumerate().map(|(at, phase)| {
        let all = ranks.iter().filter_map(|rank| rank.report.phases.get(at));
        let seconds = all.clone().map(|phase| phase.seconds).fold(0.0, f64::max);
        let peak = all.map(|phase| phase.peak_bytes).max().unwrap_or(0);
        format!("{{\"name\": \"{}\", \"seconds\": {seconds:.6}, \"peak_bytes\": {peak}}}", phase.name)
    });
    let most = |of: fn(&EnddefOutcome) -> u64| ranks.iter().map(of).max().unwrap_or(0);
    let each = |of: fn(&EnddefOutcome) -> u64| {
        let list: Vec<String> = ranks.iter().map(|rank| of(rank).to_string()).collect();
        format!("[{}]", list.join(", "))
    };
    let layout = &ranks[0].layout;
    let fields = [
        ("ranks", arguments.ranks.to_string()),
        ("variables", ranks[0].counts.vars.to_string()),
        ("dimensions", ranks[0].counts.dims.to_string()),
        ("strategy", format!("\"{:?}\"", arguments.strategy)),
        ("header_len", layout.header_len.to_string()),
        ("phases", format!("[{}]", phases.collect::<Vec<_>>().join(", "))),
        ("collectives", most(|rank| rank.report.counters.collectives).to_string()),
        ("messages", most(|rank| rank.report.counters.messages).to_string()),
        ("sent", most(|rank| rank.report.counters.sent).to_string()),
        ("received", most(|rank| rank.report.counters.received).to_string()),
        ("comparisons", most(|rank| rank.report.comparisons).to_string()),
        ("names_held", most(|rank| rank.report.names_held).to_string()),
        ("peak_bytes", most(|rank| rank.report.peak_bytes()).to_string()),
        ("header_bytes_of_ranks", each(|rank| rank.report.header_bytes_written)),
        ("peak_bytes_of_ranks", each(|rank| rank.report.peak_bytes())),
    ];
    let fields = fields.map(|(name, value)| format!("\"{name}\": {value}"));
    format!("{{{}}}", fields.join(", "))
}
