//! Comma-separated values, as they come: RFC 4180, with blank lines skipped.
//!
//! ```
//! use fieldstone_cli::csv::Csv;
//! let mut csv = Csv::new();
//! let mut rows = Vec::new();
//! let mut keep = |_: u64, cells: &[fieldstone_cli::csv::Cell]| {
//!     rows.push(cells.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>());
//!     Ok(())
//! };
//! csv.push(b"tag,value\nmaximum,\"9,0", &mut keep).unwrap();
//! csv.push(b"00\"\n", &mut keep).unwrap();
//! csv.finish(&mut keep).unwrap();
//! assert_eq!(rows, [["tag", "value"], ["maximum", "9,000"]]);
//! ```

use fieldstone::{Error, Result};

/// Longest cell.
const CELL_MAX: usize = 64 << 20;

/// A cell of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its content.
    pub text: String,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

/// Takes a row: the line where it begins, and its cells.
pub type TakeRow<'a> = dyn FnMut(u64, &[Cell]) -> Result<()> + 'a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvState {
    /// At the begin of a cell.
    Begin,
    Bare,
    Quoted,
    /// After a quote within quotes: it ended the cell, or stands for itself.
    Quote,
}

/// A reader that is given bytes in parts.
#[derive(Debug)]
pub struct Csv {
    state: CsvState,
    cell: Vec<u8>,
    row: Vec<Cell>,
    /// `,`, `;` or a tab: the one of the first line, known with its end or its first sign.
    comma: Option<u8>,
    line: u64,
    begin: u64,
    started: bool,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv::new()
    }
}

impl Csv {
    /// A parser at the beginning of a text. The first `,`, `;` or tab outside quotes becomes the separator of cells.
    pub fn new() -> Csv {
        Csv {
            state: CsvState::Begin,
            cell: Vec::new(),
            row: Vec::new(),
            comma: None,
            line: 1,
            begin: 1,
            started: false,
        }
    }

    /// The same, with commas between the cells.
    pub fn commas() -> Csv {
        Csv { comma: Some(b','), ..Csv::new() }
    }

    /// Takes the next bytes, and gives the rows that they end.
    pub fn push(&mut self, bytes: &[u8], take: &mut TakeRow<'_>) -> Result<()> {
        let mut bytes = bytes;
        if !std::mem::replace(&mut self.started, true) {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        for &byte in bytes {
            self.next(byte, take)?;
        }
        Ok(())
    }

    fn next(&mut self, byte: u8, take: &mut TakeRow<'_>) -> Result<()> {
        let is_comma = match self.comma {
            Some(comma) => byte == comma,
            None if matches!(byte, b',' | b';' | b'\t') && self.state != CsvState::Quoted => {
                self.comma = Some(byte);
                true
            }
            None => false,
        };
        let line_end = byte == b'\n';
        match (self.state, byte) {
            (CsvState::Quoted, b'"') => self.state = CsvState::Quote,
            (CsvState::Quoted, _) => self.cell.push(byte),
            (CsvState::Quote, b'"') => {
                self.cell.push(b'"');
                self.state = CsvState::Quoted;
            }
            (CsvState::Begin, b'"') => self.state = CsvState::Quoted,
            _ if is_comma => self.end_cell()?,
            (_, b'\n') => self.end_row(take)?,
            (_, b'\r') => {}
            (CsvState::Quote, _) => {
                return Err(Error::invalid(format!("line {}: text goes on behind a quote", self.line))
                    .with_hint("a quote within quotes is written twice"));
            }
            _ => {
                self.cell.push(byte);
                self.state = CsvState::Bare;
            }
        }
        if self.cell.len() > CELL_MAX {
            return Err(Error::invalid(format!("line {}: a cell is longer than 64 MiB", self.begin))
                .with_hint("is there a quote that does not end?"));
        }
        if line_end {
            self.line += 1;
            if self.state != CsvState::Quoted {
                self.begin = self.line;
            }
        }
        Ok(())
    }

    /// Gives the last row, where no line end did.
    pub fn finish(&mut self, take: &mut TakeRow<'_>) -> Result<()> {
        if self.state == CsvState::Quoted {
            return Err(Error::invalid(format!("line {}: a quote does not end", self.begin))
                .with_hint("a quote within quotes is written twice"));
        }
        self.end_row(take)
    }

    fn end_cell(&mut self) -> Result<()> {
        let text = String::from_utf8(std::mem::take(&mut self.cell))
            .map_err(|_| Error::invalid(format!("line {}: the text is not UTF-8", self.line)))?;
        self.row.push(Cell { text, quoted: self.state == CsvState::Quote });
        self.state = CsvState::Begin;
        Ok(())
    }

    fn end_row(&mut self, take: &mut TakeRow<'_>) -> Result<()> {
        let blank = self.row.is_empty() && self.cell.is_empty() && self.state != CsvState::Quote;
        self.state = if blank { CsvState::Begin } else { self.state };
        if blank {
            return Ok(());
        }
        self.end_cell()?;
        let row = std::mem::take(&mut self.row);
        take(self.begin, &row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8], part: usize) -> Result<Vec<(u64, Vec<String>)>> {
        let mut csv = Csv::new();
        let mut rows = Vec::new();
        let mut keep = |line: u64, cells: &[Cell]| {
            rows.push((line, cells.iter().map(|cell| cell.text.clone()).collect()));
            Ok(())
        };
        for part in text.chunks(part) {
            csv.push(part, &mut keep)?;
        }
        csv.finish(&mut keep)?;
        Ok(rows)
    }

    #[test]
    fn rows_come_as_they_are_however_the_bytes_come() {
        let text = b"\xef\xbb\xbfa,\"b\"\"c\",\r\n\n\"two\nlines\",\xc3\xa9,\"\"\nlast,1,2";
        for part in 3..text.len() {
            assert_eq!(
                rows(text, part).unwrap(),
                [
                    (1, vec!["a".to_owned(), "b\"c".into(), String::new()]),
                    (3, vec!["two\nlines".into(), "é".into(), String::new()]),
                    (5, vec!["last".into(), "1".into(), "2".into()]),
                ],
                "{part}"
            );
        }
        assert_eq!(rows(b"a;b,c\n1;2\n", 99).unwrap()[0].1, ["a", "b,c"]);
        assert_eq!(rows(b"\"a,x\"\tb\n", 99).unwrap()[0].1, ["a,x", "b"]);
        assert_eq!(rows(b"", 9).unwrap(), []);
    }

    #[test]
    fn what_is_no_csv_is_reported_with_its_line() {
        for (text, part) in [
            (&b"a\n\"b"[..], "line 2: a quote does not end"),
            (b"a\n\"b\"c\n", "line 2: text goes on behind a quote"),
            (b"a\nb\n\xff\n", "line 3: the text is not UTF-8"),
        ] {
            let error = rows(text, 99).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}
