//! Relations of a hub and of many vertices, with their properties, which `bench` measures alongside another engine.
//!
//! `graph_scan STORE HUB VERTICES`: VERTICES is a file of little-endian u32; vertices are files with the paths that
//! `bench/graph_data.py` gives them. Each is read in a process that has just opened the store, and again. Prints one
//! JSON object.

use fieldstone::Session;
use fieldstone::graph::{Versions, VertexName};
use fieldstone::{Env, Error, Mode, OpenOptions, Result, Store};

fn file(vertex: u32) -> VertexName {
    VertexName::new("file", &format!("/scratch/run/{vertex:08}"))
}

/// The number of relations that leave a vertex, each read with its properties.
fn scan(store: &Store, vertex: u32) -> Result<usize> {
    let edges = store.graph().edges(&file(vertex), Some("has"), Versions::NOW, None, &Session::default())?;
    if edges.iter().any(|edge| edge.props.is_empty()) {
        return Err(Error::internal("a relation has lost its properties"));
    }
    Ok(edges.len())
}

fn run(url: &str, hub: &str, vertices: &str) -> Result<String> {
    let clock = Env::real().clock;
    let seconds = |from: u64| (clock.monotonic() - from) as f64 * 1e-9;
    let hub = hub.parse().map_err(|_| Error::invalid(format!("'{hub}' is not a vertex")))?;
    let bytes = std::fs::read(vertices).map_err(|e| Error::io("read", vertices.as_ref(), e))?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let vertices: Vec<u32> = bytes.chunks_exact(4).map(number).collect();
    let store = fieldstone::open(url, &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?;
    let mut parts = Vec::new();
    for warm in ["cold", "warm"] {
        let began = clock.monotonic();
        let of_hub = scan(&store, hub)?;
        parts.push(format!("\"hub_{warm}\":{},\"hub_edges\":{of_hub}", seconds(began)));
        let began = clock.monotonic();
        let mut scanned = 0;
        for vertex in &vertices {
            scanned += scan(&store, *vertex)?;
        }
        parts.push(format!("\"scans_{warm}\":{},\"scanned\":{scanned}", seconds(began)));
    }
    store.close()?;
    Ok(format!("{{{}}}", parts.join(",")))
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [url, hub, vertices] => run(url, hub, vertices),
        _ => Err(Error::invalid("usage: graph_scan STORE HUB VERTICES")),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            std::process::ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
