use fieldstone_core::env::comm::{FileMode, Team, TeamFile, single::SingleComm};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::netcdf::{Attrs, NcType, Version};
use fieldstone_testkit::seeded;

use super::super::request::put_request;
use super::super::{Put, Records, Selection};
use super::*;
use crate::container::{DimInfo, VarInfo};

fn var(ty: NcType, begin: u64, record_stride: u64) -> VarInfo {
    let dim = |id, len, is_record| DimInfo { id, name: format!("d{id}"), len, is_record };
    let dims = vec![dim(0, 6, record_stride > 0), dim(1, 7, false)];
    VarInfo { id: 0, name: "v".into(), ty, dims, attrs: Attrs::default(), begin, record_stride }
}

fn file() -> TeamFile {
    let comm = SingleComm::new(SimWorld::memory().disk);
    Team::new(std::sync::Arc::new(comm)).open("create", "/f".as_ref(), FileMode::CreateNew).unwrap()
}

/// Random requests, many of them overlapping, cut into rounds of a few bytes: the rounds leave the same file as the
/// requests one after another.
#[test]
fn rounds_of_any_size_leave_what_requests_leave_one_by_one() {
    let file = file();
    let (mut rounds_made, mut overlapping, mut bridged) = (0, 0, 0);
    for seed in 1..2000u64 {
        let mut random = seeded(seed);
        let ty = [NcType::Byte, NcType::Short, NcType::Int, NcType::Double][random.below(4) as usize];
        let size = ty.size() as u64;
        // Two interleaved record variables, and a fixed one before them.
        let vars = [var(ty, 0, 0), var(ty, 42 * size, 14 * size), var(ty, 49 * size, 14 * size)];
        let records = Records::new(6, Version::Cdf5);
        let target = Target {
            file: &file,
            version: Version::Cdf5,
            records: &records,
            filled: None,
            past_end: PastEnd::Zeros,
        };
        let mut wanted = Vec::new();
        for i in 0..1 + random.below(5) {
            let (mut start, mut count, mut stride) = (vec![], vec![], vec![]);
            for len in [6, 7] {
                start.push(random.below(len));
                stride.push(1 + random.below(2));
                count.push(
                    1 + random.below((len - start[start.len() - 1]).div_ceil(stride[stride.len() - 1])),
                );
            }
            let n = count.iter().product::<u64>() * size;
            let data: Vec<u8> = (0..n).map(|j| (i * 50 + j % 50) as u8).collect();
            wanted.push((random.below(3) as usize, Selection { start, count, stride }, data));
        }
        let puts: Vec<Put<'_>> = wanted
            .iter()
            .map(|(var, selection, data)| Put { var: &vars[*var], selection, data, ty })
            .collect();
        let requests: Vec<_> = puts.iter().map(|put| put_request(&target, put).unwrap()).collect();

        let mut expected = vec![0xEE; 200 * size as usize];
        for request in &requests {
            for run in request.extents.clone() {
                let n = (run.elements * size) as usize;
                let from = &request.memory[(run.at * size) as usize..][..n];
                let to = &mut expected[run.offset as usize..][..n];
                request.conversion.write(from, to, request.fill);
            }
        }

        let budget = 8 + random.below(100) as usize;
        let gap = random.below(3) * size;
        let mut rounds = Rounds::new(&requests, budget, gap);
        let mut found = vec![0xEE; expected.len()];
        let (mut misfit, mut elements) = (None, 0);
        while rounds.next() {
            rounds_made += 1;
            overlapping += usize::from(rounds.overlaps);
            assert!(rounds.bytes <= budget, "seed {seed}: {rounds:?}");
            let mut buffer_at = 0;
            let mut end = None;
            for span in &rounds.spans {
                assert!(end.is_none_or(|end| end < span.offset), "seed {seed}: {rounds:?}");
                assert_eq!(span.buffer_at, buffer_at, "seed {seed}");
                buffer_at += span.len;
                end = Some(span.end());
                bridged += usize::from(span.has_gaps);
            }
            assert_eq!(buffer_at, rounds.bytes, "seed {seed}");
            elements += rounds.pieces.iter().map(|piece| piece.elements).sum::<u64>();
            let mut buffer = vec![0xDD; budget];
            for span in rounds.spans.iter().filter(|span| span.has_gaps) {
                let there = span.offset as usize..span.end() as usize;
                buffer[span.buffer_at..span.buffer_at + span.len].copy_from_slice(&found[there]);
            }
            encode(&rounds, &requests, &mut buffer, &mut misfit);
            for span in &rounds.spans {
                found[span.offset as usize..span.end() as usize]
                    .copy_from_slice(&buffer[span.buffer_at..span.buffer_at + span.len]);
            }
        }
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!(elements, requests.iter().map(|request| request.extents.elements()).sum::<u64>());
    }
    assert!(
        rounds_made > 3_000 && overlapping > 500 && bridged > 500,
        "{rounds_made} {overlapping} {bridged}"
    );
}

/// In the header of a damaged file, records may overlap.
#[test]
fn runs_that_do_not_ascend_end_all_the_same() {
    let file = file();
    let records = Records::new(6, Version::Cdf5);
    let target = Target {
        file: &file,
        version: Version::Cdf5,
        records: &records,
        filled: None,
        past_end: PastEnd::Zeros,
    };
    for stride in [1, 3, 4, 10, 27] {
        let var = var(NcType::Int, 100, stride);
        let data = vec![1; 6 * 7 * 4];
        let selection = Selection::all(&[6, 7]);
        let put = Put { var: &var, selection: &selection, data: &data, ty: NcType::Int };
        let requests = [put_request(&target, &put).unwrap()];
        let mut rounds = Rounds::new(&requests, 64, 0);
        let mut elements = 0;
        while rounds.next() {
            elements += rounds.pieces.iter().map(|piece| piece.elements).sum::<u64>();
            assert!(rounds.spans.windows(2).all(|pair| pair[0].end() < pair[1].offset));
        }
        assert_eq!(elements, 42, "{stride}");
    }
}
