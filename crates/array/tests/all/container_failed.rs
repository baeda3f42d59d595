//! Calls after an `enddef` that failed: none of them finishes the container with fewer objects than were defined.
//! Each rank fails at each step; then all continue like a program that ignores the error.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::netcdf::{NcType, Version};

const PATH: &str = "/work/a.nc";
const RANKS: usize = 2;

fn alone(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn names(env: &Env) -> Result<Vec<String>> {
    let container = Container::open(Path::new(PATH), Mode::Read, alone(env), env)?;
    Ok(container.metadata()?.vars(0, 100)?.into_iter().map(|var| var.name).collect())
}

/// A finished container of one variable.
fn world(with_old: bool) -> SimWorld {
    let world = SimWorld::new(1);
    let env = world.process("old");
    env.disk.create_dir_all(Path::new("/work")).unwrap();
    if with_old {
        let container =
            Container::create(Path::new(PATH), alone(&env), &env, &CreateOptions::default()).unwrap();
        container.define().dim("x", Some(100)).unwrap();
        let old = container.define().var("old", NcType::Int, &["x"]).unwrap();
        container.enddef().unwrap();
        let all = Selection::of(&[0], &[100]);
        container
            .elements()
            .put(&container.var_of(old).unwrap(), &all, &[7; 400], NcType::Int, true)
            .unwrap();
        container.close().unwrap();
    }
    world
}

/// Continues whatever happens; returns the result of `enddef`.
fn careless(comm: Arc<dyn Comm>, env: &Env, format: Format, again: bool) -> Result<()> {
    let rank = comm.rank();
    let options = CreateOptions { format, fill: true, ..CreateOptions::default() };
    let container = match again {
        true => Container::open(Path::new(PATH), Mode::Append, comm, env)?,
        false => Container::create(Path::new(PATH), comm, env, &options)?,
    };
    if again {
        container.redef()?;
        let _ = container.define().put_att(None, "long", NcType::Char, &[b'x'; 3000]);
    }
    let _ = container.define().dim("y", Some(3));
    let _ = container.define().var(&format!("v{rank}"), NcType::Int, &["y"]);
    let ended = container.enddef().map(|_| ());
    let _ = container.enddef();
    let _ = container.close();
    ended
}

#[test]
fn no_later_call_finishes_what_was_not_written() {
    let classic = Format::Classic(Version::Cdf5);
    let cases = [(classic, false, false), (classic, true, false), (classic, true, true)];
    let mut failures = 0;
    for (format, with_old, again) in cases.into_iter().chain([(Format::Partitioned, false, false)]) {
        let before: &[&str] = if with_old { &["old"] } else { &[] };
        let after: &[&str] = if again { &["old", "v0", "v1"] } else { &["v0", "v1"] };
        for rank in 0..RANKS {
            for n in 1.. {
                let world = world(with_old);
                let env = world.process("job");
                let faults = Faults::step(rank, n);
                let ended = threads::run(RANKS, Some(7), env.disk.clone(), faults.clone(), |comm| {
                    careless(comm, &env, format, again)
                });
                if !faults.struck() {
                    break;
                }
                let what = format!("{format:?}, over {before:?}, rank {rank} fails in step {n}");
                let all_ended = ended.iter().all(Result::is_ok);
                failures += usize::from(!all_ended);
                match names(&world.process("after")) {
                    Ok(found) if found == after => {}
                    Ok(found) => assert_eq!(found, before, "{what}"),
                    Err(_) => assert!(!with_old || again, "{what}: the old container is gone"),
                }
            }
        }
    }
    assert!(failures > 50, "{failures}");
}
