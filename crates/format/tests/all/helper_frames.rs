//! Frames on the helper's pipe: correct ones arrive whole, wrong ones are refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fieldstone_core::dtype::DType;
use fieldstone_core::step_dim::StepDim;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::helper::{
    Content, MAX_HEADER, Name, Reply, Request, read_frame, read_reply, write_frame, write_request,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn frame(header: &Value, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, header, &[payload]).unwrap();
    bytes
}

fn reply(header: &Value, payload: &[u8]) -> fieldstone_core::Result<Reply> {
    read_reply(&mut &frame(header, payload)[..]).map(|found| found.unwrap().0)
}

#[test]
fn requests_have_the_bytes_of_the_protocol() {
    let mut sent = Vec::new();
    write_request(&mut sent, &Request::Decode, &[b"ab", b"c"]).unwrap();
    assert_eq!(sent, b"\x1c\0\0\0{\"op\":\"decode\",\"protocol\":1}\x03\0\0\0\0\0\0\0abc");
    let mut from = &sent[..];
    let (header, payload) = read_frame(&mut from).unwrap().unwrap();
    assert_eq!((header, &payload[..]), (json!({"op": "decode", "protocol": 1}), &b"abc"[..]));
    assert!(read_frame(&mut from).unwrap().is_none(), "the end between two frames");
}

#[test]
fn a_path_that_is_no_text_travels_as_payload() {
    let mut sent = Vec::new();
    write_request(
        &mut sent,
        &Request::Ingest { path: b"/a\xff.nc", offer: true, copy: true, step_dim: &StepDim::Leading },
        &[],
    )
    .unwrap();
    let (header, payload) = read_frame(&mut &sent[..]).unwrap().unwrap();
    assert_eq!(header, json!({"op": "ingest", "offer": true, "protocol": 1}));
    assert_eq!(payload, b"/a\xff.nc");
    let mut sent = Vec::new();
    write_request(
        &mut sent,
        &Request::Ingest {
            path: "/é.nc".as_bytes(),
            offer: false,
            copy: false,
            step_dim: &StepDim::Named("t".into()),
        },
        &[],
    )
    .unwrap();
    let (header, payload) = read_frame(&mut &sent[..]).unwrap().unwrap();
    assert_eq!((&header["path"], &header["offer"], payload.len()), (&json!("/é.nc"), &json!(false), 0));
    assert_eq!((&header["copy"], &header["step_dim"]), (&json!(false), &json!("t")));
    let mut sent = Vec::new();
    let whole = Request::Ingest { path: b"/a", offer: false, copy: true, step_dim: &StepDim::Nothing };
    write_request(&mut sent, &whole, &[]).unwrap();
    assert_eq!(read_frame(&mut &sent[..]).unwrap().unwrap().0["step_dim"], json!(false));
}

#[test]
fn a_field_that_stays_in_its_file_has_a_place_and_no_payload() {
    let place = json!({"offset": 80, "parts": 3, "stride": 44});
    let header =
        json!({"kind": "field", "key": {"run": "a"}, "dtype": ">f4", "shape": [3, 5], "outside": place});
    let Reply::Field(field) = reply(&header, b"").unwrap() else { panic!("no field") };
    let dtype = DType::parse(">f4").unwrap();
    let expected = Content::Outside { dtype, shape: vec![3, 5], offset: 80, parts: 3, stride: 44 };
    assert_eq!(field.content, expected);
    assert_eq!(reply(&header, b"1").unwrap_err().kind(), ErrorKind::Corrupt);
    for missing in ["offset", "parts", "stride"] {
        let mut header = header.clone();
        header["outside"].as_object_mut().unwrap().remove(missing);
        let error = reply(&header, b"").unwrap_err();
        assert!(error.message().contains(missing), "{error}");
    }
}

#[test]
fn a_stream_that_ends_inside_a_frame_is_corrupt() {
    let whole = frame(&json!({"kind": "skipped", "what": "a", "why": "b"}), b"12");
    for n in 1..whole.len() {
        let error = read_reply(&mut &whole[..n]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{n} bytes: {error}");
    }
}

#[test]
fn lengths_beyond_the_limits_are_refused_before_memory_is_taken() {
    for head in [MAX_HEADER as u32 + 1, u32::MAX] {
        let error = read_reply(&mut &head.to_le_bytes()[..]).unwrap_err();
        assert!(error.message().contains("a header of"), "{error}");
    }
    let mut bytes = frame(&json!({"kind": "done"}), b"");
    let n = bytes.len();
    bytes[n - 8..].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(read_reply(&mut &bytes[..]).unwrap_err().message().contains("a payload of"));
    // A length inside the limit, but without the bytes.
    bytes[n - 8..].copy_from_slice(&(4u64 << 30).to_le_bytes());
    assert!(read_reply(&mut &bytes[..]).unwrap_err().message().contains("ends inside"));
}

#[test]
fn fields_are_typed() {
    let key = json!({"run": "a", "variable": "t", "step": 6});
    let Reply::Field(field) =
        reply(&json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [2, 3]}), &[0; 12]).unwrap()
    else {
        panic!()
    };
    let pairs = [("run", "a"), ("variable", "t"), ("step", "6")];
    assert_eq!(field.name, Name::Key(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()));
    let dtype = DType::parse("<i2").unwrap();
    assert_eq!(field.content, Content::Array { dtype, shape: vec![2, 3] });

    let piece = json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [4, 3], "start": [2, 0], "count": [2, 3]});
    let Reply::Field(field) = reply(&piece, &[0; 12]).unwrap() else { panic!() };
    let (shape, start, count) = (vec![4, 3], vec![2, 0], vec![2, 3]);
    assert_eq!(field.content, Content::Piece { dtype, shape, start, count });

    let grib = json!({"kind": "field", "grib": {"param": "130"}, "apart": [["level", "2"]], "offset": 7});
    let Reply::Field(field) = reply(&grib, b"GRIB").unwrap() else { panic!() };
    let text = |k: &str, v: &str| vec![(k.to_owned(), v.to_owned())];
    assert_eq!(field.name, Name::Grib { key: text("param", "130"), apart: text("level", "2"), offset: 7 });
    assert_eq!(field.content, Content::Opaque);
}

#[test]
fn an_fdb_is_asked_for_its_schema_or_for_fields_of_datasets() {
    let sent = |request: &Request<'_>| {
        let mut bytes = Vec::new();
        write_request(&mut bytes, request, &[]).unwrap();
        read_frame(&mut &bytes[..]).unwrap().unwrap().0
    };
    let asked = sent(&Request::Fdb { config: "c.yaml", request: None });
    assert_eq!(asked, json!({"op": "fdb", "config": "c.yaml", "schema": true, "protocol": 1}));
    let words = json!({"step": ["0", "to", "6"]});
    let asked = sent(&Request::Fdb { config: "c.yaml", request: words.as_object() });
    assert_eq!(asked, json!({"op": "fdb", "config": "c.yaml", "request": words, "protocol": 1}));

    let schema = reply(&json!({"kind": "schema", "text": "[a [b [c]]]"}), b"").unwrap();
    assert_eq!(schema, Reply::Schema("[a [b [c]]]".to_owned()));
    assert!(reply(&json!({"kind": "schema"}), b"").is_err());
    let field = json!({"kind": "field", "key": {"a": "1"}, "opaque": true, "dataset": "a=1"});
    let Reply::Field(field) = reply(&field, b"bytes").unwrap() else { panic!() };
    assert_eq!((field.content, field.dataset.as_deref()), (Content::Opaque, Some("a=1")));
}

#[test]
fn a_decoded_message_counts_its_coordinates() {
    let header = json!({"kind": "field", "dtype": "<f8", "shape": [2], "attrs": {"units": "K"}, "coords": [
        {"name": "latitude", "dims": ["values"], "dtype": "<f8", "shape": [2]}]});
    let Reply::Decoded(decoded) = reply(&header, &[0; 32]).unwrap() else { panic!() };
    assert_eq!((decoded.shape, decoded.coords.len()), (vec![2], 1));
    assert!(reply(&header, &[0; 16]).unwrap_err().message().contains("16 bytes"));
}

#[test]
fn a_mesh_counts_its_arrays() {
    let mut sent = Vec::new();
    write_request(&mut sent, &Request::Mesh { path: b"/a\xff.su2" }, &[]).unwrap();
    let (header, payload) = read_frame(&mut &sent[..]).unwrap().unwrap();
    assert_eq!((header, &payload[..]), (json!({"op": "mesh", "protocol": 1}), &b"/a\xff.su2"[..]));
    let mesh = |name: &str, dtype: &str, shape: Value| {
        json!({"kind": "mesh", "format": "SU2", "attrs": {"n": 1}, "arrays": [
            {"name": "x", "dtype": "<f8", "shape": [3], "attrs": {"units": "m"}},
            {"name": name, "dtype": dtype, "shape": shape}]})
    };
    let Reply::Mesh(found) = reply(&mesh("faces", "<i8", json!([1, 3])), &[0; 48]).unwrap() else { panic!() };
    assert_eq!((found.format.as_str(), found.arrays[1].shape.as_slice()), ("SU2", &[1, 3][..]));
    assert_eq!((&found.attrs["n"], &found.arrays[0].attrs["units"]), (&json!(1), &json!("m")));
    for (name, dtype, shape) in [
        ("faces", "<i8", json!([2, 3])),
        ("faces", "<i8", json!([3])),
        ("faces", "<i4", json!([1, 3])),
        ("faces", ">i8", json!([1, 3])),
        ("y", "<i8", json!([3])),
        ("faces", "<i8", json!([u64::MAX, 8])),
    ] {
        let error = reply(&mesh(name, dtype, shape), &[0; 48]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn errors_keep_kind_and_hint() {
    let failed =
        reply(&json!({"kind": "error", "error_kind": "Unavailable", "message": "m", "hint": "h"}), &[]);
    let (message, hint) = ("m".to_owned(), Some("h".to_owned()));
    assert_eq!(failed.unwrap(), Reply::Failed { code: Code::Unavailable, message, hint });
    let failed = reply(&json!({"kind": "error", "error_kind": "New", "message": "m", "hint": null}), &[]);
    assert!(matches!(failed.unwrap(), Reply::Failed { code: Code::Internal, hint: None, .. }));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let key = json!({"run": "a"});
    for (header, payload) in [
        (json!([]), 0),
        (json!({"kind": "new"}), 0),
        (json!({"kind": "offer", "run": "a", "sha256": "12"}), 0),
        (json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [2, 3]}), 11),
        (json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [2, -3]}), 0),
        (json!({"kind": "field", "key": key, "dtype": "object", "shape": [2]}), 16),
        (json!({"kind": "field", "key": {"run": [1]}, "dtype": "<i2", "shape": []}), 2),
        (json!({"kind": "field", "key": key, "dtype": "<i8", "shape": [u64::MAX, 8]}), 0),
        (json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [2], "start": [1], "count": [2]}), 4),
        (
            json!({"kind": "field", "key": key, "dtype": "<i2", "shape": [2], "start": [u64::MAX], "count": [2]}),
            4,
        ),
        (json!({"kind": "field", "grib": {"a": "b"}, "offset": 0}), 4),
        (json!({"kind": "field", "grib": {"a": "b"}, "apart": [["a"]], "offset": 0}), 4),
        (json!({"kind": "progress", "done": "1", "of": 2}), 0),
    ] {
        let error = reply(&header, &vec![0; payload]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{header}: {error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_reply_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_reply(&mut &bytes[..]);
    }

    #[test]
    fn any_flip_in_a_frame_is_survived(at in 0usize..150, bit in 0u8..8) {
        let mut bytes = frame(&json!({"kind": "field", "key": {"run": "a", "step": 1}, "dtype": "<i2",
            "shape": [4, 3], "start": [2, 0], "count": [2, 3]}), &[0; 12]);
        let n = bytes.len();
        bytes[at % n] ^= 1 << bit;
        let _ = read_reply(&mut &bytes[..]);
    }
}
