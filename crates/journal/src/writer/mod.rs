//! Writing this process's own log, and nothing else.

pub mod create;
pub mod data_log;
pub mod linked;
pub mod live_runs;
pub mod log_file;
pub mod slot;
