//! The processor on which a thread runs: threads that take turns are fastest on one processor.

/// A processor of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processor(#[cfg(target_os = "linux")] rustix::thread::CpuSet);

#[cfg(target_os = "linux")]
impl Processor {
    /// The caller's current processor, if the system reports it.
    pub(crate) fn of_this_thread() -> Option<Processor> {
        let (number, mut one) = (rustix::thread::sched_getcpu(), rustix::thread::CpuSet::new());
        (number < rustix::thread::CpuSet::MAX_CPU).then(|| {
            one.set(number);
            Processor(one)
        })
    }

    /// Keeps this thread on the processor; if the system does not allow that, the thread runs anywhere.
    pub(crate) fn stay(&self) {
        let _ = rustix::thread::sched_setaffinity(None, &self.0);
    }
}

#[cfg(not(target_os = "linux"))]
impl Processor {
    pub(crate) fn of_this_thread() -> Option<Processor> {
        None
    }

    pub(crate) fn stay(&self) {}
}
