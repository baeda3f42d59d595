//! The index table: all that every rank keeps of a file's header. It has an entry for each metadata block and
//! for each writer (its name index and its path list), and for each block the lowest and the highest path in
//! it.
//!
//! Numbers of objects in the file follow the blocks: the first dimension of the second block comes after the
//! last of the first.
//!
//! Invariants of a decoded table: blocks are between head and data part, without overlap, in ascending order;
//! each belongs to one writer, writers in order; its counts add up to those of the head.
//!
//! ```
//! use fieldstone_format::partitioned::{BlockEntry, Head, Table, WriterEntry};
//! let mut table = Table::default();
//! table.push(BlockEntry { offset: 160, len: 40, vars: 2, ..BlockEntry::default() }, "a", "b");
//! table.writers.push(WriterEntry { blocks: 1, ..WriterEntry::default() });
//! let bytes = table.encode();
//! let head = Head { vars: 2, blocks: 1, writers: 1, table_offset: 200, table_len: bytes.len() as u64,
//!     table_crc: fieldstone_format::crc(&bytes), data_begin: 512, record_begin: 512, ..Head::default() };
//! assert_eq!(Table::decode(&bytes, &head).unwrap().block_of_var(1), Some((0, 1)));
//! ```

use fieldstone_core::{Code, Error, Result};

use super::pages::{NAME_ENTRY, PAGE, pages_of};
use super::{Cursor, Head};
use crate::netcdf::Names;

/// A block's entry in the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
    /// Its CRC-32C.
    pub crc: u32,
    /// Its dimensions.
    pub dims: u32,
    /// Its global attributes.
    pub attrs: u32,
    /// Its variables.
    pub vars: u32,
    /// Number of different paths of its objects.
    pub paths: u32,
    /// Bytes of its variables' data: all of a fixed variable, one record of a record variable.
    pub data: u64,
}

/// A writer's entry in the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterEntry {
    /// Number of its blocks. They follow those of the previous writer.
    pub blocks: u32,
    /// Offset of its name index.
    pub names_offset: u64,
    /// Entries of its name index.
    pub names: u64,
    /// Length of its path list in bytes. The lists are concatenated, and the last one ends at the table.
    pub list_len: u64,
    /// CRC-32C of its path list.
    pub list_crc: u32,
}

/// The index table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The blocks, in the order of the file.
    pub blocks: Vec<BlockEntry>,
    /// The writers, in the order of their ranks.
    pub writers: Vec<WriterEntry>,
    paths: Names,
    first: Vec<[u64; 3]>,
    first_block: Vec<u32>,
    first_list: Vec<u64>,
}

/// Bytes of a block's entry.
const BLOCK: usize = 44;
/// Bytes of a writer's entry.
const WRITER: usize = 32;

impl Table {
    /// Appends a block whose objects have paths from `least` to `greatest`.
    pub fn push(&mut self, block: BlockEntry, least: &str, greatest: &str) {
        self.blocks.push(block);
        self.paths.push(least);
        self.paths.push(greatest);
    }

    /// Encodes the table.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.blocks.len() * 60 + self.writers.len() * WRITER);
        for (i, block) in self.blocks.iter().enumerate() {
            out.extend_from_slice(&block.offset.to_be_bytes());
            for value in [block.len, block.crc, block.dims, block.attrs, block.vars, block.paths] {
                out.extend_from_slice(&value.to_be_bytes());
            }
            out.extend_from_slice(&block.data.to_be_bytes());
            for path in [self.paths.get(2 * i), self.paths.get(2 * i + 1)] {
                out.extend_from_slice(&(path.len() as u16).to_be_bytes());
            }
        }
        for writer in &self.writers {
            out.extend_from_slice(&writer.blocks.to_be_bytes());
            out.extend_from_slice(&writer.names_offset.to_be_bytes());
            out.extend_from_slice(&writer.names.to_be_bytes());
            out.extend_from_slice(&writer.list_len.to_be_bytes());
            out.extend_from_slice(&writer.list_crc.to_be_bytes());
        }
        out.extend_from_slice(self.paths.text().as_bytes());
        out
    }

    /// Length and checksum of its bytes.
    pub fn measure(&self) -> (u64, u32) {
        let bytes = self.encode();
        (bytes.len() as u64, crate::crc(&bytes))
    }

    /// Encodes a part of a table, to send it to other ranks: the numbers of blocks and writers, then the
    /// bytes.
    pub fn pack(&self) -> Vec<u8> {
        let mut out = (self.blocks.len() as u32).to_be_bytes().to_vec();
        out.extend_from_slice(&(self.writers.len() as u32).to_be_bytes());
        out.extend(self.encode());
        out
    }

    /// Appends the [packed](Table::pack) part of another rank.
    pub fn unpack(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes, "part of an index table");
        let (blocks, writers) = (cursor.u32()?, cursor.u32()?);
        let lens = self.take(&mut cursor, blocks, writers)?;
        for len in lens {
            self.paths.push(cursor.text(usize::from(len))?);
        }
        Ok(())
    }

    /// Appends entries of blocks and writers; returns the lengths of the blocks' paths.
    fn take(&mut self, cursor: &mut Cursor<'_>, blocks: u32, writers: u32) -> Result<Vec<u16>> {
        let least = u64::from(blocks) * BLOCK as u64 + u64::from(writers) * WRITER as u64;
        if least > cursor.bytes.len() as u64 {
            return Err(Error::corrupt("the index table is too short for its blocks and writers"));
        }
        self.blocks.reserve(blocks as usize);
        let mut lens = Vec::with_capacity(blocks as usize * 2);
        for _ in 0..blocks {
            self.blocks.push(BlockEntry {
                offset: cursor.u64()?,
                len: cursor.u32()?,
                crc: cursor.u32()?,
                dims: cursor.u32()?,
                attrs: cursor.u32()?,
                vars: cursor.u32()?,
                paths: cursor.u32()?,
                data: cursor.u64()?,
            });
            lens.extend([cursor.u16()?, cursor.u16()?]);
        }
        for _ in 0..writers {
            self.writers.push(WriterEntry {
                blocks: cursor.u32()?,
                names_offset: cursor.u64()?,
                names: cursor.u64()?,
                list_len: cursor.u64()?,
                list_crc: cursor.u32()?,
            });
        }
        Ok(lens)
    }

    /// Decodes a table and checks it against the head of its file.
    pub fn decode(bytes: &[u8], head: &Head) -> Result<Table> {
        let wrong =
            |rule: &str| Error::corrupt(format!("index table at offset {}: {rule}", head.table_offset));
        if crate::crc(bytes) != head.table_crc {
            return Err(wrong("its bytes do not match their checksum"));
        }
        let mut cursor = Cursor::new(bytes, "index table");
        let mut table = Table::default();
        let lens = table.take(&mut cursor, head.blocks, head.writers)?;
        let mut before = Head::LEN as u64;
        for block in &table.blocks {
            let end = block.offset.checked_add(u64::from(block.len));
            let Some(end) = end.filter(|end| block.offset >= before && *end <= head.data_begin) else {
                return Err(wrong("blocks must be between head and data part, one after another"));
            };
            before = end;
        }
        for writer in &table.writers {
            let len = pages_of(writer.names, NAME_ENTRY).checked_mul(PAGE as u64);
            if len
                .and_then(|len| len.checked_add(writer.names_offset))
                .is_none_or(|end| end > head.data_begin)
            {
                return Err(wrong("name indexes must be before the data part"));
            }
        }
        let room = head.table_offset.saturating_sub(Head::LEN as u64);
        let lists = table.writers.iter().try_fold(0u64, |sum, writer| sum.checked_add(writer.list_len));
        if lists.is_none_or(|lists| lists > room) {
            return Err(wrong("path lists must be between head and table"));
        }
        for len in lens {
            table.paths.push(cursor.text(usize::from(len))?);
        }
        if !cursor.bytes.is_empty() {
            return Err(wrong("there are bytes after its last path"));
        }
        let blocks: u64 = table.writers.iter().map(|writer| u64::from(writer.blocks)).sum();
        if blocks != u64::from(head.blocks) {
            return Err(wrong("its writers must have as many blocks as the head says"));
        }
        table.count();
        let total = table.first.last().copied().unwrap_or_default();
        if total != [head.dims, head.attrs, head.vars] {
            return Err(wrong("its sums are not those of the head"));
        }
        Ok(table)
    }

    /// Adds up the counts, so that numbers of objects lead to blocks. `decode` has done this already.
    pub fn count(&mut self) {
        let mut sums = [0u64; 3];
        self.first = vec![sums];
        for block in &self.blocks {
            for (sum, count) in sums.iter_mut().zip([block.dims, block.attrs, block.vars]) {
                *sum += u64::from(count);
            }
            self.first.push(sums);
        }
        let (mut block, mut list) = (0, 0u64);
        self.first_block = vec![0];
        self.first_list = vec![0];
        for writer in &self.writers {
            block += writer.blocks;
            self.first_block.push(block);
            list = list.saturating_add(writer.list_len);
            self.first_list.push(list);
        }
    }

    /// Position of a writer's path list, counted from the first list; for the writer after the last, the
    /// length of all lists.
    pub fn list_of_writer(&self, writer: usize) -> u64 {
        self.first_list.get(writer).copied().unwrap_or_default()
    }

    /// Offset of the first path list in the file with this head, and length of all lists.
    pub fn lists(&self, head: &Head) -> (u64, u64) {
        let len = self.list_of_writer(self.writers.len());
        (head.table_offset.saturating_sub(len), len)
    }

    fn block_of(&self, kind: usize, number: u64) -> Option<(usize, usize)> {
        let after = self.first.partition_point(|first| first[kind] <= number);
        let block = after.checked_sub(1).filter(|block| *block < self.blocks.len())?;
        Some((block, (number - self.first[block][kind]) as usize))
    }

    /// The block and slot of a dimension by its number in the file.
    pub fn block_of_dim(&self, number: u64) -> Option<(usize, usize)> {
        self.block_of(0, number)
    }

    /// The block and slot of a variable by its number in the file.
    pub fn block_of_var(&self, number: u64) -> Option<(usize, usize)> {
        self.block_of(2, number)
    }

    /// Numbers in the file of a block's first dimension, attribute and variable.
    pub fn first_of_block(&self, block: usize) -> [u64; 3] {
        self.first.get(block).copied().unwrap_or_default()
    }

    /// The blocks of a writer.
    pub fn blocks_of_writer(&self, writer: usize) -> std::ops::Range<usize> {
        match (self.first_block.get(writer), self.first_block.get(writer + 1)) {
            (Some(first), Some(end)) => *first as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// The lowest and the highest path in a block.
    pub fn path_range(&self, block: usize) -> (&str, &str) {
        (self.paths.get(2 * block), self.paths.get(2 * block + 1))
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> u64 {
        let blocks = self.blocks.capacity() * size_of::<BlockEntry>();
        let writers = self.writers.capacity() * size_of::<WriterEntry>();
        self.paths.memory()
            + (blocks + writers + self.first.capacity() * 24 + self.first_list.capacity() * 8) as u64
    }
}

impl WriterEntry {
    /// Checks that these bytes are the writer's path list.
    pub fn check_list(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 != self.list_len || crate::crc(bytes) != self.list_crc {
            return Err(Code::Checksum.error("the path list does not match its checksum"));
        }
        Ok(())
    }
}

impl BlockEntry {
    /// Checks a block's bytes and decodes it.
    pub fn check(&self, bytes: Vec<u8>) -> Result<super::Block> {
        if bytes.len() != self.len as usize || crate::crc(&bytes) != self.crc {
            return Err(Code::Checksum.error("the block does not match its checksum"));
        }
        let block = super::Block::decode(bytes)?;
        let counts = [block.dims(), block.attrs(), block.vars(), block.paths()];
        if counts != [self.dims, self.attrs, self.vars, self.paths].map(|count| count as usize) {
            return Err(Error::corrupt("the block's number of objects differs from the index table's"));
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Table, Head) {
        let mut table = Table::default();
        for (i, vars) in [3, 0, 4].into_iter().enumerate() {
            let offset = 200 + i as u64 * 50;
            let block = BlockEntry { offset, len: 50, crc: 9, dims: 2, vars, ..BlockEntry::default() };
            table.push(block, "a", if i == 1 { "event_1/u" } else { "b" });
        }
        let list_crc = crate::crc(b"list");
        table.writers.push(WriterEntry { blocks: 1, names_offset: 4096, names: 5, list_len: 4, list_crc });
        table.writers.push(WriterEntry::default());
        let (list_len, names_offset) = (40, 8192);
        table.writers.push(WriterEntry { blocks: 2, names_offset, names: 8, list_len, ..Default::default() });
        table.count();
        let bytes = table.encode();
        let head = Head {
            dims: 6,
            vars: 7,
            blocks: 3,
            writers: 3,
            table_offset: 500,
            table_len: bytes.len() as u64,
            table_crc: crate::crc(&bytes),
            data_begin: 20_000,
            record_begin: 20_000,
            ..Head::default()
        };
        (table, head)
    }

    #[test]
    fn numbers_lead_to_blocks_and_slots() {
        let (table, head) = sample();
        let bytes = table.encode();
        assert_eq!(bytes.len(), 3 * BLOCK + 3 * WRITER + table.paths.text().len());
        let read = Table::decode(&bytes, &head).unwrap();
        assert_eq!((&read.blocks, &read.writers), (&table.blocks, &table.writers));
        let places: Vec<_> = (0..8).map(|number| read.block_of_var(number)).collect();
        let wanted = [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2), (2, 3)].map(Some);
        assert_eq!(places[..7], wanted);
        assert_eq!((places[7], read.block_of_dim(3)), (None, Some((1, 1))));
        assert_eq!((read.path_range(1), read.blocks_of_writer(2)), (("a", "event_1/u"), 1..3));
        assert_eq!((read.lists(&head), [0, 1, 2].map(|i| read.list_of_writer(i))), ((456, 44), [0, 4, 4]));
        assert!(read.writers[0].check_list(b"list").is_ok());
        assert!(read.writers[0].check_list(b"lisu").is_err() && read.writers[0].check_list(b"").is_err());
    }

    #[test]
    fn damage_and_nonsense_are_refused() {
        let (table, head) = sample();
        let bytes = table.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Table::decode(&damaged, &head).is_err(), "bit {bit}");
            // Nonsense with a correct checksum must not panic either.
            let _ = Table::decode(&damaged, &Head { table_crc: crate::crc(&damaged), ..head.clone() });
        }
        for spoil in [
            |head: &mut Head| head.blocks = u32::MAX,
            |head: &mut Head| head.writers = 2,
            |head: &mut Head| head.vars = 8,
            |head: &mut Head| head.data_begin = 300,
        ] {
            let mut other = head.clone();
            spoil(&mut other);
            assert!(Table::decode(&bytes, &other).is_err());
        }
        for lens in [[341, 0, 0], [u64::MAX, 0, 1]] {
            let mut other = table.clone();
            other.writers.iter_mut().zip(lens).for_each(|(writer, len)| writer.list_len = len);
            let bytes = other.encode();
            let error =
                Table::decode(&bytes, &Head { table_crc: crate::crc(&bytes), ..head.clone() }).unwrap_err();
            assert!(error.message().contains("path lists must be between"), "{error}");
        }
        // Sums of blocks above 32 bits are an error like any other.
        let mut wild = table.clone();
        wild.writers.iter_mut().for_each(|writer| writer.blocks = u32::MAX);
        let bytes = wild.encode();
        assert!(Table::decode(&bytes, &Head { table_crc: crate::crc(&bytes), ..head }).is_err());
    }
}
