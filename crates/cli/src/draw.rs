//! Arrays drawn in a terminal: half blocks in colour, or a ramp of characters where there is none.
//!
//! Invariant: a value, a missing element, a masked one and a place outside the array have different marks. Colours of
//! values that lie on both sides of zero have white there, and reach as far on either side.

use std::fmt::Write;

/// Characters from low to high.
const RAMP: &[u8] = b".:-=+*#%@";
/// Marks of elements without a value, and of no element, without colour.
const MISSING: char = '?';
const MASKED: char = 'x';
const OUTSIDE: char = ' ';
/// Brightness of elements without a value, in colour. Places outside have no colour.
const MISSING_GREY: u8 = 168;
const MASKED_GREY: u8 = 88;
/// Values diverge about zero where the smaller side reaches this much of the greater one.
const BOTH_SIDES: f64 = 0.1;
/// Colours from negative over zero to positive: blue, white, red.
const DIVERGING: [[u8; 3]; 9] = [
    [5, 48, 97],
    [33, 102, 172],
    [67, 147, 195],
    [146, 197, 222],
    [247, 247, 247],
    [244, 165, 130],
    [214, 96, 77],
    [178, 24, 43],
    [103, 0, 31],
];
/// Colours from low to high: dark blue over green to yellow, of even steps in brightness.
const COLOURS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// How elements become marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Characters alone.
    Plain,
    /// The 256 colours that nearly every terminal has.
    Colours,
    /// Any colour.
    TrueColour,
}

impl Style {
    /// The best style of the terminal, where `colour` is wanted.
    pub fn of_terminal(colour: bool) -> Style {
        let full = std::env::var("COLORTERM").is_ok_and(|v| v == "truecolor" || v == "24bit");
        match (colour, full) {
            (false, _) => Style::Plain,
            (true, false) => Style::Colours,
            (true, true) => Style::TrueColour,
        }
    }
}

/// Extremes of the elements that are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// Smallest element; NaN where all are missing.
    pub min: f64,
    /// Largest element; NaN where all are missing.
    pub max: f64,
    /// Elements that are NaN or infinite.
    pub missing: usize,
}

/// Looks through the elements once.
pub fn extremes(values: &[f64]) -> Extremes {
    let start = Extremes { min: f64::NAN, max: f64::NAN, missing: 0 };
    values.iter().fold(start, |e, &v| match v.is_finite() {
        true => Extremes { min: e.min.min(v), max: e.max.max(v), ..e },
        false => Extremes { missing: e.missing + 1, ..e },
    })
}

/// An element of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A finite value.
    Value(f64),
    /// An element without a value.
    Missing,
    /// An element whose value is not valid.
    Masked,
    /// No element.
    Outside,
}

impl Cell {
    /// The mean of those that have a value, else what most says of them: masked, missing, outside.
    pub fn mean(cells: impl Iterator<Item = Cell>) -> Cell {
        let (mut sum, mut n, mut none) = (0.0, 0u32, Cell::Outside);
        for cell in cells {
            match (cell, none) {
                (Cell::Value(value), _) => (sum, n) = (sum + value, n + 1),
                (Cell::Masked, _) | (Cell::Missing, Cell::Outside) => none = cell,
                _ => {}
            }
        }
        if n > 0 { Cell::Value(sum / f64::from(n)) } else { none }
    }
}

/// The level of a value between the ends, and its colour.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    colours: &'static [[u8; 3]; 9],
}

impl Scale {
    /// The scale of values between two extremes. Without colour nothing diverges.
    fn of(min: f64, max: f64, style: Style) -> Scale {
        let (below, above) = (-min, max);
        let diverges = style != Style::Plain
            && below > 0.0
            && above > 0.0
            && below.min(above) >= BOTH_SIDES * below.max(above);
        match diverges {
            true => Scale { low: -below.max(above), high: below.max(above), colours: &DIVERGING },
            false => Scale { low: min, high: max, colours: &COLOURS },
        }
    }

    /// The place of a value between the ends: 0 to 1.
    fn level(&self, value: f64) -> f64 {
        level(value, self.low, self.high)
    }
}

/// Draws `rows` times `columns` elements, the first row on top, at most `width` characters wide and of
/// about the array's proportions.
pub fn image(
    cells: impl Fn(usize) -> Cell,
    rows: usize,
    columns: usize,
    width: usize,
    style: Style,
) -> String {
    let mut text = String::new();
    if rows == 0 || columns == 0 {
        return text;
    }
    let (mut min, mut max) = (f64::NAN, f64::NAN);
    for at in 0..rows * columns {
        if let Cell::Value(value) = cells(at) {
            (min, max) = (min.min(value), max.max(value));
        }
    }
    let scale = Scale::of(min, max, style);
    let across = columns.min(width.max(1));
    // A character is about twice as high as wide; a half block is about square.
    let tall = (rows * across).div_ceil(columns).clamp(1, rows.max(1));
    let down = if style == Style::Plain { tall.div_ceil(2) } else { tall };
    let cell = |r: usize, c: usize| {
        let (r0, r1) = (r * rows / down, ((r + 1) * rows / down).max(r * rows / down + 1));
        let (c0, c1) = (c * columns / across, ((c + 1) * columns / across).max(c * columns / across + 1));
        Cell::mean((r0..r1).flat_map(|r| (c0..c1).map(move |c| r * columns + c)).map(&cells))
    };
    match style {
        Style::Plain => {
            for r in 0..down {
                text.extend((0..across).map(|c| match cell(r, c) {
                    Cell::Value(value) => char::from(RAMP[step(scale.level(value), RAMP.len())]),
                    Cell::Missing => MISSING,
                    Cell::Masked => MASKED,
                    Cell::Outside => OUTSIDE,
                }));
                text.push('\n');
            }
        }
        _ => {
            for r in (0..down).step_by(2) {
                for c in 0..across {
                    let below = if r + 1 < down { cell(r + 1, c) } else { Cell::Outside };
                    half_block(&mut text, colour(cell(r, c), scale, style), colour(below, scale, style));
                }
                text.push_str("\x1b[0m\n");
            }
        }
    }
    text
}

/// Draws a row of elements as columns of `height` characters.
pub fn line(values: &[f64], width: usize, height: usize, style: Style) -> String {
    let Extremes { min, max, .. } = extremes(values);
    let across = values.len().min(width.max(1));
    let bar = |c: usize| {
        let (a, b) = (c * values.len() / across, ((c + 1) * values.len() / across));
        let part = values[a..b].iter().filter(|v| v.is_finite());
        let (sum, n) = part.fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
        (n > 0).then(|| level(sum / f64::from(n), min, max))
    };
    let bars: Vec<_> = (0..across).map(bar).collect();
    let marks: &[char] = match style {
        Style::Plain => &[' ', '#'],
        _ => &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
    };
    let full = marks.len() - 1;
    let mut text = String::new();
    for row in (0..height).rev() {
        for level in &bars {
            // At least one mark, so that the smallest is distinguished from a missing one.
            let filled = level.map_or(0, |l| ((l * (height * full) as f64).round() as usize).max(1));
            text.push(marks[filled.saturating_sub(row * full).min(full)]);
        }
        text.push('\n');
    }
    text
}

/// The place of a value between the extremes: 0 to 1.
fn level(value: f64, min: f64, max: f64) -> f64 {
    // Halves, so that the span of the largest floats does not overflow.
    let span = max / 2.0 - min / 2.0;
    if span > 0.0 { ((value / 2.0 - min / 2.0) / span).clamp(0.0, 1.0) } else { 0.5 }
}

fn step(level: f64, steps: usize) -> usize {
    ((level * steps as f64) as usize).min(steps - 1)
}

fn half_block(text: &mut String, above: Option<String>, below: Option<String>) {
    // Writing to a String cannot fail.
    let _ = match (above, below) {
        (Some(upper), Some(lower)) => write!(text, "\x1b[38;{upper};48;{lower}m▀"),
        (Some(upper), None) => write!(text, "\x1b[0;38;{upper}m▀"),
        (None, Some(lower)) => write!(text, "\x1b[0;38;{lower}m▄"),
        (None, None) => write!(text, "\x1b[0m "),
    };
}

/// The colour of an element as a terminal takes it; `None` outside.
fn colour(cell: Cell, scale: Scale, style: Style) -> Option<String> {
    let [red, green, blue] = match cell {
        Cell::Outside => return None,
        Cell::Missing => [f64::from(MISSING_GREY); 3],
        Cell::Masked => [f64::from(MASKED_GREY); 3],
        Cell::Value(value) => {
            let at = scale.level(value) * (scale.colours.len() - 1) as f64;
            let low = (at as usize).min(scale.colours.len() - 2);
            let (from, to) = (scale.colours[low], scale.colours[low + 1]);
            let mix = |i: usize| {
                let (a, b) = (f64::from(from[i]), f64::from(to[i]));
                a + (b - a) * (at - low as f64)
            };
            [mix(0), mix(1), mix(2)]
        }
    };
    Some(match style {
        Style::TrueColour => format!("2;{};{};{}", red as u8, green as u8, blue as u8),
        _ => {
            let cube = |v: f64| (v / 255.0 * 5.0).round() as u32;
            format!("5;{}", 16 + 36 * cube(red) + 6 * cube(green) + cube(blue))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[f64], rows: usize, columns: usize, width: usize, style: Style) -> String {
        let cell = |at: usize| if values[at].is_finite() { Cell::Value(values[at]) } else { Cell::Missing };
        image(cell, rows, columns, width, style)
    }

    #[test]
    fn a_ramp_of_characters_shows_low_and_high() {
        let values: Vec<f64> = (0..36).map(|i| f64::from(i % 9)).collect();
        assert_eq!(drawn(&values, 4, 9, 80, Style::Plain), ".:-=+*#%@\n".repeat(2));
        assert_eq!(drawn(&[], 0, 5, 80, Style::Plain), "");
    }

    #[test]
    fn missing_masked_and_outside_differ() {
        let cells = [Cell::Value(1.0), Cell::Missing, Cell::Masked, Cell::Outside];
        assert_eq!(image(|at| cells[at], 1, 4, 80, Style::Plain), "+?x \n");
        // Of several cells in one mark a value counts most.
        assert_eq!(image(|at| cells[at], 1, 4, 2, Style::Plain), "+x\n");
        let text = image(|at| cells[at], 1, 4, 80, Style::TrueColour);
        assert!(text.contains("2;168;168;168") && text.contains("2;88;88;88"), "{text:?}");
        assert!(text.ends_with("\x1b[0m \x1b[0m\n"), "{text:?}");
    }

    #[test]
    fn values_on_both_sides_of_zero_diverge() {
        let text = drawn(&[-1.0, 0.0, 4.0], 1, 3, 80, Style::TrueColour);
        assert!(text.contains("2;247;247;247") && text.contains("2;103;0;31"), "{text:?}");
        assert!(!text.contains("2;5;48;97"), "either side reaches as far: {text:?}");
        // Rounding below zero is not a side.
        let text = drawn(&[-0.001, 4.0], 1, 2, 80, Style::TrueColour);
        assert!(text.contains("2;68;1;84"), "{text:?}");
    }

    #[test]
    fn what_is_wider_than_the_terminal_is_averaged() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i / 100)).collect();
        let text = drawn(&values, 1, 200, 10, Style::Plain);
        assert_eq!(text, ".....@@@@@\n");
        assert_eq!(drawn(&values, 2, 100, 10, Style::Plain).lines().count(), 1);
    }

    #[test]
    fn half_blocks_hold_two_rows_each() {
        let text = drawn(&[0.0, 1.0, 2.0], 3, 1, 80, Style::TrueColour);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("38;2;68;1;84") && text.contains("38;2;253;231;37"), "{text:?}");
        assert!(drawn(&[0.0, 1.0], 2, 1, 80, Style::Colours).contains("38;5;"));
    }

    #[test]
    fn lines_rise() {
        assert_eq!(line(&[0.0, 1.0, 2.0], 80, 2, Style::Plain), "  #\n###\n");
        assert_eq!(line(&[], 80, 1, Style::Plain), "\n");
        assert_eq!(extremes(&[f64::NAN]).missing, 1);
    }

    #[test]
    fn extreme_floats_do_not_overflow() {
        assert_eq!(drawn(&[f64::MIN, 0.0, f64::MAX], 1, 3, 80, Style::Plain), ".+@\n");
        assert_eq!(drawn(&[f64::MIN, 0.0, f64::MAX], 1, 3, 80, Style::TrueColour).lines().count(), 1);
    }
}
