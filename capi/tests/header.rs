//! `include/fieldstone.h` equals cbindgen's output for `src/`, and a C compiler accepts it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use fieldstone_testkit::require::program;

/// The source files with content for the header, in the header's order.
const SOURCES: [&str; 18] = [
    "status",
    "arguments",
    "handles",
    "key",
    "store",
    "archive",
    "read",
    "list",
    "comm",
    "container",
    "attributes",
    "arrays",
    "declared",
    "views",
    "group",
    "imports",
    "meshes",
    "partitions",
];

fn generated() -> String {
    let mut config = cbindgen::Config::from_file(common::capi().join("cbindgen.toml")).unwrap();
    config.after_includes = Some(codes());
    let builder = cbindgen::Builder::new().with_config(config);
    let sources = SOURCES.iter().map(|name| common::capi().join(format!("src/{name}.rs")));
    let mut header = Vec::new();
    sources.fold(builder, |builder, source| builder.with_src(source)).generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// A macro for each error code, so that the compiler checks the codes that a program compares with.
fn codes() -> String {
    let mut text =
        "\n/* The codes that fs_error_code() returns; docs/guide/error-codes.md explains each. */".to_owned();
    for code in fieldstone::Code::ALL {
        let name = code.as_str().to_uppercase().replace('-', "_");
        write!(text, "\n#define FS_CODE_{name} \"{code}\"").unwrap();
    }
    text
}

#[test]
fn the_header_is_what_the_sources_say() {
    let (path, header) = (common::capi().join("include/fieldstone.h"), generated());
    if std::env::var("UPDATE_HEADER").is_ok_and(|value| value == "1") {
        fs::write(&path, &header).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == header,
        "include/fieldstone.h differs from src/; write it again with \
         UPDATE_HEADER=1 cargo test -p fieldstone-capi --test header"
    );
}

#[test]
fn the_header_names_every_exported_function() {
    let header = generated();
    let mut functions = 0;
    for file in fs::read_dir(common::capi().join("src")).unwrap() {
        let code = fs::read_to_string(file.unwrap().path()).unwrap();
        for after in code.split("#[unsafe(no_mangle)]").skip(1) {
            let name = after.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            functions += 1;
        }
    }
    assert!(functions > 20, "only {functions} functions were found");
}

/// Functions that the Fortran modules replace by others: writes and reads by the variants with hints, views
/// of groups by view objects.
const BY_OTHERS: [&str; 7] = [
    "fs_group_write",
    "fs_group_read",
    "fs_group_view_block",
    "fs_group_view_grid",
    "fs_group_view_cyclic",
    "fs_group_view_irregular",
    "fs_group_view_joined",
];

#[test]
fn fortran_has_every_call_on_arrays() {
    let modules: String = common::FORTRAN_MODULES
        .iter()
        .map(|module| fs::read_to_string(common::capi().join(module)).unwrap())
        .collect();
    let header = generated();
    let mut missing = Vec::new();
    let mut calls = 0;
    for line in header.lines().filter_map(|line| line.strip_prefix("int fs_")) {
        let name = format!("fs_{}", line.split('(').next().unwrap());
        let kinds = ["fs_arrays_", "fs_group_", "fs_view_", "fs_import_", "fs_mesh_", "fs_partition_"];
        if !kinds.iter().any(|kind| name.starts_with(kind)) || BY_OTHERS.contains(&name.as_str()) {
            continue;
        }
        calls += 1;
        if !modules.contains(&format!("name='{name}'")) {
            missing.push(name);
        }
    }
    assert!(calls > 40, "only {calls} calls were found");
    assert!(missing.is_empty(), "no module of Fortran calls {missing:?}");
}

#[test]
fn a_strict_compiler_takes_the_header_alone() {
    if !program("gcc") {
        return;
    }
    let header = common::capi().join("include/fieldstone.h");
    for standard in ["-std=c99", "-std=c11"] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-fsyntax-only", "-x", "c", standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        common::succeed(gcc.arg(&header));
    }
}

#[test]
fn a_strict_cpp_compiler_takes_it_too() {
    if !program("g++") {
        return;
    }
    let header = common::capi().join("include/fieldstone.h");
    for standard in ["-std=c++11", "-std=c++20"] {
        let mut gpp = Command::new("g++");
        gpp.args(["-fsyntax-only", "-x", "c++", standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        common::succeed(gpp.arg(&header));
    }
}
