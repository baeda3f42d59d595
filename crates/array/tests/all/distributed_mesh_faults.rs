//! Meshes whose files are damaged, cut or not finished: the fault is found, and half a mesh never counts as one.

use std::path::Path;

use fieldstone_array::distributed::mesh::Mesh;
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::netcdf::parse;
use fieldstone_testkit::seeded;

use crate::distributed_mesh::{
    FOLDER, Model, Spelling, all, create, create_with, error_of, names, on_ranks, read_file, world,
};

#[test]
fn a_damaged_file_is_found() {
    let mut model = Model::random(&mut seeded(4));
    model.rows[1] = vec![vec![0, 1, 2, 3, 7], vec![4, 5, 6]];
    let (world, env) = world();
    let (path, _) = create(&env, &model, Spelling::PLAIN);
    let bytes = read_file(&env, &path);
    let (header, _) = parse::header(&bytes).unwrap();
    let verify = || {
        on_ranks(3, &env, |team| {
            let mesh = Mesh::open(&team, &*env.disk, &path, None)?;
            let outcome = mesh.verify();
            mesh.close()?;
            outcome
        })
    };
    all(verify());
    for var in header.vars.iter().filter(|var| var.name().contains("_node")) {
        for (offset, mask) in [(var.begin(), 1), (var.begin() + 7, 0x80), (var.begin() + 3, 0xff)] {
            world.flip(&path, offset, mask).unwrap();
            for result in verify() {
                assert_eq!(result.err().unwrap().kind(), ErrorKind::Corrupt, "{} {offset}", var.name());
            }
            world.flip(&path, offset, mask).unwrap();
        }
    }
    // After a missing node.
    let faces = header.vars.iter().find(|var| var.name() == "wing_face_nodes").unwrap().begin();
    world
        .overwrite(
            &path,
            &[&bytes[..faces as usize + 36], &[0, 0, 0, 0], &bytes[faces as usize + 40..]].concat(),
        )
        .unwrap();
    let error = error_of(verify(), Code::Corrupt);
    assert_eq!(
        error.message().rsplit_once(": ").unwrap().1,
        format!("faces[1, 4] of {} is 0", path.display())
    );
    world.overwrite(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = || on_ranks(2, &env, |team| Mesh::open(&team, &*env.disk, &path, None).map(drop));
    assert!(error_of(cut(), Code::Truncated).message().contains("needs the bytes"));
    let at = bytes.windows(13).position(|window| window == b"mesh_checksum").unwrap() + 28;
    let mut other = bytes.clone();
    other[at] = if other[at] == b'0' { b'1' } else { b'0' };
    world.overwrite(&path, &other).unwrap();
    assert!(error_of(verify(), Code::Checksum).message().contains("has the checksum"));
    let again = on_ranks(2, &env, |team| {
        create_with(&team, &env, (&model, Spelling { ranks: 2, ..Spelling::PLAIN }), |_| Ok(()))
    });
    assert!(error_of(again, Code::Checksum).message().contains("but its header has"));
    other[at] = b'x';
    world.overwrite(&path, &other).unwrap();
    assert!(error_of(cut(), Code::Corrupt).message().contains("has an invalid checksum"));
    let at = bytes.windows(13).position(|window| window == b"mesh_topology").unwrap();
    other[at] = b'M';
    world.overwrite(&path, &other).unwrap();
    assert!(error_of(cut(), Code::FileFormat).message().contains("not a mesh of a store"));
}

#[test]
fn a_damaged_header_is_an_error_or_the_same_mesh() {
    let mut model = Model::random(&mut seeded(4));
    model.rows[1].push(vec![0, 1, 2, 3]);
    let (world, env) = world();
    let (path, _) = create(&env, &model, Spelling::PLAIN);
    let bytes = read_file(&env, &path);
    let len = parse::header(&bytes).unwrap().1.header_len;
    let (random, mut refused) = (&mut *seeded(9), 0);
    for _ in 0..3000 {
        let mut damaged = bytes.clone();
        let at = random.below(len) as usize;
        damaged[at] = match random.below(3) {
            0 => damaged[at] ^ (1 << random.below(8)),
            1 => damaged[at].wrapping_add(1),
            _ => random.next_u64() as u8,
        };
        world.overwrite(&path, &damaged).unwrap();
        let outcome = all(on_ranks(1, &env, |team| {
            let read = || {
                let mesh = Mesh::open(&team, &*env.disk, &path, None)?;
                let _ = mesh.edges();
                mesh.verify()
            };
            Ok(read().map_err(|error| error.kind()))
        }));
        assert!(!outcome.contains(&Err(ErrorKind::Internal)), "byte {at} is {}", damaged[at]);
        refused += u32::from(outcome[0].is_err());
    }
    assert!((500..2900).contains(&refused), "{refused}");
}

#[test]
fn a_mesh_that_is_not_made_leaves_nothing_and_one_that_is_survives_a_power_cut() {
    let model = Model::random(&mut seeded(6));
    let spelling = Spelling { ranks: 3, seed: 1, ..Spelling::PLAIN };
    let mut nth = 1;
    loop {
        let (_, env) = world();
        let faults = Faults::step(1, nth);
        let results = threads::run(3, None, env.disk.clone(), faults.clone(), |comm| {
            create_with(&Team::new(comm), &env, (&model, spelling), |mesh| mesh.close())
        });
        if !faults.struck() {
            all(results);
            break;
        }
        for result in results {
            let error = result.err().unwrap();
            assert!(error.message().starts_with("rank 1: "), "{error}");
        }
        // If it was renamed already, it is complete.
        let left = names(&env);
        assert!(left.iter().all(|name| name.ends_with(".nc")), "{nth}: {left:?}");
        for name in left {
            all(on_ranks(1, &env, |team| {
                Mesh::open(&team, &*env.disk, &Path::new(FOLDER).join(&name), None)?.verify()
            }));
        }
        nth += 1;
    }
    assert!(nth > 10, "{nth}");
    for seed in 0..20 {
        let (world, env) = world();
        env.disk.sync_dir(Path::new("/")).unwrap();
        let (path, _) = create(&env, &model, spelling);
        let env = world.power_cut(seed).process("host");
        all(on_ranks(2, &env, |team| Mesh::open(&team, &*env.disk, &path, None)?.verify()));
    }
}

#[test]
fn a_full_disk_or_a_rank_that_dies_leaves_no_mesh_that_is_not_whole() {
    let mut model = Model::random(&mut seeded(6));
    model.rows[2].push(vec![0, 1, 2, 3]);
    let spelling = Spelling { ranks: 3, seed: 1, ..Spelling::PLAIN };
    let (world_of_one, env) = world();
    let (path, _) = create(&env, &model, spelling);
    let len = read_file(&env, &path).len() as u64;
    drop(world_of_one);
    for capacity in [100, 4096, len / 2, len - 1] {
        let (world, env) = world();
        world.set_capacity(Some(capacity));
        let make = || on_ranks(3, &env, |team| create_with(&team, &env, (&model, spelling), |_| Ok(())));
        for result in make() {
            assert_eq!(result.err().unwrap().code(), Code::DiskFull, "{capacity}");
        }
        assert_eq!(names(&env), [""; 0]);
        world.set_capacity(None);
        all(make());
    }
    // Rank 0, which would have removed the unfinished file.
    let (mut nth, mut parts) = (1, 0);
    loop {
        let (_, env) = world();
        let faults = Faults::death(0, nth);
        let results = threads::run(3, None, env.disk.clone(), faults.clone(), |comm| {
            create_with(&Team::new(comm), &env, (&model, spelling), |mesh| mesh.close())
        });
        if !faults.struck() {
            all(results);
            break;
        }
        for name in names(&env) {
            parts += u32::from(name.ends_with(".part"));
            if !name.ends_with(".part") {
                all(on_ranks(1, &env, |team| {
                    Mesh::open(&team, &*env.disk, &Path::new(FOLDER).join(&name), None)?.verify()
                }));
            }
        }
        // The next call creates it, or finds it.
        assert_eq!(create(&env, &model, spelling).0, path);
        nth += 1;
    }
    assert!(nth > 10 && parts > 0, "{nth} {parts}");
}
