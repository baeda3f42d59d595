//! Every variable of every real file, value for value as netCDF4 reads it: whole, as a box with strides, and as
//! doubles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::file::{Container, Mode};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_format::netcdf::NcType;
use fieldstone_format::netcdf::values::turn;
use fieldstone_testkit::samples::{python_with, sample};

/// Prints, for each variable, the sums of its big-endian bytes whole, strided, and as doubles.
const SCRIPT: &str = r"
import sys, zlib, netCDF4, numpy
file = netCDF4.Dataset(sys.argv[1])
file.set_auto_maskandscale(False)
file.set_auto_chartostring(False)
for name, variable in file.variables.items():
    values = numpy.asarray(variable[...])
    box = values[tuple(slice(min(1, n), None, 2) for n in values.shape)]
    def total(array):
        array = numpy.asarray(array)
        return zlib.adler32(array.astype(array.dtype.newbyteorder('>')).tobytes())
    as_double = total(values.astype('f8')) if values.dtype.kind != 'S' else 0
    print(name, total(values), total(box), as_double, sep='\t')
";

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1, 0);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    b << 16 | a
}

#[test]
fn real_files_read_value_for_value_as_netcdf4_reads_them() {
    let Some(folder) = sample("netcdf-classic") else { return };
    let Some(python) = python_with("netcdf4", "netCDF4") else { return };
    let env = Env::real();
    let (mut files, mut variables) = (0, 0);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with("bad")) {
        let theirs = Command::new(&python).args(["-c", SCRIPT]).arg(path).output().unwrap();
        assert!(theirs.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&theirs.stderr));
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        let comm = Arc::new(SingleComm::new(env.disk.clone()));
        let file = Container::open(path, Mode::Read, comm, &env).unwrap();
        let vars = file.metadata().unwrap().vars(0, usize::MAX).unwrap();
        assert_eq!(vars.len(), theirs.lines().count(), "{}", path.display());
        for (var, line) in vars.iter().zip(theirs.lines()) {
            let shape = var.shape();
            let start: Vec<u64> = shape.iter().map(|n| 1.min(*n)).collect();
            let count: Vec<u64> = shape.iter().map(|n| (n - 1.min(*n)).div_ceil(2)).collect();
            let strided = Selection::of(&start, &count).strided(&vec![2; shape.len()]);
            let total = |selection: &Selection, ty: NcType| {
                let elements: u64 = selection.count.iter().product();
                let mut values = vec![0xAA; elements as usize * ty.size()];
                file.elements().get(var, selection, &mut values, ty, false).unwrap();
                turn(ty.size(), &mut values);
                adler32(&values)
            };
            let whole = Selection::all(&shape);
            let as_double = if var.ty == NcType::Char { 0 } else { total(&whole, NcType::Double) };
            let ours =
                format!("{}\t{}\t{}\t{as_double}", var.name, total(&whole, var.ty), total(&strided, var.ty));
            assert_eq!(ours, line, "{}", path.display());
            variables += 1;
        }
        files += 1;
    }
    assert!(files >= 15 && variables > 100, "{files} {variables}");
}
