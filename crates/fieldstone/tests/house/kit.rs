//! One test kit: what tests share stands in `crates/testkit`, and numbers from seeds come from one generator.

use super::{none, sources};

/// Texts that betray a copy of a helper, and the one file that may hold each.
const ONCE: &[(&str, &str)] = &[
    ("var(\"FIELDSTONE_REQUIRE\")", "crates/testkit/src/require.rs"),
    ("var(\"FIELDSTONE_CRASH\")", "crates/testkit/src/require.rs"),
    ("var_os(\"FIELDSTONE_DATA\")", "crates/testkit/src/samples.rs"),
    ("0xbf58_476d_1ce4_e5b9", "crates/core/src/env/sim/random.rs"),
    ("6_364_136_223_846_793_005", "crates/core/src/env/sim/random.rs"),
    ("6364136223846793005", "crates/core/src/env/sim/random.rs"),
    ("struct Random", "crates/core/src/env/sim/random.rs"),
    ("struct Dice", "crates/core/src/env/sim/random.rs"),
    ("struct Rng", "crates/core/src/env/sim/random.rs"),
    ("environ.get(\"FIELDSTONE_REQUIRE\"", "python/tests/conftest.py"),
];

fn complaints(path: &str, text: &str) -> Vec<String> {
    let twice = |(mark, place): &&(&str, &str)| path != *place && text.contains(mark);
    let found = ONCE.iter().filter(twice);
    found.map(|(mark, place)| format!("{path}: `{mark}`: take what {place} has")).collect()
}

#[test]
fn tests_share_one_kit() {
    let sources = sources();
    let all = sources.iter().filter(|(path, _)| !path.ends_with("tests/house/kit.rs"));
    none(all.flat_map(|(path, text)| complaints(path, text)).collect());
    for (mark, place) in
        ONCE.iter().filter(|(mark, _)| mark.starts_with("var") || mark.starts_with("environ"))
    {
        let (_, text) = sources.iter().find(|(path, _)| path == place).unwrap();
        assert!(text.contains(mark), "{place} does not hold {mark} any more");
    }
}

#[test]
fn checks_of_the_kit_can_fail() {
    let pasted =
        "let required = std::env::var(\"FIELDSTONE_REQUIRE\").unwrap_or_default();\nstruct Dice(u64);";
    assert_eq!(complaints("crates/store/tests/all/mine.rs", pasted).len(), 2);
    assert!(complaints("crates/testkit/src/require.rs", "std::env::var(\"FIELDSTONE_REQUIRE\")").is_empty());
}
