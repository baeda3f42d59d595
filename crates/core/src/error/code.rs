//! Codes: what exactly went wrong, for a program that acts on it. A kind says what a caller can do; a code says
//! "the run exists" from "the schema differs", which are both a Conflict (B-12).
//!
//! Invariants:
//! * the list only grows: a code keeps its text, its kind and whether it may be retried for ever
//!   (`crates/core/tests/codes.txt`);
//! * each kind has a general code, its first, for what no narrower one names;
//! * this table is the only one: Python, C and the guide's page are compared with it by tests.
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
        /// What exactly went wrong, for a program that acts on it. The list only grows; each kind has a general code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $code,)*
        }

        impl Code {
            /// Every code, by kinds, each kind's general one first.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// The code's text, the same in every language.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$code => $text,)* }
            }

            /// The kind of every error that has this code.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$code => ErrorKind::$kind,)* }
            }

            /// Whether the same call may succeed later without anybody changing anything.
            pub fn is_retryable(self) -> bool {
                match self { $(Code::$code => codes!(@again $again),)* }
            }

            /// What it means, a sentence of Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$code => $meaning,)* }
            }

            /// What to do about it, a sentence of Markdown.
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
        "The schema has no such keyword, or a word cannot be one.",
        "Look at the schema with `fieldstone schema`.";
    KeywordMissing = "keyword-missing", Invalid, final,
        "A key lacks a keyword that the schema requires.",
        "Give it.";
    KeywordValue = "keyword-value", Invalid, final,
        "A value does not fit its keyword's type or list.",
        "Give a value that the message allows.";
    KeyContradiction = "key-contradiction", Invalid, final,
        "A key or request names a keyword twice, or two of its values contradict each other.",
        "Give one of them.";
    RequestSyntax = "request-syntax", Invalid, final,
        "A request cannot be parsed, or a range of it is empty or endless; the message says where.",
        "Correct the text.";
    RequestTooBroad = "request-too-broad", Invalid, final,
        "A request names more, or less definitely, than the call needs.",
        "Narrow it.";
    SchemaSyntax = "schema-syntax", Invalid, final,
        "A schema cannot be parsed; the message says where.",
        "Correct the text.";
    SchemaRole = "schema-role", Invalid, final,
        "The schema lacks a keyword for what is asked, such as the run's.",
        "Use a schema that has one.";
    RuleTaken = "rule-taken", Invalid, final,
        "A rule, or an optional keyword, that is to be added would make no key: rules that are there take all of them.",
        "Leave it out.";
    QuerySyntax = "query-syntax", Invalid, final,
        "A query cannot be parsed; the message says where.",
        "Correct the text.";
    Sql = "sql", Invalid, final,
        "A statement is not taken, or the engine refuses it.",
        "Correct it: only reading is possible.";
    Url = "url", Invalid, final,
        "No store or catalog is reached by this URL.",
        "Correct scheme and path.";
    Option = "option", Invalid, final,
        "An option has a value that it does not take, or goes with no other that is given.",
        "Give one that the message names.";
    Argument = "argument", Invalid, final,
        "A pointer, handle or buffer of a call is null, not aligned or not ours.",
        "Correct the program.";
    Closed = "closed", Invalid, final,
        "The handle was closed or given up.",
        "Open it again.";
    Dtype = "dtype", Invalid, final,
        "A text is no element type, or one that is not possible here.",
        "Give one that the message names.";
    DtypeMismatch = "dtype-mismatch", Invalid, final,
        "Elements are of another type than is asked for or declared.",
        "Convert them, or ask for theirs.";
    Shape = "shape", Invalid, final,
        "A shape or its chunks have wrong dimensions or too many elements.",
        "Give others.";
    ShapeMismatch = "shape-mismatch", Invalid, final,
        "An array has another shape than is asked for or declared.",
        "Give one of that shape.";
    BufferSize = "buffer-size", Invalid, final,
        "A buffer does not have the bytes that the box takes.",
        "Give one of that size.";
    Box = "box", Invalid, final,
        "A box or index is malformed, or not inside the array.",
        "Give one inside the shape.";
    NotAnArray = "not-an-array", Invalid, final,
        "Opaque bytes were used as an array.",
        "Read them as bytes.";
    Value = "value", Invalid, final,
        "A value cannot be kept or parsed.",
        "Change it.";
    ValueType = "value-type", Invalid, final,
        "A value is of another type than its tag or attribute has.",
        "Give one of that type.";
    Name = "name", Invalid, final,
        "A name or path is not possible here.",
        "Choose another.";
    FileKind = "file-kind", Invalid, final,
        "A path leads to no file of the kind that is needed, such as a folder or a pipe.",
        "Give another path.";
    FileFormat = "file-format", Invalid, final,
        "A file is of a format that is not read here.",
        "Convert it.";
    NothingTaken = "nothing-taken", Invalid, final,
        "Of all files that were named none could be taken.",
        "See the reasons in the message, and in the report of the error.";
    TooLarge = "too-large", Invalid, final,
        "A limit on size is exceeded; the message names it.",
        "Give less at once.";
    ContainerMode = "container-mode", Invalid, final,
        "A container is in define mode where data mode is needed, or the other way round.",
        "Call `enddef` or `redef`.";
    ContainerLimit = "container-limit", Invalid, final,
        "A limit of the container's format is exceeded.",
        "Take another format, such as cdf5.";
    ContainerFormat = "container-format", Invalid, final,
        "A container's format does not have what is asked for.",
        "Take another format or strategy.";
    WrongStore = "wrong-store", Invalid, final,
        "The call is not for this store: a field of another one, source and target the same, a checkpoint of a folder.",
        "Use the store that the message asks for.";
    CommandLine = "command-line", Invalid, final,
        "The program was called with wrong arguments.",
        "See the verb's `--help`.";
    NotFound = "not-found", NotFound, final,
        "What was asked for does not exist.",
        "Look with `axes` or `list`.";
    StoreNotFound = "store-not-found", NotFound, final,
        "There is no store under this URL.",
        "Check it; a first flush makes a store.";
    FieldNotFound = "field-not-found", NotFound, final,
        "No field has this key or matches this request.",
        "See what there is with `axes` or `list`.";
    FieldIncomplete = "field-incomplete", NotFound, final,
        "Pieces of the array have not been written.",
        "Wait for their writer, or read what is there.";
    RunNotFound = "run-not-found", NotFound, final,
        "There is no run of this name.",
        "Make it with `create_run`.";
    VariableNotFound = "variable-not-found", NotFound, final,
        "The run or container has no variable of this name or number.",
        "See the list of variables.";
    VersionNotFound = "version-not-found", NotFound, final,
        "The store does not reach back to this version, or it is of another store.",
        "Take a later one.";
    VertexNotFound = "vertex-not-found", NotFound, final,
        "The graph has no vertex of this type and id.",
        "Write its id out: a file's is its full path.";
    VersionArchived = "version-archived", NotFound, final,
        "The version of a vertex or relation was moved to another store.",
        "Ask the store that the hint names.";
    RelationNotFound = "relation-not-found", NotFound, final,
        "The graph has no such relation between these vertices.",
        "See those of one of them with `edges`.";
    FileNotFound = "file-not-found", NotFound, final,
        "A file or folder does not exist.",
        "Check the path.";
    Conflict = "conflict", Conflict, final,
        "Two statements contradict each other; no narrower code fits.",
        "Look at both and decide.";
    StoreExists = "store-exists", Conflict, final,
        "There is a store already.",
        "Open it with mode `a`.";
    StoreReplaced = "store-replaced", Conflict, final,
        "Another store stands in the place of the one that was opened.",
        "Open it anew.";
    SchemaDiffers = "schema-differs", Conflict, final,
        "The store has another schema than the one asked for.",
        "Leave the schema out.";
    SchemaRaced = "schema-raced", Conflict, final,
        "Another writer extended the schema at the same time, and the two extensions do not go together.",
        "Look at the schema, and add what it still lacks.";
    RunExists = "run-exists", Conflict, final,
        "There is a run of this name already.",
        "Say that it may exist, or take another name.";
    RunDiffers = "run-differs", Conflict, final,
        "The run is there with another declaration.",
        "Take another name, or attributes for what can change.";
    VariableDiffers = "variable-differs", Conflict, final,
        "The variable is there with another declaration.",
        "Declare it as it is, or as another version.";
    TypeDiffers = "type-differs", Conflict, final,
        "The type of vertices or relations is declared otherwise.",
        "Declare it as it is, or take another name.";
    StepDiffers = "step-differs", Conflict, final,
        "The step is there with another time.",
        "Give the time that it has.";
    FieldExists = "field-exists", Conflict, final,
        "A field, or the piece of one, is there, and may not be archived again.",
        "Go on behind what is there, or say that a newer version is meant: exist=\"new\".";
    PiecesDiffer = "pieces-differ", Conflict, final,
        "Pieces of one array disagree in type, shape or chunks.",
        "Archive the whole array again.";
    TransactionDecided = "transaction-decided", Conflict, final,
        "The transaction was committed or aborted already.",
        "Begin a new one.";
    TransactionRaced = "transaction-raced", Conflict, final,
        "A writer flushed into the transaction while it was being decided.",
        "Commit or archive again what the message names.";
    TargetExists = "target-exists", Conflict, final,
        "The file or folder to be written exists.",
        "Say that it may be replaced, or take another.";
    TargetDiffers = "target-differs", Conflict, final,
        "The target of a checkpoint is no earlier state of this store.",
        "Give a new folder.";
    FileChanged = "file-changed", Conflict, final,
        "A file was changed while it was being read.",
        "Take it again when nobody writes it.";
    FileReplaced = "file-replaced", Conflict, final,
        "A container's file was removed or replaced while it was open.",
        "Open it again.";
    DefinitionExists = "definition-exists", Conflict, final,
        "A container has an object of this name already.",
        "Take another name.";
    DefinitionDiffers = "definition-differs", Conflict, final,
        "Definitions of one container contradict each other, such as those of two ranks.",
        "Define the object once, or equally on all of them.";
    CollectiveMismatch = "collective-mismatch", Conflict, final,
        "Ranks make different collective calls, or one call with different options.",
        "Make the same calls in the same order on all.";
    LaterTables = "later-tables", Conflict, final,
        "The catalog's tables are of a later release.",
        "Use that release, or another engine.";
    Corrupt = "corrupt", Corrupt, final,
        "Stored bytes break their grammar.",
        "Restore the named file; the rest is readable.";
    Checksum = "checksum", Corrupt, final,
        "Stored bytes do not match their checksum.",
        "Restore the named file; the rest is readable.";
    Truncated = "truncated", Corrupt, final,
        "A file is shorter than what it must hold.",
        "Restore the named file.";
    LogShortened = "log-shortened", Corrupt, final,
        "A log lost commits that others know of.",
        "Restore it, or accept the loss.";
    DataGone = "data-gone", Corrupt, final,
        "A data log that commits name is missing.",
        "Restore it, or accept the loss.";
    LogsGone = "logs-gone", Corrupt, final,
        "A store's folder of logs is missing: it is half mounted, or half restored.",
        "Mount it, or restore the folder from a backup.";
    FormatVersion = "format-version", Corrupt, final,
        "A file is of a format version that this release does not know.",
        "Use a later release.";
    OutsideChanged = "outside-changed", Corrupt, final,
        "A file outside the store that holds its data is gone or changed.",
        "Put it back, or take it again.";
    EngineDamaged = "engine-damaged", Corrupt, final,
        "The catalog's engine is damaged.",
        "`fieldstone rebuild` makes it again from the logs.";
    ContainerUnfinished = "container-unfinished", Corrupt, final,
        "A container's writer has not closed it.",
        "Wait for it, or write it again.";
    CopyDiffers = "copy-differs", Corrupt, final,
        "What was copied is not what came back.",
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
        "The dataset is another user's.",
        "Ask its owner, or take another dataset.";
    StoreOwned = "store-owned", Denied, final,
        "What concerns the whole store, such as its schema, is another user's to change.",
        "Ask its owner.";
    RunOwned = "run-owned", Denied, final,
        "The run is another user's.",
        "Ask its owner.";
    RelationOwned = "relation-owned", Denied, final,
        "Another user put the vertex or relation.",
        "Ask who put it, or put a version of your own.";
    AttributeOwned = "attribute-owned", Denied, final,
        "The attributes or tags to be changed are other users'.",
        "Ask them, or change your own.";
    TransactionOwned = "transaction-owned", Denied, final,
        "The transaction is another user's.",
        "Ask its owner to decide.";
    OutsideFilter = "outside-filter", Denied, final,
        "The key or call goes beyond the part of the store that this handle shows.",
        "Give it to the whole store.";
    LaterStore = "later-store", Denied, final,
        "The store holds logs of a later release, beside which nothing is written.",
        "Write with that release.";
    FormatPinned = "format-pinned", Denied, final,
        "The store is of an older version of the format, which has no place for what is asked for.",
        "Ask its owner for `fieldstone upgrade`, which raises it.";
    EngineDenied = "engine-denied", Denied, final,
        "The catalog's engine refuses user, password or a permission.",
        "Correct or grant it.";
    Unavailable = "unavailable", Unavailable, final,
        "The medium failed or is full; no narrower code fits.",
        "Mend it, then repeat the call.";
    DiskFull = "disk-full", Unavailable, final,
        "The disk or a quota is full.",
        "Free some space, then archive again what the message names.";
    InodesFull = "inodes-full", Unavailable, final,
        "The file system, or a quota, takes no further file, whatever its free bytes.",
        "Remove files that nobody needs, then archive again what the message names.";
    IoFailed = "io-failed", Unavailable, final,
        "The operating system failed to read or write.",
        "Look at the disk and its cables, then repeat the call.";
    OutOfMemory = "out-of-memory", Unavailable, final,
        "Memory does not suffice.",
        "Take less at once, or a larger machine.";
    ProcessLimit = "process-limit", Unavailable, final,
        "The system gives the process no further thread or open file.",
        "Raise the limit.";
    LogGone = "log-gone", Unavailable, final,
        "A log was removed, renamed or replaced while it was written.",
        "Put it back, or archive again what the message names.";
    StoreGone = "store-gone", Unavailable, final,
        "The store's folder was removed or renamed while it was open.",
        "Put it back, or open a new one.";
    EngineBusy = "engine-busy", Unavailable, retry,
        "Others hold the catalog's engine, or make it anew.",
        "Repeat the call.";
    EngineLost = "engine-lost", Unavailable, retry,
        "The connection to the catalog's server ended, or it restarts.",
        "Repeat the call.";
    EngineUnreachable = "engine-unreachable", Unavailable, final,
        "The catalog's server cannot be reached under this address.",
        "Check host and port.";
    Forked = "forked", Unavailable, final,
        "A handle cannot be used on this side of a fork.",
        "Open it again in this process.";
    Cancelled = "cancelled", Unavailable, final,
        "The call was cancelled before it was done.",
        "Repeat it where its answer is still wanted.";
    DeadlinePassed = "deadline-passed", Unavailable, final,
        "The call's deadline passed before it was done.",
        "Give it more time, or ask for less at once.";
    RankFailed = "rank-failed", Unavailable, final,
        "A rank of the job is gone or its communication failed.",
        "End the job, look at that rank first.";
    HelperFailed = "helper-failed", Unavailable, final,
        "The Python helper or a library in it ended.",
        "See the message; repeat with other data.";
    LibraryMissing = "library-missing", Unavailable, final,
        "The Python helper or an optional library cannot be loaded.",
        "Install what the hint names.";
}

impl Code {
    /// An error of this code, with a message that names what is at fault.
    pub fn error(self, message: impl Into<String>) -> Error {
        Error::new(self, message)
    }

    /// The code that has this text, such as one that another process has sent.
    pub fn of_text(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// What the operating system's error means.
    pub fn of_io(cause: &io::Error) -> Code {
        /// Too many open files: in the process, on the machine (POSIX gives both these numbers everywhere).
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

/// A kind's general code.
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
