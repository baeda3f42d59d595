//! `fieldstone find`: attributes by value, place and time.

use clap::Args;
use fieldstone::catalog::query::{Aggregate, By, PairTable};
use fieldstone::catalog::{BoxInfo, Hit, Writer};
use fieldstone::json::catalog::Users;
use fieldstone::{Code, json};

use crate::arguments::Reading;
use crate::catalog::{
    Asking, box_cell, float_cell, note_why_nothing, or_dash, run_cell, step_cell, value_cell, variable_cell,
    variable_name_cell,
};
use crate::output::{Done, Out, count};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone find store tag=maximum
  fieldstone find store 'tag=maximum and variable=temp* and value>9000 and box=z:50:100'
  fieldstone find store 'tag=maximum order by -value limit 5'
  fieldstone find store 'tag=maximum and with overlapping (tag=vortex)' --jsonl
  fieldstone find store 'tag=maximum and with overlapping (tag=vortex)' --with-related
  fieldstone find store tag=maximum --by run,step
  fieldstone find store 'value>=300 and step=0:24' --count
  fieldstone find store 'user=ann and writer.rank=3 and writer.job=1177*' --writer

For the query language see: fieldstone help query. When the output is not a terminal, each line has run, step,
variable, tag, value, unit and box, separated by tabs, and - for a missing part; --user adds the annotating user,
--writer the annotating process. A run may have its project in front (project:run), a variable its version behind
(name;1), and a box is FROM:TO for each dimension.

With --json: {\"attributes\": [...]}, with --jsonl the same objects, one a line: project, run, step, time,
variable, variable_version, tag, tag_version, unit, type, value, start, count, user and writer; with --with-related a list
`related` of such objects. With --by: groups with count, min, max and mean of the numbers; with --boxes the distinct boxes.";

/// Find attributes by tag, value, place and time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    asking: Asking,
    /// Print the number of attributes
    #[arg(long, conflicts_with_all = ["by", "boxes", "explain"])]
    count: bool,
    /// Print count, least, greatest and mean for each run, step, variable, tag; --by run,step is a time series
    #[arg(long, value_delimiter = ',', value_name = "WHAT,…", conflicts_with_all = ["boxes", "explain"])]
    #[arg(value_parser = ["run", "step", "variable", "tag"])]
    by: Vec<String>,
    /// Also print the user who annotated
    #[arg(long, conflicts_with_all = ["count", "by", "boxes", "explain"])]
    user: bool,
    /// Also print the process that annotated: host, process id, and rank, job and attempt if it named them
    #[arg(long, conflicts_with_all = ["count", "by", "boxes", "explain"])]
    writer: bool,
    /// Print next to each attribute those that `with …` relates to it; with several it takes several rows
    #[arg(long, conflicts_with_all = ["count", "by", "boxes", "explain"])]
    with_related: bool,
    /// Print the distinct boxes
    #[arg(long, conflicts_with = "explain")]
    boxes: bool,
    /// Print the plan of the query
    #[arg(long)]
    explain: bool,
}

/// Finds.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let query = arguments.asking.parse()?;
    let store = arguments.store.open()?;
    let catalog = store.catalog();
    if arguments.explain {
        return out.text(catalog.explain(&query)? + "\n");
    }
    if arguments.count {
        let count = catalog.count(&query)?;
        return match out.json() {
            true => out.document(&json::catalog::count(count)),
            false => {
                out.line(count)?;
                out.line_done()
            }
        };
    }
    if !arguments.by.is_empty() {
        return groups(&catalog.aggregate(&query, &arguments.by()?)?, &arguments.by()?, out);
    }
    if arguments.boxes {
        return boxes(&catalog.boxes(&query)?, out);
    }
    if arguments.with_related {
        let found = catalog.pairs(&query)?;
        if found.hits.value.is_empty() {
            note_why_nothing(catalog, &query, out);
        }
        return pairs(&found, arguments.who(), &Users::of(catalog), out);
    }
    let mut hits = catalog.stream(&query)?.peekable();
    if hits.peek().is_none() {
        note_why_nothing(catalog, &query, out);
    }
    let users = Users::of(catalog);
    let shape = |hit| json::catalog::hit(&hit, &users);
    table::list(out, "attributes", hits, shape, columns(arguments.who(), ""), |hit| {
        cells(&hit, arguments.who(), &users)
    })
}

/// The columns that name the annotating user and process.
#[derive(Clone, Copy)]
struct Who {
    user: bool,
    writer: bool,
}

/// Hits, each with its related attributes.
fn pairs(found: &PairTable, who: Who, users: &Users, out: &mut Out) -> Done {
    let rows = (0..found.hits.value.len()).filter_map(|row| {
        let beside: Vec<Hit> = found.related.iter().filter_map(|table| table.hit(row)).collect();
        found.hits.hit(row).map(|hit| (hit, beside))
    });
    let mut heads = columns(who, "");
    for at in 1..=found.related.len() {
        let prefix = if found.related.len() == 1 { "related.".to_owned() } else { format!("related{at}.") };
        heads.extend(columns(who, &prefix).into_iter().skip(1));
    }
    let shape = |(hit, beside): (Hit, Vec<Hit>)| json::catalog::hit_beside(&hit, &beside, users);
    table::list(out, "attributes", rows.map(Ok), shape, heads, |(hit, beside)| {
        let mut row = cells(&hit, who, users);
        // The run is the same.
        row.extend(beside.iter().flat_map(|mate| cells(mate, who, users).into_iter().skip(1)));
        row
    })
}

fn columns(who: Who, prefix: &str) -> Vec<Column> {
    let name = |name: &str| format!("{prefix}{name}");
    let mut columns = vec![
        Column::text(name("run")).least(8).rank(7),
        Column::number(name("step")).rank(6),
        Column::text(name("variable")).least(8).rank(7),
        Column::text(name("tag")).least(6).rank(8),
        Column::text(name("value")).least(8).rank(9).rounded(),
        Column::text(name("unit")).rank(3),
        Column::text(name("box")).rank(5),
    ];
    columns.extend(who.user.then(|| Column::text(name("user")).least(4).rank(4)));
    columns.extend(who.writer.then(|| Column::text(name("writer")).least(8).rank(4)));
    columns
}

fn cells(hit: &Hit, who: Who, users: &Users) -> Vec<String> {
    let (start, extents) = hit.region.as_ref().map_or((&[][..], &[][..]), |(start, count)| (start, count));
    let run =
        if hit.project.is_empty() { hit.run.to_string() } else { format!("{}:{}", hit.project, hit.run) };
    let mut cells = vec![
        run,
        step_cell(hit.step),
        with_keywords(
            hit.variable
                .as_ref()
                .map_or_else(|| "-".into(), |name| variable_cell(name, hit.variable_version)),
            hit,
        ),
        if hit.tag_version == 0 { hit.tag.to_string() } else { format!("{};{}", hit.tag, hit.tag_version) },
        value_cell(&hit.value),
        if hit.unit.is_empty() { "-".into() } else { hit.unit.to_string() },
        match &hit.cells {
            Some((_, cells)) => {
                format!("{} ({})", box_cell(start, extents), count(cells.len() as u64, "cell"))
            }
            None => box_cell(start, extents),
        },
    ];
    cells.extend(who.user.then(|| users.name(hit.user).to_string()));
    cells.extend(
        who.writer.then(|| users.writer(hit).map_or_else(|| "-".into(), |writer| writer_cell(&writer))),
    );
    cells
}

/// A process: `node7:4711 rank=3 job=1177 attempt=2`.
fn writer_cell(writer: &Writer) -> String {
    let rank = writer.rank.map(|rank| rank.to_string()).unwrap_or_default();
    let parts = [("rank", &rank), ("job", &writer.job), ("attempt", &writer.attempt)];
    let named = parts.iter().filter(|(_, name)| !name.is_empty());
    named.fold(writer.to_string(), |cell, (what, name)| format!("{cell} {what}={name}"))
}

/// A variable with the further keywords of its field: `t number=3`.
fn with_keywords(variable: String, hit: &Hit) -> String {
    let keywords = hit.keywords.iter().flat_map(|all| all.iter());
    keywords.fold(variable, |cell, (keyword, value)| format!("{cell} {keyword}={value}"))
}

impl Arguments {
    fn who(&self) -> Who {
        Who { user: self.user, writer: self.writer }
    }

    fn by(&self) -> fieldstone::Result<Vec<By>> {
        let by = |word: &String| match word.as_str() {
            "run" => Ok(By::Run),
            "step" => Ok(By::Step),
            "variable" => Ok(By::Variable),
            "tag" => Ok(By::Tag),
            _ => Err(Code::CommandLine.error(format!("--by {word}"))),
        };
        self.by.iter().map(by).collect()
    }
}

fn groups(groups: &[Aggregate], by: &[By], out: &mut Out) -> Done {
    let head = by.iter().map(|part| match part {
        By::Run => Column::text("run").least(8).rank(8),
        By::Step => Column::number("step").rank(9),
        By::Variable => Column::text("variable").least(8).rank(8),
        By::Tag => Column::text("tag").least(6).rank(8),
    });
    let numbers = ["count", "min", "max", "mean"].map(|name| Column::number(name).rank(7));
    let shape = |group| json::catalog::group(group, by);
    table::list(out, "groups", groups.iter().map(Ok), shape, head.chain(numbers), |group| {
        let mut row: Vec<String> = by
            .iter()
            .map(|part| match part {
                By::Run => or_dash(group.run.as_ref().map(run_cell)),
                By::Step => step_cell(group.step),
                By::Variable => or_dash(group.variable.as_deref()),
                By::Tag => or_dash(group.tag.as_deref()),
            })
            .collect();
        row.push(group.count.to_string());
        row.extend([group.min, group.max, group.mean].map(float_cell));
        row
    })
}

fn boxes(boxes: &[BoxInfo], out: &mut Out) -> Done {
    let columns = [
        Column::text("run").least(8).rank(6),
        Column::number("step").rank(7),
        Column::text("variable").least(8).rank(8),
        Column::text("box").rank(9),
    ];
    table::list(out, "boxes", boxes.iter().map(Ok), json::catalog::region, columns, |found| {
        let variable = or_dash(found.variable.as_ref().map(variable_name_cell));
        vec![run_cell(&found.run), step_cell(found.step), variable, box_cell(&found.start, &found.count)]
    })
}
