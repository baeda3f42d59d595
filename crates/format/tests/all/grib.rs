//! Handmade GRIB messages: their bounds, their fields, the numbers read from their headers; and no input
//! makes a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fieldstone_format::grib::fields::fields;
use fieldstone_format::grib::header::{Header, What};
use fieldstone_format::grib::messages::{Messages, Stretch};
use fieldstone_format::grib::template::Template;
use proptest::prelude::*;

fn section(number: u8, body: &[u8]) -> Vec<u8> {
    let mut made = (body.len() as u32 + 5).to_be_bytes().to_vec();
    made.push(number);
    made.extend_from_slice(body);
    made
}

fn message(sections: &[Vec<u8>]) -> Vec<u8> {
    let body = sections.concat();
    let mut made = b"GRIB\0\0\0\x02".to_vec();
    made.extend_from_slice(&(body.len() as u64 + 20).to_be_bytes());
    made.extend_from_slice(&body);
    made.extend_from_slice(b"7777");
    made
}

/// Sections 1, 3 to 7 of another centre's forecast: product 0 or 1 on a level of pressure.
fn forecast(day: u8, step: u32, hpa: u32, member: u8) -> Vec<Vec<u8>> {
    let mut one = vec![0, 7, 0, 0, 2, 1, 1, 7, 234, 1, day, 12, 0, 0, 0, 1];
    assert_eq!(one.len(), 16);
    let product = if member > 0 { 1 } else { 0 };
    let mut four = vec![0, 0, 0, product, 0, 0, 2, 0, 96, 0, 0, 0, 1];
    four.extend_from_slice(&step.to_be_bytes());
    four.extend_from_slice(&[100, 0]);
    four.extend_from_slice(&(hpa * 100).to_be_bytes());
    four.extend_from_slice(&[255, 0, 0, 0, 0, 0]);
    if member > 0 {
        four.extend_from_slice(&[3, member, 20]);
    }
    vec![
        section(1, &std::mem::take(&mut one)),
        section(3, &[0, 0, 0, 0, 9, 0, 0, 0, 0]),
        section(4, &four),
        section(5, &[0, 0, 0, 9, 0, 0]),
        section(6, &[255]),
        section(7, &[1, 2, 3]),
    ]
}

/// The same for product 8: an interval of `hours`, whose end is `end` according to the header.
fn interval(day: u8, start: u32, hours: u32, end: [u8; 7]) -> Vec<u8> {
    let mut sections = forecast(day, start, 500, 0);
    let mut four = sections[2][5..].to_vec();
    four[3] = 8;
    four.extend_from_slice(&end);
    four.extend_from_slice(&[1, 0, 0, 0, 0, 1, 2, 1]);
    four.extend_from_slice(&hours.to_be_bytes());
    four.extend_from_slice(&[255, 0, 0, 0, 0]);
    sections[2] = section(4, &four);
    message(&sections)
}

/// A GRIB1 message of ECMWF's local definition 1.
fn old(level: u16, step: u8, member: u8) -> Vec<u8> {
    let mut one = vec![0, 0, 52, 128, 98, 1, 255, 0, 130, 100];
    one.extend_from_slice(&level.to_be_bytes());
    one.extend_from_slice(&[26, 1, 31, 6, 30, 1, step, 0, 0, 0, 0, 0, 21, 0, 0, 0]);
    one.extend_from_slice(&[0; 12]);
    one.extend_from_slice(&[1, 1, 11, 4, 11, b'0', b'0', b'0', b'1', member, 50, 0]);
    assert_eq!(one.len(), 52);
    let mut made = b"GRIB".to_vec();
    made.extend_from_slice(&[0, 0, 8 + 52 + 12 + 4, 1]);
    made.extend_from_slice(&one);
    made.extend_from_slice(&[0, 0, 12, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    made.extend_from_slice(b"7777");
    made
}

/// Offsets and lengths of messages, offsets and reasons of damage.
type Scanned = (Vec<(u64, usize)>, Vec<(u64, String)>);

fn scan(bytes: &[u8]) -> Scanned {
    let (mut messages, mut buffer) = (Messages::new(), Vec::new());
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    while let Some(next) = messages.next(bytes, &mut buffer).unwrap() {
        match next {
            Stretch::Message { offset, bytes } => found.push((offset, bytes.len())),
            Stretch::Damaged { offset, why } => damaged.push((offset, why)),
        }
    }
    assert_eq!(messages.position(), bytes.len() as u64);
    (found, damaged)
}

fn text(header: &Header) -> Vec<(What, String)> {
    header.pairs().collect()
}

#[test]
fn messages_stand_where_their_lengths_say() {
    let (new, old) = (message(&forecast(1, 6, 500, 0)), old(500, 6, 3));
    let gap = b"BULLETIN GRIB but none\r\n";
    let bytes = [&gap[..], &new, &old, gap, &new].concat();
    let (found, damaged) = scan(&bytes);
    let first = gap.len() as u64;
    let second = first + new.len() as u64;
    let third = second + (old.len() + gap.len()) as u64;
    assert_eq!(found, [(first, new.len()), (second, old.len()), (third, new.len())]);
    assert!(damaged.is_empty(), "{damaged:?}");
}

#[test]
fn damage_is_told_by_offset_and_neighbours_are_found() {
    let good = message(&forecast(1, 6, 500, 0));
    let mut end = good.clone();
    let n = end.len();
    end[n - 1] = b'8';
    let mut led_out = good.clone();
    led_out[16] = 1;
    let short = &good[..40];
    for (bad, why) in [(&end[..], "7777"), (&led_out, "do not add up at byte 16"), (short, "cut short")] {
        let bytes = [bad, &good].concat();
        let (found, damaged) = scan(&bytes);
        // A truncated message may reach over its neighbour's beginning, but not over its end.
        assert_eq!(found, [(bad.len() as u64, good.len())]);
        assert_eq!(damaged.len(), 1, "{damaged:?}");
        assert!(damaged[0].0 == 0 && (damaged[0].1.contains(why) || why == "cut short"), "{damaged:?}");
    }
}

#[test]
fn large_grib1_lengths_count_in_units() {
    let mut large = old(500, 6, 1);
    let data = vec![0u8; 120 * 70_000];
    large.truncate(60);
    let total = (large.len() + 12 + data.len() + 4).next_multiple_of(120) as u32;
    let spare = total as usize - (large.len() + 12 + data.len() + 4);
    large[4..7].copy_from_slice(&(0x80_0000 | (total / 120)).to_be_bytes()[1..]);
    // Total = units - correction + 4; the correction is in the place of section 4's length.
    large.extend_from_slice(&[0, 0, spare as u8 + 4]);
    large.extend_from_slice(&[0; 9]);
    large.extend_from_slice(&data);
    large.extend_from_slice(b"7777");
    assert_eq!(scan(&large), (vec![(0, large.len())], vec![]));
}

#[test]
fn repeated_sections_make_messages() {
    let (a, b) = (forecast(1, 6, 500, 0), forecast(1, 6, 850, 0));
    let several = message(&[a.clone(), b[2..].to_vec()].concat());
    let found = fields(&several).unwrap();
    assert_eq!(found, [message(&a), message(&b)]);
    assert_eq!(fields(&found[1]).unwrap(), [message(&b)]);

    let refers = section(6, &[254]);
    let with = |six: &Vec<u8>| [&b[2..4], std::slice::from_ref(six), &b[5..]].concat();
    let mut bitmap = a.clone();
    bitmap[4] = section(6, &[0, 0xF0]);
    let several = message(&[bitmap.clone(), with(&refers)].concat());
    let second = [&b[..4], &bitmap[4..5], &b[5..]].concat();
    assert_eq!(fields(&several).unwrap()[1], message(&second));

    for (sections, why) in [
        ([a.clone(), b[3..].to_vec()].concat(), "out of order"),
        ([a.clone(), [&b[2..3], &b[4..]].concat()].concat(), "has no section 5"),
        ([a.clone(), b[2..].to_vec(), b[2..4].to_vec()].concat(), "ends in its section 5"),
        ([[&a[..4], &[refers], &a[5..]].concat(), b[2..].to_vec()].concat(), "missing bitmap"),
    ] {
        let output = fields(&message(&sections)).unwrap_err();
        assert!(output.contains(why), "{output}");
    }
}

#[test]
fn numbers_are_read_and_zeros_are_not() {
    let header = Header::new(&message(&forecast(9, 6, 500, 7)));
    let pairs = |list: &[(What, &str)]| list.iter().map(|(w, t)| (*w, (*t).to_owned())).collect::<Vec<_>>();
    let date = [(What::Date, "20260109"), (What::Time, "1200")];
    let all = [&date[..], &[(What::Step, "6"), (What::Level, "500"), (What::Number, "7")]].concat();
    assert_eq!(text(&header), pairs(&all));
    assert_eq!(text(&Header::new(&message(&forecast(9, 0, 0, 0)))), pairs(&date));
    let one = [(What::Date, "20260131"), (What::Time, "0630"), (What::Step, "9"), (What::Level, "850")];
    let one = [&one[..], &[(What::Number, "3")]].concat();
    assert_eq!(text(&Header::new(&old(850, 9, 3))), pairs(&one));
    // An invalid day.
    assert!(text(&Header::new(&message(&forecast(32, 6, 500, 0)))).iter().all(|(w, _)| *w != What::Date));
    let mut table = old(850, 9, 3);
    table[8 + 3] = 129;
    assert!(text(&Header::new(&table)).iter().all(|(what, _)| *what != What::Level));
    // A stream with its own dates.
    let mut monthly = old(850, 9, 3);
    monthly[8 + 43..8 + 45].copy_from_slice(&1043u16.to_be_bytes());
    assert!(!Header::new(&monthly).is_read());
}

#[test]
fn a_pattern_leaves_out_what_is_read_and_nothing_else() {
    let base = message(&forecast(9, 6, 500, 7));
    let header = Header::new(&base);
    let same = |bytes: &[u8]| Header::new(bytes).pattern() == header.pattern();
    assert!(same(&message(&forecast(30, 240, 10, 50))));
    assert!(!same(&message(&forecast(9, 0, 500, 7))), "a zero is another pattern");
    assert!(!same(&message(&forecast(9, 6, 500, 0))));
    let (mut packing, mut parameter) = (forecast(9, 6, 500, 7), forecast(9, 6, 500, 7));
    packing[3][8] = 77;
    packing[5].push(9);
    let n = packing[5].len() as u32;
    packing[5][..4].copy_from_slice(&n.to_be_bytes());
    assert!(same(&message(&packing)), "values decide no key");
    parameter[2][10] += 1;
    assert!(!same(&message(&parameter)));
    assert_eq!(
        Header::new(&header.message()).whole(),
        header.whole(),
        "the small message has the same header"
    );
    let probe = header.probe();
    assert_eq!(probe.pattern(), header.pattern());
    for ((what, value), (other, changed)) in header.pairs().zip(probe.pairs()) {
        assert!(what == other && value != changed, "{what:?} {value} {changed}");
    }
}

#[test]
fn an_end_that_is_not_what_date_and_step_say_is_part_of_the_pattern() {
    let consistent = interval(30, 6, 24, [7, 234, 1, 31, 18, 0, 0]);
    let header = Header::new(&consistent);
    let same = |bytes: &[u8]| Header::new(bytes).pattern() == header.pattern();
    assert!(same(&interval(31, 240, 24, [7, 234, 2, 11, 12, 0, 0])), "over the end of a month");
    assert!(same(&interval(28, 8752, 24, [7, 235, 1, 29, 4, 0, 0])), "over the end of a year");
    assert!(!same(&interval(30, 6, 24, [7, 234, 1, 31, 19, 0, 0])));
    assert!(!same(&interval(30, 6, 24, [0; 7])));
    let probe = header.probe();
    assert_eq!(probe.pattern(), header.pattern(), "the end changes with its sources");
    assert_ne!(probe.whole(), header.whole());
}

#[test]
fn a_template_fills_what_is_read_and_refuses_what_says_otherwise() {
    let header = Header::new(&message(&forecast(9, 6, 500, 7)));
    let key = |step: &str| {
        let pairs = [("centre", "kwbc"), ("step", step), ("levelist", "500")];
        pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()
    };
    let template = Template::new(&header, &key("6")).unwrap();
    let other = Header::new(&message(&forecast(9, 12, 850, 7)));
    let expected = [("centre", "kwbc"), ("step", "12"), ("levelist", "850")];
    assert_eq!(template.key(&other), expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    assert!(Template::new(&header, &key("0-6")).is_none());
}

/// Calls every function on some bytes.
fn exercise(bytes: &[u8]) {
    scan(bytes);
    for part in fields(bytes).unwrap_or_default().iter().map(|part| &part[..]).chain([bytes]) {
        let header = Header::new(part);
        let probe = header.probe();
        for header in [&header, &probe] {
            let _ = (header.pattern(), header.whole(), header.pairs().count());
            Header::new(&header.message());
        }
    }
}

#[test]
fn no_truncation_and_no_flipped_byte_panics() {
    let several = message(&[forecast(1, 6, 500, 3), forecast(1, 6, 850, 3)[2..].to_vec()].concat());
    for whole in [several, old(500, 6, 3)] {
        for end in 0..whole.len() {
            exercise(&whole[..end]);
            exercise(&[&whole[..end], b"7777"].concat());
            for flip in [0xFF, 0x80, 0x01, 0x40] {
                let mut damaged = whole.clone();
                damaged[end] ^= flip;
                exercise(&damaged);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), edition in 1u8..3) {
        exercise(&bytes);
        let mut begun = b"GRIB\0\0\0".to_vec();
        begun.push(edition);
        begun.extend_from_slice(&bytes);
        exercise(&begun);
    }
}
