//! The state of a store as metrics, in the text format that Prometheus and node_exporter's folder of text files read
//! (exposition format 0.0.4).
//!
//! Invariants:
//! * each metric has one `HELP` and one `TYPE` line, before its samples;
//! * each sample is labelled with the store, so that files of several stores can be read together;
//! * a number that nobody knows is absent, not 0.

use std::collections::BTreeMap;
use std::io::Write;

use fieldstone::{Code, Stats, StatsRow, Status};

use crate::output::{Done, Out};

/// Prints all metrics. `counts` are those of the fields, with rows by owner, where they could be read.
pub fn print(status: &Status, counts: Option<&(Stats, Vec<StatsRow>)>, now: i64, out: &mut Out) -> Done {
    let mut metrics = Metrics { store: &status.url, out };
    metrics.one(
        "status_code",
        "Exit code of fieldstone status: 0, or that of the worst problem.",
        status.code(),
    )?;
    let mut problems: BTreeMap<&str, u64> = BTreeMap::new();
    for problem in &status.problems {
        *problems.entry(problem.code.map_or("note", Code::as_str)).or_default() += 1;
    }
    let all = status.problems.iter().filter(|problem| problem.code.is_some()).count();
    metrics.one("problems", "Problems, without notes.", all)?;
    metrics.many("problems_by_code", "Problems by code; notes ask for no action.", "code", problems)?;
    metrics.one("accepted_losses", "Losses that a user accepted.", status.accepted.len())?;
    metrics.many("writers", "Writers whose logs are not taken over, by state.", "state", status.states())?;
    let flushed = status.writers.iter().map(|writer| writer.last_flush).max();
    metrics.seconds("last_flush_timestamp_seconds", "When any of them last flushed, since 1970.", flushed)?;
    metrics.one(
        "undecided_transactions",
        "Transactions that nobody has ended.",
        status.transactions.len(),
    )?;
    let since = status.transactions.iter().map(|transaction| transaction.since).min();
    let age = since.map(|since| now.saturating_sub(since).max(0));
    metrics.seconds("oldest_transaction_age_seconds", "Age of the oldest of them.", age)?;
    metrics.one("format_version", "Version of the store's format.", status.format)?;
    metrics.one("free_bytes", "Free bytes of the file system.", status.free_bytes)?;
    if let Some(free) = status.free_inodes {
        metrics.one("free_inodes", "Files that can still be made there.", free)?;
    }
    let used = status.bytes_by_user.iter().map(|(user, bytes)| (user, bytes));
    metrics.many("user_bytes", "Bytes of the files of each user.", "user", used)?;
    let Some((stats, owners)) = counts else { return Ok(()) };
    metrics.one("datasets", "Datasets.", stats.datasets)?;
    metrics.one("fields", "Visible fields.", stats.fields)?;
    metrics.one("field_bytes", "Bytes of the visible fields.", stats.bytes)?;
    metrics.one("stored_bytes", "Bytes that they take in the store.", stats.stored_bytes)?;
    let dead: u64 = owners.iter().map(|row| row.dead).fold(0, u64::saturating_add);
    metrics.one("dead_bytes", "Bytes of overwritten versions and removed fields.", dead)?;
    let by_owner = owners.iter().map(|row| (row.name.as_deref().unwrap_or_default(), row.dead));
    metrics.many("owner_dead_bytes", "The same by the owner of the datasets.", "owner", by_owner)?;
    metrics.one("segments", "Segments and takeovers that a lookup may search.", stats.segments)?;
    metrics.one("files", "Files of the store.", stats.files)?;
    metrics.one("file_bytes", "Bytes of all its files.", stats.file_bytes)
}

/// Metrics on their way to the output.
struct Metrics<'a> {
    store: &'a str,
    out: &'a mut Out,
}

impl Metrics<'_> {
    fn head(&mut self, name: &str, help: &str) -> Done {
        writeln!(self.out, "# HELP fieldstone_{name} {help}\n# TYPE fieldstone_{name} gauge")?;
        Ok(())
    }

    /// A metric with one sample.
    fn one(&mut self, name: &str, help: &str, value: impl std::fmt::Display) -> Done {
        self.head(name, help)?;
        writeln!(self.out, "fieldstone_{name}{{store=\"{}\"}} {value}", label(self.store))?;
        Ok(())
    }

    /// Nanoseconds as seconds.
    fn seconds(&mut self, name: &str, help: &str, nanoseconds: Option<i64>) -> Done {
        nanoseconds.map_or(Ok(()), |ns| self.one(name, help, format_args!("{:.3}", ns as f64 / 1e9)))
    }

    /// A metric with a sample for each value of a label; absent without one.
    fn many<N: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        by: &str,
        samples: impl IntoIterator<Item = (N, impl std::fmt::Display)>,
    ) -> Done {
        for (at, (of, value)) in samples.into_iter().enumerate() {
            if at == 0 {
                self.head(name, help)?;
            }
            let (store, of) = (label(self.store), label(of.as_ref()));
            writeln!(self.out, "fieldstone_{name}{{store=\"{store}\",{by}=\"{of}\"}} {value}")?;
        }
        Ok(())
    }
}

/// The value of a label, with backslash, quote and line feed escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
