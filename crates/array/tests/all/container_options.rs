//! The arguments of a job's ranks to `create` and `open`: equal on all, or an error that names the difference.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::enddef::{Indexing, MAX_SLOTS};
use fieldstone_array::container::{Container, CreateOptions, Format, Mode, Strategy};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::Version;

fn simulated() -> Env {
    let world = SimWorld::new(1);
    let env = world.process("job");
    env.disk.create_dir_all(Path::new("/work")).unwrap();
    env
}

/// The results on three ranks that create a container, each with its own path and options.
fn create(env: &Env, given: impl Fn(usize) -> (&'static str, CreateOptions) + Sync) -> Vec<Result<()>> {
    threads::run(3, Some(3), env.disk.clone(), Faults::none(), |comm| {
        let (path, options) = given(comm.rank());
        let container = Container::create(Path::new(path), comm, env, &options)?;
        container.enddef()?;
        container.close()
    })
}

/// Checks that all ranks return an error of this kind, with these words.
fn refused(done: &[Result<()>], kind: ErrorKind, words: &[&str]) {
    assert_eq!(done.len(), 3);
    for end in done {
        let error = end.as_ref().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{error}: {word}");
        }
    }
}

#[test]
fn every_option_of_create_is_the_same_on_all_ranks() {
    let same = CreateOptions::default();
    let cases: Vec<(CreateOptions, [&str; 2])> = vec![
        (
            CreateOptions { format: Format::Classic(Version::Cdf2), ..same },
            ["with format cdf2", "rank 0 with format cdf5"],
        ),
        (
            CreateOptions { format: Format::Partitioned, ..same },
            ["with format partitioned", "rank 0 with format cdf5"],
        ),
        (
            CreateOptions { strategy: Some(Strategy::LibrarySort), ..same },
            ["with strategy library-sort", "rank 0 with strategy scalable"],
        ),
        (CreateOptions { indexing: Indexing::Never, ..same }, ["with index never", "rank 0 with index auto"]),
        (CreateOptions { fill: true, ..same }, ["with fill true", "rank 0 with fill false"]),
    ];
    let aligned = [("v_align", 512, 4096), ("r_align", 4, 8), ("h_minfree", 0, 7), ("v_minfree", 0, 9)];
    for (other, words) in &cases {
        let env = simulated();
        let done = create(&env, |rank| ("/work/a.nc", if rank == 2 { *other } else { same }));
        refused(&done, ErrorKind::Conflict, &[words[0], words[1], "rank 2"]);
        assert!(env.disk.stat(Path::new("/work/a.nc")).is_err(), "nothing was created");
    }
    for (name, usual, number) in aligned {
        let mut other = same;
        let alignment = &mut other.alignment;
        let place = match name {
            "v_align" => &mut alignment.v_align,
            "r_align" => &mut alignment.r_align,
            "h_minfree" => &mut alignment.h_minfree,
            _ => &mut alignment.v_minfree,
        };
        *place = number;
        let done = create(&simulated(), |rank| ("/work/a.nc", if rank == 1 { other } else { same }));
        let words = [format!("with {name} {number}"), format!("rank 0 with {name} {usual}")];
        refused(&done, ErrorKind::Conflict, &[&words[0], &words[1], "rank 1"]);
    }
    let hash = |slots| CreateOptions { strategy: Some(Strategy::LibraryHash { slots }), ..same };
    let done = create(&simulated(), |rank| ("/work/a.nc", hash(64 + rank)));
    refused(&done, ErrorKind::Conflict, &["with hash_size 65", "rank 0 with hash_size 64"]);
    // The default strategy is the same as the one with its name.
    let named = CreateOptions { strategy: Some(Strategy::Scalable), ..same };
    let done = create(&simulated(), |rank| ("/work/a.nc", if rank == 1 { named } else { same }));
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

#[test]
fn options_that_do_not_fit_on_one_rank_are_refused_on_all() {
    let wrong = CreateOptions { strategy: Some(Strategy::Partitioned), ..CreateOptions::default() };
    for one in 0..3 {
        let given = |rank| ("/work/a.nc", if rank == one { wrong } else { CreateOptions::default() });
        refused(&create(&simulated(), given), ErrorKind::Invalid, &[&format!("rank {one}"), "partitioned"]);
    }
}

#[test]
fn hash_tables_of_no_slots_or_too_many_are_refused_before_anything_is_defined() {
    for slots in [0, MAX_SLOTS + 1, usize::MAX] {
        let strategy = Some(Strategy::LibraryHash { slots });
        let env = simulated();
        let done = create(&env, |_| ("/work/a.nc", CreateOptions { strategy, ..CreateOptions::default() }));
        refused(&done, ErrorKind::Invalid, &["library-hash", "slots"]);
        assert!(env.disk.stat(Path::new("/work/a.nc")).is_err(), "nothing was created");
    }
}

#[test]
fn words_of_formats_and_strategies_are_read_back() {
    for word in ["cdf1", "cdf2", "cdf5", "partitioned"] {
        assert_eq!(Format::parse(word).unwrap().word(), word);
    }
    for word in ["scalable", "app", "library-hash", "library-sort", "partitioned"] {
        let strategy = Strategy::parse(word, None).unwrap();
        assert_eq!(strategy.word(), word);
        let is_hash = word == "library-hash";
        let slots = Strategy::parse(word, Some(7));
        assert_eq!(slots.ok(), is_hash.then_some(Strategy::LibraryHash { slots: 7 }));
    }
    assert_eq!(Format::parse("CDF5").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Strategy::parse("sort", None).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn path_and_mode_of_open_are_the_same_on_all_ranks() {
    let env = simulated();
    for path in ["/work/a.nc", "/work/b.nc"] {
        let alone = Arc::new(SingleComm::new(env.disk.clone()));
        let made = Container::create(Path::new(path), alone, &env, &CreateOptions::default()).unwrap();
        made.close().unwrap();
    }
    let open = |given: fn(usize) -> (&'static str, Mode)| {
        threads::run(3, Some(3), env.disk.clone(), Faults::none(), |comm| {
            let (path, mode) = given(comm.rank());
            Container::open(Path::new(path), mode, comm, &env)?.close()
        })
    };
    let done = open(|rank| (if rank == 1 { "/work/b.nc" } else { "/work/a.nc" }, Mode::Read));
    refused(&done, ErrorKind::Conflict, &["rank 1", "opens /work/b.nc", "rank 0 opens /work/a.nc"]);
    let done = open(|rank| ("/work/a.nc", if rank == 2 { Mode::Append } else { Mode::Read }));
    refused(&done, ErrorKind::Conflict, &["rank 2", "with mode a", "rank 0 with mode r"]);
    assert!(open(|_| ("/work/a.nc", Mode::Append)).iter().all(Result::is_ok));
}

#[test]
fn names_too_long_for_more_and_links_that_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::real();
    let write = |path: &Path| {
        let alone = Arc::new(SingleComm::new(env.disk.clone()));
        Container::create(path, alone, &env, &CreateOptions::default())?.close()
    };
    // The second is written next to the first, under a name of the maximum length.
    for name in ["n".repeat(255), "\u{e9}".repeat(127)] {
        let path = folder.path().join(name);
        write(&path).unwrap();
        write(&path).unwrap();
    }
    let link = folder.path().join("link.nc");
    std::os::unix::fs::symlink(folder.path().join("absent.nc"), &link).unwrap();
    let error = write(&link).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("link.nc is a link without a target"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}
