//! A trace of the program's work on stderr, if the user asks for it.
//!
//! `FIELDSTONE_LOG` holds a level (`debug`, `trace`) or targets with levels, separated by commas:
//! `fieldstone_journal=trace,debug`. A span is one line when it ends, with what it counted and how long it took. Without
//! the variable nothing is installed, and a span costs one look at a number.

use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Shows spans on stderr where `FIELDSTONE_LOG` asks for them.
pub fn start() {
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
    // There is none before: this is called once, first of all.
    let _ = tracing_subscriber::registry().with(lines).with(levels).try_init();
}
