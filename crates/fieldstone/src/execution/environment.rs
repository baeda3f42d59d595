//! The surroundings of an execution: variables, its place among others of a job, its arguments.
//!
//! A list of names decides which variables are kept, so that unforeseen ones stay out (G-33).

use std::collections::BTreeMap;

use fieldstone_core::env::Env;
use fieldstone_core::value::Value;

use crate::scheduler;
use crate::secrets::{is_secret, shown_value};

/// Names of variables that are kept; a `*` at the end matches anything.
const ALLOWED: [&str; 32] = [
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONHASHSEED",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "OMP_*",
    "KMP_*",
    "GOMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "BLIS_*",
    "NUMEXPR_*",
    "NUMBA_*",
    "SLURM_*",
    "CUDA_*",
    "NVIDIA_*",
    "ROCR_*",
    "HIP_*",
    "CONDA_*",
    "VIRTUAL_ENV",
    "MODULEPATH",
    "LOADEDMODULES",
    "MPI_*",
    "OMPI_*",
    "HDF5_*",
    "ECCODES_*",
    "GRIB_*",
];
/// SLURM's properties that are kept, and the variables that hold them.
const SLURM: [(&str, &[&str]); 9] = [
    ("job", &["SLURM_JOB_ID", "SLURM_JOBID"]),
    ("step", &["SLURM_STEP_ID", "SLURM_STEPID"]),
    ("array_job", &["SLURM_ARRAY_JOB_ID"]),
    ("array_task", &["SLURM_ARRAY_TASK_ID"]),
    ("name", &["SLURM_JOB_NAME"]),
    ("partition", &["SLURM_JOB_PARTITION"]),
    ("cluster", &["SLURM_CLUSTER_NAME"]),
    ("nodes", &["SLURM_JOB_NODELIST", "SLURM_NODELIST"]),
    ("tasks", &["SLURM_NTASKS", "SLURM_NPROCS"]),
];

/// The environment variables of a process.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The variables of this process; names and values that are not UTF-8 are left out.
    pub fn own() -> Variables {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Variables(std::env::vars_os().filter_map(text).collect())
    }

    /// The variable of this name, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All of them.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The kept variables: those of the list, and those that `more` names. Secret values are hidden.
    pub fn kept(&self, more: &[String]) -> Value {
        let mut kept = Vec::new();
        for (name, value) in &self.0 {
            let named = more.iter().any(|other| matches(other, name));
            let listed = ALLOWED.iter().any(|known| matches(known, name)) && !is_secret(name, value);
            if named || listed {
                kept.push((name.clone(), shown_value(name, &Value::Text(value.clone()))));
            }
        }
        Value::Map(kept)
    }

    /// SLURM's description of its job.
    pub fn slurm(&self) -> Option<Value> {
        self.get("SLURM_JOB_ID").or(self.get("SLURM_JOBID"))?;
        let value = |(name, variables): &(&str, &[&str])| {
            let value = variables.iter().find_map(|variable| self.get(variable))?;
            Some(((*name).to_owned(), Value::Text(value.to_owned())))
        };
        Some(Value::Map(SLURM.iter().filter_map(value).collect()))
    }

    /// The id of SLURM's job, with the step if there is one.
    pub fn slurm_job(&self) -> Option<String> {
        self.get("SLURM_JOB_ID").or(self.get("SLURM_JOBID"))?;
        scheduler::job(|name| self.get(name).map(str::to_owned))
    }

    /// The rank of this process, if it is one of several.
    pub fn rank(&self) -> Option<u64> {
        scheduler::rank(|name| self.get(name).map(str::to_owned))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(head) => name.starts_with(head),
        None => pattern == name,
    }
}

/// The name of a process in its job: its rank, or host and number.
pub fn place(rank: Option<u64>) -> String {
    let own = || format!("{}-{}", Env::real().identity.host(), std::process::id());
    rank.map_or_else(own, |rank| rank.to_string())
}

/// The arguments of this process, the program first.
pub fn arguments() -> Vec<String> {
    // On some systems a library that Python loads does not get the arguments.
    let own = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    match own.strip_suffix(&[0]) {
        Some(words) => words.split(|byte| *byte == 0).map(text).collect(),
        None => std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn only_listed_variables_are_kept_and_of_secrets_none() {
        let all = variables(&[
            ("PATH", "/bin"),
            ("OMP_NUM_THREADS", "4"),
            ("SLURM_JWT", "x"),
            ("CONDA_TOKEN", "x"),
            ("HOME", "/home/me"),
            ("MY_TOKEN", "x"),
            ("http_proxy", "http://me:x@proxy"),
            ("MODEL_A", "1"),
        ]);
        let text = |pairs: &[(&str, &str)]| {
            Value::Map(pairs.iter().map(|(n, v)| ((*n).to_owned(), Value::Text((*v).to_owned()))).collect())
        };
        assert_eq!(all.kept(&[]), text(&[("OMP_NUM_THREADS", "4"), ("PATH", "/bin")]));
        let more = ["MY_TOKEN".to_owned(), "MODEL_*".to_owned(), "http_proxy".to_owned()];
        let expected = [
            ("MODEL_A", "1"),
            ("MY_TOKEN", "***"),
            ("OMP_NUM_THREADS", "4"),
            ("PATH", "/bin"),
            ("http_proxy", "http://***@proxy"),
        ];
        assert_eq!(all.kept(&more), text(&expected));
    }

    #[test]
    fn a_place_in_a_job_is_what_the_launcher_says() {
        let none = variables(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_JOB_ID", "17")]);
        assert_eq!((none.rank(), none.slurm_job().as_deref()), (None, Some("17")));
        let third = variables(&[
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_JOBID", "17"),
            ("SLURM_STEP_ID", "0"),
        ]);
        assert_eq!((third.rank(), third.slurm_job().as_deref()), (Some(3), Some("17.0")));
        let mpi = variables(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]);
        assert_eq!((mpi.rank(), mpi.slurm_job()), (Some(1), None));
    }
}
