//! A graph in fjall, stored in the way of a simple program: the floor with which the graph's figures are compared.
//!
//! `fjall FOLDER EDGES BATCH [HUB VERTICES]`: EDGES holds pairs of little-endian u32, source and target. One batch of
//! the database holds a relation with its reverse, or BATCH relations. A key has 42 bytes: 16 of the near end, type and
//! direction in 2, 16 of the far end, 8 of the time, the newest first; a value has 128 bytes that do not compress. Then
//! the program reads the last relation and its reverse. With HUB and VERTICES, a file of u32, it reads all relations of
//! the hub with their values, and those of the vertices, each once cold and once again. It prints one JSON object.

use std::error::Error;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use rustix::time::{ClockId, clock_gettime};

fn seconds(clock: ClockId) -> f64 {
    let t = clock_gettime(clock);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn wall() -> f64 {
    seconds(ClockId::Monotonic)
}

/// Bits that look random; equal numbers give equal bits.
fn mixed(number: u64, part: u64) -> [u8; 8] {
    let high = crc32c::crc32c(&[number, part, 1].map(u64::to_le_bytes).concat());
    let low = crc32c::crc32c(&[part, number, 2].map(u64::to_le_bytes).concat());
    (u64::from(high) << 32 | u64::from(low)).to_be_bytes()
}

fn place(vertex: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed(u64::from(vertex), 0));
    bytes[12..].copy_from_slice(&vertex.to_be_bytes());
    bytes
}

fn key(near: u32, reverse: bool, far: u32, time: u64) -> [u8; 42] {
    let mut key = [0; 42];
    key[..16].copy_from_slice(&place(near));
    key[17] = u8::from(reverse);
    key[18..34].copy_from_slice(&place(far));
    key[34..].copy_from_slice(&(u64::MAX - time).to_be_bytes());
    key
}

fn value(number: u64) -> [u8; 128] {
    let mut value = [0; 128];
    for (i, part) in value.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mixed(number, i as u64));
    }
    value
}

/// Reads all relations that leave a vertex, with their values: gives their number, and a sum that forces each read.
fn scan(table: &Keyspace, vertex: u32) -> Result<(u64, u64), Box<dyn Error>> {
    let mut prefix = [0; 18];
    prefix[..16].copy_from_slice(&place(vertex));
    let (mut count, mut sum) = (0, 0);
    for guard in table.prefix(prefix) {
        let (_, value) = guard.into_inner()?;
        count += 1;
        sum += u64::from(value[0]);
    }
    Ok((count, sum))
}

/// The little-endian u32 values in a file.
fn numbers(path: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    Ok(std::fs::read(path)?.chunks_exact(4).map(number).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, edges, batch, scans @ ..] = arguments.as_slice() else {
        return Err("usage: fjall FOLDER EDGES BATCH [HUB VERTICES]".into());
    };
    let pairs: Vec<(u32, u32)> = numbers(edges)?.chunks_exact(2).map(|two| (two[0], two[1])).collect();
    let batch: usize = batch.parse()?;
    // As in the first measurements: 64 MiB of cache, and two threads in addition to the caller's.
    let database = Database::builder(folder).cache_size(64 << 20).worker_threads(2).open()?;
    let table = database.keyspace("relations", KeyspaceCreateOptions::default)?;
    let values: Vec<[u8; 128]> = (0..pairs.len() as u64).map(value).collect();
    let (began, cpu) = (wall(), seconds(ClockId::ProcessCPUTime));
    for (i, part) in pairs.chunks(batch).enumerate() {
        let mut writes = database.batch();
        for (j, (source, target)) in part.iter().enumerate() {
            let number = (i * batch + j) as u64;
            let value = values[i * batch + j];
            writes.insert(&table, key(*source, false, *target, number), value);
            writes.insert(&table, key(*target, true, *source, number), value);
        }
        writes.commit()?;
    }
    let last = pairs.len() as u64 - 1;
    if let Some((source, target)) = pairs.last() {
        for key in [key(*source, false, *target, last), key(*target, true, *source, last)] {
            table.get(key)?.ok_or("the last relation is not there")?;
        }
    }
    let (took, cpu) = (wall() - began, seconds(ClockId::ProcessCPUTime) - cpu);
    let mut line = format!("\"seconds\":{took},\"cpu\":{cpu},\"edges\":{}", pairs.len());
    if let [hub, vertices] = scans {
        let (hub, vertices) = (hub.parse()?, numbers(vertices)?);
        table.rotate_memtable_and_wait()?;
        for warm in ["cold", "warm"] {
            let began = wall();
            let (of_hub, _) = scan(&table, hub)?;
            let hub_took = wall() - began;
            let began = wall();
            let mut found = 0;
            for vertex in &vertices {
                found += scan(&table, *vertex)?.0;
            }
            let took = wall() - began;
            line += &format!(
                ",\"hub_{warm}\":{hub_took},\"hub_edges\":{of_hub},\"scans_{warm}\":{took},\"scanned\":{found}"
            );
        }
    }
    database.persist(PersistMode::SyncAll)?;
    line += &format!(",\"bytes\":{}", database.disk_space()?);
    println!("{{{line}}}");
    Ok(())
}
