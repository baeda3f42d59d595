//! The bytes of takeovers: header, record, tail and rows come back, and every changed byte is noticed.

use fieldstone_format::bytes::Cursor;
use fieldstone_format::log::{Decision, SideRecord};
use fieldstone_format::origin::{EntryOrigin, OriginAttempt};
use fieldstone_format::owner::Owner;
use fieldstone_format::table::{BlockRef, TableRef};
use fieldstone_format::takeover::rows::*;
use fieldstone_format::takeover::*;
use fieldstone_format::version::{OwnerName, TakeoverName, Version};
use fieldstone_format::{Id, crc};

fn id(n: u8) -> Id {
    Id([n; 16])
}

fn header(record: &[u8]) -> TakeoverHeader {
    TakeoverHeader {
        id: id(1),
        store: id(2),
        number: 17,
        created: 5,
        newest: 900,
        floor: 300,
        record_offset: 4_096,
        record_len: record.len() as u32,
        record_crc: crc(record),
        owner: Owner::User(1000),
        maker: Maker {
            uid: 0,
            process: 9,
            host: "n1".into(),
            user: "root".into(),
            program: "fieldstone".into(),
        },
        purge: true,
        live: vec![(3, 7), (12, 8)],
        replaced: vec![13, 14, 16],
        schema: "[run[variable[step]]]".into(),
    }
}

fn record() -> TakeoverRecord {
    let table = |n: u8| TableRef {
        rows: u64::from(n),
        height: 2,
        root: BlockRef { file: 0, offset: 100 * u64::from(n), stored: 80, crc: 6 },
        first_key: vec![1],
        last_key: vec![n],
    };
    let tables = TakeoverTable::ALL.iter().map(|known| (*known, table(*known as u8))).collect();
    TakeoverRecord { data_logs: vec![(1, 5_000)], removals: true, bytes: 1 << 40, tables }
}

#[test]
fn header_record_and_tail_come_back() {
    let record_bytes = record().encode();
    let header = header(&record_bytes);
    let bytes = header.encode();
    assert_eq!(TakeoverHeader::length(&bytes).unwrap() as usize, bytes.len());
    assert_eq!(TakeoverHeader::decode(&bytes).unwrap(), header);
    assert_eq!(TakeoverRecord::decode(&record_bytes, &header).unwrap(), record());
    assert_eq!(record().table(TakeoverTable::Axes).map(|table| table.rows), Some(8));
    let tail = TakeoverHeader::tail(bytes.len() as u32);
    assert_eq!(TakeoverHeader::length_of_tail(&tail).unwrap() as usize, bytes.len());
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        assert!(TakeoverHeader::decode(&damaged).is_err(), "byte {i} of the header");
        assert!(TakeoverHeader::decode(&bytes[..i]).is_err(), "cut at {i}");
    }
    for i in 0..record_bytes.len() {
        let mut damaged = record_bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        assert!(TakeoverRecord::decode(&damaged, &header).is_err(), "byte {i} of the record");
    }
    for i in 0..tail.len() {
        let mut damaged = tail;
        damaged[i] ^= 1 << (i % 8);
        assert!(TakeoverHeader::length_of_tail(&damaged).is_err(), "byte {i} of the tail");
    }
}

#[test]
fn a_header_that_contradicts_itself_is_refused() {
    let good = header(&record().encode());
    let wrong = [
        TakeoverHeader { live: vec![(12, 8), (3, 7)], ..good.clone() },
        TakeoverHeader { live: vec![(17, 8)], ..good.clone() },
        TakeoverHeader { replaced: vec![14, 14], ..good.clone() },
        TakeoverHeader { replaced: vec![18], ..good.clone() },
    ];
    for header in wrong {
        assert!(TakeoverHeader::decode(&header.encode()).is_err(), "{header:?}");
    }
}

#[test]
fn names_of_files_are_read_back_in_one_form_only() {
    let subject = Owner::Subject { issuer: "i".into(), subject: "s".into() }.name();
    for owner in ["u0", "u1000", &subject] {
        assert_eq!(parse_file_name(&file_name(owner, 3)), Some((owner, 3)));
    }
    let others = [
        "u1-0.takeover",
        "u1-03.takeover",
        "u01-3.takeover",
        "u1-3.log",
        "x-3.takeover",
        "u-3.takeover",
        "s12-3.takeover",
    ];
    for name in others {
        assert_eq!(parse_file_name(name), None, "{name}");
    }
}

fn origin() -> EntryOrigin {
    EntryOrigin {
        store: id(7),
        writer: id(8),
        sequence: 3,
        stamp: 100,
        time: 90,
        owner: Some(Owner::User(5)),
        attempt: Some(OriginAttempt { name: "1.2".into(), began: 80, writer: id(9) }),
    }
}

/// Every cut of a row's bytes is refused, and so is a byte too many.
fn is_exact<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> fieldstone_core::Result<T>) {
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "cut at {end} of {}", bytes.len());
    }
    assert!(decode(&[bytes, &[0]].concat()).is_err());
}

#[test]
fn rows_of_names_and_commits_come_back() {
    let name = NameRow {
        taken: 3,
        sequence: 10,
        end: 900,
        hash: 6,
        stamp: 70,
        time: -4,
        began: 60,
        created: 9,
        uid: 1000,
        process: 44,
        rank: Some(0),
        how: Ended::EndFile,
        facts: 2,
        attempt: Some(0),
        data_logs: vec![(1, 4_096), (3, 7)],
    };
    assert_eq!(NameRow::decode(&name.encode()).unwrap(), name);
    is_exact(&name.encode(), NameRow::decode);
    let plain = NameRow { rank: None, attempt: None, how: Ended::Closed, data_logs: vec![], ..name };
    assert_eq!(NameRow::decode(&plain.encode()).unwrap(), plain);

    let commit = CommitRow {
        stamp: 70,
        time: 65,
        transaction: Some(id(4)),
        origin: Some(origin()),
        order: None,
        view: 2,
        taken: 3,
        fields: 10,
        bytes: 4_096,
    };
    let forgotten = CommitRow { transaction: None, order: Some((99, id(6))), origin: None, ..commit.clone() };
    for row in [commit.clone(), forgotten] {
        assert_eq!(CommitRow::decode(&row.encode()).unwrap(), row);
        is_exact(&row.encode(), CommitRow::decode);
    }
    let both = CommitRow { order: Some((1, id(1))), ..commit };
    assert!(CommitRow::decode(&both.encode()).is_err());
    assert_eq!(parse_commit_key(&commit_key(id(3), 258, 1)).unwrap(), (id(3), 258, 1));
    assert_eq!(parse_side_key(&side_key(id(3), 258)).unwrap(), (id(3), 258));
    assert_eq!(parse_taken_key(&taken_key(5, id(3))).unwrap(), (5, id(3)));
    assert!(commit_key(id(3), 255, 0) < commit_key(id(3), 256, 0));
    assert!(taken_key(255, id(9)) < taken_key(256, id(0)));
}

#[test]
fn rows_of_transactions_and_records_come_back() {
    let decision =
        Decision { transaction: id(4), committed: true, kinds: 1, covers: vec![(id(5), 3), (id(6), 1)] };
    let row = TransactionRow {
        sealed: 9,
        decisions: vec![
            DecisionRow { stamp: 5, writer: id(5), sequence: 2, decision: decision.clone() },
            DecisionRow { stamp: 6, writer: id(1), sequence: 8, decision },
        ],
        prepared: vec![PreparedRow { writer: id(5), sequence: 3, fields: 7, since: -1 }],
    };
    assert_eq!(TransactionRow::decode(id(4), &row.encode()).unwrap(), row);
    is_exact(&row.encode(), |bytes| TransactionRow::decode(id(4), bytes));
    let mut swapped = row;
    swapped.decisions.swap(0, 1);
    assert!(TransactionRow::decode(id(4), &swapped.encode()).is_err());

    let record = StoreRecordRow {
        stamp: 5,
        writer: id(5),
        sequence: 2,
        index: 1,
        owner: Owner::Subject { issuer: "a".into(), subject: "b".into() },
        time: 4,
        record: SideRecord { kind: 0x0303, bytes: vec![0, 1].into() },
    };
    let (key, value) = record.encode();
    assert_eq!(StoreRecordRow::decode(&key, &value).unwrap(), record);
    is_exact(&key, |key| StoreRecordRow::decode(key, &value));
    is_exact(&value, |value| StoreRecordRow::decode(&key, value));
}

#[test]
fn the_other_rows_come_back() {
    let dataset =
        DatasetRow { stamp: 5, writer: id(5), entries: 10, bytes: 1 << 40, purged: 3, single: false };
    assert_eq!(DatasetRow::decode(&dataset.encode()).unwrap(), dataset);
    is_exact(&dataset.encode(), DatasetRow::decode);
    let single = DatasetRow { single: true, ..dataset };
    assert_eq!(DatasetRow::decode(&single.encode()).unwrap(), single);
    for end in [&[0][..], &[2], &[1, 1], &[1, 0]] {
        DatasetRow::decode(&[&dataset.encode(), end].concat()).unwrap_err();
    }
    let attempt = AttemptRow { began: 5, writer: id(5) };
    assert_eq!(AttemptRow::decode(&attempt.encode()).unwrap(), attempt);
    is_exact(&attempt.encode(), AttemptRow::decode);
    let flush = FlushRow { repetition: 1, writer: id(5), sequence: 4, time: 8 };
    assert_eq!(FlushRow::decode(&flush.encode()).unwrap(), flush);
    is_exact(&flush.encode(), FlushRow::decode);
    let condemned = CondemnedRow { since: 8, number: 3 };
    assert_eq!(CondemnedRow::decode(&condemned.encode()).unwrap(), condemned);
    is_exact(&condemned.encode(), CondemnedRow::decode);
}

#[test]
fn a_version_with_takeovers_is_a_text_and_a_record() {
    let subject = Owner::Subject { issuer: "a".into(), subject: "b".into() };
    let of = |owner, number| TakeoverName { owner, number, digest: 77 };
    let takeovers = vec![of(OwnerName::of(&subject), 2), of(OwnerName::User(1000), 17)];
    for logs in [
        vec![],
        vec![(id(3), 4), (id(9), 1)],
        vec![(Id([0; 16]), 4), (Id([[0; 15].as_slice(), &[1]].concat().try_into().unwrap()), 2)],
    ] {
        let version = Version::new(logs).with_takeovers(takeovers.clone());
        assert_eq!(Version::decode(&version.encode()).unwrap(), version);
        assert_eq!(Version::from_record(&version.to_record()).unwrap(), version);
        assert_eq!(version.takeovers()[0].owner, OwnerName::User(1000));
        let record = version.to_record();
        for end in 0..record.len() {
            assert!(Version::from_record(&record[..end]).is_err(), "cut at {end}");
        }
    }
    // A version without takeovers keeps its text of format 1.
    let plain = Version::new(vec![(id(3), 4)]);
    assert!(plain.encode().starts_with('v') && plain.clone().with_takeovers(vec![]) == plain);
    assert!(Cursor::new(&plain.to_record()).u8().is_ok_and(|letter| letter == b'v'));
}
