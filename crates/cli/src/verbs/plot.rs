//! `fieldstone plot`: a field as a picture, in the terminal or as PNG.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::{Code, json};
use serde_json::json;

use crate::arguments::{Reading, Selecting, one_field};
use crate::draw::{self, Style};
use crate::elements::Axis;
use crate::output::{Done, Out, file_error};
use crate::picture::Picture;
use crate::region::Region;

/// Characters across, where there is no terminal.
const WIDTH: usize = 80;
/// Rows of a line plot.
const LINE_ROWS: usize = 12;

const EXAMPLES: &str = "\
Examples:
  fieldstone plot store run=a variable=t step=6
  fieldstone plot store run=a variable=t step=6 -o t6.png
  fieldstone plot store run=a variable=wind step=6 --box 0,3,:,:

A field on an unstructured mesh is drawn at its nodes, edges, faces or volumes; for volumes, only the surface.

Without -o the field is drawn as text. PNG needs matplotlib and GRIB messages need eccodes: the program
asks a Python that has the package fieldstone for both (FIELDSTONE_PYTHON names another one).";

/// Draw a field in the terminal or as PNG
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// Write a PNG file (-: to stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The part of the array to draw, one or two dimensions, such as 0,3,:,10:50
    #[arg(long = "box", visible_alias = "slice", value_name = "BOX")]
    region: Option<String>,
    /// Pixels of the PNG
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "900x600", value_parser = size)]
    size: [u32; 2],
    /// Fill unwritten parts
    #[arg(long)]
    lenient: bool,
}

/// Draws.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let region = arguments.region.as_deref().map(Region::parse).transpose()?;
    let request = arguments.selecting.parse()?;
    let store = arguments.store.open()?;
    let mut field = one_field(&store, &request)?;
    if arguments.lenient {
        field = field.lenient();
    }
    let key = field.key()?;
    let picture = Picture::of(&store, &field, region.as_ref())?;
    if let Some(taken) = &picture.taken {
        out.note(format_args!("drawing [{taken}]: choose another part with --box"));
    }
    let found = draw::extremes(&picture.values);
    let file = arguments.output.as_deref();
    if let Some(path) = file {
        let png = picture.png(&key.to_string(), arguments.size)?;
        if path == Path::new("-") {
            if out.json() {
                return Err(Code::CommandLine
                    .error("a PNG is not JSON")
                    .with_hint("name a file with -o")
                    .into());
            }
            if out.is_terminal() {
                return Err(Code::CommandLine
                    .error("a PNG would garble the terminal")
                    .with_hint("name a file with -o")
                    .into());
            }
            return Ok(out.write_all(&png)?);
        }
        std::fs::write(path, &png).map_err(|e| file_error("write", path, e))?;
        if !out.json() {
            out.note(format_args!("{}: {} bytes", path.display(), png.len()));
        }
    } else if !out.json() {
        let width = out.width().unwrap_or(WIDTH);
        let style = Style::of_terminal(out.colour());
        out.write_all(text(&picture, width, style).as_bytes())?;
        let label =
            if picture.label.is_empty() { key.to_string() } else { format!("{key} {}", picture.label) };
        let missing = if found.missing > 0 { format!(", {} missing", found.missing) } else { String::new() };
        writeln!(out, "{label}: {} to {}{missing}", short(found.min), short(found.max))?;
    }
    if out.json() {
        out.document(&json!({
            "key": json::fields::key(&key, 3),
            "shape": picture.shape,
            "label": picture.label,
            "box": picture.taken.as_ref().or(arguments.region.as_ref()),
            "min": found.min,
            "max": found.max,
            "missing": found.missing,
            "file": file.map(Path::to_string_lossy),
        }))?;
    }
    Ok(())
}

/// The picture as text: north up where the rows have latitudes.
fn text(picture: &Picture, width: usize, style: Style) -> String {
    match (&picture.shape[..], &picture.x, &picture.y) {
        (&[n], Some(x), Some(y)) if x.values.len() == n && y.values.len() == n => {
            let (grid, rows, columns) = scattered(picture, x, y, width);
            draw::image(&grid, rows, columns, width, style)
        }
        (&[rows, columns], _, y) => {
            let ascending = y.as_ref().is_some_and(|y| match (y.values.first(), y.values.last()) {
                (Some(first), Some(last)) => first < last,
                _ => false,
            });
            if !ascending || columns == 0 {
                return draw::image(&picture.values, rows, columns, width, style);
            }
            let flipped: Vec<f64> = picture.values.chunks(columns).rev().flatten().copied().collect();
            draw::image(&flipped, rows, columns, width, style)
        }
        _ => draw::line(&picture.values, width, LINE_ROWS, style),
    }
}

/// Points sorted into a raster, highest y on top; each cell has the mean of its points.
fn scattered(picture: &Picture, x: &Axis, y: &Axis, width: usize) -> (Vec<f64>, usize, usize) {
    let (columns, rows) = (width, width.div_ceil(2));
    let (across, down) = (draw::extremes(&x.values), draw::extremes(&y.values));
    let cell = |v: f64, min: f64, max: f64, n: usize| {
        let level = if max > min { (v - min) / (max - min) } else { 0.5 };
        ((level * n as f64) as usize).min(n - 1)
    };
    let mut cells = vec![(0.0, 0u32); rows * columns];
    for ((&value, &x), &y) in picture.values.iter().zip(&x.values).zip(&y.values) {
        if value.is_finite() && x.is_finite() && y.is_finite() {
            let row = rows - 1 - cell(y, down.min, down.max, rows);
            let (sum, n) = &mut cells[row * columns + cell(x, across.min, across.max, columns)];
            *sum += value;
            *n += 1;
        }
    }
    let mean = |(sum, n): (f64, u32)| if n > 0 { sum / f64::from(n) } else { f64::NAN };
    let mut cells: Vec<f64> = cells.into_iter().map(mean).collect();
    if picture.mesh.is_some() {
        spread(&mut cells, columns, picture.values.len());
    }
    (cells, rows, columns)
}

/// Gives cells between the points of a mesh their neighbours' mean, up to half the distance between two points.
fn spread(cells: &mut [f64], columns: usize, points: usize) {
    let apart = (cells.len() as f64 / points.max(1) as f64).sqrt();
    for _ in 0..apart.ceil() as usize {
        let before = cells.to_vec();
        for (at, cell) in cells.iter_mut().enumerate().filter(|(_, cell)| cell.is_nan()) {
            let (row, column) = (at / columns, at % columns);
            let near = (row.saturating_sub(1)..=row + 1).flat_map(|r| {
                (column.saturating_sub(1)..=(column + 1).min(columns - 1)).map(move |c| r * columns + c)
            });
            let near = near.filter_map(|near| before.get(near)).filter(|value| value.is_finite());
            let (sum, n) = near.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
            if n > 0 {
                *cell = sum / f64::from(n);
            }
        }
    }
}

/// A number with about six digits.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e9 => format!("{value}"),
        1e-3..1e6 => {
            let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 8) as usize;
            let text = format!("{value:.digits$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.5e}"),
    }
}

fn size(text: &str) -> Result<[u32; 2], String> {
    let pair = text.split_once('x').and_then(|(w, h)| Some([w.parse().ok()?, h.parse().ok()?]));
    let pair = pair.filter(|size: &[u32; 2]| size.iter().all(|n| (100..=8000).contains(n)));
    pair.ok_or_else(|| "two numbers from 100 to 8000, such as 900x600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(values: Vec<f64>, shape: Vec<usize>) -> Picture {
        Picture { values, shape, label: String::new(), x: None, y: None, mesh: None, taken: None }
    }

    fn axis(values: Vec<f64>) -> Option<Axis> {
        Some(Axis { label: String::new(), shape: vec![values.len()], values })
    }

    #[test]
    fn rows_with_ascending_positions_are_drawn_bottom_up() {
        let values: Vec<f64> = (0..4).map(f64::from).flat_map(|v| [v, v]).collect();
        let mut picture = picture(values, vec![4, 2]);
        let down = text(&picture, 80, Style::Plain);
        picture.y = axis(vec![-10.0, 0.0, 10.0, 20.0]);
        let up = text(&picture, 80, Style::Plain);
        assert!(up.lines().rev().eq(down.lines()), "{up}{down}");
        assert_ne!(up, down);
        picture.y = axis(vec![20.0, 10.0, 0.0, -10.0]);
        assert_eq!(text(&picture, 80, Style::Plain), down);
    }

    #[test]
    fn points_lie_where_their_coordinates_say() {
        let mut picture = picture(vec![1.0, 2.0], vec![2]);
        (picture.x, picture.y) = (axis(vec![0.0, 10.0]), axis(vec![0.0, 5.0]));
        let (x, y) = (picture.x.clone().unwrap(), picture.y.clone().unwrap());
        let (grid, rows, columns) = scattered(&picture, &x, &y, 4);
        assert_eq!((rows, columns), (2, 4));
        assert_eq!((grid[4], grid[3]), (1.0, 2.0));
        assert_eq!(grid.iter().filter(|v| v.is_nan()).count(), 6);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(250.0, "250"), (1.0 / 3.0, "0.333333"), (12345.678, "12345.7"), (1e-9, "1.00000e-9")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("300x200"), Ok([300, 200]));
        assert!(size("30x200").is_err() && size("x").is_err());
    }
}
