//! The folder of a job's files: `arrays/<run>/<attempt>` in the store, and the flag that it holds while the job is
//! open.

use std::path::PathBuf;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::catalog::RunName;
use fieldstone_format::netcdf::paths;

use crate::own_files::{ARRAYS, PART, check_owners, flag_of};

/// The name of a new job: it does not repeat.
pub fn new_job(env: &Env) -> String {
    let mut random = [0; 8];
    env.rand.fill(&mut random);
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder of all jobs of a run, relative to the store's.
pub fn of_run(run: &RunName) -> String {
    let mut name = String::new();
    if !run.project.is_empty() {
        paths::encode(&run.project, &mut name);
        name.push('.');
    }
    paths::encode(&run.name, &mut name);
    format!("{ARRAYS}/{name}")
}

/// The folder of a job, equal on all ranks.
#[derive(Debug)]
pub struct JobFolder {
    /// The store's folder.
    pub root: PathBuf,
    /// The job's folder, relative to the store's.
    pub within: String,
    /// The process of rank 0, as names of unfinished files give it.
    pub writer: String,
}

impl JobFolder {
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.within)
    }

    /// The folder of one of the job's groups, relative to the store's. Its name is a number: a group's name may not be
    /// a valid name of a folder.
    pub fn of_group(&self, number: usize) -> String {
        format!("{}/g{number}", self.within)
    }

    /// The name of a file while it is written; no other job uses it.
    pub fn unfinished(&self, file: &str) -> String {
        let attempt = self.within.rsplit('/').next().unwrap_or(&self.within);
        format!("{file}.{attempt}.{}{PART}", self.writer)
    }

    /// On rank 0, before the first flush of files: leaves a flag, which [`unflag`](Self::unflag) removes.
    pub fn flag(&self, env: &Env) {
        let path = self.path().join(flag_of(&self.writer));
        // Without a flag, the next job does not look for files that a killed job left incomplete.
        if let Err(error) = env.disk.create_alike(&path) {
            tracing::debug!(path = %path.display(), %error, "cannot mark the folder as one of an open job");
        }
    }

    /// On rank 0: removes the flag, because files show all that was flushed.
    pub fn unflag(&self, env: &Env) {
        let _ = env.disk.unlink(&self.path().join(flag_of(&self.writer)));
    }

    /// Fails with Denied if another user could remove the folder.
    pub fn check_owners(&self, env: &Env) -> Result<()> {
        check_owners(env, &self.root, &self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_within_a_job_are_its_own() {
        let (root, within) = (PathBuf::from("/s"), "arrays/demo/00ff".to_owned());
        let folder = JobFolder { root, within, writer: "h-1".to_owned() };
        assert_eq!(folder.path(), PathBuf::from("/s/arrays/demo/00ff"));
        assert_eq!(folder.of_group(2), "arrays/demo/00ff/g2");
        assert_eq!(folder.unfinished("m.edges"), "m.edges.00ff.h-1.part");
    }
}
