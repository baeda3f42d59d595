//! Conversions between all pairs of numeric types, compared with those of the netCDF library, in CDF-5 and CDF-1: the
//! same values, the same range errors, and the few differences that `values` documents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use fieldstone_format::netcdf::fill::default_fill;
use fieldstone_format::netcdf::values::{Conversion, turn};
use fieldstone_format::netcdf::{NcType, Version};
use fieldstone_testkit::samples::python_with;

/// Puts and gets single values through netCDF4's library, and prints for each: whether it was put or got, the format,
/// the types in file and memory, the value's bytes in hex before, the library's answer, and the bytes after (in this
/// machine's order).
const SCRIPT: &str = r"
import ctypes, glob, os, sys, numpy, netCDF4
folder = os.path.dirname(os.path.dirname(netCDF4.__file__))
library = ctypes.CDLL(glob.glob(os.path.join(folder, 'netcdf4.libs', 'libnetcdf-*'))[0])
types = [('schar', 1, 'i1'), ('short', 3, 'i2'), ('int', 4, 'i4'), ('float', 5, 'f4'), ('double', 6, 'f8'),
         ('uchar', 7, 'u1'), ('ushort', 8, 'u2'), ('uint', 9, 'u4'), ('longlong', 10, 'i8'), ('ulonglong', 11, 'u8')]
near = [limit + d for limit in (0, 127, 128, 255, 32767, 65535, 2**31 - 1, 2**32 - 1, 2**53, 2**63, 2**64)
        for d in (-1, 0, 1)]
near += [-n for n in near] + [-0.5, 0.5, 1.75, 127.5, -128.5, 255.5, -32768.5, 1e300, -1e300, 3.5e38]
near += [float('inf'), float('-inf'), float('nan')]
def samples(dtype):
    kind = numpy.dtype(dtype)
    if kind.kind == 'f':
        with numpy.errstate(over='ignore'):
            return numpy.array([float(n) for n in near]).astype(kind)
    least, most = numpy.iinfo(kind).min, numpy.iinfo(kind).max
    return numpy.array([n for n in near if isinstance(n, int) and least <= n <= most], kind)
def at(array):
    return array.ctypes.data_as(ctypes.c_void_p)
for version, mode in ((5, 0x20), (1, 0)):
    for external, code, stored in types[:5] if version == 1 else types:
        file, var = ctypes.c_int(), ctypes.c_int()
        assert library.nc_create(os.path.join(sys.argv[1], 'c.nc').encode(), mode, ctypes.byref(file)) == 0
        assert library.nc_def_var(file, b'v', code, 0, None, ctypes.byref(var)) == 0
        assert library.nc_enddef(file) == 0
        for memory, number, dtype in types:
            for value in samples(dtype):
                given, found = numpy.array([value], dtype), numpy.zeros(1, stored)
                answer = getattr(library, 'nc_put_var_' + memory)(file, var, at(given))
                getattr(library, 'nc_get_var_' + external)(file, var, at(found))
                print('put', version, code, number, given.tobytes().hex(), answer, found.tobytes().hex())
            for value in samples(stored):
                given, found = numpy.array([value], stored), numpy.zeros(1, dtype)
                getattr(library, 'nc_put_var_' + external)(file, var, at(given))
                answer = getattr(library, 'nc_get_var_' + memory)(file, var, at(found))
                print('get', version, code, number, given.tobytes().hex(), answer, found.tobytes().hex())
        assert library.nc_close(file) == 0
";

const RANGE: &str = "-60";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Whether a conversion is one that differs from the library, as the module documents.
fn differs(from: NcType, to: NcType, given: &[u8]) -> bool {
    let value = match from {
        NcType::Float => f64::from(f32::from_ne_bytes(given.try_into().unwrap())),
        NcType::Double => f64::from_ne_bytes(given.try_into().unwrap()),
        _ => return false,
    };
    match to {
        NcType::Float | NcType::Double => value.is_infinite() && from != to,
        // NaN, and the limit to which a float rounds up, pass there, with meaningless bits.
        NcType::Int if from == NcType::Float => value.is_nan() || value == 2f64.powi(31),
        NcType::UInt if from == NcType::Float => value.is_nan() || value == 2f64.powi(32),
        NcType::Int64 => value.is_nan() || value == 2f64.powi(63),
        NcType::UInt64 => value.is_nan() || value == 2f64.powi(64),
        _ => value.is_nan(),
    }
}

#[test]
fn every_pair_of_types_beside_the_netcdf_library() {
    let Some(python) = python_with("netcdf4", "netCDF4") else { return };
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(&python).args(["-c", SCRIPT]).arg(folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (mut same, mut errors, mut different) = (0, 0, 0);
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words[i].parse::<u32>().unwrap();
        let version = if number(1) == 5 { Version::Cdf5 } else { Version::Cdf1 };
        let (external, memory) =
            (NcType::from_code(number(2)).unwrap(), NcType::from_code(number(3)).unwrap());
        let conversion = Conversion::new(external, memory, version).unwrap();
        let (given, wanted) = (bytes(words[4]), bytes(words[6]));
        let mut found = vec![0; wanted.len()];
        let (misfit, from, to) = if words[0] == "put" {
            let misfit = conversion.write(&given, &mut found, default_fill(external));
            turn(external.size(), &mut found);
            (misfit, memory, external)
        } else {
            let mut big = given.clone();
            turn(external.size(), &mut big);
            (conversion.read(&big, &mut found, default_fill(memory)), external, memory)
        };
        if differs(from, to, &given) {
            different += 1;
            continue;
        }
        assert_eq!(misfit.is_some(), words[5] == RANGE, "{line}");
        // Also if a value does not fit: the fill value replaces it.
        assert_eq!(found, wanted, "{line}");
        *if misfit.is_some() { &mut errors } else { &mut same } += 1;
    }
    assert!(same > 3_000 && errors > 3_000 && different < 200, "{same} {errors} {different}");
}
