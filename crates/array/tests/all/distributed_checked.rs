//! Reading a slab through its checksums: the read returns the bytes that were checksummed, or an error that names the
//! file and the block.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::{BufferMut, Element};
use fieldstone_array::distributed::files::checked::CheckedFile;
use fieldstone_array::distributed::files::image::Extent;
use fieldstone_array::distributed::plan::{FileArray, Method, PastFileEnd, Planner, Read, Settings};
use fieldstone_array::distributed::view::View;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{FileMode, Team, TeamFile, TeamReader};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

const PATH: &str = "/slab.nc";

/// A file with a slab in it, and the checksums of its blocks.
struct Slab {
    disk: Arc<dyn Disk>,
    bytes: Vec<u8>,
    extent: Extent,
    block: u64,
    sums: Arc<[u32]>,
}

impl Slab {
    fn new(random: &mut Random, len: u64, block: u64) -> Slab {
        let disk = SimWorld::memory().disk;
        let extent = Extent { offset: random.below(50), len };
        let bytes: Vec<u8> =
            (0..extent.offset + len + random.below(50)).map(|_| random.below(256) as u8).collect();
        let slab = &bytes[extent.offset as usize..(extent.offset + len) as usize];
        let sums = slab.chunks(block as usize).map(crc32c::crc32c).collect();
        let file = alone(&disk, FileMode::CreateNew);
        file.write_at(&bytes, 0).unwrap();
        Slab { disk, bytes, extent, block, sums }
    }

    fn over(&self, file: &TeamFile) -> Result<(TeamReader, Arc<CheckedFile>)> {
        CheckedFile::over(&file.reader(), PATH, self.extent, self.block, self.sums.clone())
    }

    /// Changes a byte of the slab in the file, without changing its checksums.
    fn damage(&self, at: u64) {
        let offset = self.extent.offset + at;
        alone(&self.disk, FileMode::ReadWrite).write_at(&[!self.bytes[offset as usize]], offset).unwrap();
    }

    fn run<T: Send>(&self, ranks: usize, body: impl Fn(&TeamFile) -> Result<T> + Sync) -> Vec<Result<T>> {
        threads::run(ranks, None, self.disk.clone(), Faults::none(), |comm| {
            body(&Team::new(comm).open("open", Path::new(PATH), FileMode::Read)?)
        })
    }
}

fn alone(disk: &Arc<dyn Disk>, mode: FileMode) -> TeamFile {
    Team::new(Arc::new(SingleComm::new(disk.clone()))).open("open", Path::new(PATH), mode).unwrap()
}

/// Some parts of a slab, ascending and without overlaps: offsets and lengths.
fn parts(random: &mut Random, extent: Extent) -> Vec<(u64, usize)> {
    let (mut parts, mut at) = (Vec::new(), random.below(extent.len + 1));
    while at < extent.len && parts.len() < 20 {
        let most = 1 + random.below(900);
        let len = 1 + random.below((extent.len - at).min(most));
        parts.push((extent.offset + at, len.min(extent.len - at) as usize));
        at += len + random.below(300);
    }
    parts
}

#[test]
fn what_is_read_is_what_was_summed() {
    for seed in seeds(200) {
        let mut random = seeded(seed);
        let (len, block) = (random.below(5_000), 1 + random.below(700));
        let slab = Slab::new(&mut random, len, block);
        let lists: Vec<Vec<(u64, usize)>> = (0..4).map(|_| parts(&mut random, slab.extent)).collect();
        let outcomes = slab.run(1 + (seed % 4) as usize, |file| {
            let (checked, layer) = slab.over(file)?;
            let own = &lists[file.team().rank()];
            let expected: Vec<&[u8]> = own
                .iter()
                .map(|(offset, len)| &slab.bytes[*offset as usize..*offset as usize + len])
                .collect();
            let mut got: Vec<Vec<u8>> = own.iter().map(|(_, len)| vec![0; *len]).collect();
            for ((offset, len), into) in own.iter().zip(&mut got) {
                assert_eq!(checked.read_at(into, *offset)?, *len);
            }
            assert_eq!(got, expected, "seed {seed}");
            // Parts ascend, so no block is read twice.
            let alone = layer.bytes_read();
            assert!(alone <= slab.extent.len, "{alone} of {}", slab.extent.len);
            let mut got: Vec<Vec<u8>> = own.iter().map(|(_, len)| vec![0; *len]).collect();
            let mut all: Vec<(u64, &mut [u8])> =
                own.iter().zip(&mut got).map(|((offset, _), into)| (*offset, &mut into[..])).collect();
            checked.read_all("get", Ok(&mut all))?;
            assert_eq!(got, expected, "seed {seed}");
            assert_eq!(layer.bytes_read(), 2 * alone, "together a rank reads the same blocks");
            Ok(())
        });
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    }
}

#[test]
fn a_block_that_was_changed_is_named_and_given_out_by_no_read() {
    for seed in seeds(120) {
        let mut random = seeded(seed);
        let (len, block) = (1 + random.below(3_000), 1 + random.below(500));
        let slab = Slab::new(&mut random, len, block);
        let at = random.below(len);
        slab.damage(at);
        let bad = at / block;
        let lists: Vec<Vec<(u64, usize)>> = (0..3).map(|_| parts(&mut random, slab.extent)).collect();
        let touches = |(offset, len): &(u64, usize)| {
            let at = offset - slab.extent.offset;
            at / block <= bad && bad <= (at + *len as u64 - 1) / block
        };
        let ranks = 1 + (seed % 3) as usize;
        let is_touched = lists[..ranks].iter().flatten().any(touches);
        let names = |error: &fieldstone_core::Error| {
            let offset = slab.extent.offset + bad * block;
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let named = format!("{PATH}: the {} bytes from {offset} on", block.min(len - bad * block));
            assert!(error.message().contains(&named), "{}", error.message());
        };
        let outcomes = slab.run(ranks, |file| {
            let (checked, _) = slab.over(file)?;
            let own = &lists[file.team().rank()];
            for part @ (offset, len) in own {
                let mut into = vec![7; *len];
                match checked.read_at(&mut into, *offset) {
                    Ok(_) => {
                        assert!(!touches(part));
                        assert_eq!(into, &slab.bytes[*offset as usize..*offset as usize + len]);
                    }
                    Err(error) => {
                        assert!(touches(part), "{}", error.message());
                        names(&error);
                        assert!(into.iter().all(|byte| *byte == 0), "nothing unchecked is given out");
                    }
                }
            }
            let mut got: Vec<Vec<u8>> = own.iter().map(|(_, len)| vec![7; *len]).collect();
            let mut all: Vec<(u64, &mut [u8])> =
                own.iter().zip(&mut got).map(|((offset, _), into)| (*offset, &mut into[..])).collect();
            let outcome = checked.read_all("get", Ok(&mut all));
            if own.iter().any(touches) {
                assert!(got.iter().flatten().all(|byte| *byte == 0), "nothing unchecked is given out");
            }
            // All ranks leave the call, and continue.
            file.team().barrier("get")?;
            outcome
        });
        for outcome in outcomes {
            match is_touched {
                true => names(&outcome.unwrap_err()),
                false => outcome.unwrap(),
            }
        }
    }
}

#[test]
fn views_are_read_through_checksums_with_every_method() {
    for method in [Method::Direct, Method::Exchange, Method::View] {
        let mut random = seeded(5);
        let elements = 40_000u64;
        let slab = Slab::new(&mut random, elements * 8, 8 << 10);
        let read = |ranks: usize| {
            slab.run(ranks, |file| {
                let (checked, layer) = slab.over(file)?;
                let rank = file.team().rank();
                let map: Vec<i64> = (0..elements as i64)
                    .filter(|at| (*at as u64 * 7919 % 101) as usize % ranks == rank)
                    .collect();
                let view = View::irregular(map.clone(), None, None).resolve(&[elements], rank, ranks)?;
                let mut bytes = vec![0; map.len() * 8];
                let mut into = BufferMut::new(&mut bytes, Element::new(8, 1)?, view.local_shape())?;
                let read = Read {
                    view: &view,
                    array: FileArray::dense(slab.extent.offset, 8),
                    into: &mut into,
                    past_end: PastFileEnd::Corrupt,
                    settings: Settings { method, buffer: 300_000, aggregators: None },
                };
                Planner::new().read(&checked, "get", Ok(read))?;
                let at = |at: &i64| slab.extent.offset as usize + *at as usize * 8;
                let expected: Vec<u8> =
                    map.iter().flat_map(|n| &slab.bytes[at(n)..at(n) + 8]).copied().collect();
                assert!(bytes == expected, "{method:?}");
                Ok(layer.bytes_read())
            })
        };
        let counts: Vec<u64> = read(3).into_iter().map(|outcome| outcome.unwrap()).collect();
        let sum: u64 = counts.iter().sum();
        match method {
            // Two blocks are in two aggregators' ranges.
            Method::Exchange => assert!(sum <= slab.extent.len + 2 * slab.block, "{counts:?}"),
            Method::View => {
                // Two rounds that share a block.
                assert!(counts.iter().all(|count| *count <= slab.extent.len + slab.block), "{counts:?}");
            }
            _ => assert!(counts.iter().all(|count| *count <= slab.extent.len), "{counts:?}"),
        }
        slab.damage(elements * 4);
        for outcome in read(3) {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corrupt, "{method:?}");
        }
    }
}

#[test]
fn a_cut_file_and_what_has_no_checksums_are_refused() {
    let mut random = seeded(1);
    let slab = Slab::new(&mut random, 1_000, 64);
    let file = alone(&slab.disk, FileMode::ReadWrite);
    let (checked, _) = slab.over(&file).unwrap();
    let mut byte = [0];
    for offset in [slab.extent.offset + 1_000, u64::MAX] {
        let error = checked.read_at(&mut byte, offset).unwrap_err();
        assert!(error.message().contains("checksums are known for 1000"), "{}", error.message());
    }
    file.set_len("cut", Ok(slab.extent.offset + 990)).unwrap();
    let error = checked.read_at(&mut byte, slab.extent.offset + 970).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.message().contains(&format!("ends at byte {}", slab.extent.offset + 990)),
        "{}",
        error.message()
    );
    assert_eq!(checked.read_at(&mut byte, slab.extent.offset + 959).unwrap(), 1, "what stands whole is read");
    let few = CheckedFile::over(&file.reader(), PATH, slab.extent, 64, Arc::from([1, 2]));
    assert_eq!(few.unwrap_err().kind(), ErrorKind::Corrupt);
}
