//! Looking after a store of objects.

use std::collections::BTreeMap;

use fieldstone_core::env::Space;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::log::{CommitRecord, FrameInfo, HEAD};
use fieldstone_format::{Id, crc};

use super::{ObjectMedium, object_number, prefix, split};
use crate::medium::{Address, DataLoss, Inspect, Tip};

impl ObjectMedium {
    /// Compares every part of a commit with its checksum.
    fn check_commit(&self, log: Id, sequence: u64) -> Result<(FrameInfo, Result<CommitRecord>)> {
        let (ends, record, object) = self.commit(log, sequence)?;
        let part = |at: Address, length: u64| {
            let from = split(at).1 as usize;
            object.bytes.get(from..from + length as usize).unwrap_or_default()
        };
        let head = FrameInfo::decode_head(part(ends.frame, HEAD as u64), ends.frame);
        let (body, length) = ends.body();
        let copies = ends.record_offsets().map(|at| ends.record(part(at, u64::from(ends.record_len))));
        let outcome = head.and_then(|head| {
            for copy in copies {
                copy?;
            }
            let side = part(record.side.offset, record.side.length);
            if head == ends && crc(side) != record.side.crc {
                return Err(Error::corrupt("the commit's side records do not match their checksum"));
            }
            match head == ends && crc(part(body, length)) == ends.body_crc {
                true => Ok(record),
                false => Err(Code::Checksum.error("the commit does not match its checksum")),
            }
        });
        Ok((ends, outcome))
    }
}

impl Inspect for ObjectMedium {
    fn check(&self, log: &Tip, each: &mut dyn FnMut(FrameInfo, Result<CommitRecord>)) -> Result<()> {
        for sequence in 1..=log.record.sequence {
            let (ends, outcome) = self.check_commit(log.writer, sequence)?;
            each(ends, outcome);
        }
        Ok(())
    }

    fn check_header(&self, log: &Tip) -> Result<()> {
        match self.header(log.writer)?.writer == log.writer {
            true => Ok(()),
            false => Err(Error::corrupt("it carries another log's name")),
        }
    }

    fn check_data(&self, writer: Id, number: u32, upto: Address) -> Result<()> {
        let names = self.objects.list(&prefix(writer, number), None);
        let there = names.iter().filter_map(|name| object_number(name));
        let (there, parts) = (there.count() as u64, split(upto).0.saturating_sub(1));
        match there >= parts {
            true => Ok(()),
            false => Err(Error::corrupt(format!("{there} objects are there, {parts} were put"))),
        }
    }

    fn tail(&self, _: &Tip) -> Result<u64> {
        Ok(0)
    }

    fn logs(&self) -> Result<Vec<(String, Option<Id>)>> {
        let logs = self.objects.folders("logs/");
        Ok(logs.into_iter().map(|name| (format!("logs/{name}"), Id::parse(&name))).collect())
    }

    fn size(&self) -> Result<(u64, u64)> {
        Ok(self.objects.size())
    }

    fn data_loss(&self, writer: Id, number: u32, upto: Address) -> Result<Option<DataLoss>> {
        match self.check_data(writer, number, upto) {
            Ok(()) => Ok(None),
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                let there = self.objects.list(&prefix(writer, number), None).len() as u64;
                Ok(Some(if there == 0 { DataLoss::Missing } else { DataLoss::Short(there, split(upto).0) }))
            }
            Err(e) => Err(e),
        }
    }

    fn space(&self) -> Option<Space> {
        None
    }

    fn beside_logs(&self) -> Result<BTreeMap<u32, u64>> {
        Ok(BTreeMap::new())
    }
}
