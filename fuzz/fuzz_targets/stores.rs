//! All parsers of stores under coverage guidance; see `../store_checks.rs`.
#![no_main]

#[path = "../store_checks.rs"]
mod store_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| store_checks::check(data));
