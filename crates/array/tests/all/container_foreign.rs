//! Files with a name index that other programs have changed: netCDF-C (through Python's netCDF4) renames, puts
//! attributes and appends records; nccopy copies. Answers stay right.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, CreateOptions, Mode};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_format::netcdf::NcType;
use fieldstone_testkit::{require::program, samples::python_with};

const VARS: i32 = 900;

fn make(path: &Path, env: &Env) {
    let comm = Arc::new(SingleComm::new(env.disk.clone()));
    let container = Container::create(path, comm, env, &CreateOptions::default()).unwrap();
    container.define().dim("time", None).unwrap();
    container.define().dim("x", Some(2)).unwrap();
    for i in 0..VARS {
        container.define().dim(&format!("event_{i}/hits"), Some(3)).unwrap();
        container.define().var(&format!("event_{i}/charge"), NcType::Int, &["x"]).unwrap();
    }
    container.define().var("r", NcType::Int, &["time"]).unwrap();
    container.enddef().unwrap();
    for i in 0..VARS {
        let var = container.var(&format!("event_{i}/charge")).unwrap();
        let data: Vec<u8> = [i, -i].iter().flat_map(|value| value.to_ne_bytes()).collect();
        container.elements().put(&var, &Selection::all(&[2]), &data, NcType::Int, false).unwrap();
    }
    let var = container.var("r").unwrap();
    container
        .elements()
        .put(&var, &Selection::of(&[0], &[1]), &5i32.to_ne_bytes(), NcType::Int, false)
        .unwrap();
    container.close().unwrap();
}

/// Opens for reading; every answer equals that of the header read whole, and each name has its values.
fn look(path: &Path, env: &Env, what: &str) -> Container {
    let open = |path: &Path, mode| {
        Container::open(path, mode, Arc::new(SingleComm::new(env.disk.clone())), env).unwrap()
    };
    let copy = path.with_extension("whole.nc");
    std::fs::copy(path, &copy).unwrap();
    let (read, whole) = (open(path, Mode::Read), open(&copy, Mode::Append));
    let (found, all) = (read.metadata().unwrap(), whole.metadata().unwrap());
    for i in (0..VARS).step_by(7).chain([0, 1, VARS - 1]) {
        for name in [format!("event_{i}/charge"), format!("event_{i}/hits"), format!("other_{i}")] {
            assert_eq!(found.find_var(&name).unwrap(), all.find_var(&name).unwrap(), "{what}: {name}");
            assert_eq!(found.find_dim(&name).unwrap(), all.find_dim(&name).unwrap(), "{what}: {name}");
        }
        if let Ok(var) = read.var(&format!("event_{i}/charge")) {
            let mut data = [0; 4];
            read.elements().get(&var, &Selection::element(&[1]), &mut data, NcType::Int, false).unwrap();
            assert_eq!(i32::from_ne_bytes(data), -i, "{what}");
        }
    }
    assert_eq!(found.attrs().unwrap(), all.attrs().unwrap(), "{what}");
    assert_eq!(found.numrecs().unwrap(), all.numrecs().unwrap(), "{what}");
    assert_eq!(found.find_var("r").unwrap(), all.find_var("r").unwrap(), "{what}");
    read
}

#[test]
fn answers_stay_right_after_what_other_programs_do() {
    let Some(python) = python_with("netcdf4", "netCDF4") else { return };
    let env = Env::real();
    let folder = tempfile::tempdir().unwrap();
    let edits = [
        ("renamed", "f.renameVariable('event_7.charge', 'event_7.energy')"),
        ("renamed to a shorter name", "f.renameVariable('event_14.charge', 'short')"),
        ("a dimension renamed", "f.renameDimension('event_21.hits', 'event_21.hots')"),
        ("a global attribute", "f.setncattr('title', 'given by another program')"),
        ("an attribute of a variable", "f['event_28.charge'].setncattr('units', 'K')"),
        ("records appended", "f['r'][:] = list(range(3000))"),
        ("one record appended", "f['r'][1:2] = [9]"),
        ("the escaping withdrawn", "f.delncattr('fieldstone_paths')"),
        ("a variable more", "f.createVariable('late', 'i4', ('x',))[:] = [1, 2]"),
    ];
    for (what, edit) in edits {
        let path = folder.path().join("t.nc");
        make(&path, &env);
        let before = look(&path, &env, "as written");
        assert!(format!("{:?}", before.metadata().unwrap()).starts_with("Indexed"));
        let script = format!(
            "import netCDF4, sys\nwith netCDF4.Dataset(sys.argv[1], 'a') as f:\n    f.set_auto_mask(False)\n    {edit}\n"
        );
        let done = Command::new(&python).args(["-c", &script]).arg(&path).output().unwrap();
        assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
        let after = look(&path, &env, what);
        match what {
            "renamed" => {
                assert!(after.var("event_7/charge").is_err() && after.var("event_7/energy").is_ok());
            }
            "renamed to a shorter name" => assert!(after.var("short").is_ok()),
            "records appended" => assert_eq!(after.numrecs().unwrap(), 3000),
            "the escaping withdrawn" => assert!(after.var("event_7.charge").is_ok()),
            "a variable more" => assert!(after.var("late").is_ok()),
            _ => {}
        }
    }
}

#[test]
fn copies_made_by_nccopy_are_read() {
    if !program("nccopy") {
        return;
    }
    let env = Env::real();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.nc");
    make(&path, &env);
    for kind in ["cdf5", "64-bit offset", "classic"] {
        let copy = folder.path().join("copy.nc");
        let done = Command::new("nccopy").args(["-k", kind]).arg(&path).arg(&copy).output().unwrap();
        assert!(done.status.success(), "{kind}: {}", String::from_utf8_lossy(&done.stderr));
        look(&copy, &env, kind);
    }
}
