//! Merges several containers, each written by a process of its own, into one.
//!
//! The result equals, byte for byte, the container that the processes would have written as ranks of one job, in the
//! order of the files: one rank for each file, with that file's definitions, merges them.
//!
//! Objects with equal names are shared, and must have equal definitions. The data of a shared variable must be equal,
//! too: the files are pieces of one container, and of two different values neither is the right one. Records are not
//! concatenated: record 0 of each file is record 0 of the result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults, MOST_RANKS};
use fieldstone_core::env::comm::{Comm, Team};
use fieldstone_core::{Error, Result};

use super::convert::{DataCopier, check_untruncated, define_all};
use super::file::{Container, CreateOptions, Mode, VarRef};
use super::model::{Counts, Metadata, VarInfo, record_offset, slab_len};

/// Number of variables examined together.
const BATCH: usize = 4096;
/// Bytes compared at a time.
const PIECE: u64 = 1 << 20;

/// Merges `files` into a new container at `target`. Returns the number of its objects.
///
/// Errors: `Conflict` if objects of one name differ, in definition or data, with the names of the objects and files;
/// `Invalid` without a file, or for more than [`MOST_RANKS`]; errors of opening a file. `target` is then unchanged.
pub fn merge(files: &[PathBuf], target: &Path, env: &Env, options: &CreateOptions) -> Result<Counts> {
    if files.is_empty() || files.len() > MOST_RANKS {
        let message = format!("there are {} files to merge; one call merges 1 to {MOST_RANKS}", files.len());
        return Err(Error::invalid(message).with_hint("merge some of them first, then the results"));
    }
    let one = |comm: Arc<dyn Comm>| {
        let own = &files[comm.rank()];
        let to = Container::create(target, comm, env, options)?;
        match merge_one(own, &to, env) {
            Ok(counts) => Ok(counts),
            Err(error) => {
                to.abort(None);
                Err(error)
            }
        }
    };
    let results = threads::run(files.len(), None, env.disk.clone(), Faults::none(), one);
    let mut counts = Counts::default();
    for result in results {
        counts = result.map_err(|error| error.context(ranks_text(files)))?;
    }
    Ok(counts)
}

/// The file of each rank, because errors name ranks.
fn ranks_text(files: &[PathBuf]) -> String {
    const FEW: usize = 8;
    let first = files.iter().take(FEW).enumerate();
    let first: Vec<String> = first.map(|(rank, file)| format!("rank {rank} is {}", file.display())).collect();
    let more = if files.len() > FEW { ", and so on" } else { "" };
    format!("merging ({}{more})", first.join(", "))
}

fn merge_one(own: &Path, to: &Container, env: &Env) -> Result<Counts> {
    let team = to.team();
    let alone = Arc::new(SingleComm::new(env.disk.clone()));
    let opened = Container::open(own, Mode::Read, alone, env)
        .and_then(|from| Ok((from.metadata()?, from)))
        .and_then(|(source, from)| check_untruncated(&from, &*source).map(|()| (source, from)))
        .and_then(|(source, from)| define_all(&*source, to).map(|()| (source, from)))
        .map_err(|error| error.context(own.display()));
    let (source, from) = team.agree("merge", opened)?;
    to.enddef()?;
    let known = source.counts().and_then(|counts| Ok((numbers(to, counts.vars)?, source.numrecs()?)));
    let (placed, numrecs) = team.agree("merge", known)?;
    let mine = lowest(team, &placed)?;
    let mut copy = DataCopier::new(from.file()?, to.file()?);
    let copied = each(&*source, to, |i, old, new| if mine[i] { copy.var(old, new) } else { Ok(()) });
    let copied = copied.and_then(|()| copy.records(numrecs)).and_then(|()| to.grow(numrecs));
    team.agree("merge data", copied)?;
    let compared = each(
        &*source,
        to,
        |i, old, new| if mine[i] { Ok(()) } else { compare(&from, to, old, new, numrecs) },
    );
    team.agree("merge shared data", compared.map_err(|error| error.context(own.display())))?;
    let counts = team.agree("merged", to.metadata().and_then(|metadata| metadata.counts()))?;
    to.close()?;
    Ok(counts)
}

/// Numbers in the target of the variables defined here.
fn numbers(to: &Container, vars: u64) -> Result<Vec<u64>> {
    (0..vars).map(|i| Ok(to.var_of(VarRef(i as u32))?.id)).collect()
}

/// For each variable number, whether no lower rank has the variable.
fn lowest(team: &Team, numbers: &[u64]) -> Result<Vec<bool>> {
    let ranks = team.size();
    let mut parts = vec![Vec::new(); ranks];
    for number in numbers {
        parts[(*number % ranks as u64) as usize].extend_from_slice(&number.to_le_bytes());
    }
    let received = team.alltoallv("merged numbers", Ok(parts))?;
    let mut seen = std::collections::HashSet::new();
    let answers = received.iter().map(|part| {
        part.as_chunks::<8>().0.iter().map(|number| u8::from(seen.insert(*number))).collect::<Vec<u8>>()
    });
    let answers = team.alltoallv("lowest", Ok(answers.collect()))?;
    let mut answers: Vec<_> = answers.iter().map(|part| part.iter()).collect();
    Ok(numbers.iter().map(|number| answers[(*number % ranks as u64) as usize].next() == Some(&1)).collect())
}

/// Calls `act` with each variable of the source and its counterpart in the target.
fn each(
    source: &dyn Metadata,
    to: &Container,
    mut act: impl FnMut(usize, &VarInfo, &VarInfo) -> Result<()>,
) -> Result<()> {
    let mut i = 0;
    loop {
        let batch = source.vars(i as u64, BATCH)?;
        if batch.is_empty() {
            return Ok(());
        }
        for old in &batch {
            act(i, old, &to.var_of(VarRef(i as u32))?)?;
            i += 1;
        }
    }
}

/// Checks that a shared variable's data equal those that a lower rank has written.
fn compare(from: &Container, to: &Container, old: &VarInfo, new: &VarInfo, numrecs: u64) -> Result<()> {
    let (source, target, len) = (from.file()?, to.file()?, slab_len(old)?);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for record in 0..if old.is_record() { numrecs } else { 1 } {
        let (mut at, mut there) = (
            record_offset(old.begin, record, old.record_stride)?,
            record_offset(new.begin, record, new.record_stride)?,
        );
        let mut left = len;
        while left > 0 {
            let now = left.min(PIECE);
            let mut read = 0;
            for (file, buffer, at) in [(&source, &mut a, at), (&target, &mut b, there)] {
                buffer.clear();
                buffer.resize(now as usize, 0);
                read += file.read_at(buffer, at)?;
            }
            if read == 0 {
                // Both are beyond the ends of their files.
                return Ok(());
            }
            if a != b {
                return Err(Error::conflict(format!(
                    "the data of variable `{}` differ from those in an earlier file",
                    old.name
                ))
                .with_hint("give the variables different names or paths, or the same data"));
            }
            (at, there, left) = (at + now, there + now, left - now);
        }
    }
    Ok(())
}
