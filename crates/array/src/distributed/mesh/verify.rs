//! Checks that the content of a mesh's file still matches its name.

use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::FileSums;
use fieldstone_format::content_sum::ContentSum;

use super::content::{KINDS, put_head, put_row};
use super::rows::RowReader;
use super::{Mesh, MeshArray, STEP, hex};

/// Values read at a time.
const VALUES: u64 = 1 << 17;

impl Mesh {
    /// Collective: reads the whole mesh, on each rank a share, and compares its checksum.
    ///
    /// Errors: `Corrupt` if the checksum differs, or an entry is not a node.
    pub fn verify(&self) -> Result<()> {
        let sums = self.team.allgather(STEP, sum(&self.reader()).map(|sum| sum.to_bytes().to_vec()))?;
        let mut whole = ContentSum::new();
        sums.iter().filter_map(|sum| sum.first_chunk()).for_each(|sum| whole.join(sum));
        let (found, said) = (whole.to_bytes(), self.head.checksum);
        match found == said {
            true => Ok(()),
            false => Err(Code::Checksum
                .error(format!(
                    "the mesh {} has the checksum {}, but its header has {}",
                    self.path().display(),
                    hex(&found),
                    hex(&said)
                ))
                .with_hint("restore the file from a copy, or remove it and create the mesh again")),
        }
    }

    /// Collective: the checksums of its file, after a check that its content matches its name.
    ///
    /// Errors: those of [`verify`](Self::verify).
    pub(super) fn sum_file(&self) -> Result<FileSums> {
        self.verify()?;
        self.import.sum_file()
    }
}

/// This rank's part of the checksum.
fn sum(reader: &RowReader<'_>) -> Result<ContentSum> {
    let mut sum = ContentSum::new();
    if reader.team.rank() == 0 {
        put_head(&mut sum, &reader.head.counts, if reader.head.has_z { 3 } else { 2 });
    }
    let mut bytes = Vec::new();
    for (number, array) in (1..).zip([MeshArray::X, MeshArray::Y, MeshArray::Z]) {
        if array == MeshArray::Z && !reader.head.has_z {
            continue;
        }
        let (imported, share) = (reader.array(array)?, reader.share_of(reader.head.counts[0]));
        let mut at = share.start;
        while at < share.end {
            let end = share.end.min(at + VALUES);
            reader.import.read_range(imported, at..end, &mut bytes)?;
            (at..end).zip(bytes.as_chunks::<8>().0).for_each(|(node, value)| sum.add(number, node, value));
            at = end;
        }
    }
    let mut item = Vec::new();
    for (place, (array, _)) in KINDS.into_iter().enumerate() {
        reader.for_each_row(array, |number, row| {
            put_row(&mut sum, place, number, row.iter().copied(), &mut item);
            Ok(())
        })?;
    }
    Ok(sum)
}
