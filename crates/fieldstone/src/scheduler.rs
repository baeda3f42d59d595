//! A process's job and rank, from the environment variables of batch systems and MPI.

/// Variables with the rank of an MPI process, and those with the number of ranks.
const RANKS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", ""),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Variables with a job's id: SLURM, PBS, LSF, Flux, Cobalt, Grid Engine.
const JOBS: [&str; 7] =
    ["SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID"];
/// Variables with the step of a SLURM job.
const STEPS: [&str; 2] = ["SLURM_STEP_ID", "SLURM_STEPID"];

/// The rank of a process, if it is one of several. `get`: a variable that is set and not empty.
pub fn rank(get: impl Fn(&str) -> Option<String>) -> Option<u64> {
    RANKS.iter().find_map(|(rank, size)| {
        let several = size.is_empty() || get(size).is_some_and(|size| size != "1");
        get(rank).filter(|_| several)?.parse().ok()
    })
}

/// The id of a process's job, with the step if there is one.
pub fn job(get: impl Fn(&str) -> Option<String>) -> Option<String> {
    let name = JOBS.iter().find(|name| get(name).is_some())?;
    let job = get(name)?;
    let step = STEPS.iter().filter(|_| name.starts_with("SLURM")).find_map(|step| get(step));
    Some(step.map_or_else(|| job.clone(), |step| format!("{job}.{step}")))
}

/// A variable of this process's environment that is set and not empty.
pub fn own(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn batch_systems_name_their_jobs() {
        assert_eq!(job(of(&[("SLURM_JOB_ID", "17"), ("SLURM_STEP_ID", "2")])).as_deref(), Some("17.2"));
        assert_eq!(job(of(&[("PBS_JOBID", "17.server")])).as_deref(), Some("17.server"));
        assert_eq!(job(of(&[("HOME", "/")])), None);
        assert_eq!(rank(of(&[("PMI_RANK", "3"), ("PMI_SIZE", "4")])), Some(3));
        assert_eq!(rank(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")])), None);
    }
}
