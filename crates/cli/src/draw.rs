//! Arrays drawn in a terminal: half blocks in colour, or a ramp of characters where there is none.

use std::fmt::Write;

/// Characters from empty to full.
const RAMP: &[u8] = b" .:-=+*#%@";
/// The character for a missing element without colour.
const MISSING: char = '?';
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
    /// The colours of the terminal, if `colour` is wanted.
    pub fn of_terminal(colour: bool) -> Style {
        let full = std::env::var("COLORTERM").is_ok_and(|v| v == "truecolor" || v == "24bit");
        match (colour, full) {
            (false, _) => Style::Plain,
            (true, false) => Style::Colours,
            (true, true) => Style::TrueColour,
        }
    }
}

/// The extremes of the drawn elements.
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

/// Draws `rows` times `columns` elements, the first row on top, at most `width` characters wide and of
/// about the array's proportions.
pub fn image(values: &[f64], rows: usize, columns: usize, width: usize, style: Style) -> String {
    let mut text = String::new();
    if rows == 0 || columns == 0 {
        return text;
    }
    let Extremes { min, max, .. } = extremes(values);
    let across = columns.min(width.max(1));
    // A character is about twice as high as wide; a half block is about square.
    let tall = (rows * across).div_ceil(columns).clamp(1, rows.max(1));
    let down = if style == Style::Plain { tall.div_ceil(2) } else { tall };
    let cell = |r: usize, c: usize| {
        let (r0, r1) = (r * rows / down, ((r + 1) * rows / down).max(r * rows / down + 1));
        let (c0, c1) = (c * columns / across, ((c + 1) * columns / across).max(c * columns / across + 1));
        let lines = (r0..r1).flat_map(|r| values.get(r * columns + c0..r * columns + c1)).flatten();
        let (sum, n) = lines.filter(|v| v.is_finite()).fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
        (n > 0).then(|| level(sum / f64::from(n), min, max))
    };
    match style {
        Style::Plain => {
            for r in 0..down {
                text.extend((0..across).map(|c| match cell(r, c) {
                    Some(level) => char::from(RAMP[step(level, RAMP.len())]),
                    None => MISSING,
                }));
                text.push('\n');
            }
        }
        _ => {
            for r in (0..down).step_by(2) {
                for c in 0..across {
                    let below = if r + 1 < down { cell(r + 1, c) } else { None };
                    half_block(&mut text, cell(r, c), below, style);
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

/// The position of a value between the extremes: 0 to 1.
fn level(value: f64, min: f64, max: f64) -> f64 {
    // Halves, so that the span of the largest floats does not overflow.
    let span = max / 2.0 - min / 2.0;
    if span > 0.0 { ((value / 2.0 - min / 2.0) / span).clamp(0.0, 1.0) } else { 0.5 }
}

fn step(level: f64, steps: usize) -> usize {
    ((level * steps as f64) as usize).min(steps - 1)
}

fn half_block(text: &mut String, above: Option<f64>, below: Option<f64>, style: Style) {
    let (upper, lower) = (above.map(|l| colour(l, style)), below.map(|l| colour(l, style)));
    // Writing to a String cannot fail.
    let _ = match (upper, lower) {
        (Some(upper), Some(lower)) => write!(text, "\x1b[38;{upper};48;{lower}m▀"),
        (Some(upper), None) => write!(text, "\x1b[0;38;{upper}m▀"),
        (None, Some(lower)) => write!(text, "\x1b[0;38;{lower}m▄"),
        (None, None) => write!(text, "\x1b[0m "),
    };
}

/// The colour of a level as a terminal takes it.
fn colour(level: f64, style: Style) -> String {
    let at = level * (COLOURS.len() - 1) as f64;
    let low = (at as usize).min(COLOURS.len() - 2);
    let mix = |i: usize| {
        let (a, b) = (f64::from(COLOURS[low][i]), f64::from(COLOURS[low + 1][i]));
        a + (b - a) * (at - low as f64)
    };
    let [red, green, blue] = [mix(0), mix(1), mix(2)];
    match style {
        Style::TrueColour => format!("2;{};{};{}", red as u8, green as u8, blue as u8),
        _ => {
            let cube = |v: f64| (v / 255.0 * 5.0).round() as u32;
            format!("5;{}", 16 + 36 * cube(red) + 6 * cube(green) + cube(blue))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_of_characters_shows_low_and_high() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i % 10)).collect();
        assert_eq!(image(&values, 4, 10, 80, Style::Plain), " .:-=+*#%@\n".repeat(2));
        assert_eq!(image(&[1.0, f64::NAN], 1, 2, 80, Style::Plain), "+?\n");
        assert_eq!(image(&[], 0, 5, 80, Style::Plain), "");
    }

    #[test]
    fn what_is_wider_than_the_terminal_is_averaged() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i / 100)).collect();
        let text = image(&values, 1, 200, 10, Style::Plain);
        assert_eq!(text, "     @@@@@\n");
        assert_eq!(image(&values, 2, 100, 10, Style::Plain).lines().count(), 1);
    }

    #[test]
    fn half_blocks_hold_two_rows_each() {
        let text = image(&[0.0, 1.0, 2.0], 3, 1, 80, Style::TrueColour);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("38;2;68;1;84") && text.contains("38;2;253;231;37"), "{text:?}");
        assert!(image(&[0.0, 1.0], 2, 1, 80, Style::Colours).contains("38;5;"));
    }

    #[test]
    fn lines_rise() {
        assert_eq!(line(&[0.0, 1.0, 2.0], 80, 2, Style::Plain), "  #\n###\n");
        assert_eq!(line(&[], 80, 1, Style::Plain), "\n");
        assert_eq!(extremes(&[f64::NAN]).missing, 1);
    }

    #[test]
    fn extreme_floats_do_not_overflow() {
        assert_eq!(image(&[f64::MIN, 0.0, f64::MAX], 1, 3, 80, Style::Plain), " +@\n");
    }
}
