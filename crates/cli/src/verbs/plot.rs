//! `fieldstone plot`: a field as a picture, in the terminal or as PNG.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::facts::{Coordinates, Direction};
use fieldstone::{Code, json};
use serde_json::json;

use crate::arguments::{Reading, Selecting, one_field};
use crate::caption::short;
use crate::draw::{self, Cell, Style};
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
  fieldstone plot store run=a variable=t step=6 --tag storm -o storms.png

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
    /// Outline in the PNG what attributes with this tag stand on
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
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
    let picture = Picture::of(&store, &field, region.as_ref(), arguments.tag.as_deref())?;
    if let Some(taken) = &picture.taken {
        out.note(format_args!("drawing [{taken}]: choose another part with --box"));
    }
    let found = draw::extremes(&picture.values);
    let masked = picture.masked.iter().flatten().filter(|masked| **masked).count();
    if let (Some(tag), Some(marks)) = (&arguments.tag, &picture.marks) {
        out.note(format_args!("{} attributes with tag={tag} are outlined", marks.hits));
    }
    let file = arguments.output.as_deref();
    if let Some(path) = file {
        write_png(&picture, arguments.size, path, out)?;
        if path == Path::new("-") {
            return Ok(());
        }
    } else if !out.json() {
        let width = out.width().unwrap_or(WIDTH);
        let style = Style::of_terminal(out.colour());
        out.write_all(text(&picture, width, style).as_bytes())?;
        let unit = if picture.units.is_empty() { String::new() } else { format!(" {}", picture.units) };
        let not_drawn = [(found.missing - masked, "missing"), (masked, "masked")].into_iter();
        let not_drawn = not_drawn.filter(|(n, _)| *n > 0).map(|(n, word)| format!(", {n} {word}"));
        let not_drawn: String = not_drawn.collect();
        let (caption, min, max) = (picture.caption.line(), short(found.min), short(found.max));
        match found.min.is_nan() {
            true => writeln!(out, "{caption}: no values{not_drawn}")?,
            false => writeln!(out, "{caption}: {min} to {max}{unit}{not_drawn}")?,
        }
    }
    if out.json() {
        out.document(&json!({
            "key": json::fields::key(&key, 3),
            "shape": picture.shape,
            "title": picture.caption.line(),
            "label": picture.label(),
            "box": picture.taken.as_ref().or(arguments.region.as_ref()),
            "min": found.min,
            "max": found.max,
            "missing": found.missing - masked,
            "masked": masked,
            "hits": picture.marks.as_ref().map(|marks| marks.hits),
            "file": file.map(Path::to_string_lossy),
        }))?;
    }
    Ok(())
}

/// Writes the PNG to a file, or to stdout for `-`.
fn write_png(picture: &Picture, size: [u32; 2], path: &Path, out: &mut Out) -> Done {
    let png = picture.png(size)?;
    if path == Path::new("-") {
        let refused = |why: &str| Err(Code::CommandLine.error(why).with_hint("name a file with -o").into());
        return match (out.json(), out.is_terminal()) {
            (true, _) => refused("a PNG is not JSON"),
            (_, true) => refused("a PNG would garble the terminal"),
            _ => Ok(out.write_all(&png)?),
        };
    }
    std::fs::write(path, &png).map_err(|e| file_error("write", path, e))?;
    if !out.json() {
        out.note(format_args!("{}: {} bytes", path.display(), png.len()));
    }
    Ok(())
}

/// The picture as text: north up where the rows have latitudes, the surface on top where they have depths.
fn text(picture: &Picture, width: usize, style: Style) -> String {
    let cell = |at: usize| match (picture.values.get(at), &picture.masked) {
        (Some(value), _) if value.is_finite() => Cell::Value(*value),
        (Some(_), Some(masked)) if masked.get(at) == Some(&true) => Cell::Masked,
        (Some(_), _) => Cell::Missing,
        (None, _) => Cell::Outside,
    };
    match (&picture.shape[..], &picture.x, &picture.y) {
        (&[n], Some(x), Some(y)) if x.values.len() == n && y.values.len() == n => {
            let (grid, rows, columns) = scattered(picture, x, y, width);
            draw::image(|at| grid[at], rows, columns, width, style)
        }
        (&[rows, columns], _, y) => {
            let rises = y.as_ref().is_some_and(|y| match (y.values.first(), y.values.last()) {
                (Some(first), Some(last)) => (first < last) != (y.direction == Direction::Down),
                _ => false,
            });
            if !rises || columns == 0 {
                return draw::image(cell, rows, columns, width, style);
            }
            let flipped = |at: usize| cell((rows - 1 - at / columns) * columns + at % columns);
            draw::image(flipped, rows, columns, width, style)
        }
        _ => draw::line(&picture.values, width, LINE_ROWS, style),
    }
}

/// Points sorted into a raster, highest y on top; each cell has the mean of its points.
fn scattered(picture: &Picture, x: &Coordinates, y: &Coordinates, width: usize) -> (Vec<Cell>, usize, usize) {
    let (columns, rows) = (width, width.div_ceil(2));
    let across = if x.direction == Direction::Longitude { around(&x.values) } else { x.values.clone() };
    let (reach, down) = (draw::extremes(&across), draw::extremes(&y.values));
    let place = |v: f64, min: f64, max: f64, n: usize| {
        let level = if max > min { (v - min) / (max - min) } else { 0.5 };
        ((level * n as f64) as usize).min(n - 1)
    };
    let mut cells = vec![(0.0, 0u32, Cell::Outside); rows * columns];
    for (at, ((&value, &x), &y)) in picture.values.iter().zip(&across).zip(&y.values).enumerate() {
        if !x.is_finite() || !y.is_finite() {
            continue;
        }
        let row = rows - 1 - place(y, down.min, down.max, rows);
        let (sum, n, none) = &mut cells[row * columns + place(x, reach.min, reach.max, columns)];
        if value.is_finite() {
            *sum += value;
            *n += 1;
        } else {
            let is_masked = picture.masked.as_ref().is_some_and(|masked| masked[at]);
            *none = if is_masked { Cell::Masked } else { Cell::Missing };
        }
    }
    let mean = |(sum, n, none)| if n > 0 { Cell::Value(sum / f64::from(n)) } else { none };
    let mut cells: Vec<Cell> = cells.into_iter().map(mean).collect();
    if picture.mesh.is_some() {
        spread(&mut cells, columns, picture.values.len());
    }
    (cells, rows, columns)
}

/// Longitudes without a jump: those of a region across the date line or Greenwich lie beside one another.
fn around(longitudes: &[f64]) -> Vec<f64> {
    let mut turned: Vec<f64> =
        longitudes.iter().map(|lon| lon.rem_euclid(360.0)).filter(|lon| lon.is_finite()).collect();
    turned.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (turned.first(), turned.last()) else { return longitudes.to_vec() };
    // The map begins behind the widest gap, unless none is wide: then it is of the whole globe.
    let gaps = turned.windows(2).map(|pair| (pair[1] - pair[0], pair[1]));
    let (gap, begin) = gaps.fold((first + 360.0 - last, *first), |a, b| if b.0 > a.0 { b } else { a });
    let found = draw::extremes(longitudes);
    if gap < 30.0 || found.max - found.min <= 360.0 - gap {
        return longitudes.to_vec();
    }
    longitudes.iter().map(|lon| begin + (lon - begin).rem_euclid(360.0)).collect()
}

/// Gives cells between the points of a mesh their neighbours' mean, as far as half the distance of two points.
fn spread(cells: &mut [Cell], columns: usize, points: usize) {
    let apart = (cells.len() as f64 / points.max(1) as f64).sqrt();
    for _ in 0..apart.ceil() as usize {
        let before = cells.to_vec();
        for (at, cell) in cells.iter_mut().enumerate().filter(|(_, cell)| **cell == Cell::Outside) {
            let (row, column) = (at / columns, at % columns);
            let near = (row.saturating_sub(1)..=row + 1).flat_map(|r| {
                (column.saturating_sub(1)..=(column + 1).min(columns - 1)).map(move |c| r * columns + c)
            });
            *cell = Cell::mean(near.filter_map(|near| before.get(near)).copied());
        }
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
        Picture { values, shape, ..Picture::default() }
    }

    fn axis(values: Vec<f64>, direction: Direction) -> Option<Coordinates> {
        let (name, units, shape) = (String::new(), String::new(), vec![values.len()]);
        Some(Coordinates { name, units, direction, shape, values })
    }

    #[test]
    fn rows_with_ascending_positions_are_drawn_bottom_up() {
        let values: Vec<f64> = (0..4).map(f64::from).flat_map(|v| [v, v]).collect();
        let mut picture = picture(values, vec![4, 2]);
        let down = text(&picture, 80, Style::Plain);
        picture.y = axis(vec![-10.0, 0.0, 10.0, 20.0], Direction::Latitude);
        let up = text(&picture, 80, Style::Plain);
        assert!(up.lines().rev().eq(down.lines()), "{up}{down}");
        assert_ne!(up, down);
        picture.y = axis(vec![20.0, 10.0, 0.0, -10.0], Direction::Latitude);
        assert_eq!(text(&picture, 80, Style::Plain), down);
        picture.y = axis(vec![0.0, 5.0, 10.0, 50.0], Direction::Down);
        assert_eq!(text(&picture, 80, Style::Plain), down, "the surface is on top");
    }

    #[test]
    fn points_lie_where_their_coordinates_say() {
        let mut picture = picture(vec![1.0, 2.0], vec![2]);
        let other = Direction::Other;
        (picture.x, picture.y) = (axis(vec![0.0, 10.0], other), axis(vec![0.0, 5.0], other));
        let (x, y) = (picture.x.clone().unwrap(), picture.y.clone().unwrap());
        let (grid, rows, columns) = scattered(&picture, &x, &y, 4);
        assert_eq!((rows, columns), (2, 4));
        assert_eq!((grid[4], grid[3]), (Cell::Value(1.0), Cell::Value(2.0)));
        assert_eq!(grid.iter().filter(|cell| **cell == Cell::Outside).count(), 6);
        // Missing, masked and outside have marks of their own.
        (picture.values, picture.masked) = (vec![f64::NAN, f64::NAN], Some(vec![false, true]));
        assert_eq!(text(&picture, 4, Style::Plain), "?  x\n");
    }

    #[test]
    fn a_region_across_the_date_line_is_drawn_in_one_piece() {
        assert_eq!(around(&[170.0, 180.0, -170.0]), [170.0, 180.0, 190.0]);
        assert_eq!(around(&[350.0, 0.0, 10.0]), [350.0, 360.0, 370.0]);
        for as_they_are in [vec![-30.0, 0.0, 20.0], (0..36).map(|n| f64::from(n) * 10.0 - 180.0).collect()] {
            assert_eq!(around(&as_they_are), as_they_are);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("300x200"), Ok([300, 200]));
        assert!(size("30x200").is_err() && size("x").is_err());
    }
}
