//! Frames between a program and its helper process. Normative text: `spec/helper-protocol.md`.
//!
//! ```text
//! frame = length of header (u32 LE)  header (JSON)  length of payload (u64 LE)  payload
//! ```
//!
//! Invariants:
//! * a parsed frame becomes a [`Reply`] whose array types, shapes and boxes agree with one another and with
//!   the length of the payload; any other frame is refused as Corrupt;
//! * memory grows with the bytes that arrive and not with the announced lengths.
//!
//! ```
//! use fieldstone_format::helper::{Reply, Request, read_reply, write_frame, write_request};
//!
//! let mut sent = Vec::new();
//! write_request(&mut sent, &Request::Stop, &[])?;
//! assert_eq!(&sent, b"\x1a\0\0\0{\"op\":\"stop\",\"protocol\":1}\0\0\0\0\0\0\0\0");
//!
//! let mut answer = Vec::new();
//! write_frame(&mut answer, &serde_json::json!({"kind": "progress", "done": 1, "of": 2}), &[])?;
//! let (reply, payload) = read_reply(&mut &answer[..])?.unwrap();
//! assert!(matches!(reply, Reply::Progress { done: 1, of: 2 }) && payload.is_empty());
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod declared;

use std::io::{Read, Write};

use fieldstone_core::decoded::{Decoded, DecodedCoordinate};
use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::step_dim::StepDim;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use serde_json::{Map, Value, json};

use crate::darshan::DarshanPart;

pub use declared::{DeclaredAttrs, DeclaredFile, DeclaredVariable, attribute_value};

/// Version of the protocol. Every request carries it; a helper of another version refuses the request.
pub const PROTOCOL: u32 = 1;
/// Longest header of a frame.
pub const MAX_HEADER: usize = 16 << 20;
/// Longest payload of a frame.
pub const MAX_PAYLOAD: u64 = 4 << 30;
/// Most dimensions of an array (netCDF allows 1024, numpy 64).
const MAX_RANK: usize = 64;

/// A request of the program.
#[derive(Debug, Clone, Copy)]
pub enum Request<'a> {
    /// Asks for the fields of a file.
    Ingest {
        /// Its path, in the system's bytes.
        path: &'a [u8],
        /// Whether the helper first offers a netCDF file's name and digest.
        offer: bool,
        /// Whether the helper sends the values; otherwise it sends their positions in the file.
        copy: bool,
        /// The dimension along which variables are split into one field for each step.
        step_dim: &'a StepDim,
    },
    /// Accepts an offer.
    Go,
    /// Accepts an offer, but ignores the recorded keys of the fields.
    GoPlain,
    /// Declines an offer.
    Stop,
    /// Asks for the values of the GRIB message in the payload.
    Decode,
    /// Asks for the keys of the GRIB messages in the payload.
    GribKeys {
        /// The length of each.
        lengths: &'a [usize],
        /// Whether to include the parts that distinguish messages with the same key.
        apart: bool,
    },
    /// Asks for the catalog's content of the GRIB messages in the payload.
    GribDeclared {
        /// The length of each.
        lengths: &'a [usize],
    },
    /// Asks for the fields of an FDB, or for its schema.
    Fdb {
        /// Path of its configuration.
        config: &'a str,
        /// Keywords with their values, ranges as `a`, `to`, `b`; empty for all fields. `None` asks for the
        /// schema.
        request: Option<&'a Map<String, Value>>,
    },
    /// Asks for a picture of the arrays in the payload, with further options.
    Plot(&'a Map<String, Value>),
    /// Asks for netCDF files from a store, with further options.
    Export(&'a Map<String, Value>),
    /// Asks for the rows of a table in a Parquet file, as CSV.
    Rows {
        /// Its path.
        path: &'a str,
    },
    /// Asks for the records of a Darshan log.
    Darshan {
        /// Its path, in the system's bytes.
        path: &'a [u8],
    },
    /// Asks for the unstructured mesh of a file.
    Mesh {
        /// Its path, in the system's bytes.
        path: &'a [u8],
    },
}

/// Keyword and text, in the order of the frame.
pub type Texts = Vec<(String, String)>;

/// A reply of the helper.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The helper is about to send a netCDF file; `Go` or `Stop` decides.
    Offer {
        /// The run of the file's name.
        run: String,
        /// Digest of the file's bytes, 64 hexadecimal digits.
        sha256: String,
        /// For an exported file that records the keys of its fields: some of these keys, from each variable.
        keys: Option<Vec<Texts>>,
    },
    /// The catalog's part of an exported file: the payload is its lines (`spec/exported-metadata.md`).
    Metadata,
    /// A field, or a piece of one; the payload has its bytes.
    Field(FieldFrame),
    /// The declarations of a netCDF file's variables; the payload has coordinates and times.
    Declared(DeclaredFile),
    /// The decoded values of a GRIB message.
    Decoded(Decoded),
    /// The key of each requested GRIB message, or the reason why it has none.
    GribKeys(Vec<std::result::Result<GribKey, String>>),
    /// A part of the file that was not taken.
    Skipped {
        /// The part.
        what: String,
        /// The reason.
        why: String,
    },
    /// Progress in the file.
    Progress {
        /// Bytes done.
        done: u64,
        /// Bytes in total.
        of: u64,
    },
    /// The text of an FDB's schema.
    Schema(String),
    /// A PNG file.
    Image,
    /// Report of an export: `files`, `format`, `fields`, `bytes`.
    Exported(Map<String, Value>),
    /// A part that a written file lacks, or that it has in another form.
    LeftOut {
        /// The file.
        file: String,
        /// The part.
        what: String,
        /// The reason.
        why: String,
    },
    /// Rows of a table: the payload is CSV without a header line.
    Rows {
        /// Names of the columns and the catalog's names of their types.
        columns: Texts,
        /// Number of rows up to the last one of this frame.
        done: u64,
        /// Rows in total.
        of: u64,
    },
    /// A part of a Darshan log.
    Darshan(DarshanPart),
    /// A mesh; the payload has its arrays, concatenated.
    Mesh(MeshFrame),
    /// The request is finished.
    Done,
    /// The request failed.
    Failed {
        /// Code of the error; the general code of its kind if the helper gives no narrower one.
        code: Code,
        /// The message.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
}

/// The key of a GRIB message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GribKey {
    /// Its key.
    pub key: Texts,
    /// Parts that distinguish it from other messages with that key, in the order to try; empty unless
    /// requested.
    pub apart: Texts,
}

/// Name of a field, by its source.
#[derive(Debug, Clone, PartialEq)]
pub enum Name {
    /// A netCDF field: its key.
    Key(Texts),
    /// A GRIB message.
    Grib {
        /// Its key.
        key: Texts,
        /// Parts that distinguish it from other messages with that key, in the order to try.
        apart: Texts,
        /// Offset of the message in its file.
        offset: u64,
    },
}

/// Content of the payload of a field frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Opaque bytes.
    Opaque,
    /// A whole array.
    Array {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
    },
    /// A whole array in the file, not in the payload: its bytes are `parts` ranges of equal length in order,
    /// whose beginnings are `stride` bytes apart.
    Outside {
        /// Element type, with the file's byte order.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
        /// Offset of the first part in the file.
        offset: u64,
        /// Number of parts.
        parts: u64,
        /// Distance from the beginning of one part to the next.
        stride: u64,
    },
    /// A box of an array.
    Piece {
        /// Element type.
        dtype: DType,
        /// Extents of the whole array.
        shape: Vec<u64>,
        /// Start of the box.
        start: Vec<u64>,
        /// Extents of the box.
        count: Vec<u64>,
    },
}

/// A field of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldFrame {
    /// Its name.
    pub name: Name,
    /// Content of the payload.
    pub content: Content,
    /// Its dataset, if the source has datasets (an FDB).
    pub dataset: Option<String>,
    /// Elements that mark missing values, concatenated.
    pub missing: Vec<u8>,
}

/// An array of a mesh: coordinates are `<f8`, rows of nodes `<i8`.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshFrameArray {
    /// `x`, `y`, `z`, `edges`, `faces` or `volumes`.
    pub name: String,
    /// Extents: nodes, or rows and entries of a row.
    pub shape: Vec<u64>,
    /// Attributes of a coordinate: `standard_name`, `units` and so on.
    pub attrs: Map<String, Value>,
}

/// The unstructured mesh of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshFrame {
    /// The format of the file.
    pub format: String,
    /// Other attributes of the mesh in the file.
    pub attrs: Map<String, Value>,
    /// Its arrays, in the order of the payload.
    pub arrays: Vec<MeshFrameArray>,
}

/// Writes a request; the parts of the payload are concatenated.
pub fn write_request(to: &mut dyn Write, request: &Request<'_>, payload: &[&[u8]]) -> Result<()> {
    let mut named = &[][..];
    let mut header = match request {
        Request::Ingest { path, offer, copy, step_dim } => {
            let mut header = json!({"op": "ingest", "offer": offer});
            match std::str::from_utf8(path) {
                Ok(path) => header["path"] = path.into(),
                Err(_) => named = path,
            }
            if !copy {
                header["copy"] = false.into();
            }
            match step_dim {
                StepDim::Leading => {}
                StepDim::Named(name) => header["step_dim"] = name.as_str().into(),
                StepDim::Nothing => header["step_dim"] = false.into(),
            }
            header
        }
        Request::Go => json!({"op": "go"}),
        Request::GoPlain => json!({"op": "go", "plain": true}),
        Request::Stop => json!({"op": "stop"}),
        Request::Decode => json!({"op": "decode"}),
        Request::GribKeys { lengths, apart } => {
            json!({"op": "grib_keys", "lengths": lengths, "apart": apart})
        }
        Request::GribDeclared { lengths } => json!({"op": "grib_declared", "lengths": lengths}),
        Request::Fdb { config, request: Some(request) } => {
            json!({"op": "fdb", "config": config, "request": request})
        }
        Request::Fdb { config, request: None } => json!({"op": "fdb", "config": config, "schema": true}),
        Request::Darshan { path } | Request::Mesh { path } => {
            let op = if matches!(request, Request::Mesh { .. }) { "mesh" } else { "darshan" };
            match std::str::from_utf8(path) {
                Ok(path) => json!({"op": op, "path": path}),
                Err(_) => {
                    named = path;
                    json!({"op": op})
                }
            }
        }
        Request::Rows { path } => json!({"op": "rows", "path": path}),
        Request::Plot(what) | Request::Export(what) => {
            let mut header = (*what).clone();
            let op = if matches!(request, Request::Plot(_)) { "plot" } else { "export" };
            header.insert("op".to_owned(), op.into());
            Value::Object(header)
        }
    };
    if let Some(header) = header.as_object_mut() {
        header.insert("protocol".to_owned(), PROTOCOL.into());
    }
    write_frame(to, &header, &[&[named], payload].concat())
}

/// Writes a frame.
pub fn write_frame(to: &mut dyn Write, header: &Value, payload: &[&[u8]]) -> Result<()> {
    let text = header.to_string();
    let length: u64 = payload.iter().map(|part| part.len() as u64).sum();
    let (Ok(head), true) = (u32::try_from(text.len()), text.len() <= MAX_HEADER && length <= MAX_PAYLOAD)
    else {
        return Err(Code::TooLarge.error(format!(
            "a request of {} bytes and {length} bytes of data is too large for the helper",
            text.len()
        )));
    };
    let mut write = || -> std::io::Result<()> {
        to.write_all(&head.to_le_bytes())?;
        to.write_all(text.as_bytes())?;
        to.write_all(&length.to_le_bytes())?;
        payload.iter().try_for_each(|part| to.write_all(part))?;
        to.flush()
    };
    write().map_err(|e| Code::HelperFailed.error(format!("cannot write to the helper: {e}")).with_source(e))
}

/// Reads a frame; `None` if the stream ends between two frames.
pub fn read_frame(from: &mut dyn Read) -> Result<Option<(Value, Vec<u8>)>> {
    let Some(length) = read_some(from, 4)? else { return Ok(None) };
    let length = length.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    if length > MAX_HEADER as u64 {
        return Err(broken(format!("a header of {length} bytes")));
    }
    let header = read_some(from, length)?.ok_or_else(cut)?;
    let header =
        serde_json::from_slice(&header).map_err(|e| broken(format!("a header that is not JSON: {e}")))?;
    let length = read_some(from, 8)?.ok_or_else(cut)?;
    let length = length.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    if length > MAX_PAYLOAD {
        return Err(broken(format!("a payload of {length} bytes")));
    }
    let payload = if length == 0 { Vec::new() } else { read_some(from, length)?.ok_or_else(cut)? };
    Ok(Some((header, payload)))
}

/// Reads a reply of the helper; `None` if the stream ends between two frames.
pub fn read_reply(from: &mut dyn Read) -> Result<Option<(Reply, Vec<u8>)>> {
    let Some((header, payload)) = read_frame(from)? else { return Ok(None) };
    let reply = parse(&header, payload.len() as u64)?;
    Ok(Some((reply, payload)))
}

/// Exactly `n` bytes; `None` at the end of the stream. The buffer grows as bytes arrive.
fn read_some(from: &mut dyn Read, n: u64) -> Result<Option<Vec<u8>>> {
    // Payloads of known size are the common case; a false length costs at most this much.
    let mut bytes = Vec::with_capacity(usize::try_from(n.min(32 << 20)).unwrap_or(0));
    let read = from
        .take(n)
        .read_to_end(&mut bytes)
        .map_err(|e| Code::HelperFailed.error(format!("cannot read from the helper: {e}")).with_source(e))?;
    match read as u64 {
        0 if n > 0 => Ok(None),
        read if read == n => Ok(Some(bytes)),
        _ => Err(cut()),
    }
}

fn cut() -> Error {
    Error::corrupt("the helper's answer ends inside a frame")
}

fn broken(what: String) -> Error {
    Error::corrupt(format!("the helper sent {what}"))
}

fn parse(header: &Value, payload: u64) -> Result<Reply> {
    let frame = Frame(header);
    Ok(match frame.text("kind")? {
        "offer" => Reply::Offer {
            run: frame.text("run")?.to_owned(),
            sha256: frame.text("sha256").and_then(digest)?.to_owned(),
            keys: match header.get("keys") {
                Some(keys) => {
                    let keys =
                        keys.as_array().ok_or_else(|| broken("keys that are not a list".to_owned()))?;
                    Some(keys.iter().map(texts).collect::<Result<_>>()?)
                }
                None => None,
            },
        },
        "metadata" => Reply::Metadata,
        "field" if header.get("key").is_none() && header.get("grib").is_none() => {
            Reply::Decoded(frame.decoded(payload)?)
        }
        "field" => Reply::Field(frame.field(payload)?),
        "declared" => Reply::Declared(DeclaredFile::parse(&frame, payload)?),
        "skipped" => {
            Reply::Skipped { what: frame.text("what")?.to_owned(), why: frame.text("why")?.to_owned() }
        }
        "progress" => Reply::Progress { done: frame.number("done")?, of: frame.number("of")? },
        "grib_keys" => Reply::GribKeys(frame.grib_keys()?),
        "schema" => Reply::Schema(frame.text("text")?.to_owned()),
        "image" => Reply::Image,
        "exported" => Reply::Exported(header.as_object().cloned().unwrap_or_default()),
        "left-out" => Reply::LeftOut {
            file: frame.text("file")?.to_owned(),
            what: frame.text("what")?.to_owned(),
            why: frame.text("why")?.to_owned(),
        },
        "rows" => Reply::Rows {
            columns: texts(header.get("columns").unwrap_or(&Value::Null))?,
            done: frame.number("done")?,
            of: frame.number("of")?,
        },
        "mesh" => Reply::Mesh(frame.mesh(payload)?),
        "done" => Reply::Done,
        "error" => {
            let name = frame.text("error_kind")?;
            let kind = ErrorKind::ALL.into_iter().find(|known| known.name() == name);
            let kind = kind.unwrap_or(ErrorKind::Internal);
            Reply::Failed {
                code: header
                    .get("code")
                    .and_then(Value::as_str)
                    .and_then(Code::of_text)
                    .filter(|code| code.kind() == kind)
                    .unwrap_or(kind.into()),
                message: frame.text("message")?.to_owned(),
                hint: header.get("hint").and_then(Value::as_str).map(str::to_owned),
            }
        }
        other => match DarshanPart::parse(other, header)? {
            Some(part) => Reply::Darshan(part),
            None => return Err(broken(format!("a frame of unknown kind '{other}'"))),
        },
    })
}

fn digest(text: &str) -> Result<&str> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text);
    }
    Err(broken(format!("'{text}' as a digest")))
}

/// A frame's header, with a reader for each form of its values.
struct Frame<'a>(&'a Value);

impl<'a> Frame<'a> {
    fn text(&self, name: &str) -> Result<&'a str> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| broken(format!("a frame without text {name}")))
    }

    fn number(&self, name: &str) -> Result<u64> {
        self.0
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| broken(format!("a frame without number {name}")))
    }

    fn extents(&self, name: &str) -> Result<Vec<u64>> {
        let list = self.0.get(name).and_then(Value::as_array).filter(|list| list.len() <= MAX_RANK);
        let list = list.and_then(|list| list.iter().map(Value::as_u64).collect());
        list.ok_or_else(|| broken(format!("a frame without extents {name}")))
    }

    fn dtype(&self) -> Result<DType> {
        DType::parse(self.text("dtype")?).map_err(|e| e.context("the helper's frame"))
    }

    fn field(&self, payload: u64) -> Result<FieldFrame> {
        let name = if let Some(key) = self.0.get("grib") {
            Name::Grib { key: texts(key)?, apart: self.apart()?, offset: self.number("offset")? }
        } else {
            Name::Key(texts(self.0.get("key").unwrap_or(&Value::Null))?)
        };
        let dataset = self.0.get("dataset").and_then(Value::as_str).map(str::to_owned);
        let opaque = matches!(name, Name::Grib { .. }) || self.0.get("opaque") == Some(&Value::Bool(true));
        let content = if opaque { Content::Opaque } else { self.array()? };
        let missing = self.missing(&content)?;
        let (dtype, count) = match &content {
            Content::Opaque => return Ok(FieldFrame { name, content, dataset, missing }),
            Content::Outside { .. } if payload == 0 => {
                return Ok(FieldFrame { name, content, dataset, missing });
            }
            Content::Outside { .. } => {
                return Err(broken(format!("{payload} bytes of payload for an array in the file")));
            }
            Content::Array { dtype, shape } => (*dtype, shape),
            Content::Piece { dtype, count, .. } => (*dtype, count),
        };
        if nbytes(dtype, count) != Some(payload) {
            return Err(broken(format!("{payload} bytes for {dtype} {count:?}")));
        }
        Ok(FieldFrame { name, content, dataset, missing })
    }

    /// The elements that mark missing values: hexadecimal digits of whole elements.
    fn missing(&self, content: &Content) -> Result<Vec<u8>> {
        let Some(digits) = self.0.get("missing") else { return Ok(Vec::new()) };
        let (Content::Outside { dtype, .. } | Content::Array { dtype, .. } | Content::Piece { dtype, .. }) =
            content
        else {
            return Err(broken("missing elements for opaque bytes".to_owned()));
        };
        let pairs = digits.as_str().map(str::as_bytes).unwrap_or_default().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        bytes
            .filter(|bytes| !bytes.is_empty() && bytes.len().is_multiple_of(dtype.size()))
            .ok_or_else(|| broken(format!("missing elements {digits} of {dtype}")))
    }

    fn grib_keys(&self) -> Result<Vec<std::result::Result<GribKey, String>>> {
        let list = self.0.get("keys").and_then(Value::as_array);
        let list = list.ok_or_else(|| broken("keys that are not a list".to_owned()))?;
        let one = |facts: &Value| {
            let facts = Frame(facts);
            if let Ok(why) = facts.text("why") {
                return Ok(Err(why.to_owned()));
            }
            let key = texts(facts.0.get("grib").unwrap_or(&Value::Null))?;
            Ok(Ok(GribKey { key, apart: facts.apart()? }))
        };
        list.iter().map(one).collect()
    }

    fn apart(&self) -> Result<Texts> {
        let pair = |pair: &Value| match pair.as_array()?.as_slice() {
            [keyword, value] => Some((keyword.as_str()?.to_owned(), value.as_str()?.to_owned())),
            _ => None,
        };
        let list = self.0.get("apart").and_then(Value::as_array);
        let list = list.and_then(|list| list.iter().map(pair).collect());
        list.ok_or_else(|| broken("a GRIB frame without apart".to_owned()))
    }

    fn array(&self) -> Result<Content> {
        let (dtype, shape) = (self.dtype()?, self.extents("shape")?);
        if let Some(outside) = self.0.get("outside") {
            let outside = Frame(outside);
            return Ok(Content::Outside {
                dtype,
                shape,
                offset: outside.number("offset")?,
                parts: outside.number("parts")?,
                stride: outside.number("stride")?,
            });
        }
        if self.0.get("start").is_none() {
            return Ok(Content::Array { dtype, shape });
        }
        let (start, count) = (self.extents("start")?, self.extents("count")?);
        let inside = |((s, c), n): ((&u64, &u64), &u64)| s.checked_add(*c).is_some_and(|end| end <= *n);
        if start.len() != shape.len()
            || count.len() != shape.len()
            || !start.iter().zip(&count).zip(&shape).all(inside)
        {
            return Err(broken(format!("a box {start:?} {count:?} outside {shape:?}")));
        }
        Ok(Content::Piece { dtype, shape, start, count })
    }

    fn map(&self, name: &str) -> Map<String, Value> {
        self.0.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn mesh(&self, payload: u64) -> Result<MeshFrame> {
        let listed = self.0.get("arrays").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let arrays: Vec<MeshFrameArray> = listed
            .iter()
            .map(|facts| {
                let facts = Frame(facts);
                let (name, shape) = (facts.text("name")?.to_owned(), facts.extents("shape")?);
                let (dtype, rank) = match name.as_str() {
                    "x" | "y" | "z" => (DType::F8, 1),
                    _ => (DType::I8, 2),
                };
                if shape.len() != rank || facts.dtype()? != dtype.with_order(ByteOrder::Little) {
                    return Err(broken(format!("an invalid array '{name}' of a mesh")));
                }
                Ok(MeshFrameArray { name, shape, attrs: facts.map("attrs") })
            })
            .collect::<Result<_>>()?;
        let bytes = |array: &MeshFrameArray| nbytes(DType::F8, &array.shape);
        let length = arrays.iter().map(bytes).try_fold(0u64, |sum, n| sum.checked_add(n?));
        if length != Some(payload) {
            return Err(broken(format!("{payload} bytes for the arrays of a mesh")));
        }
        Ok(MeshFrame { format: self.text("format")?.to_owned(), attrs: self.map("attrs"), arrays })
    }

    fn decoded(&self, payload: u64) -> Result<Decoded> {
        let attrs = self.0.get("attrs").map_or(Ok(Texts::new()), texts)?;
        let listed = self.0.get("coords").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let coords: Vec<DecodedCoordinate> = listed
            .iter()
            .map(|facts| {
                let facts = Frame(facts);
                let (name, dtype) = (facts.text("name")?.to_owned(), facts.dtype()?);
                Ok(DecodedCoordinate { name, dtype, shape: facts.extents("shape")? })
            })
            .collect::<Result<_>>()?;
        let (dtype, shape) = (self.dtype()?, self.extents("shape")?);
        let arrays = coords.iter().map(|c| (c.dtype, &c.shape)).chain([(dtype, &shape)]);
        let length =
            arrays.map(|(dtype, shape)| nbytes(dtype, shape)).try_fold(0u64, |sum, n| sum.checked_add(n?));
        if length != Some(payload) {
            return Err(broken(format!("{payload} bytes for the arrays of a message")));
        }
        Ok(Decoded { dtype, shape, attrs, coords })
    }
}

/// Size of an array in bytes; `None` above 64 bits.
pub fn nbytes(dtype: DType, shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.size() as u64, |size, n| size.checked_mul(*n))
}

/// Keyword → text or whole number, as text.
fn texts(object: &Value) -> Result<Texts> {
    let one = |(keyword, value): (&String, &Value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(n) if n.is_i64() || n.is_u64() => n.to_string(),
            _ => return None,
        };
        Some((keyword.clone(), text))
    };
    let object = object.as_object().and_then(|object| object.iter().map(one).collect());
    object.ok_or_else(|| broken("a key that is not a mapping of texts".to_owned()))
}
