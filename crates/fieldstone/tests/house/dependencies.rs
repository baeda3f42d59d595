//! Dependencies: all come from the public registry under a license that `deny.toml` allows, none has a version that
//! may be any, and each compiles with the oldest Rust that the workspace promises.
//!
//! `cargo deny` reads `deny.toml` where it is installed. Here cargo alone is asked, so that each run of the tests
//! looks.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{files, none, root, uses};

const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// A package as cargo reports it.
#[derive(Debug, PartialEq)]
struct Dependency<'a> {
    /// Name and version, with `@` between.
    name: &'a str,
    license: Option<&'a str>,
    /// The oldest Rust that compiles it.
    oldest: Option<&'a str>,
}

/// The answer of `cargo metadata` on the packages that this machine compiles: those of other systems need not be here.
fn metadata() -> String {
    let run = |program: &str, arguments: &[&str]| {
        let program = std::env::var(program.to_uppercase()).unwrap_or_else(|_| program.to_owned());
        let ran = Command::new(&program).args(arguments).current_dir(root()).output().unwrap();
        assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let rustc = run("rustc", &["-vV"]);
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    run("cargo", &["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", host])
}

/// The packages in the answer of `cargo metadata`, where `license` follows `id`, and `rust_version` ends them.
fn dependencies(metadata: &str) -> Vec<Dependency<'_>> {
    let packages = metadata.split("\"workspace_members\":").next().unwrap();
    packages.split("\"id\":\"").skip(1).map(dependency).collect()
}

fn dependency(package: &str) -> Dependency<'_> {
    let (id, rest) = package.split_once('"').unwrap();
    Dependency {
        name: id.rsplit('#').next().unwrap(),
        license: rest.split_once("\"license\":\"").and_then(|(_, value)| value.split('"').next()),
        oldest: rest.rsplit_once("\"rust_version\":\"").and_then(|(_, value)| value.split('"').next()),
    }
}

/// The licenses that `deny.toml` allows.
fn allowed(deny: &str) -> Vec<&str> {
    let list = deny.split("\nallow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    list.split('"').skip(1).step_by(2).collect()
}

/// Packages of which no license is allowed, and allowed licenses that no package has. In `A AND B` both count, in
/// `A OR B` one.
fn license_complaints(dependencies: &[Dependency<'_>], allowed: &[&str]) -> Vec<String> {
    let (mut complaints, mut idle) = (Vec::new(), allowed.iter().copied().collect::<BTreeSet<_>>());
    for Dependency { name, license, .. } in dependencies {
        let license = license.unwrap_or("none").replace('/', " OR ");
        for part in license.split(" AND ") {
            let choices = || part.trim_matches(['(', ')']).split(" OR ");
            if !choices().any(|choice| allowed.contains(&choice)) {
                complaints.push(format!("{name}: deny.toml does not allow the license {part}"));
            }
            idle.retain(|license| choices().all(|choice| choice != *license));
        }
    }
    complaints.extend(idle.iter().map(|license| format!("deny.toml allows {license}, which no package has")));
    complaints
}

/// Packages that need a newer Rust than `ours`.
fn oldest_complaints(dependencies: &[Dependency<'_>], ours: &str) -> Vec<String> {
    let parts = |version: &str| {
        let mut parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
        parts.resize(3, 0);
        parts
    };
    let needs = dependencies.iter().filter_map(|package| Some((package.name, package.oldest?)));
    let newer = needs.filter(|(_, oldest)| parts(oldest) > parts(ours));
    newer.map(|(name, oldest)| format!("{name} needs Rust {oldest}; `rust-version` says {ours}")).collect()
}

/// Packages of a lock file that are neither ours nor the registry's.
fn source_complaints(path: &str, lock: &str, ours: &[String]) -> Vec<String> {
    let packages = lock.split("[[package]]").skip(1);
    let name = |package: &str| {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap_or("").trim_matches('"').to_owned()
    };
    let is_registrys = |package: &str| package.lines().any(|line| line == REGISTRY);
    let is_ours = |package: &str| !package.contains("\nsource = ") && ours.contains(&name(package));
    let strange = packages.filter(|package| !is_registrys(package) && !is_ours(package));
    strange.map(|package| format!("{path}: {} does not come from the registry", name(package))).collect()
}

/// Dependencies of a manifest whose version may be any.
fn wildcard_complaints(path: &str, manifest: &str) -> Vec<String> {
    let (mut complaints, mut section) = (Vec::new(), "");
    for line in manifest.lines().map(str::trim) {
        section = line.strip_prefix('[').unwrap_or(section);
        if section.contains("dependencies") && line.contains("\"*") {
            complaints.push(format!("{path}: `{line}`: say which version"));
        }
    }
    complaints
}

#[test]
fn packages_are_what_deny_toml_allows_and_rust_version_compiles() {
    let (metadata, read) = (metadata(), |name: &str| fs::read_to_string(root().join(name)).unwrap());
    let (packages, deny, manifest) = (dependencies(&metadata), read("deny.toml"), read("Cargo.toml"));
    for known in ["rusqlite@", "fieldstone-core@"] {
        assert!(packages.iter().any(|package| package.name.starts_with(known)), "cargo names no {known}");
    }
    none(license_complaints(&packages, &allowed(&deny)));
    let ours = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    none(oldest_complaints(&packages, ours.trim_matches('"')));
}

#[test]
fn packages_come_from_the_registry_by_a_version() {
    let named =
        |name: &'static str| move |(path, _): &(String, String)| path.rsplit('/').next() == Some(name);
    let manifests: Vec<_> = files(&["toml"]).into_iter().filter(named("Cargo.toml")).collect();
    none(manifests.iter().flat_map(|(path, text)| wildcard_complaints(path, text)).collect());
    let ours: Vec<String> = manifests.iter().map(|(_, text)| uses(text).0).collect();
    let locks: Vec<_> = files(&["lock"]).into_iter().filter(named("Cargo.lock")).collect();
    none(locks.iter().flat_map(|(path, text)| source_complaints(path, text, &ours)).collect());
}

#[test]
fn checks_of_dependencies_can_fail() {
    let metadata = concat!(
        r#"{"packages":[{"name":"a","id":"registry+https://x#a@1.0.0","license":"MIT/Apache-2.0","dependencies":"#,
        r#"[{"name":"b"}],"rust_version":"1.90.1"},{"name":"b","id":"path+file:///b#b@2.0.0","license":null,"#,
        r#""rust_version":null}],"workspace_members":[],"resolve":{"nodes":[{"id":"b"}]}}"#
    );
    let packages = dependencies(metadata);
    let a = Dependency { name: "a@1.0.0", license: Some("MIT/Apache-2.0"), oldest: Some("1.90.1") };
    let b = Dependency { name: "b@2.0.0", license: None, oldest: None };
    assert_eq!(packages, [a, b]);

    assert_eq!(allowed("[licenses]\nallow = [\n    \"MIT\",\n    \"Zlib\",\n]\n"), ["MIT", "Zlib"]);
    let with = |license| [Dependency { name: "a@1.0.0", license: Some(license), oldest: None }];
    for good in ["MIT", "GPL-3.0 OR MIT", "(GPL-3.0 OR MIT) AND MIT", "GPL-3.0/MIT"] {
        assert_eq!(license_complaints(&with(good), &["MIT"]), [""; 0], "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR AGPL-3.0) AND MIT"] {
        assert!(!license_complaints(&with(bad), &["MIT"]).is_empty(), "{bad}");
    }
    let complaints = license_complaints(&packages, &["MIT", "Zlib"]);
    let expected =
        ["b@2.0.0: deny.toml does not allow the license none", "deny.toml allows Zlib, which no package has"];
    assert_eq!(complaints, expected);

    assert_eq!(oldest_complaints(&packages, "1.90"), ["a@1.0.0 needs Rust 1.90.1; `rust-version` says 1.90"]);
    assert!(
        oldest_complaints(&packages, "1.90.1").is_empty() && oldest_complaints(&packages, "2").is_empty()
    );

    let lock =
        |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n{source}\n");
    let of =
        |name: &str, source: &str| source_complaints("Cargo.lock", &lock(name, source), &["ours".to_owned()]);
    assert!(of("a", REGISTRY).is_empty() && of("ours", "").is_empty());
    for (name, source) in
        [("a", ""), ("a", "source = \"git+https://x\""), ("ours", "source = \"git+https://x\"")]
    {
        assert_eq!(of(name, source), [format!("Cargo.lock: {name} does not come from the registry")]);
    }

    let wild = |line: &str| wildcard_complaints("Cargo.toml", &format!("[dev-dependencies]\n{line}\n")).len();
    assert_eq!(
        ["a = \"*\"", "a = { version = \"*\" }", "a = \"1\"", "a = { path = \"a\" }"].map(wild),
        [1, 1, 0, 0]
    );
    assert!(
        wildcard_complaints("Cargo.toml", "[dependencies]\n[profile.dev.package.\"*\"]\ndebug = false\n")
            .is_empty()
    );
}
