//! Traces of the library's work, on stderr, if `FIELDSTONE_LOG` asks for them.
//!
//! `FIELDSTONE_LOG` holds a level (`debug`, `trace`) or targets with levels, separated by commas:
//! `fieldstone_journal=trace,debug`. Each span prints one line when it ends, with its counts and its
//! duration. Without the variable nothing is installed, and a span costs one read of a number.

use std::io;
use std::sync::Once;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Prints spans on stderr if `FIELDSTONE_LOG` asks for them. Every call that opens something calls this,
/// because a library has no main function.
pub fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(install);
}

fn install() {
    let Some(asked) = std::env::var_os("FIELDSTONE_LOG").filter(|asked| !asked.is_empty()) else { return };
    let Some(levels) = asked.to_str().and_then(|text| text.parse::<Targets>().ok()) else {
        eprintln!(
            "note: FIELDSTONE_LOG={} is neither a level nor a list of targets",
            asked.to_string_lossy()
        );
        return;
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    // A Rust program that links this library may have installed its own subscriber.
    let _ = tracing_subscriber::registry().with(lines).with(levels).try_init();
}
