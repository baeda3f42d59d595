//! Faults that the simulation of the whole store plants, to show that it finds them (T-6).
//!
//! The place of a fault asks [`is`] whether it is planted. Only with the feature `schedules`, which the test kit
//! switches on, can the answer be yes; in all other builds it is a constant, and the compiler removes the fault.
//!
//! Invariant: at most one fault is planted in a process, by [`plant`], before its stores are opened.
//!
//! ```
//! use fieldstone_core::planted::{self, Planted};
//! assert!(!planted::is(Planted::AckBeforeSync));
//! ```

/// A fault to plant: one per promise that the simulation checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Planted {
    /// A flush returns before its log is synced.
    AckBeforeSync = 1,
    /// A decision covers one log less than were prepared.
    DecisionForgetsLog,
    /// A frame counts although its body does not match its checksum.
    TornFrameAccepted,
    /// The attempts of a key are compared by the stamps of their commits alone.
    AttemptByStamp,
    /// A log that is shorter than its board slot is not reported.
    ShortLogBelieved,
    /// The catalog's engine passes over a commit.
    ViewSkipsCommit,
    /// A deletion of a relation hides the versions of all users.
    DeletionHidesOthers,
    /// An older version shows commits that came later.
    AtMixesNewer,
    /// Nobody asks who owns a dataset.
    OwnerUnchecked,
    /// A refresh passes over a log that moved.
    RefreshMissesLog,
    /// A takeover leaves out decisions.
    TakeoverWithoutDecisions,
    /// A takeover leaves out side records of catalog and graph.
    TakeoverWithoutSideRecords,
    /// A log is taken over that its writer has not closed.
    LivingLogTaken,
    /// Files are removed as soon as a takeover is there.
    NoGrace,
    /// A reader pays no heed to end files.
    EndFileIgnored,
    /// A writer does not look whether somebody ends its log.
    WriterDoesNotLook,
    /// A transaction is forgotten that no takeover has sealed a grace before.
    ForgottenUnsealed,
    /// An open transaction is sealed, and forgotten, as if it was aborted.
    OpenOneSealed,
    /// The floor lies above open transactions.
    FloorTooHigh,
    /// A writer that decides does not look whether the transaction was sealed meanwhile.
    DeciderDoesNotLook,
    /// A purge drops what lies above an entry that stays.
    PurgeAboveALivingEntry,
    /// A purge drops a part of a field of older versions.
    PurgeCutsFields,
    /// A purge drops a removal and keeps what it hides.
    PurgeDropsRemovalAlone,
    /// A purge lets a commit hide that nothing confirms.
    PurgeUnconfirmed,
    /// A wipe hides what has a smaller stamp, whether or not its version shows it.
    WipeByStamp,
    /// A wipe with an age hides young entries, too.
    WipeWithoutAge,
    /// An erasure takes what is shown.
    EraseShown,
    /// A purge condemns files of arrays that entries name.
    ArrayFileFreed,
    /// A hand-over makes nothing another's.
    HandOverIgnored,
    /// A hide goes on when it was ended.
    HideOutlivesEnd,
    /// A backup does not take what was added to logs that it has.
    BackupLacksCommits,
    /// A reader shows rows of a side record that says that they were erased.
    ErasedShown,
    /// A rule of retention wipes what is younger than its age.
    RuleWithoutAge,
    /// A move removes fields from the source before they are durable in the target.
    MoveRemovesFirst,
    /// Nobody asks whether a lock forbids archives into a dataset.
    LockIgnored,
    /// An overlay goes on when it was ended.
    OverlayOutlivesEnd,
    /// A purge drops what another store names.
    PointerIgnored,
    /// Files are removed although the name of the takeover that replaces them is not durable.
    UnlinkBeforeSync,
    /// A maker that slept names its takeover after the newest one, which it has not seen.
    TakeoverByOldLook,
    /// A takeover forgets which transactions another one has sealed.
    TakeoverWithoutSeals,
    /// A writer takes a slot of a board that another one's log has.
    SlotReused,
    /// A purge drops the mark of an attempt while older ones may flush.
    MarkDropped,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 42] = [
        Planted::AckBeforeSync,
        Planted::DecisionForgetsLog,
        Planted::TornFrameAccepted,
        Planted::AttemptByStamp,
        Planted::ShortLogBelieved,
        Planted::ViewSkipsCommit,
        Planted::DeletionHidesOthers,
        Planted::AtMixesNewer,
        Planted::OwnerUnchecked,
        Planted::RefreshMissesLog,
        Planted::TakeoverWithoutDecisions,
        Planted::TakeoverWithoutSideRecords,
        Planted::LivingLogTaken,
        Planted::NoGrace,
        Planted::EndFileIgnored,
        Planted::WriterDoesNotLook,
        Planted::ForgottenUnsealed,
        Planted::OpenOneSealed,
        Planted::FloorTooHigh,
        Planted::DeciderDoesNotLook,
        Planted::PurgeAboveALivingEntry,
        Planted::PurgeCutsFields,
        Planted::PurgeDropsRemovalAlone,
        Planted::PurgeUnconfirmed,
        Planted::WipeByStamp,
        Planted::WipeWithoutAge,
        Planted::EraseShown,
        Planted::ArrayFileFreed,
        Planted::HandOverIgnored,
        Planted::HideOutlivesEnd,
        Planted::BackupLacksCommits,
        Planted::ErasedShown,
        Planted::RuleWithoutAge,
        Planted::MoveRemovesFirst,
        Planted::LockIgnored,
        Planted::OverlayOutlivesEnd,
        Planted::PointerIgnored,
        Planted::UnlinkBeforeSync,
        Planted::TakeoverByOldLook,
        Planted::TakeoverWithoutSeals,
        Planted::SlotReused,
        Planted::MarkDropped,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Planted::AckBeforeSync => "ack-before-sync",
            Planted::DecisionForgetsLog => "decision-forgets-log",
            Planted::TornFrameAccepted => "torn-frame-accepted",
            Planted::AttemptByStamp => "attempt-by-stamp",
            Planted::ShortLogBelieved => "short-log-believed",
            Planted::ViewSkipsCommit => "view-skips-commit",
            Planted::DeletionHidesOthers => "deletion-hides-others",
            Planted::AtMixesNewer => "at-mixes-newer",
            Planted::OwnerUnchecked => "owner-unchecked",
            Planted::RefreshMissesLog => "refresh-misses-log",
            Planted::TakeoverWithoutDecisions => "takeover-without-decisions",
            Planted::TakeoverWithoutSideRecords => "takeover-without-side-records",
            Planted::LivingLogTaken => "living-log-taken",
            Planted::NoGrace => "no-grace",
            Planted::EndFileIgnored => "end-file-ignored",
            Planted::WriterDoesNotLook => "writer-does-not-look",
            Planted::ForgottenUnsealed => "forgotten-unsealed",
            Planted::OpenOneSealed => "open-one-sealed",
            Planted::FloorTooHigh => "floor-too-high",
            Planted::DeciderDoesNotLook => "decider-does-not-look",
            Planted::PurgeAboveALivingEntry => "purge-above-a-living-entry",
            Planted::PurgeCutsFields => "purge-cuts-fields",
            Planted::PurgeDropsRemovalAlone => "purge-drops-removal-alone",
            Planted::PurgeUnconfirmed => "purge-unconfirmed",
            Planted::WipeByStamp => "wipe-by-stamp",
            Planted::WipeWithoutAge => "wipe-without-age",
            Planted::EraseShown => "erase-shown",
            Planted::ArrayFileFreed => "array-file-freed",
            Planted::HandOverIgnored => "hand-over-ignored",
            Planted::HideOutlivesEnd => "hide-outlives-end",
            Planted::BackupLacksCommits => "backup-lacks-commits",
            Planted::ErasedShown => "erased-shown",
            Planted::RuleWithoutAge => "rule-without-age",
            Planted::MoveRemovesFirst => "move-removes-first",
            Planted::LockIgnored => "lock-ignored",
            Planted::OverlayOutlivesEnd => "overlay-outlives-end",
            Planted::PointerIgnored => "pointer-ignored",
            Planted::UnlinkBeforeSync => "unlink-before-sync",
            Planted::TakeoverByOldLook => "takeover-by-old-look",
            Planted::TakeoverWithoutSeals => "takeover-without-seals",
            Planted::SlotReused => "slot-reused",
            Planted::MarkDropped => "mark-dropped",
        }
    }

    /// The fault of a name.
    pub fn named(name: &str) -> Option<Planted> {
        Planted::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

#[cfg(feature = "schedules")]
static NOW: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants a fault in this process, in place of the one before.
#[cfg(feature = "schedules")]
pub fn plant(fault: Option<Planted>) {
    NOW.store(fault.map_or(0, |fault| fault as u8), std::sync::atomic::Ordering::Relaxed);
}

/// Whether this fault is planted.
#[cfg(feature = "schedules")]
pub fn is(fault: Planted) -> bool {
    NOW.load(std::sync::atomic::Ordering::Relaxed) == fault as u8
}

/// Whether this fault is planted: never here.
#[cfg(not(feature = "schedules"))]
#[inline]
pub const fn is(_: Planted) -> bool {
    false
}
