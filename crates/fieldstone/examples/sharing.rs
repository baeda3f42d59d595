//! The speed of threads that share one handle, next to that of the disk: for `bench`.
//!
//! ```text
//! sharing FOLDER disk BYTES                overwrite of so many bytes in zeroed space + fdatasync, µs
//! sharing FOLDER flush                     flush of ten fields of 128 bytes, µs; and the bytes of a frame
//! sharing FOLDER threads N                 flushes per second of N threads, a field of 128 bytes each time
//! sharing FOLDER reader                    a warm get beside two threads that flush, µs
//! sharing FOLDER archive N none|zstd       64 KiB fields archived per second by N threads, and flushed
//! ```
//! Prints one JSON object: medians, 95th and 99th percentiles, rates. FOLDER is made and removed.

use std::error::Error;
use std::fs::{File, OpenOptions as FileOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fieldstone::Session;
use fieldstone::{ArchiveOptions, Compression, DType, Env, FieldStore, OpenOptions, ReadOptions, Value};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Duration of a measurement of rates.
const LASTS: Duration = Duration::from_secs(2);

/// A moment, by the monotonic clock.
#[derive(Clone, Copy)]
struct Instant(u64);

impl Instant {
    fn now() -> Instant {
        static WORLD: LazyLock<Env> = LazyLock::new(Env::real);
        Instant(WORLD.clock.monotonic())
    }

    fn elapsed(self) -> Duration {
        Duration::from_nanos(Instant::now().0 - self.0)
    }
}

fn micros(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    format!("\"median\":{:.1},\"p95\":{:.1},\"p99\":{:.1}", at(0.5), at(0.95), at(0.99))
}

fn timed<T>(mut step: impl FnMut(u64) -> Outcome<T>, times: u64) -> Outcome<Vec<Duration>> {
    let one = |n| {
        let begun = Instant::now();
        step(n)?;
        Ok(begun.elapsed())
    };
    (0..times).map(one).collect()
}

fn disk(folder: &Path, bytes: usize) -> Outcome<String> {
    let path = folder.join("zeroed");
    let file: File = FileOptions::new().create(true).truncate(true).write(true).open(&path)?;
    file.write_all_at(&vec![0; bytes * 520], 0)?;
    file.sync_all()?;
    let data = vec![7; bytes];
    let step = |n: u64| {
        file.write_all_at(&data, n * bytes as u64)?;
        Ok(file.sync_data()?)
    };
    Ok(micros(timed(step, 500)?))
}

fn put(store: &dyn FieldStore, run: &str, variable: &str, step: u64, value: Value<'_>) -> Outcome<()> {
    let step = step.to_string();
    let key = [("run", run), ("variable", variable), ("step", step.as_str())];
    Ok(store.archive(&key, value, &ArchiveOptions::default())?)
}

fn flush(store: &dyn FieldStore, folder: &Path) -> Outcome<String> {
    let step = |n: u64| {
        for variable in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            put(store, "r", variable, n, Value::Bytes(&[3; 128]))?;
        }
        Ok(store.flush(&Session::default())?)
    };
    let step = &step;
    timed(step, 20)?;
    let length = || -> Outcome<u64> {
        let logs = std::fs::read_dir(folder.join("store/logs"))?;
        Ok(logs.flatten().filter_map(|log| Some(log.metadata().ok()?.len())).sum())
    };
    let before = length()?;
    let times = timed(|n| step(n + 20), 400)?;
    store.close(&Session::default())?;
    let frame = (length()? - before.min(length()?)) / 400;
    Ok(format!("{},\"frame\":{frame}", micros(times)))
}

fn threads(store: &dyn FieldStore, count: u64) -> Outcome<String> {
    put(store, "r", "first", 0, Value::Bytes(b"x"))?;
    store.flush(&Session::default())?;
    let (stop, flushes) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    thread::scope(|scope| -> Outcome<()> {
        let worker = |thread: u64| {
            let (stop, flushes) = (&stop, &flushes);
            scope.spawn(move || -> Outcome<()> {
                let variable = format!("v{thread}");
                for step in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    put(store, "r", &variable, step, Value::Bytes(&[3; 128]))?;
                    store.flush(&Session::default())?;
                    flushes.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..count).map(worker).collect();
        thread::sleep(LASTS);
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a thread panicked")?)
    })?;
    let rate = flushes.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    Ok(format!("\"flushes_per_second\":{rate:.0}"))
}

fn reader(store: &dyn FieldStore) -> Outcome<String> {
    put(store, "r", "warm", 0, Value::Bytes(&[5; 4096]))?;
    store.flush(&Session::default())?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| -> Outcome<String> {
        for thread in 0..2u64 {
            let stop = &stop;
            scope.spawn(move || {
                let variable = format!("v{thread}");
                for step in 0.. {
                    let flushed = put(store, "r", &variable, step, Value::Bytes(&[3; 128]))
                        .and_then(|()| Ok(store.flush(&Session::default())?));
                    if stop.load(Ordering::Relaxed) || flushed.is_err() {
                        break;
                    }
                }
            });
        }
        let key = [("run", "r"), ("variable", "warm"), ("step", "0")];
        let get = |_| Ok(store.get(&key, &ReadOptions::default())?.read()?);
        let times = timed(get, 200).and_then(|_| timed(get, 20_000));
        stop.store(true, Ordering::Relaxed);
        Ok(micros(times?))
    })
}

fn archive(store: &dyn FieldStore, count: u64) -> Outcome<String> {
    let data: Vec<u8> =
        (0..16384u32).flat_map(|i| ((i as f32).sin() * 100.0).round().to_le_bytes()).collect();
    let dtype = DType::parse("<f4")?;
    let each = 4000 / count;
    let begun = Instant::now();
    thread::scope(|scope| -> Outcome<()> {
        let worker = |thread: u64| {
            let data = &data;
            scope.spawn(move || -> Outcome<()> {
                let variable = format!("v{thread}");
                for step in 0..each {
                    put(store, "r", &variable, step, Value::Array { data, dtype, shape: &[16384] })?;
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..count).map(worker).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a thread panicked")?)
    })?;
    let archived = begun.elapsed().as_secs_f64();
    store.flush(&Session::default())?;
    let all = (each * count) as f64;
    let flushed = begun.elapsed().as_secs_f64();
    Ok(format!("\"archived_per_second\":{:.0},\"flushed_per_second\":{:.0}", all / archived, all / flushed))
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let (folder, rest) =
        args.split_first().ok_or("usage: sharing FOLDER disk|flush|threads|reader|archive …")?;
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let url = folder.join("store").display().to_string();
    let compression = rest.contains(&"zstd").then_some(Compression::Zstd(1));
    let open = || fieldstone::open(&url, &OpenOptions { compression, ..OpenOptions::default() });
    let found = match rest {
        ["disk", bytes] => disk(folder, bytes.parse()?)?,
        ["flush"] => flush(&open()?, folder)?,
        ["threads", count] => threads(&open()?, count.parse()?)?,
        ["reader"] => reader(&open()?)?,
        ["archive", count, _] => archive(&open()?, count.parse()?)?,
        _ => return Err("usage: sharing FOLDER disk|flush|threads|reader|archive …".into()),
    };
    println!("{{{found}}}");
    Ok(std::fs::remove_dir_all(folder)?)
}
