//! Error codes: they name exactly what went wrong, for programs that act on it. The kind of an error shows what a
//! caller can do; the code distinguishes errors of one kind, such as "the run exists" and "the schema differs", which
//! are both a Conflict (B-12).
//!
//! Invariants:
//! * the list only grows: a code keeps its text, its kind and its retry flag for ever
//!   (`crates/core/tests/all/codes.txt`);
//! * the first code of each kind is the general one, for errors that no narrower code names;
//! * this table is the only source: tests compare Python, C and the page of the guide with it.
//!
//! ```
//! use fieldstone_core::{Code, ErrorKind};
//!
//! let error = Code::RunExists.error("there is a run a already");
//! assert_eq!((error.code().as_str(), error.kind()), ("run-exists", ErrorKind::Conflict));
//! assert!(!error.is_retryable() && Code::EngineBusy.is_retryable());
//! ```

use std::fmt;
use std::io;

use super::{Error, ErrorKind};

macro_rules! codes {
    (@again retry) => { true };
    (@again final) => { false };
    ($($code:ident = $text:literal, $kind:ident, $again:tt, $meaning:literal, $action:literal;)*) => {
        /// Names exactly what went wrong, for a program that acts on it. The list only grows, and each kind has a
        /// general code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $code,)*
        }

        impl Code {
            /// Every code, ordered by kind; each kind's general code comes first.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// The code's text, the same in every language.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$code => $text,)* }
            }

            /// The kind of every error that has this code.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$code => ErrorKind::$kind,)* }
            }

            /// Whether the same call may succeed later, although no one changes anything.
            pub fn is_retryable(self) -> bool {
                match self { $(Code::$code => codes!(@again $again),)* }
            }

            /// The meaning of the code, as a sentence of Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$code => $meaning,)* }
            }

            /// Advice to the caller, as a sentence of Markdown.
            pub fn action(self) -> &'static str {
                match self { $(Code::$code => $action,)* }
            }
        }
    };
}

codes! {
    Internal = "internal", Internal, final,
        "A defect of Fieldstone.",
        "Report it with the message.";
    Invalid = "invalid", Invalid, final,
        "The call itself is wrong; no narrower code fits.",
        "Correct the call.";
    KeywordUnknown = "keyword-unknown", Invalid, final,
        "The schema has no such keyword, or the word is not a valid keyword.",
        "See the schema with `fieldstone schema show`.";
    KeywordMissing = "keyword-missing", Invalid, final,
        "A key lacks a keyword that the schema requires.",
        "Add the keyword.";
    KeywordValue = "keyword-value", Invalid, final,
        "A value does not fit the type of its keyword, or the values that the schema lists.",
        "Give a value that the message allows.";
    KeyContradiction = "key-contradiction", Invalid, final,
        "A key or request names a keyword twice, or two of its values contradict each other.",
        "Keep one of them.";
    RequestSyntax = "request-syntax", Invalid, final,
        "A request cannot be parsed, or one of its ranges is empty or endless; the message names the place.",
        "Correct the text.";
    RequestTooBroad = "request-too-broad", Invalid, final,
        "A request selects more than the call can take, or leaves open a keyword that the call needs.",
        "Narrow it.";
    SchemaSyntax = "schema-syntax", Invalid, final,
        "A schema cannot be parsed; the message names the place.",
        "Correct the text.";
    SchemaRole = "schema-role", Invalid, final,
        "The schema has no keyword for the part that the call needs, such as the run.",
        "Use a schema that has one.";
    RuleTaken = "rule-taken", Invalid, final,
        "A new rule, or optional keyword, would make no key: existing rules match all of its keys.",
        "Leave it out.";
    QuerySyntax = "query-syntax", Invalid, final,
        "A query cannot be parsed; the message names the place.",
        "Correct the text.";
    Sql = "sql", Invalid, final,
        "Fieldstone or the engine refuses a statement.",
        "Correct it: statements may only read.";
    Url = "url", Invalid, final,
        "This URL does not lead to a store or catalog.",
        "Correct scheme and path.";
    Option = "option", Invalid, final,
        "An option has an invalid value, or does not go with another option.",
        "Use a value that the message names.";
    Argument = "argument", Invalid, final,
        "A pointer, handle or buffer of a call is null, misaligned or not one of Fieldstone's.",
        "Correct the program.";
    Closed = "closed", Invalid, final,
        "The handle was closed, or discarded after an error.",
        "Open it again.";
    Dtype = "dtype", Invalid, final,
        "A text is not an element type, or the call does not support that type.",
        "Use one that the message names.";
    DtypeMismatch = "dtype-mismatch", Invalid, final,
        "Elements have another type than the call asks for or the declaration has.",
        "Convert them, or ask for their type.";
    Shape = "shape", Invalid, final,
        "A shape or its chunks have wrong dimensions or too many elements.",
        "Correct the shape or the chunks.";
    ShapeMismatch = "shape-mismatch", Invalid, final,
        "An array has another shape than the call asks for or the declaration has.",
        "Use an array of that shape.";
    BufferSize = "buffer-size", Invalid, final,
        "A buffer has another size than the box needs.",
        "Use a buffer of that size.";
    Box = "box", Invalid, final,
        "A box or index is malformed, or not inside the array.",
        "Use a box inside the shape.";
    NotAnArray = "not-an-array", Invalid, final,
        "A call for arrays met opaque bytes.",
        "Read them as bytes.";
    Value = "value", Invalid, final,
        "A value cannot be stored or parsed.",
        "Change it.";
    ValueType = "value-type", Invalid, final,
        "A value has another type than its tag or attribute.",
        "Use a value of that type.";
    Name = "name", Invalid, final,
        "A name or path is not valid here.",
        "Choose another.";
    FileKind = "file-kind", Invalid, final,
        "A path is not of the kind that the call needs: it is, for example, a folder or a pipe.",
        "Name another path.";
    FileFormat = "file-format", Invalid, final,
        "Fieldstone does not read the file's format here.",
        "Convert it.";
    NothingTaken = "nothing-taken", Invalid, final,
        "Fieldstone could take in none of the named files.",
        "See the reasons in the message, and in the report of the error.";
    TooLarge = "too-large", Invalid, final,
        "The input exceeds a limit on size; the message names it.",
        "Pass less at once.";
    ContainerMode = "container-mode", Invalid, final,
        "A container is in define mode and the call needs data mode, or the other way round.",
        "Call `enddef` or `redef`.";
    ContainerLimit = "container-limit", Invalid, final,
        "An object exceeds a limit of the container's format.",
        "Choose another format, such as cdf5.";
    ContainerFormat = "container-format", Invalid, final,
        "The container's format does not support the call.",
        "Choose another format or strategy.";
    WrongStore = "wrong-store", Invalid, final,
        "The call does not fit this store: a field of another store, one store as source and target, a checkpoint of a folder.",
        "Use the store that the message asks for.";
    CommandLine = "command-line", Invalid, final,
        "The arguments of the program are wrong.",
        "See the verb's `--help`.";
    NotFound = "not-found", NotFound, final,
        "The object that the call names does not exist.",
        "Look with `axes` or `list`.";
    StoreNotFound = "store-not-found", NotFound, final,
        "There is no store under this URL.",
        "Check it; the first flush creates a store.";
    FieldNotFound = "field-not-found", NotFound, final,
        "No field has this key or matches this request.",
        "List the existing fields with `axes` or `list`.";
    FieldIncomplete = "field-incomplete", NotFound, final,
        "Pieces of the array have not been written.",
        "Wait for their writer, or read the pieces that exist.";
    RunNotFound = "run-not-found", NotFound, final,
        "There is no run of this name.",
        "Create it with `create_run`.";
    VariableNotFound = "variable-not-found", NotFound, final,
        "The run or container has no variable of this name or number.",
        "See the list of variables.";
    VersionNotFound = "version-not-found", NotFound, final,
        "The store no longer holds this version, or the version belongs to another store.",
        "Use a later one.";
    VersionPurged = "version-purged", NotFound, final,
        "A purge has dropped what this version of the store had there, so that nobody knows whether it had a field.",
        "Use a later version.";
    VertexNotFound = "vertex-not-found", NotFound, final,
        "The graph has no vertex of this type and id.",
        "Write its id out: a file's is its full path.";
    VersionArchived = "version-archived", NotFound, final,
        "A user moved this version of a vertex or relation to another store.",
        "Read it from the store that the hint names.";
    RelationNotFound = "relation-not-found", NotFound, final,
        "The graph has no such relation between these vertices.",
        "List the relations of one of them with `edges`.";
    FileNotFound = "file-not-found", NotFound, final,
        "A file or folder does not exist.",
        "Check the path.";
    Conflict = "conflict", Conflict, final,
        "Two statements contradict each other; no narrower code fits.",
        "Look at both and decide.";
    StoreExists = "store-exists", Conflict, final,
        "A store exists already.",
        "Open it with mode `a`.";
    StoreReplaced = "store-replaced", Conflict, final,
        "Another store has replaced the one that was opened.",
        "Open it again.";
    SchemaDiffers = "schema-differs", Conflict, final,
        "The store has another schema than the one asked for.",
        "Leave the schema out.";
    SchemaRaced = "schema-raced", Conflict, final,
        "Another writer extended the schema at the same time, and the two extensions contradict each other.",
        "Look at the schema, and add what it still lacks.";
    RunExists = "run-exists", Conflict, final,
        "A run of this name exists already.",
        "Allow an existing run, or choose another name.";
    RunDiffers = "run-differs", Conflict, final,
        "The run exists with another declaration.",
        "Choose another name, or use attributes for properties that change.";
    VariableDiffers = "variable-differs", Conflict, final,
        "The variable exists with another declaration.",
        "Repeat its declaration, or declare another version.";
    TypeDiffers = "type-differs", Conflict, final,
        "The type of vertices or relations has another declaration.",
        "Repeat its declaration, or choose another name.";
    StepDiffers = "step-differs", Conflict, final,
        "The step exists with another time.",
        "Use its time.";
    FieldExists = "field-exists", Conflict, final,
        "A field, or a piece of it, exists, and the call may not archive it again.",
        "Continue after the existing fields, or ask for a newer version: if_exists=\"new\".";
    PiecesDiffer = "pieces-differ", Conflict, final,
        "Pieces of one array disagree in type, shape or chunks.",
        "Archive the whole array again.";
    TransactionDecided = "transaction-decided", Conflict, final,
        "The transaction has already been committed or aborted.",
        "Begin a new one.";
    TransactionRaced = "transaction-raced", Conflict, final,
        "A writer flushed into the transaction during its decision.",
        "Commit or archive again the fields that the message names.";
    AttemptEnded = "attempt-ended", Conflict, final,
        "The attempt flushed nothing for 30 days, and a newer attempt of the user has begun.",
        "Open the store with the name of a new attempt.";
    TargetExists = "target-exists", Conflict, final,
        "The file or folder to be written exists.",
        "Allow it to be replaced, or choose another.";
    TargetDiffers = "target-differs", Conflict, final,
        "The target of a checkpoint is not an earlier state of this store.",
        "Choose a new folder.";
    FileChanged = "file-changed", Conflict, final,
        "A file changed while Fieldstone read it.",
        "Try again when no program writes to it.";
    FileReplaced = "file-replaced", Conflict, final,
        "A container's file was removed or replaced while it was open.",
        "Open it again.";
    DefinitionExists = "definition-exists", Conflict, final,
        "A container already has an object of this name.",
        "Choose another name.";
    DefinitionDiffers = "definition-differs", Conflict, final,
        "Definitions in one container contradict each other, such as those of two ranks.",
        "Define the object once, or identically on all ranks.";
    CollectiveMismatch = "collective-mismatch", Conflict, final,
        "Ranks make different collective calls, or one call with different options.",
        "Make the same calls in the same order on all ranks.";
    LaterTables = "later-tables", Conflict, final,
        "A later release made the catalog's tables.",
        "Use that release, or another engine.";
    Corrupt = "corrupt", Corrupt, final,
        "Stored bytes break their grammar.",
        "Restore the named file; the rest is readable.";
    Checksum = "checksum", Corrupt, final,
        "Stored bytes do not match their checksum.",
        "Restore the named file; the rest is readable.";
    Truncated = "truncated", Corrupt, final,
        "A file is shorter than its content requires.",
        "Restore the named file.";
    LogShortened = "log-shortened", Corrupt, final,
        "A log has lost commits that other files mention.",
        "Restore it, or accept the loss.";
    DataGone = "data-gone", Corrupt, final,
        "A data log, a takeover or a file of arrays is missing, and others refer to it.",
        "Restore it, or accept the loss.";
    LogsGone = "logs-gone", Corrupt, final,
        "A store's folder of logs is missing: the store is partly mounted, or partly restored.",
        "Mount it, or restore the folder from a backup.";
    FormatVersion = "format-version", Corrupt, final,
        "A file has a format version that this release does not know.",
        "Use a later release.";
    OutsideChanged = "outside-changed", Corrupt, final,
        "A file outside the store that holds its data is missing or has changed.",
        "Put it back, or ingest it again.";
    EngineDamaged = "engine-damaged", Corrupt, final,
        "The catalog's engine is damaged.",
        "Run `fieldstone rebuild`, which builds it again from the logs.";
    ContainerUnfinished = "container-unfinished", Corrupt, final,
        "A container's writer has not closed it.",
        "Wait for it, or write it again.";
    CopyDiffers = "copy-differs", Corrupt, final,
        "The copy, read back, differs from its source.",
        "Check the target's disk, then copy again.";
    Denied = "denied", Denied, final,
        "The caller may not do this; no narrower code fits.",
        "Ask the owner named in the message.";
    PermissionDenied = "permission-denied", Denied, final,
        "The operating system refuses a file or folder.",
        "Check its permissions.";
    ReadOnly = "read-only", Denied, final,
        "The store, container or file system is open for reading, or at an older version.",
        "Open it for writing.";
    DatasetOwned = "dataset-owned", Denied, final,
        "The dataset belongs to another user.",
        "Ask its owner, or use another dataset.";
    DatasetLocked = "dataset-locked", Denied, final,
        "A lock on the dataset forbids the call.",
        "Ask whoever set the lock; its owner unlocks it.";
    StoreOwned = "store-owned", Denied, final,
        "The call changes the whole store, such as its schema, and another user owns it.",
        "Ask its owner.";
    RunOwned = "run-owned", Denied, final,
        "The run belongs to another user.",
        "Ask its owner.";
    RelationOwned = "relation-owned", Denied, final,
        "Another user put the vertex or relation.",
        "Ask that user, or put a version of your own.";
    AttributeOwned = "attribute-owned", Denied, final,
        "The attributes or tags to be changed belong to other users.",
        "Ask them, or change your own.";
    TransactionOwned = "transaction-owned", Denied, final,
        "The transaction belongs to another user.",
        "Ask its owner to decide.";
    OutsideFilter = "outside-filter", Denied, final,
        "The key or call goes beyond the part of the store that this handle shows.",
        "Use a handle of the whole store.";
    LaterStore = "later-store", Denied, final,
        "The store holds logs of a later release, so this release does not write to it.",
        "Write with that release.";
    FormatPinned = "format-pinned", Denied, final,
        "The store has an older format version, which does not support the call.",
        "Ask its owner for `fieldstone upgrade`, which raises it.";
    EngineDenied = "engine-denied", Denied, final,
        "The catalog's engine refuses the user, the password or a permission.",
        "Correct or grant it.";
    Unavailable = "unavailable", Unavailable, final,
        "The medium failed or is full; no narrower code fits.",
        "Repair it, then repeat the call.";
    DiskFull = "disk-full", Unavailable, final,
        "The disk or a quota is full.",
        "Free some space, then archive again the fields that the message names.";
    InodesFull = "inodes-full", Unavailable, final,
        "The file system, or a quota, allows no further file, even with free bytes left.",
        "Remove unneeded files, then archive again the fields that the message names.";
    IoFailed = "io-failed", Unavailable, final,
        "The operating system failed to read or write.",
        "Check the disk and its cables, then repeat the call.";
    OutOfMemory = "out-of-memory", Unavailable, final,
        "The process has too little memory.",
        "Read or write less at once, or use a larger machine.";
    ProcessLimit = "process-limit", Unavailable, final,
        "The system allows the process no further thread or open file.",
        "Raise the limit.";
    LogGone = "log-gone", Unavailable, final,
        "Someone removed, renamed or replaced a log while the process was writing it.",
        "Put it back, or archive again the fields that the message names.";
    LogEnded = "log-ended", Unavailable, final,
        "Somebody else ended a log while its process was asleep, or seemed gone, before the flush was durable in it.",
        "Archive again the fields that the message names; the handle goes on in a new log.";
    StoreGone = "store-gone", Unavailable, final,
        "Someone removed or renamed the store's folder while it was open.",
        "Put it back, or open a new one.";
    EngineBusy = "engine-busy", Unavailable, retry,
        "Other processes hold the catalog's engine, or are building it.",
        "Repeat the call.";
    EngineLost = "engine-lost", Unavailable, retry,
        "The connection to the catalog's server ended, or the server restarts.",
        "Repeat the call.";
    EngineUnreachable = "engine-unreachable", Unavailable, final,
        "No server of the catalog answers at this address.",
        "Check host and port.";
    Forked = "forked", Unavailable, final,
        "A handle cannot be used on this side of a fork.",
        "Open it again in this process.";
    Cancelled = "cancelled", Unavailable, final,
        "The call was cancelled before it finished.",
        "Repeat it if you still need its answer.";
    DeadlinePassed = "deadline-passed", Unavailable, final,
        "The call's deadline passed before it finished.",
        "Allow more time, or ask for less at once.";
    RankFailed = "rank-failed", Unavailable, final,
        "A rank of the job ended, or communication with it failed.",
        "End the job, and examine that rank first.";
    HelperFailed = "helper-failed", Unavailable, final,
        "The Python helper, or a library in it, ended unexpectedly.",
        "See the message; try with other data.";
    LibraryMissing = "library-missing", Unavailable, final,
        "The Python helper cannot load, or lacks an optional library.",
        "Install what the hint names.";
}

impl Code {
    /// Makes an error with this code; the message names what is at fault.
    pub fn error(self, message: impl Into<String>) -> Error {
        Error::new(self, message)
    }

    /// Finds the code with this text, which may come from another process.
    pub fn of_text(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// The code for an error of the operating system.
    pub fn of_io(cause: &io::Error) -> Code {
        /// Too many open files, in the process or on the machine. POSIX systems agree on both numbers.
        const NO_DESCRIPTOR: [i32; 2] = [24, 23];
        match cause.kind() {
            io::ErrorKind::NotFound => Code::FileNotFound,
            io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            io::ErrorKind::UnexpectedEof => Code::Truncated,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
            io::ErrorKind::OutOfMemory => Code::OutOfMemory,
            _ if cause.raw_os_error().is_some_and(|number| NO_DESCRIPTOR.contains(&number)) => {
                Code::ProcessLimit
            }
            _ => Code::IoFailed,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The general code of a kind.
impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Code {
        match kind {
            ErrorKind::Internal => Code::Internal,
            ErrorKind::Invalid => Code::Invalid,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::Conflict => Code::Conflict,
            ErrorKind::Corrupt => Code::Corrupt,
            ErrorKind::Denied => Code::Denied,
            ErrorKind::Unavailable => Code::Unavailable,
        }
    }
}
