//! Errors, ids, requests, keys, values and arrays as bytes.

use std::path::PathBuf;
use std::sync::Arc;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fieldstone_core::compression::Compression;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Scalar, Summary, Uncovered};
use fieldstone_core::key::{FieldKey, KeyValue, Level, Names};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::{Item, Request, Values, Wanted};
use fieldstone_core::schema::Schema;
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::attempt::Origin;
use fieldstone_format::bytes::Put;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::EntryId;
use fieldstone_format::setting::IfExists;
use fieldstone_format::value::{put_value, read_value};

use crate::{In, Out, Wire, wire_enum, wire_struct};

impl Wire for Code {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes().put_bytes(self.as_str().as_bytes());
    }

    fn read(input: &mut In<'_>) -> Result<Code> {
        let text = input.cursor.text()?;
        let known = Code::ALL.iter().find(|code| code.as_str() == text);
        known.copied().ok_or_else(|| input.cursor.fail(&format!("the code {text} is unknown")))
    }
}

/// Code, message and hint. Causes do not cross; the message has their words.
impl Wire for Error {
    fn put(&self, out: &mut Out<'_>) {
        self.code().put(out);
        self.message().to_owned().put(out);
        self.hint().map(str::to_owned).put(out);
    }

    fn read(input: &mut In<'_>) -> Result<Error> {
        let error = Error::new(Code::read(input)?, String::read(input)?);
        Ok(match Option::<String>::read(input)? {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }
}

impl Wire for Id {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes().put_id(*self);
    }

    fn read(input: &mut In<'_>) -> Result<Id> {
        input.cursor.id()
    }
}

impl Wire for Value {
    fn put(&self, out: &mut Out<'_>) {
        put_value(out.bytes(), self);
    }

    fn read(input: &mut In<'_>) -> Result<Value> {
        read_value(&mut input.cursor)
    }
}

impl Wire for PathBuf {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes().put_bytes(self.as_os_str().as_bytes());
    }

    fn read(input: &mut In<'_>) -> Result<PathBuf> {
        Ok(OsString::from_vec(input.cursor.bytes()?.to_vec()).into())
    }
}

/// Its text, which the reader parses.
impl Wire for Schema {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes().put_bytes(self.text().as_bytes());
    }

    fn read(input: &mut In<'_>) -> Result<Schema> {
        Schema::parse(input.cursor.text()?)
    }
}

impl Wire for DType {
    fn put(&self, out: &mut Out<'_>) {
        self.to_string().put(out);
    }

    fn read(input: &mut In<'_>) -> Result<DType> {
        DType::parse(input.cursor.text()?)
    }
}

impl Wire for IndexBox {
    fn put(&self, out: &mut Out<'_>) {
        self.start().to_vec().put(out);
        self.count().to_vec().put(out);
    }

    fn read(input: &mut In<'_>) -> Result<IndexBox> {
        IndexBox::unbounded(Vec::read(input)?, Vec::read(input)?)
    }
}

impl Wire for Request {
    fn put(&self, out: &mut Out<'_>) {
        let pairs: Vec<(String, Values)> =
            self.iter().map(|(keyword, values)| (keyword.to_owned(), values.clone())).collect();
        pairs.put(out);
        self.bounds().to_vec().put(out);
    }

    fn read(input: &mut In<'_>) -> Result<Request> {
        let mut request = Request::new();
        for (keyword, values) in Vec::<(String, Values)>::read(input)? {
            request.set(keyword, values);
        }
        let bounds: Vec<Request> = input.nested()?;
        Ok(bounds.into_iter().fold(request, Request::within))
    }
}

impl Wire for Level {
    fn put(&self, out: &mut Out<'_>) {
        self.names.put(out);
        KeyValue::put_all(&self.values, out);
    }

    fn read(input: &mut In<'_>) -> Result<Level> {
        let names: Names = Arc::read(input)?;
        let values = KeyValue::read_all(names.len(), input)?;
        Ok(Level { names, values })
    }
}

wire_enum! {
    Item { 0 One(value), 1 Range { from, to, by } }
    Wanted { 0 One(value), 1 Glob(pattern) }
    Values { 0 Any, 1 Like(wanted), 2 Present, 3 Absent, 4 List(items) }
    KeyValue { 0 Absent, 1 Int(number), 2 Real(number, text), 3 Span { start, end, text }, 4 Text(text) }
    Compression { 0 None, 1 Zstd(level) }
    Scalar { 0 Int(number), 1 UInt(number), 2 Float(number) }
    IfExists { 0 New, 1 Error }
    LockKind { 0 Archive, 1 List, 2 Retrieve, 3 Wipe }
    ValueType {
        1 Bool, 2 Int, 3 UInt, 4 Float, 5 Text, 6 Bytes, 7 DateTime, 8 IntRange, 9 FloatRange, 10 Array, 11 Json,
    }
    Test {
        0 Exists, 1 Above(value), 2 AtLeast(value), 3 Below(value), 4 AtMost(value), 5 Between(from, to),
        6 Equal(value), 7 IsIn(values), 8 Contains(value), 9 Glob(pattern), 10 Typed(text), 11 All(tests),
        12 Any(tests), 13 Not(test),
    }
}

wire_struct! {
    FieldKey { levels }
    Summary { min, max, missing }
    Uncovered { boxes, truncated }
    EntryId { writer, sequence, ordinal }
    CommitId { store, log, sequence }
    Origin { attempt, job, rank }
}
