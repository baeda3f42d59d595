//! Replies of the helper while it reads a file.

use fieldstone_core::Error;

use crate::interop::helper::{DeclaredFile, FieldFrame, Reply, Texts, failure};

/// A reply of the helper about the file that it is reading.
pub(super) enum FileReply {
    /// The payload is an exported file's catalog lines.
    Metadata,
    /// The helper is about to send a netCDF file.
    Offer(NetcdfOffer),
    /// A field, or a piece of one; the payload has its bytes.
    Field(FieldFrame),
    /// The declarations of a netCDF file for its variables; the payload has coordinates and times.
    Declared(DeclaredFile),
    /// A part of the file that is not taken.
    Skipped { what: String, why: String },
    /// The share of the file that is done.
    Progress(f64),
    /// The whole file was sent.
    Done,
    /// Nothing of the file can be taken.
    Failed(Error),
}

/// A netCDF file that the helper offers.
pub(super) struct NetcdfOffer {
    /// The run, from the file's name.
    pub run: String,
    /// Digest of the file's bytes.
    pub sha256: String,
    /// For an exported file with the former keys of its fields: some of these, from each variable.
    pub keys: Option<Vec<Texts>>,
}

impl FileReply {
    /// A reply about a file; a reply to another question becomes a failure.
    pub fn of(reply: Reply) -> FileReply {
        match reply {
            Reply::Metadata => FileReply::Metadata,
            Reply::Offer { run, sha256, keys } => FileReply::Offer(NetcdfOffer { run, sha256, keys }),
            Reply::Field(field) => FileReply::Field(field),
            Reply::Declared(file) => FileReply::Declared(file),
            Reply::Skipped { what, why } => FileReply::Skipped { what, why },
            Reply::Progress { done, of } => {
                FileReply::Progress(if of == 0 { 0.0 } else { done as f64 / of as f64 })
            }
            Reply::Done => FileReply::Done,
            Reply::Failed { code, message, hint } => FileReply::Failed(failure(code, message, hint)),
            Reply::Decoded(_)
            | Reply::GribKeys(_)
            | Reply::Schema(_)
            | Reply::Image
            | Reply::Exported(_)
            | Reply::Darshan(_)
            | Reply::Mesh(_)
            | Reply::Rows { .. }
            | Reply::LeftOut { .. } => {
                FileReply::Failed(Error::internal("the helper answered another question"))
            }
        }
    }
}
