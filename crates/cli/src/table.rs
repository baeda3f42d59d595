//! Tables: laid out for a width that a person sees, or bare rows with tabs where a program reads.
//!
//! Invariants:
//! * with a width no line is wider than it: cells lose their middle (`…`), numbers their last digits, and where that
//!   does not suffice whole columns go, the least important first;
//! * without a width nothing is cut, there is no head, and a row is a line of cells with tabs between;
//! * rows are not collected: the first [`SAMPLE`] determine the layout, the others are printed as they come.
//!
//! ```
//! use fieldstone_cli::table::{Column, cut};
//! assert_eq!(cut("{run=a}{variable=temperature}", 12), "{run=a…ture}");
//! let columns = [Column::number("bytes"), Column::text("key").least(8)];
//! # let _ = columns;
//! ```

use std::borrow::Cow;
use std::io::Write;

use fieldstone::Result;
use serde_json::Value;

use crate::output::{Done, Out};

/// Rows that the widths of the columns are taken from.
pub const SAMPLE: usize = 200;
/// Blanks between two columns.
const GAP: usize = 2;

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    right: bool,
    /// Cells may be cut to this width; never where it is `None`.
    least: Option<usize>,
    /// The lowest goes first where there is no room.
    rank: u8,
    /// Cells may be numbers, which are rounded where others are cut.
    rounded: bool,
}

impl Column {
    /// A column of texts.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), right: false, least: None, rank: 5, rounded: false }
    }

    /// A column of numbers, which end below one another.
    pub fn number(name: impl Into<String>) -> Column {
        Column { right: true, ..Column::text(name) }
    }

    /// Cells may be cut down to this many characters.
    pub fn least(self, least: usize) -> Column {
        Column { least: Some(least), ..self }
    }

    /// Cells that are numbers are rounded where they do not fit: without its middle a number is another one.
    pub fn rounded(self) -> Column {
        Column { rounded: true, ..self }
    }

    /// How important it is: 5 unless it is said.
    pub fn rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

/// Prints rows as they come: as objects in the list `name` where JSON is wanted, else as lines of a table.
pub fn list<T>(
    out: &mut Out,
    name: &str,
    rows: impl Iterator<Item = Result<T>>,
    json: impl Fn(T) -> Value,
    columns: impl IntoIterator<Item = Column>,
    cells: impl Fn(T) -> Vec<String>,
) -> Done {
    if out.json() {
        return out.items(name, rows.map(|row| row.map(&json)));
    }
    let mut table = Table::new(columns);
    for row in rows {
        table.row(cells(row?), out)?;
    }
    table.finish(out)
}

/// A shape as a cell: `64x128`; `-` where it is not known.
pub fn shape_cell(shape: Option<&[u64]>) -> String {
    match shape {
        None => "-".to_owned(),
        Some([]) => "scalar".to_owned(),
        Some(extents) => extents.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Rows on their way to the output.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    waiting: Vec<Vec<String>>,
    /// Width of each column, `None` for one that is left out; nothing before it is known.
    layout: Option<Vec<Option<usize>>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), waiting: Vec::new(), layout: None }
    }

    /// Prints a row, or keeps it until the layout is known.
    pub fn row(&mut self, cells: Vec<String>, out: &mut Out) -> Done {
        match (out.width(), &self.layout) {
            (None, _) => {
                for (i, cell) in cells.iter().enumerate() {
                    out.text(if i > 0 { "\t" } else { "" })?;
                    out.text(printable(cell))?;
                }
                out.text("\n")?;
                out.line_done()
            }
            (Some(_), Some(layout)) => self.print(&cells, layout, out),
            (Some(width), None) => {
                self.waiting.push(cells);
                match self.waiting.len() < SAMPLE {
                    true => Ok(()),
                    false => self.start(width, true, out),
                }
            }
        }
    }

    /// Prints what is kept.
    pub fn finish(&mut self, out: &mut Out) -> Done {
        match out.width() {
            Some(width) if self.layout.is_none() && !self.waiting.is_empty() => self.start(width, false, out),
            _ => Ok(()),
        }
    }

    fn start(&mut self, width: usize, more: bool, out: &mut Out) -> Done {
        let natural: Vec<usize> = (0..self.columns.len())
            .map(|c| {
                let cells = self.waiting.iter().filter_map(|row| row.get(c));
                let head = wide(&self.columns[c].name);
                cells.map(|cell| wide(&printable(cell))).max().unwrap_or(0).max(head)
            })
            .collect();
        let layout = lay_out(&self.columns, &natural, width, more);
        let heads: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        let (on, off) = if out.colour() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        write!(out, "{on}")?;
        let head = self.line(&heads, &layout);
        writeln!(out, "{head}{off}")?;
        for row in std::mem::take(&mut self.waiting) {
            self.print(&row, &layout, out)?;
        }
        self.layout = Some(layout);
        Ok(())
    }

    fn print(&self, cells: &[String], layout: &[Option<usize>], out: &mut Out) -> Done {
        writeln!(out, "{}", self.line(cells, layout))?;
        out.line_done()
    }

    fn line(&self, cells: &[String], layout: &[Option<usize>]) -> String {
        let mut line = String::new();
        let mut first = true;
        for ((column, cell), width) in self.columns.iter().zip(cells).zip(layout) {
            let Some(width) = *width else { continue };
            if !std::mem::take(&mut first) {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = match column.rounded {
                true => rounded(&printable(cell), width),
                false => cut(&printable(cell), width),
            };
            let blanks = " ".repeat(width.saturating_sub(wide(&cell)));
            match column.right {
                true => line.extend([&*blanks, &cell]),
                false => line.extend([&*cell, &blanks]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The width of each column that stays; `more` says that rows will come that nobody has seen, so that
/// the last column takes what room is left.
fn lay_out(columns: &[Column], natural: &[usize], width: usize, more: bool) -> Vec<Option<usize>> {
    let least = |c: usize| columns[c].least.map_or(natural[c], |least| least.min(natural[c]));
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let gaps = |kept: &[usize]| GAP * kept.len().saturating_sub(1);
    while kept.len() > 1 && kept.iter().map(|&c| least(c)).sum::<usize>() + gaps(&kept) > width {
        let Some(&dropped) = kept.iter().min_by_key(|&&c| (columns[c].rank, usize::MAX - c)) else { break };
        kept.retain(|&c| c != dropped);
    }
    let mut widths: Vec<Option<usize>> = vec![None; columns.len()];
    for &c in &kept {
        widths[c] = Some(least(c).min(width));
    }
    let taken: usize = widths.iter().flatten().sum();
    let mut spare = width.saturating_sub(taken + gaps(&kept));
    // The narrowest grows first, so that one long column does not starve the others.
    while spare > 0 {
        let growing = kept.iter().filter(|&&c| widths[c].is_some_and(|w| w < natural[c]));
        let Some(&c) = growing.min_by_key(|&&c| widths[c]) else { break };
        widths[c] = widths[c].map(|w| w + 1);
        spare -= 1;
    }
    if more && let Some(&last) = kept.last() {
        widths[last] = widths[last].map(|w| w + spare);
    }
    widths
}

/// A cell in at most `width` columns: a number with as many digits as fit, any other text without its middle.
pub fn rounded(text: &str, width: usize) -> String {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && wide(text) > width);
    let Some(number) = number else { return cut(text, width) };
    let digits = (0..17usize).rev();
    let shorter = digits.flat_map(|digits| [format!("{number:.digits$}"), format!("{number:.digits$e}")]);
    // Plain zeros, as of 0.0001, are not what was there.
    let says = |short: &String| {
        let kept: f64 = short.parse().unwrap_or(f64::NAN);
        (kept - number).abs() <= 0.05 * number.abs() || number == 0.0
    };
    let fits = |short: &String| wide(short) <= width && says(short);
    shorter
        .filter(fits)
        .min_by(|a, b| {
            let off = |short: &str| (short.parse().unwrap_or(f64::INFINITY) - number).abs();
            off(a).total_cmp(&off(b)).then(a.len().cmp(&b.len()))
        })
        .unwrap_or_else(|| cut("#".repeat(width).as_str(), width))
}

/// A text in at most `width` columns, `…` for what its middle lost.
pub fn cut(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let (mut head, mut tail) = (String::new(), Vec::new());
    let mut left = room.div_ceil(2);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(columns_of(c)) else { break };
        left = rest;
        head.push(c);
    }
    let mut left = room / 2;
    for c in text.chars().rev() {
        let Some(rest) = left.checked_sub(columns_of(c)) else { break };
        left = rest;
        tail.push(c);
    }
    if width > 0 {
        head.push('…');
    }
    head.extend(tail.into_iter().rev());
    head
}

/// Columns that a text takes in a terminal.
pub fn wide(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Without what would move the cursor or break the line.
pub fn printable(text: &str) -> Cow<'_, str> {
    // The control characters beyond ASCII begin with this byte.
    if text.bytes().all(|byte| !byte.is_ascii_control() && byte != 0xc2) {
        return text.into();
    }
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// East Asian wide characters and most pictures take two columns, combining marks none.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::number("bytes").rank(8),
            Column::text("owner").rank(2),
            Column::text("key").least(8).rank(9),
        ]
    }

    #[test]
    fn numbers_lose_digits_and_never_their_middle() {
        for (text, width, fitted) in [
            ("354.12345678604", 8, "354.1235"),
            ("-1.2345678e-300", 9, "-1.2e-300"),
            ("123456789012", 8, "1.235e11"),
            ("9.7488864183378", 6, "9.7489"),
            ("0.000123456789", 8, "1.235e-4"),
            ("12", 8, "12"),
            ("turbulent-zone", 8, "turb…one"),
            ("-1.5e-300", 3, "###"),
        ] {
            assert_eq!(rounded(text, width), fitted);
        }
    }

    #[test]
    fn the_middle_goes() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a longer text", 7), "a l…ext");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
        // Wide characters are not halved.
        assert_eq!(cut("温度温度温度", 6), "温…度");
        assert!((0..14).all(|width| wide(&cut("温度 and 圧力", width)) <= width));
    }

    #[test]
    fn there_is_room_for_what_matters() {
        let natural = [6, 5, 40];
        let fit = |width| lay_out(&columns(), &natural, width, false);
        assert_eq!(fit(80), [Some(6), Some(5), Some(40)]);
        assert_eq!(fit(40), [Some(6), Some(5), Some(25)]);
        assert_eq!(fit(20), [Some(6), None, Some(12)]);
        assert_eq!(fit(10), [None, None, Some(10)]);
        assert_eq!(fit(3), [None, None, Some(3)]);
        assert_eq!(lay_out(&columns(), &natural, 80, true), [Some(6), Some(5), Some(65)]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_comes() {
        for width in [1, 7, 20, 40, 80, 200] {
            for rows in [1, SAMPLE, SAMPLE + 20] {
                let text = Out::captured(Some(width), |out| {
                    let mut table = Table::new(columns());
                    for i in 0..rows {
                        let row = vec!["1".repeat(i % 19), "o\n\x1b[2J".into(), "k".repeat(i * 7 % 300)];
                        table.row(row, out)?;
                    }
                    table.finish(out)
                });
                assert_eq!(text.lines().count(), rows + 1);
                assert!(text.lines().all(|line| wide(line) <= width), "{width}\n{text}");
            }
        }
    }

    #[test]
    fn without_a_width_rows_are_bare_and_whole() {
        let text = Out::captured(None, |out| {
            let mut table = Table::new(columns());
            table.row(vec!["1".into(), "a\tb".into(), "k".repeat(300)], out)?;
            table.finish(out)
        });
        assert_eq!(text, format!("1\ta\u{fffd}b\t{}\n", "k".repeat(300)));
    }

    #[test]
    fn a_table_without_rows_has_no_head() {
        assert_eq!(Out::captured(Some(80), |out| Table::new(columns()).finish(out)), "");
    }
}
