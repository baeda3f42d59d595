//! Checks of the parsers of a store, for any bytes: texts that users write, records and tables that files hold, GRIB
//! messages. None panics, hangs, or asks for more memory than its input is worth.
//!
//! The first byte chooses the parser, so that one corpus serves all. A checksum in the last four bytes is corrected
//! first; otherwise the fuzzer would never get past it.

use std::hint::black_box;
use std::sync::Arc;

use fieldstone_catalog::query::text;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::template::Template;
use fieldstone_format::bytes::Cursor;
use fieldstone_format::graph_segment::directory::Directory;
use fieldstone_format::graph_segment::manifest::Manifest;
use fieldstone_format::graph_segment::rows as graph_rows;
use fieldstone_format::grib::fields::fields;
use fieldstone_format::grib::header::Header;
use fieldstone_format::grib::messages::Messages;
use fieldstone_format::keys::{self, KeyDecoder};
use fieldstone_format::log::{self, FrameInfo, LogHeader, SideRecord};
use fieldstone_format::log_end::LogEnd;
use fieldstone_format::segment::{BlockCursor, SegmentMeta};
use fieldstone_format::takeover::part::TakeoverPart;
use fieldstone_format::takeover::{TakeoverHeader, TakeoverRecord, rows};
use fieldstone_format::version::Version;
use fieldstone_format::{
    Id, acceptance, array_source, block, board, catalog, claim, commit_id, copy_mark, crc, entry, erased,
    graph, helper, marker, owner, schema_extension, setting, store_record, value, value_test,
};

/// Runs the parser that the first byte chooses on the other bytes.
pub fn check(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 20 {
        0 => schema(bytes),
        1 => request(bytes),
        2 => find(bytes),
        3 => key(bytes),
        4 => drop(black_box(entry::Entry::decode(bytes))),
        5 | 6 => side(bytes),
        7 => log_files(&summed(bytes)),
        8 => frame(bytes),
        9 => segment(bytes),
        10 => takeover(bytes),
        11 | 12 => takeover_rows(bytes),
        13 => values(bytes),
        14 | 15 => grib(bytes),
        16 => graph_files(bytes),
        17 => files(bytes),
        18 => drop(black_box(helper::read_reply(&mut &*bytes))),
        _ => names(bytes),
    }
}

/// The bytes with a true checksum at their end.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = crc(body).to_le_bytes();
    }
    bytes
}

fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn schema(bytes: &[u8]) {
    let Some(text) = text_of(bytes) else { return };
    let Ok(schema) = Schema::parse(text) else { return };
    assert_eq!(Schema::parse(schema.text()).expect("its own text is a schema").text(), schema.text());
}

fn request(bytes: &[u8]) {
    let Some(text) = text_of(bytes) else { return };
    if let Ok(request) = Request::parse(text) {
        let again = Request::parse(&request.to_string()).expect("its own text is a request");
        assert_eq!(again.to_string(), request.to_string());
    }
    let _ = black_box(Request::parse_many(text));
}

fn find(bytes: &[u8]) {
    let Some(text) = text_of(bytes) else { return };
    let _ = black_box(text::parse(text));
    let _ = black_box(text::parse_expr(text));
    let _ = black_box(text::parse_value(text));
    let _ = black_box(text::parse_test(text));
}

fn key(bytes: &[u8]) {
    let _ = black_box((keys::key_text(bytes), keys::level_text(bytes)));
    let _ = black_box(keys::find_value(bytes, b"step"));
    let _ = black_box(keys::level_values(&mut &*bytes, &mut Vec::new()));
    let Ok(key) = KeyDecoder::new().decode(bytes) else { return };
    let ends = keys::level_ends(bytes).expect("a key that can be decoded has levels");
    assert_eq!(ends[2], bytes.len());
    let again = keys::encode_key(&key);
    assert_eq!(KeyDecoder::new().decode(&again.bytes).expect("encoded bytes can be decoded"), key);
}

/// Every kind of side record.
fn side(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first_chunk::<2>() else { return };
    let side = SideRecord { kind: u16::from_le_bytes(*kind), bytes: Arc::from(rest) };
    if let Ok(record) = catalog::Record::decode(&side) {
        let again = record.encode();
        assert_eq!(catalog::Record::decode(&again).expect("encoded bytes can be decoded").encode(), again);
    }
    if let Ok(record) = graph::Record::decode(&side) {
        let _ = black_box(record);
    }
    let _ = black_box(catalog::rows_erased(&side));
    let _ = black_box((acceptance::decode(&side), erased::decode(&side), schema_extension::decode(&side)));
    let _ = black_box((setting::decode(&side), store_record::decode(&side)));
    let _ = black_box(log::decode_all_side(rest));
}

/// Files whose last bytes are a checksum.
fn log_files(bytes: &[u8]) {
    let _ = black_box((LogHeader::decode(bytes), LogEnd::decode(bytes), TakeoverPart::decode(bytes)));
    let _ = black_box((board::Slot::decode(bytes), claim::decode(bytes)));
    if let Ok(header) = TakeoverHeader::decode(bytes) {
        let _ = black_box(header);
    }
}

fn frame(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else { return };
    let _ = black_box(FrameInfo::decode_head(rest, 0));
    let _ = black_box(FrameInfo::decode_foot(&summed(rest), rest.len() as u64));
    let _ = black_box(log::decode_side(rest, u64::from(*length)));
}

fn segment(bytes: &[u8]) {
    let _ = black_box(SegmentMeta::decode(bytes, crc(bytes), bytes.len() as u64));
    let mut cursor = BlockCursor::new(bytes);
    while let Ok(true) = cursor.advance() {
        let _ = black_box(entry::Entry::decode(cursor.value()));
    }
}

fn takeover(bytes: &[u8]) {
    let at = bytes.first().map_or(0, |at| usize::from(*at) * 8).min(bytes.len());
    let (head, rest) = bytes.split_at(at);
    let Ok(mut header) = TakeoverHeader::decode(&summed(head)) else { return };
    (header.record_len, header.record_crc) = (rest.len() as u32, crc(rest));
    let _ = black_box(TakeoverRecord::decode(rest, &header));
}

fn takeover_rows(bytes: &[u8]) {
    let Some((at, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*at).min(rest.len()));
    let _ = black_box((rows::NameRow::decode(value), rows::CommitRow::decode(value)));
    let _ = black_box(rows::TransactionRow::decode(Id::LEAST, value));
    let _ = black_box(rows::StoreRecordRow::decode(key, value));
    let _ = black_box((rows::DatasetRow::decode(value), rows::AttemptRow::decode(value)));
    let _ = black_box((rows::FlushRow::decode(value), rows::CondemnedRow::decode(value)));
    let _ = black_box((rows::Facts::decode(key), rows::parse_axis_key(key), rows::parse_axis_place(value)));
    let _ = black_box((rows::parse_commit_key(key), rows::parse_side_key(key), rows::parse_taken_key(key)));
}

fn values(bytes: &[u8]) {
    let _ = black_box(value::read_value(&mut Cursor::new(bytes)));
    let _ = black_box(value_test::read_test(&mut Cursor::new(bytes)));
    let _ = black_box(block::read_summary(&mut Cursor::new(bytes)));
    let _ = black_box(owner::Owner::decode(&mut Cursor::new(bytes)));
    if let Some((count, rest)) = bytes.split_first() {
        let _ = black_box(block::read_blocks(&mut Cursor::new(rest), u64::from(*count), *count & 1 > 0));
    }
}

fn grib(bytes: &[u8]) {
    let _ = black_box(fields(bytes));
    let header = Header::new(bytes);
    let _ = black_box((header.pattern(), header.whole(), header.message(), header.pairs().count()));
    let mut messages = Messages::new();
    let mut buffer = Vec::new();
    while let Ok(Some(found)) = messages.next(bytes, &mut buffer) {
        let _ = black_box(found);
    }
}

fn graph_files(bytes: &[u8]) {
    let _ = black_box((graph_rows::read_vertex(bytes, 7), graph_rows::read_row(bytes, 7)));
    let _ = black_box((graph_rows::read_name(bytes), graph::read_props(bytes)));
    let _ = black_box((graph::Record::decode_types(bytes), Manifest::decode(&summed(bytes))));
    let _ = black_box(Directory::decode(bytes, bytes.len() as u64));
}

fn files(bytes: &[u8]) {
    let _ = black_box((marker::Marker::decode(bytes), copy_mark::CopyMark::decode(bytes)));
    let _ = black_box((array_source::SourceMessage::decode(bytes), catalog::decode_sums(bytes)));
}

fn names(bytes: &[u8]) {
    let Some(text) = text_of(bytes) else { return };
    let _ = black_box((Version::decode(text), commit_id::CommitId::parse(text)));
    let _ = black_box(Template::parse(text, &["x".to_owned(), "y".to_owned()]));
    let _ = black_box((log::parse_file_name(text), fieldstone_format::data::parse_file_name(text)));
}
