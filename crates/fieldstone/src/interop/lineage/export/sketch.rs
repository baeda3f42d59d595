//! The part of a lineage that a picture shows: a box for data, a box for each unit, arrows in the direction of the data
//! flow.
//!
//! * A job and its processes are one box; users, and programs that nothing in the lineage made, are words in it.
//! * Many data that the same units read and wrote are one stack.
//! * If a picture cannot hold everything, the most distant boxes are left out and counted.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::value::Value;
use fieldstone_graph::dossier::{Dossier, is_execution};

use super::names::{base, bytes_text, folder, short, span_text, stamp_text};
use crate::interop::lineage::VertexName;
use crate::interop::lineage::units::{Contact, Unit, units};

/// This many data of one folder whose names differ only in numbers become one stack.
const SERIES: usize = 4;
/// This many data of one type become one stack, whatever their names.
const STACK: usize = 9;
/// Names that the tip of a stack lists.
const LISTED: usize = 40;
/// Characters of a tip.
const TIP: usize = 1500;

/// The meaning of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxShape {
    Data,
    Stack,
    Execution,
    Failed,
}

/// A box.
#[derive(Debug, Clone)]
pub struct FigureBox {
    pub shape: BoxShape,
    pub title: String,
    pub detail: String,
    pub tip: String,
    /// Whether it is a subject of the lineage.
    pub root: bool,
    /// When it began, or was first read or written.
    pub time: u64,
    depth: u32,
    /// Number of vertices that it represents.
    count: usize,
}

/// An arrow between two boxes.
#[derive(Debug, Clone)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub tip: String,
    /// Whether it leads from a program to its execution.
    pub program: bool,
}

/// Boxes and arrows.
#[derive(Debug, Default)]
pub struct Sketch {
    pub boxes: Vec<FigureBox>,
    pub arrows: Vec<Arrow>,
    /// Number of omitted vertices.
    pub hidden: usize,
}

/// Uses of data by units: unit, kind of use, and relations.
type Uses<'a> = BTreeMap<&'a VertexName, Vec<(usize, char, &'a Contact)>>;

/// Data grouped by type and by their uses.
type Alike<'a> = BTreeMap<(&'a str, Vec<(usize, char)>), Vec<&'a VertexName>>;

/// The picture of a lineage, with at most `most` boxes.
pub fn sketch(dossier: &Dossier, most: usize) -> Sketch {
    let all = units(dossier);
    let depths: BTreeMap<&VertexName, u32> =
        dossier.lineage.vertices.iter().map(|step| (&step.name, step.depth)).collect();
    let mut uses: Uses<'_> = BTreeMap::new();
    for (i, unit) in all.iter().enumerate() {
        for (kind, contacts) in [('r', &unit.reads), ('w', &unit.writes), ('x', &unit.programs)] {
            contacts
                .iter()
                .for_each(|contact| uses.entry(&contact.data).or_default().push((i, kind, contact)));
        }
    }
    // A program that nothing made, read or asked for is a word.
    let roots: BTreeSet<&VertexName> = dossier.lineage.roots.iter().collect();
    uses.retain(|data, of_it| roots.contains(data) || of_it.iter().any(|(_, kind, _)| *kind != 'x'));
    let mut boxes: Vec<FigureBox> = all.iter().map(|unit| unit_box(dossier, unit, &depths, &roots)).collect();
    let mut arrows = Vec::new();
    let mut alike: Alike<'_> = BTreeMap::new();
    let data = dossier.vertices().filter(|name| !is_execution(&name.kind));
    for data in data.filter(|data| uses.contains_key(data) || roots.contains(data)) {
        let of_it = uses.get(data).map(Vec::as_slice).unwrap_or_default();
        let mut role: Vec<(usize, char)> = of_it.iter().map(|(unit, kind, _)| (*unit, *kind)).collect();
        role.sort_unstable();
        // Subjects stay apart from others, and each of a few subjects alone.
        if roots.contains(data) {
            role.push((usize::MAX, ' '));
        }
        alike.entry((&data.kind, role)).or_default().push(data);
    }
    for ((_, _), group) in alike {
        for part in stacks(group) {
            let stacked = part.len() > 1;
            let place = boxes.len();
            boxes.push(data_box(dossier, &part, &uses, &depths, &roots));
            let Some(of_it) = part.first().and_then(|first| uses.get(first)) else { continue };
            for (unit, kind, contact) in of_it {
                let (from, to) = if *kind == 'w' { (*unit, place) } else { (place, *unit) };
                let verb = match kind {
                    'r' => "read",
                    'w' => "written",
                    _ => "executed",
                };
                let tip = if stacked { verb.to_owned() } else { arrow_tip(verb, contact) };
                arrows.push(Arrow { from, to, tip, program: *kind == 'x' });
            }
        }
    }
    cut(Sketch { boxes, arrows, hidden: 0 }, most)
}

/// Data with the same readers and writers, as boxes: first series, then the rest one by one, if there are few.
fn stacks(group: Vec<&VertexName>) -> Vec<Vec<&VertexName>> {
    let mut series: BTreeMap<(Option<&str>, String), Vec<&VertexName>> = BTreeMap::new();
    for data in group {
        series.entry((folder(data), pattern(base(data)))).or_default().push(data);
    }
    let (mut stacks, rest): (Vec<Vec<&VertexName>>, Vec<_>) =
        series.into_values().partition(|series| series.len() >= SERIES);
    let rest: Vec<&VertexName> = rest.into_iter().flatten().collect();
    match rest.len() {
        0 => {}
        n if n < STACK => stacks.extend(rest.into_iter().map(|one| vec![one])),
        _ => stacks.push(rest),
    }
    stacks
}

/// A name with `#` in place of each number.
fn pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !pattern.ends_with('#') {
            pattern.push(c);
        }
    }
    pattern
}

fn arrow_tip(verb: &str, contact: &Contact) -> String {
    let mut tip = format!("{verb} {}", stamp_text(contact.begin));
    if contact.count > 1 {
        tip.push_str(&format!(", {} times", contact.count));
    }
    if let Some(bytes) = contact.bytes {
        tip.push_str(&format!(", {}", bytes_text(bytes)));
    }
    if let Some(checksum) = &contact.checksum {
        tip.push_str(&format!(", {}", short(checksum, 80)));
    }
    tip
}

/// Leaves out the boxes farthest from the subjects.
fn cut(mut sketch: Sketch, most: usize) -> Sketch {
    if sketch.boxes.len() <= most {
        return sketch;
    }
    let mut order: Vec<usize> = (0..sketch.boxes.len()).collect();
    order.sort_by_key(|i| (!sketch.boxes[*i].root, sketch.boxes[*i].depth, *i));
    let kept: BTreeSet<usize> = order.iter().take(most).copied().collect();
    sketch.hidden = order.iter().skip(most).map(|i| sketch.boxes[*i].count).sum();
    let new: BTreeMap<usize, usize> = kept.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let arrows = std::mem::take(&mut sketch.arrows).into_iter();
    sketch.arrows = arrows
        .filter_map(|arrow| Some(Arrow { from: *new.get(&arrow.from)?, to: *new.get(&arrow.to)?, ..arrow }))
        .collect();
    sketch.boxes = kept.iter().map(|i| sketch.boxes[*i].clone()).collect();
    sketch
}

fn unit_box(
    dossier: &Dossier,
    unit: &Unit,
    depths: &BTreeMap<&VertexName, u32>,
    roots: &BTreeSet<&VertexName>,
) -> FigureBox {
    let members = || std::iter::once(&unit.name).chain(&unit.parts);
    let failure = unit.failure(dossier);
    let mut words = unit.user_names(dossier).into_iter().map(|user| short(user, 20)).collect::<Vec<_>>();
    words.extend(unit.duration(dossier).map(span_text));
    if unit.parts.len() > 1 {
        words.push(format!("{} processes", unit.parts.len()));
    }
    words.extend(failure.as_ref().map(|why| short(why, 30)));
    let mut tip = vec![unit.name.to_string()];
    if let Some(Value::List(argv) | Value::Array(argv)) = unit.prop(dossier, "argv") {
        let words: Vec<String> = argv
            .iter()
            .map(|word| if let Value::Text(text) = word { text.clone() } else { word.to_string() })
            .collect();
        tip.push(words.join(" "));
    }
    for (name, prefix) in [("cwd", "in "), ("host", "on ")] {
        tip.extend(unit.text(dossier, name).map(|text| format!("{prefix}{text}")));
    }
    if unit.begin != u64::MAX {
        tip.push(format!("began {}", stamp_text(unit.begin)));
    }
    tip.extend(unit.programs.iter().map(|program| format!("executed {}", program.data.id)));
    tip.extend(failure.clone());
    FigureBox {
        shape: if failure.is_some() { BoxShape::Failed } else { BoxShape::Execution },
        title: short(&unit.title(dossier), 28),
        detail: if words.is_empty() { short(&unit.name.to_string(), 30) } else { words.join(" · ") },
        tip: short_lines(&tip),
        root: members().any(|member| roots.contains(member)),
        time: unit.begin,
        depth: members().filter_map(|member| depths.get(member)).copied().min().unwrap_or(u32::MAX),
        count: members().count(),
    }
}

fn short_lines(lines: &[String]) -> String {
    lines.iter().map(|line| short(line, TIP)).collect::<Vec<_>>().join("\n")
}

fn data_box(
    dossier: &Dossier,
    group: &[&VertexName],
    uses: &Uses<'_>,
    depths: &BTreeMap<&VertexName, u32>,
    roots: &BTreeSet<&VertexName>,
) -> FigureBox {
    let of_it = || group.iter().filter_map(|data| uses.get(data)).flatten();
    let begin = of_it().map(|(.., contact)| contact.begin).min().unwrap_or_default();
    let depth = group.iter().filter_map(|data| depths.get(data)).copied().min().unwrap_or(u32::MAX);
    let mut sorted: Vec<&VertexName> = group.to_vec();
    sorted.sort();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return FigureBox {
            shape: BoxShape::Data,
            title: String::new(),
            detail: String::new(),
            tip: String::new(),
            root: false,
            time: begin,
            depth,
            count: 0,
        };
    };
    let common = group.iter().all(|data| folder(data) == folder(first));
    let within = folder(first).filter(|_| common).map(|folder| short(folder, 30));
    let mut tip: Vec<String> = sorted.iter().take(LISTED).map(|data| data.to_string()).collect();
    let (title, detail) = if group.len() > 1 {
        if sorted.len() > LISTED {
            tip.push(format!("… {} in all", sorted.len()));
        }
        let noun =
            if &*first.kind == "directory" { "directories" } else { &format!("{}s", short(&first.kind, 20)) };
        let place = within.map(|folder| format!(" in {folder}")).unwrap_or_default();
        (
            format!("{} … {}", short(base(first), 16), short(base(last), 16)),
            format!("{} {noun}{place}", group.len()),
        )
    } else {
        let written = of_it().filter(|(_, kind, contact)| *kind == 'w' && contact.count == 1);
        let size = match dossier.prop(first, "size") {
            Some(Value::Int(size)) => Some(*size),
            _ => written.filter_map(|(.., contact)| contact.bytes).next_back(),
        };
        let fields = of_it().filter_map(|(.., contact)| contact.fields).max();
        let name = match (dossier.prop(first, "name"), fields) {
            (Some(Value::Text(name)), _) if !name.is_empty() => name.clone(),
            (_, Some(1)) if &*first.kind == "commit" => "1 field".to_owned(),
            (_, Some(n)) if &*first.kind == "commit" => format!("{n} fields"),
            _ => base(first).to_owned(),
        };
        let request = of_it().filter_map(|(.., contact)| contact.request.as_deref()).next();
        let within = within.or(request.map(|request| short(request, 40)));
        let place = within.unwrap_or_else(|| short(&first.kind, 20));
        let size = size.map(|size| format!(" · {}", bytes_text(size))).unwrap_or_default();
        (short(&name, 30), format!("{place}{size}"))
    };
    FigureBox {
        shape: if group.len() > 1 { BoxShape::Stack } else { BoxShape::Data },
        title,
        detail,
        tip: short_lines(&tip),
        root: group.iter().any(|data| roots.contains(data)),
        time: begin,
        depth,
        count: group.len(),
    }
}
