//! The outcome of an execution: whether it failed, and why, from any source.

use fieldstone_core::value::Value;

/// States of a failed execution: OpenLineage's, and SLURM's in both spellings. They count whatever the exit code is,
/// since a job that lost its node or exceeded its time also ends with 0.
const FAILED: [&str; 28] = [
    "FAIL",
    "ABORT",
    "ABORTED",
    "ERROR",
    "FAILED",
    "BOOT_FAIL",
    "CANCELLED",
    "DEADLINE",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REQUEUED",
    "REVOKED",
    "STOPPED",
    "TIMEOUT",
    "SPECIAL_EXIT",
    "BF",
    "CA",
    "DL",
    "F",
    "NF",
    "OOM",
    "PR",
    "RQ",
    "RV",
    "TO",
];

/// Whether a state means failure: also `CANCELLED by 1000` and `CANCELLED+`.
pub fn is_failure(state: &str) -> bool {
    let word = state.split([' ', '+', ',']).next().unwrap_or_default().to_ascii_uppercase();
    FAILED.contains(&word.as_str())
}

/// Why an execution failed, by its properties; `None` if none of them shows a failure.
pub fn failure<'a>(prop: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    let number = |name: &str| match prop(name) {
        Some(Value::Int(n)) => Some(*n).filter(|n| *n != 0),
        Some(Value::UInt(n)) => i64::try_from(*n).ok().filter(|n| *n != 0),
        _ => None,
    };
    if let Some(Value::Text(error)) = prop("error") {
        return Some(error.clone());
    }
    let state = match prop("state") {
        Some(Value::Text(state)) if is_failure(state) => Some(format!("ended as {state}")),
        _ => None,
    };
    let signal = number("signal").map(|n| format!("ended by signal {n}"));
    signal.or(number("exit").map(|n| format!("ended with exit code {n}"))).or(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_known_by_error_signal_exit_and_state() {
        let why = |props: &[(&str, Value)]| {
            failure(|name| props.iter().find(|(known, _)| *known == name).map(|(_, value)| value))
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let zero = ("exit", Value::Int(0));
        assert_eq!(why(std::slice::from_ref(&zero)), None);
        let signal = [zero.clone(), ("signal", Value::Int(9)), ("state", text("COMPLETED"))];
        assert_eq!(why(&signal).as_deref(), Some("ended by signal 9"));
        assert_eq!(why(&[("exit", Value::Int(3))]).as_deref(), Some("ended with exit code 3"));
        assert_eq!(why(&[("error", text("no")), ("exit", Value::Int(3))]).as_deref(), Some("no"));
        for state in
            ["CANCELLED by 1000", "cancelled", "CANCELLED+", "NODE_FAIL", "OOM", "FAIL", "TIMEOUT", "RV"]
        {
            let of_state = [zero.clone(), ("state", text(state))];
            assert_eq!(why(&of_state), Some(format!("ended as {state}")));
        }
        for state in ["COMPLETED", "COMPLETE", "RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "", "CD", "R"]
        {
            assert_eq!(why(&[("state", text(state))]), None, "{state}");
        }
    }
}
