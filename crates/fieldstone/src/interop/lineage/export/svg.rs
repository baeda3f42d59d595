//! A picture of a lineage as SVG: the origins of a result on the left, and the result on the right.
//!
//! It is self-contained: no fonts, no styles, no ids, so that several can be on one page. Every text is escaped; full
//! names are in `<title>`, which viewers show under the mouse pointer (G-44).

use std::fmt::Write as _;

use fieldstone_graph::dossier::Dossier;

use super::layers::{Item, layout};
use super::names::{roots_text, short};
use super::sketch::{BoxShape, FigureBox, Sketch, sketch};

/// Maximum number of boxes in one picture.
const BOXES: usize = 400;
/// Space around everything.
const MARGIN: f64 = 14.0;
/// Height of a box of two lines.
const HEIGHT: f64 = 38.0;
/// Padding in a box, on each side.
const PAD: f64 = 12.0;
const TITLE: f64 = 12.5;
const DETAIL: f64 = 10.0;
const FONT: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";
/// Colour of lines between boxes, and of notes.
const GREY: &str = "#66717b";

/// A text in XML: characters that XML cannot represent are replaced.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Approximate width of a text: Helvetica's widths, rounded up.
fn wide(text: &str, size: f64) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.28,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '\\' | '-' | ' ' | '·' => 0.34,
        'm' | 'M' | 'W' | '@' | '%' => 0.92,
        'w' => 0.75,
        'A'..='Z' => 0.71,
        '…' => 1.0,
        c if c.is_ascii() => 0.57,
        '\u{1100}'.. => 1.0,
        _ => 0.65,
    };
    text.chars().map(of).sum::<f64>() * size
}

fn width(shown: &FigureBox) -> f64 {
    let bold = if matches!(shown.shape, BoxShape::Execution | BoxShape::Failed) { 1.06 } else { 1.0 };
    (wide(&shown.title, TITLE) * bold).max(wide(&shown.detail, DETAIL)).max(44.0) + 2.0 * PAD
}

/// Coordinates with one decimal.
fn n(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The picture.
pub fn picture(dossier: &Dossier) -> String {
    let sketch = sketch(dossier, BOXES);
    let items: Vec<Item> = sketch
        .boxes
        .iter()
        .map(|shown| Item {
            width: width(shown),
            height: HEIGHT,
            odd: matches!(shown.shape, BoxShape::Execution | BoxShape::Failed),
            time: shown.time,
        })
        .collect();
    let arrows: Vec<(usize, usize)> = sketch.arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
    let layout = layout(&items, &arrows);
    let notes = notes(dossier, &sketch);
    let least = notes.iter().map(|note| wide(note, DETAIL)).fold(190.0, f64::max);
    let width = layout.width.max(least) + 2.0 * MARGIN;
    let foot = 26.0 + 14.0 * notes.len() as f64;
    let height = layout.height + 2.0 * MARGIN + foot;
    let name = xml(&short(&roots_text(&dossier.lineage), 300));
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{FONT}\">\n<title>Lineage of {name}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>",
        w = n(width),
        h = n(height),
    );
    let _ = writeln!(
        text,
        "<g fill=\"none\" stroke=\"{GREY}\" stroke-width=\"1.2\" transform=\"translate({MARGIN} {MARGIN})\">"
    );
    for (i, arrow) in sketch.arrows.iter().enumerate() {
        let (Some(route), Some(back)) = (layout.routes.get(i), layout.turned.get(i)) else { continue };
        let dashed = if arrow.program { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(
            text,
            "<g><title>{}</title><path d=\"{}\"{dashed}/>{}</g>",
            xml(&arrow.tip),
            curve(route, *back),
            head(route, *back),
        );
    }
    let _ = writeln!(text, "</g>\n<g transform=\"translate({MARGIN} {MARGIN})\">");
    for (i, shown) in sketch.boxes.iter().enumerate() {
        let (Some((x, y)), Some(item)) = (layout.corners.get(i), items.get(i)) else { continue };
        draw(&mut text, shown, *x, *y, item.width);
    }
    text.push_str("</g>\n");
    legend(&mut text, &sketch, &notes, height - foot);
    text.push_str("</svg>\n");
    text
}

/// The notes below the picture.
fn notes(dossier: &Dossier, sketch: &Sketch) -> Vec<String> {
    let mut notes = Vec::new();
    if sketch.hidden > 0 {
        notes.push(format!("{} more distant vertices are not shown.", sketch.hidden));
    }
    if dossier.lineage.truncated {
        notes.push("The lineage stops at a limit: there is more.".to_owned());
    }
    notes
}

/// The line of an arrow, through its bends.
fn curve(route: &[(f64, f64, f64)], back: bool) -> String {
    let (enter, leave) = if back { (1, 0) } else { (0, 1) };
    let side = |stop: &(f64, f64, f64), which: usize| if which == 0 { stop.0 } else { stop.1 };
    // Leave room for the head.
    let short = if back { 5.0 } else { -5.0 };
    // An arrow back is drawn a little lower than one forward.
    let low = if back { 9.0 } else { 0.0 };
    let mut path = String::new();
    for (i, pair) in route.windows(2).enumerate() {
        let (from, to) = (&pair[0], &pair[1]);
        let (x, mut end) = (side(from, leave), side(to, enter));
        if i == 0 {
            let _ = write!(path, "M{} {}", n(x), n(from.2 + low));
        }
        if i + 2 == route.len() {
            end += short;
        }
        let middle = (x + end) / 2.0;
        let (y, to_y) = (from.2 + low, to.2 + low);
        let _ = write!(path, "C{m} {} {m} {} {} {}", n(y), n(to_y), n(end), n(to_y), m = n(middle));
        if i + 2 < route.len() {
            let _ = write!(path, "H{}", n(side(to, leave)));
        }
    }
    path
}

/// The head of an arrow: it always arrives level.
fn head(route: &[(f64, f64, f64)], back: bool) -> String {
    let Some((left, right, y)) = route.last().copied() else { return String::new() };
    let (tip, base, y) = if back { (right, right + 7.0, y + 9.0) } else { (left, left - 7.0, y) };
    format!(
        "<path d=\"M{} {}L{} {}L{} {}Z\" fill=\"{GREY}\" stroke=\"none\"/>",
        n(tip),
        n(y),
        n(base),
        n(y - 3.5),
        n(base),
        n(y + 3.5)
    )
}

/// Fill, line, and corner radius of a shape.
fn look(shape: BoxShape) -> (&'static str, &'static str, f64) {
    match shape {
        BoxShape::Data | BoxShape::Stack => ("#e9f2fb", "#3a78b5", 9.0),
        BoxShape::Execution => ("#fdf1de", "#b8791c", 0.0),
        BoxShape::Failed => ("#fdecea", "#b3261e", 0.0),
    }
}

fn draw(text: &mut String, shown: &FigureBox, x: f64, y: f64, width: f64) {
    let (fill, line, radius) = look(shown.shape);
    let stroke = if shown.root { 2.6 } else { 1.2 };
    let _ = write!(
        text,
        "<g fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"{stroke}\"><title>{}</title>",
        xml(&shown.tip)
    );
    if shown.shape == BoxShape::Stack {
        for shift in [5.0, 2.5] {
            let _ = write!(
                text,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{HEIGHT}\" rx=\"{radius}\"/>",
                n(x + shift),
                n(y + shift),
                n(width),
            );
        }
    }
    let corners = if radius > 0.0 { format!(" rx=\"{radius}\"") } else { String::new() };
    let _ = write!(
        text,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{HEIGHT}\"{corners}/>",
        n(x),
        n(y),
        n(width),
    );
    let middle = n(x + width / 2.0);
    let weight = if matches!(shown.shape, BoxShape::Execution | BoxShape::Failed) || shown.root {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "<g stroke=\"none\" text-anchor=\"middle\"><text x=\"{middle}\" y=\"{}\" font-size=\"{TITLE}\" fill=\"#1c2730\"{weight}>{}</text>\
         <text x=\"{middle}\" y=\"{}\" font-size=\"{DETAIL}\" fill=\"#4c5a66\">{}</text></g></g>",
        n(y + 16.5),
        xml(&shown.title),
        n(y + 30.0),
        xml(&shown.detail),
    );
}

/// A legend of the shapes, and the notes.
fn legend(text: &mut String, sketch: &Sketch, notes: &[String], top: f64) {
    let _ = writeln!(text, "<g font-size=\"{DETAIL}\" fill=\"{GREY}\">");
    let mut x = MARGIN;
    let has = |shape: BoxShape| sketch.boxes.iter().any(|shown| shown.shape == shape);
    for (shape, word) in
        [(BoxShape::Data, "data"), (BoxShape::Execution, "execution"), (BoxShape::Failed, "failed")]
    {
        let shown = has(shape) || (shape == BoxShape::Data && has(BoxShape::Stack));
        if !shown {
            continue;
        }
        let (fill, line, radius) = look(shape);
        let _ = writeln!(
            text,
            "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"11\" rx=\"{}\" fill=\"{fill}\" stroke=\"{line}\"/><text x=\"{}\" y=\"{}\">{word}</text>",
            n(x),
            n(top + 6.0),
            n(radius.min(4.0)),
            n(x + 24.0),
            n(top + 15.0),
        );
        x += 40.0 + wide(word, DETAIL);
    }
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{}\">{}</text>",
            n(top + 30.0 + 14.0 * i as f64),
            xml(note)
        );
    }
    text.push_str("</g>\n");
}
