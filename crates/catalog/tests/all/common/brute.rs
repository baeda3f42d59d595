//! Answers queries with plain loops over a [`World`], following the documentation. It uses nothing of the
//! executor except [`Test::matches`] and [`Test::matches_absent`].

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fieldstone_catalog::engine::curve;
use fieldstone_catalog::query::{
    Aggregate, BoxInfo, By, Dim, Expr, Key, NameTest, Pick, Query, Range, Relation, Scope, Term, Where,
    WriterPart,
};
use fieldstone_core::value::{Test, Value};
use fieldstone_format::catalog::{Coordinate, RunDecl, RunName, VariableDecl, VariableName};

use super::meshes;
use super::world::{Attr, WRITER, World};

type Box64 = (Vec<i64>, Vec<i64>);

fn glob(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => glob(&pattern[1..], text) || (!text.is_empty() && glob(pattern, &text[1..])),
        (Some('?'), Some(_)) => glob(&pattern[1..], &text[1..]),
        (Some('['), Some(c)) => {
            let end = pattern.iter().position(|p| *p == ']').unwrap(); // tests have sets of single characters
            pattern[1..end].contains(c) && glob(&pattern[end + 1..], &text[1..])
        }
        (Some(p), Some(c)) => p == c && glob(&pattern[1..], &text[1..]),
        _ => false,
    }
}

fn named(test: &NameTest, name: &str) -> bool {
    match test {
        NameTest::Is(is) => is == name,
        NameTest::Glob(pattern) | NameTest::Typed(pattern) => {
            glob(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        }
        NameTest::Any(tests) => tests.iter().any(|test| named(test, name)),
    }
}

/// The box of an attribute, or of its whole variable.
pub fn bounds(world: &World, attr: &Attr) -> Option<Box64> {
    attr.region.clone().or_else(|| {
        let shape: Vec<i64> = world.variable(attr)?.shape.as_ref()?.iter().map(|n| *n as i64).collect();
        Some((vec![0; shape.len()], shape))
    })
}

fn dim(decl: Option<&VariableDecl>, dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Index(index) => Some(*index),
        Dim::Name(name) => decl?.dims.iter().position(|own| own == name),
    }
}

/// Elements of a range, as first and one past the last; `None` if it names none.
fn elements(decl: Option<&VariableDecl>, index: usize, range: &Range) -> Option<(Option<i64>, Option<i64>)> {
    match range {
        Range::Index(from, to) => match (from, to) {
            (Some(from), Some(to)) if from >= to => None,
            _ => Some((*from, *to)),
        },
        Range::Physical(low, high) => {
            let decl = decl?;
            let coordinate = &decl.coords.iter().find(|(of, _)| *of as usize == index)?.1;
            let extent = decl.shape.as_ref().map_or(200, |shape| shape[index]);
            let at = |i: u64| match coordinate {
                Coordinate::Uniform { first, spacing } => Some(first + i as f64 * spacing),
                Coordinate::Rectilinear(all) => all.get(i as usize).copied(),
                Coordinate::Other(_) => None,
            };
            let inside: Vec<i64> = (0..extent)
                .filter(|i| at(*i).is_some_and(|x| *low <= x && x <= *high))
                .map(|i| i as i64)
                .collect();
            Some((Some(*inside.first()?), Some(inside.last()? + 1)))
        }
    }
}

/// Elements of an attribute along a dimension.
fn along(attr: &Attr, dim: usize, start: i64, count: i64) -> Vec<i64> {
    match &attr.cells {
        Some((of, cells)) if *of == dim => cells.clone(),
        _ => (start..start.saturating_add(count)).collect(),
    }
}

/// For a region on a mesh: its dimension, and the elements in all ranges of the mesh's coordinate.
fn on_mesh(decl: Option<&VariableDecl>, dims: &[(Dim, Range)]) -> Option<(usize, Vec<i64>)> {
    let (dim, extent) = meshes::dimension(decl?)?;
    let ranges: Vec<(f64, f64)> = dims.iter().filter_map(of_mesh).collect();
    let mut found = meshes::elements(extent, f64::NEG_INFINITY, f64::INFINITY);
    ranges.iter().for_each(|(low, high)| {
        found.retain(|element| meshes::elements(extent, *low, *high).contains(element))
    });
    (!ranges.is_empty()).then_some((dim, found))
}

fn of_mesh(one: &(Dim, Range)) -> Option<(f64, f64)> {
    named_range(one, meshes::COORDINATE)
}

fn of_ring(one: &(Dim, Range)) -> Option<(f64, f64)> {
    named_range(one, meshes::RING)
}

fn named_range((dim, range): &(Dim, Range), wanted: &str) -> Option<(f64, f64)> {
    match (dim, range) {
        (Dim::Name(name), Range::Physical(low, high)) if name == wanted => Some((*low, *high)),
        _ => None,
    }
}

/// Whether an attribute has the required relation to the elements of a grid in its ranges; `None` if there
/// are none.
fn on_grid(
    decl: Option<&VariableDecl>,
    attr: &Attr,
    (start, count): (&[i64], &[i64]),
    dims: &[(Dim, Range)],
    relation: Relation,
) -> Option<bool> {
    let [(outer, rows), (inner, columns)] = meshes::ring_dims(decl?)?;
    let ranges: Vec<(f64, f64)> = dims.iter().filter_map(of_ring).collect();
    if ranges.is_empty() {
        return None;
    }
    let holds = |i: i64, j: i64| {
        ranges.iter().all(|(low, high)| *low <= meshes::ring(i, j) && meshes::ring(i, j) <= *high)
    };
    let own: Vec<Vec<i64>> = [outer, inner].map(|dim| along(attr, dim, start[dim], count[dim])).into();
    let in_sides = |dim: usize, element: i64| {
        dims.iter().filter(|one| of_ring(one).is_none() && self::dim(decl, &one.0) == Some(dim)).all(|one| {
            elements(decl, dim, &one.1).is_some_and(|(from, to)| {
                from.is_none_or(|from| from <= element) && to.is_none_or(|to| element < to)
            })
        })
    };
    let mut all = own[0].iter().flat_map(|i| own[1].iter().map(move |j| (*i, *j)));
    let points: Vec<(i64, i64)> =
        (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).filter(|(i, j)| holds(*i, *j)).collect();
    Some(match relation {
        Relation::Overlaps => all.any(|(i, j)| holds(i, j) && in_sides(outer, i) && in_sides(inner, j)),
        Relation::Within => !points.is_empty() && all.all(|(i, j)| holds(i, j)),
        Relation::Contains => {
            !points.is_empty() && points.iter().all(|(i, j)| own[0].contains(i) && own[1].contains(j))
        }
    })
}

fn lies(world: &World, attr: &Attr, dims: &[(Dim, Range)], relation: Relation) -> bool {
    let decl = world.variable(attr);
    let Some((start, count)) = bounds(world, attr) else { return false };
    let mesh = on_mesh(decl, dims);
    if let Some((index, points)) = &mesh {
        let own = along(attr, *index, start[*index], count[*index]);
        let sides: Vec<_> = dims
            .iter()
            .filter(|one| of_mesh(one).is_none() && dim(decl, &one.0) == Some(*index))
            .map(|one| elements(decl, *index, &one.1))
            .collect();
        let in_sides = |element: &i64| {
            sides.iter().all(|side| {
                side.is_some_and(|(from, to)| {
                    from.is_none_or(|from| from <= *element) && to.is_none_or(|to| *element < to)
                })
            })
        };
        let fits = match relation {
            Relation::Overlaps => own.iter().any(|element| points.contains(element) && in_sides(element)),
            Relation::Within => !points.is_empty() && own.iter().all(|element| points.contains(element)),
            Relation::Contains => !points.is_empty() && points.iter().all(|element| own.contains(element)),
        };
        if !fits {
            return false;
        }
    }
    let grid = match mesh {
        None => on_grid(decl, attr, (&start, &count), dims, relation),
        Some(_) => None,
    };
    if grid == Some(false) {
        return false;
    }
    let left = |one: &&(Dim, Range)| {
        (mesh.is_none() || of_mesh(one).is_none()) && (grid.is_none() || of_ring(one).is_none())
    };
    dims.iter().filter(left).all(|(which, range)| {
        let Some(index) = dim(decl, which) else { return false };
        if index >= start.len() {
            return false;
        }
        let Some((from, to)) = elements(decl, index, range) else { return false };
        let (first, end) = (i128::from(start[index]), i128::from(start[index]) + i128::from(count[index]));
        let low = from.map_or(i128::MIN, i128::from);
        let high = to.map_or(i128::MAX, i128::from);
        if let Some((of, cells)) = &attr.cells
            && *of == index
        {
            let inside = |cell: &i64| (low..high).contains(&i128::from(*cell));
            return match relation {
                Relation::Overlaps => cells.iter().any(inside),
                Relation::Within => cells.iter().all(inside),
                Relation::Contains => {
                    let shape = decl.and_then(|decl| decl.shape.as_ref());
                    let end = to.or(shape.and_then(|shape| shape.get(index)).map(|n| *n as i64));
                    let from = from.unwrap_or(0);
                    end.is_some_and(|end| from < end && (from..end).all(|cell| cells.contains(&cell)))
                }
            };
        }
        match relation {
            Relation::Overlaps => first < high && end > low,
            Relation::Within => first >= low && end <= high,
            Relation::Contains => {
                let low = from.unwrap_or(0);
                let shape = decl.and_then(|decl| decl.shape.as_ref());
                let high = to.or(shape.and_then(|shape| shape.get(index)).map(|n| *n as i64));
                high.is_some_and(|high| low < high && first <= i128::from(low) && end >= i128::from(high))
            }
        }
    })
}

fn named_value<'a>(all: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    all.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Whether a value passes a test; without a value, only the tests for absence pass.
fn passes(test: &Test, value: Option<&Value>) -> bool {
    value.map_or(test.matches_absent(), |value| test.matches(value))
}

/// The level in a variable's name, and its name on that level.
fn on_level(name: &str) -> Option<(i64, &str)> {
    ["0", "1", "2"]
        .iter()
        .find_map(|level| Some((level.parse().unwrap(), name.strip_prefix(&format!("level_{level}/"))?)))
}

/// Whether an expression has a term for the level of the attribute itself, in any part of it.
fn asks_level(expr: &Expr) -> bool {
    match expr {
        Expr::All(list) => list.iter().filter(|one| asks_level(one)).count() > 0,
        Expr::Any(list) => !list.is_empty() && list.iter().filter(|one| !asks_level(one)).count() == 0,
        Expr::Not(inner) => asks_level(inner),
        Expr::Term(Term::Level(_)) => true,
        Expr::Term(_) | Expr::Related(..) => false,
    }
}

fn term(world: &World, attr: &Attr, term: &Term, of_level: bool) -> bool {
    let run: &RunDecl = &world.runs[attr.run];
    let tag = &world.tags[attr.tag];
    match term {
        Term::Run(test) => named(test, &run.run.name),
        Term::Project(test) => named(test, &run.run.project),
        Term::Job(test) => run.job.as_ref().is_some_and(|job| named(test, job)),
        Term::Param(name, test) => passes(test, named_value(&run.params, name)),
        Term::Attr(name, test) => {
            let attrs = world.variable(attr).map_or(&[][..], |decl| decl.attrs.as_slice());
            attr.variable.is_some() && passes(test, named_value(attrs, name))
        }
        Term::Created(test) => test.matches(&Value::DateTime(run.created)),
        Term::Step(ranges) => attr.step.is_some_and(|s| ranges.iter().any(|(a, b)| *a <= s && s <= *b)),
        Term::Time(test) => {
            let time = attr.step.and_then(|step| world.time(attr.run, step));
            // A moment is its number of seconds since 1970.
            let test = test.map(&|value| match value {
                Value::DateTime(moment) => Value::Float(*moment as f64 / 1e9),
                other => other.clone(),
            });
            attr.step.is_some() && passes(&test, time.map(Value::Float).as_ref())
        }
        Term::Variable(test) => attr.variable.as_ref().is_some_and(|v| {
            let short = on_level(&v.name).filter(|_| of_level);
            named(test, &v.name) || short.is_some_and(|(_, name)| named(test, name))
        }),
        Term::VariableVersion(all) => attr.variable.as_ref().is_some_and(|v| all.contains(&v.version)),
        Term::Level(ranges) => attr
            .variable
            .as_ref()
            .and_then(|v| on_level(&v.name))
            .is_some_and(|(level, _)| ranges.iter().any(|(from, to)| *from <= level && level <= *to)),
        Term::Tag(test) => named(test, &tag.name),
        Term::TagVersion(all) => all.contains(&tag.version),
        Term::Unit(test) => named(test, &tag.unit),
        Term::Value(test) => test.matches(&attr.value),
        Term::Scope(scope) => match (attr.step.is_some(), attr.variable.is_some()) {
            (_, true) => *scope == Scope::Variable,
            (true, false) => *scope == Scope::Step,
            (false, false) => *scope == Scope::Run,
        },
        Term::Region(dims, relation) => lies(world, attr, dims, *relation),
        Term::Extent(which, test) => {
            let count = bounds(world, attr).map(|(_, count)| count);
            let index = dim(world.variable(attr), which);
            match (count, index) {
                (Some(count), Some(index)) => count.get(index).is_some_and(|n| test.matches(&Value::Int(*n))),
                _ => false,
            }
        }
        Term::User(test) => named(test, "0"),
        Term::Writer(WriterPart::Name, test) => test.matches(&Value::Text(WRITER.to_string())),
        // A world knows nothing about processes.
        Term::Writer(_, test) => test.matches_absent(),
        Term::Keyword(name, test) => {
            let own = attr.keywords.iter().find(|(own, _)| own == name);
            own.map_or(test.matches_absent(), |(_, text)| {
                let number = match text.as_str() {
                    "sfc" | "0001" => None,
                    text => Some(if text.contains('.') {
                        Value::Float(text.parse().unwrap())
                    } else {
                        Value::Int(text.parse().unwrap())
                    }),
                };
                test.matches(&Value::Text(text.clone())) || number.is_some_and(|number| test.matches(&number))
            })
        }
        Term::Volume(test) => volume(world, attr).is_some_and(|all| test.matches(&Value::UInt(all as u64))),
    }
}

/// Elements of an attribute, at most `u64::MAX`.
fn volume(world: &World, attr: &Attr) -> Option<u128> {
    let (_, mut count) = bounds(world, attr)?;
    if let Some((dim, cells)) = &attr.cells {
        count[*dim] = cells.len() as i64;
    }
    Some(count.iter().fold(1u128, |all, n| (all * *n as u128).min(u128::from(u64::MAX))))
}

fn overlap((a, a_box): (&Attr, &Box64), (b, b_box): (&Attr, &Box64)) -> bool {
    a_box.0.len() == b_box.0.len()
        && (0..a_box.0.len()).all(|d| {
            let (x, y) = (i128::from(a_box.0[d]), i128::from(b_box.0[d]));
            let boxes = x < y + i128::from(b_box.1[d]) && y < x + i128::from(a_box.1[d]);
            let of_cells = [a, b].iter().any(|one| one.cells.as_ref().is_some_and(|(dim, _)| *dim == d));
            boxes
                && (!of_cells || {
                    let theirs = along(b, d, b_box.0[d], b_box.1[d]);
                    along(a, d, a_box.0[d], a_box.1[d]).iter().any(|element| theirs.contains(element))
                })
        })
}

/// Whether an expression holds for an attribute.
pub fn holds(world: &World, attr: &Attr, expr: &Expr) -> bool {
    holds_on(world, attr, expr, false)
}

/// The same, next to terms that ask for a level or do not.
fn holds_on(world: &World, attr: &Attr, expr: &Expr, of_level: bool) -> bool {
    match expr {
        Expr::All(list) => {
            list.iter().all(|one| holds_on(world, attr, one, of_level || list.iter().any(asks_level)))
        }
        Expr::Any(list) => list.iter().any(|one| holds_on(world, attr, one, of_level)),
        Expr::Not(inner) => !holds_on(world, attr, inner, of_level),
        Expr::Term(one) => term(world, attr, one, of_level),
        Expr::Related(place, inner) => {
            world.attrs.iter().any(|other| beside(world, *place, attr, other) && holds(world, other, inner))
        }
    }
}

/// Whether another attribute is at the place where a related one must be.
fn beside(world: &World, place: Where, attr: &Attr, other: &Attr) -> bool {
    other.id != attr.id
        && other.run == attr.run
        && match place {
            Where::SameRun => true,
            Where::SameStep => attr.step.is_some() && other.step == attr.step,
            Where::SameVariable => {
                attr.variable.is_some() && other.variable == attr.variable && other.step == attr.step
            }
            Where::Overlapping => {
                other.step == attr.step
                    && match (bounds(world, attr), bounds(world, other)) {
                        (Some(a), Some(b)) => overlap((attr, &a), (other, &b)),
                        _ => false,
                    }
            }
        }
}

/// Hits, each with the attributes that the last terms of a query, the related ones, find.
pub fn pairs<'w>(world: &'w World, asked: &Query, related: &[(Where, Expr)]) -> Vec<Vec<&'w Attr>> {
    let mut rows: Vec<Vec<&Attr>> = find(world, asked).into_iter().map(|hit| vec![hit]).collect();
    for (place, inner) in related {
        let all = find(world, &Query { expr: inner.clone(), ..Query::all() });
        let joined = rows.into_iter().flat_map(|row| {
            let mates = all.iter().filter(|mate| beside(world, *place, row[0], mate));
            mates.map(|mate| [&row[..], &[*mate]].concat()).collect::<Vec<_>>()
        });
        rows = joined.collect();
    }
    rows
}

fn key_order(world: &World, key: &Key, a: &Attr, b: &Attr) -> Ordering {
    let run = |x: &Attr| &world.runs[x.run];
    match key {
        Key::Run => run(a).run.name.cmp(&run(b).run.name),
        Key::Created => run(a).created.cmp(&run(b).created),
        Key::Step => a.step.cmp(&b.step),
        Key::Time => {
            let time = |x: &Attr| x.step.and_then(|step| world.time(x.run, step));
            time(a).partial_cmp(&time(b)).unwrap()
        }
        Key::Variable => {
            let name = |x: &Attr| x.variable.as_ref().map(|v| v.name.clone());
            name(a).cmp(&name(b))
        }
        Key::Tag => world.tags[a.tag].name.cmp(&world.tags[b.tag].name),
        Key::Value => a.value.order(&b.value),
        Key::Volume => volume(world, a).cmp(&volume(world, b)),
    }
}

/// The hits of a query, in order.
pub fn find<'w>(world: &'w World, query: &Query) -> Vec<&'w Attr> {
    let mut hits: Vec<&Attr> = world.attrs.iter().filter(|attr| holds(world, attr, &query.expr)).collect();
    if let Some(pick) = query.pick {
        let group = |attr: &Attr| (attr.run, attr.variable.clone(), attr.tag);
        let all = hits.clone();
        hits.retain(|attr| {
            let Some(own) = attr.step else { return false };
            let steps = all.iter().filter(|other| group(other) == group(attr)).filter_map(|other| other.step);
            match pick {
                Pick::First => steps.min() == Some(own),
                Pick::Last => steps.max() == Some(own),
            }
        });
    }
    let default = |attr: &Attr| {
        let (run, tag) = (&world.runs[attr.run].run, &world.tags[attr.tag]);
        let curve = attr.region.as_ref().map_or(-1, |(start, count)| curve::key(start, count));
        let place = (run.clone(), tag.name.clone(), tag.version, attr.step, attr.variable.clone());
        (place, curve, attr.region.clone(), attr.cells.clone(), attr.keywords.clone(), attr.id)
    };
    hits.sort_by_key(|attr| default(attr));
    hits.sort_by(|a, b| {
        let order = query.order.iter().map(|(key, down)| {
            // NaN is last in either direction.
            let nan = |attr: &Attr| {
                *key == Key::Value
                    && matches!(attr.value, Value::Float(n) | Value::FloatRange(n, _) if n.is_nan())
            };
            let order = key_order(world, key, a, b);
            nan(a).cmp(&nan(b)).then(if *down { order.reverse() } else { order })
        });
        order.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    hits.truncate(query.limit.map_or(usize::MAX, |limit| limit as usize));
    hits
}

/// Run, step, variable and tag of a group.
type Group = (Option<RunName>, Option<i64>, Option<String>, Option<String>);

/// Numbers of groups, by plain sums.
pub fn aggregate(world: &World, hits: &[&Attr], by: &[By]) -> Vec<Aggregate> {
    let mut groups: BTreeMap<Group, Vec<&Attr>> = BTreeMap::new();
    for attr in hits {
        let key = (
            by.contains(&By::Run).then(|| world.runs[attr.run].run.clone()),
            attr.step.filter(|_| by.contains(&By::Step)),
            attr.variable.as_ref().map(|v| v.name.clone()).filter(|_| by.contains(&By::Variable)),
            by.contains(&By::Tag).then(|| world.tags[attr.tag].name.clone()),
        );
        groups.entry(key).or_default().push(*attr);
    }
    let both = by.contains(&By::Run) && by.contains(&By::Step);
    let row = |((run, step, variable, tag), attrs): (Group, Vec<&Attr>)| {
        let numbers: Vec<f64> = attrs
            .iter()
            .filter_map(|attr| match attr.value {
                Value::Int(n) => Some(n as f64),
                Value::UInt(n) => Some(n as f64),
                Value::Float(n) if !n.is_nan() => Some(n),
                _ => None,
            })
            .collect();
        let some = !numbers.is_empty();
        Aggregate {
            run,
            step,
            time: attrs[0].step.filter(|_| both).and_then(|step| world.time(attrs[0].run, step)),
            variable: variable.map(Into::into),
            tag: tag.map(Into::into),
            count: attrs.len() as u64,
            min: some.then(|| numbers.iter().copied().fold(f64::INFINITY, f64::min)),
            max: some.then(|| numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            mean: some.then(|| numbers.iter().sum::<f64>() / numbers.len() as f64),
        }
    };
    groups.into_iter().map(row).collect()
}

/// Whether a query is about attributes, so that lists return the objects that these touch.
pub fn of_attributes(expr: &Expr) -> bool {
    match expr {
        Expr::All(list) | Expr::Any(list) => list.iter().any(of_attributes),
        Expr::Not(inner) => of_attributes(inner),
        Expr::Related(..) => true,
        Expr::Term(one) => {
            matches!(
                one,
                Term::Tag(_)
                    | Term::TagVersion(_)
                    | Term::Unit(_)
                    | Term::Value(_)
                    | Term::Scope(_)
                    | Term::Extent(..)
                    | Term::Volume(_)
                    | Term::Keyword(..)
                    | Term::User(_)
                    | Term::Writer(..)
            ) || matches!(one, Term::Region(..)) && !in_coordinates(one)
        }
    }
}

/// Whether a term asks about a place by coordinates.
fn in_coordinates(term: &Term) -> bool {
    matches!(term, Term::Region(dims, _) if dims.iter().any(|(_, range)| matches!(range, Range::Physical(..))))
}

fn mentions(expr: &Expr, what: &dyn Fn(&Term) -> bool) -> bool {
    match expr {
        Expr::All(list) | Expr::Any(list) => list.iter().any(|one| mentions(one, what)),
        Expr::Not(inner) | Expr::Related(_, inner) => mentions(inner, what),
        Expr::Term(one) => what(one),
    }
}

/// The existing places where a query without attribute terms holds: run, step, variable.
fn places(
    world: &World,
    query: &Query,
    steps: bool,
    variables: bool,
) -> Vec<(usize, Option<i64>, Option<VariableName>)> {
    let steps = steps || mentions(&query.expr, &|t| matches!(t, Term::Step(_) | Term::Time(_)));
    let variables = variables
        || mentions(&query.expr, &|t| {
            matches!(t, Term::Variable(_) | Term::Level(_) | Term::VariableVersion(_) | Term::Attr(..))
                || in_coordinates(t)
        });
    let mut all = Vec::new();
    for (run, decl) in world.runs.iter().enumerate() {
        let own_steps = || world.steps.iter().filter(|s| s.run == run).map(|s| s.step);
        let own_variables =
            || world.variables.iter().filter(|v| v.run == run).map(|v| v.decl.variable.clone());
        match (steps, variables) {
            (false, false) => all.push((run, None, None)),
            (true, false) => all.extend(own_steps().map(|step| (run, Some(step), None))),
            (false, true) => all.extend(own_variables().map(|variable| (run, None, Some(variable)))),
            (true, true) if decl.outside.is_some() => {
                all.extend(
                    own_variables().flat_map(|v| own_steps().map(move |s| (run, Some(s), Some(v.clone())))),
                );
            }
            (true, true) => {
                // Keys name no version: all versions of a variable share its fields.
                let own: Vec<VariableName> = own_variables().collect();
                for h in world.held.iter().filter(|h| h.run == run) {
                    let is_of = |v: &&VariableName| {
                        **v == h.variable || (h.variable.version == 0 && v.name == h.variable.name)
                    };
                    let mut of: Vec<VariableName> = own.iter().filter(is_of).cloned().collect();
                    of.push(h.variable.clone());
                    all.extend(of.into_iter().map(|variable| (run, Some(h.step), Some(variable))));
                }
                all.sort();
                all.dedup();
            }
        }
    }
    all.retain(|(run, step, variable)| {
        let stand_in = Attr {
            run: *run,
            tag: 0,
            step: *step,
            variable: variable.clone(),
            region: None,
            cells: None,
            keywords: Vec::new(),
            value: Value::Null,
            id: world.attrs.first().map_or(super::world::NOBODY, |attr| attr.id),
        };
        holds(world, &stand_in, &query.expr)
    });
    all
}

/// The expression for a list of runs, whose attributes are their parameters.
fn of_run(expr: &Expr) -> Expr {
    match expr {
        Expr::All(list) => Expr::All(list.iter().map(of_run).collect()),
        Expr::Any(list) => Expr::Any(list.iter().map(of_run).collect()),
        Expr::Not(inner) => Expr::Not(Box::new(of_run(inner))),
        Expr::Term(Term::Attr(name, test)) => Expr::Term(Term::Param(name.clone(), test.clone())),
        other => other.clone(),
    }
}

/// Names of runs, sorted.
pub fn runs(world: &World, query: &Query) -> Vec<String> {
    let query = &Query { expr: of_run(&query.expr), ..query.clone() };
    let hits = find(world, query);
    let mut found: Vec<usize> = match of_attributes(&query.expr) || query.pick.is_some() {
        true => hits.iter().map(|attr| attr.run).collect(),
        false => places(world, query, false, false).into_iter().map(|place| place.0).collect(),
    };
    found.sort_unstable();
    found.dedup();
    let mut names: Vec<_> = found.into_iter().map(|run| world.runs[run].run.clone()).collect();
    names.sort();
    names.into_iter().map(|run| format!("{}/{}", run.project, run.name)).collect()
}

/// Runs and steps, sorted.
pub fn steps(world: &World, hits: &[&Attr], query: &Query) -> Vec<(String, i64)> {
    let mut found: Vec<(usize, i64)> = match of_attributes(&query.expr) {
        true => hits.iter().filter_map(|a| Some((a.run, a.step?))).collect(),
        false => {
            let all = places(world, query, true, false);
            let ends = |(run, step, variable): &(usize, Option<i64>, Option<VariableName>)| {
                let own =
                    all.iter().filter(|other| other.0 == *run && other.2 == *variable).map(|other| other.1);
                match query.pick {
                    None => true,
                    Some(Pick::First) => own.min() == Some(*step),
                    Some(Pick::Last) => own.max() == Some(*step),
                }
            };
            all.iter().filter(|place| ends(place)).filter_map(|place| Some((place.0, place.1?))).collect()
        }
    };
    found.sort_unstable();
    found.dedup();
    let mut rows: Vec<_> = found.into_iter().map(|(run, step)| (world.runs[run].run.clone(), step)).collect();
    rows.sort();
    rows.into_iter().map(|(run, step)| (format!("{}/{}", run.project, run.name), step)).collect()
}

/// Runs and variables, sorted.
pub fn variables(world: &World, hits: &[&Attr], query: &Query) -> Vec<(String, VariableName)> {
    let mut rows: Vec<_> = match of_attributes(&query.expr) || query.pick.is_some() {
        true => hits
            .iter()
            .filter_map(|attr| Some((world.runs[attr.run].run.clone(), attr.variable.clone()?)))
            .collect(),
        false => {
            let all = places(world, query, false, true).into_iter();
            all.filter_map(|place| Some((world.runs[place.0].run.clone(), place.2?))).collect()
        }
    };
    rows.sort();
    rows.dedup();
    rows.into_iter().map(|(run, variable)| (format!("{}/{}", run.project, run.name), variable)).collect()
}

/// Names and versions of tags, sorted.
pub fn tags(world: &World, hits: &[&Attr], query: &Query) -> Vec<(String, i64)> {
    let all = !mentions(&query.expr, &|_| true) && !of_attributes(&query.expr) && query.pick.is_none();
    let mut rows: Vec<_> = match all {
        true if constant(&query.expr) => {
            world.tags.iter().map(|tag| (tag.name.clone(), tag.version)).collect()
        }
        true => Vec::new(),
        false => hits
            .iter()
            .map(|attr| (world.tags[attr.tag].name.clone(), world.tags[attr.tag].version))
            .collect(),
    };
    rows.sort();
    rows.dedup();
    rows
}

/// The value of an expression without terms.
fn constant(expr: &Expr) -> bool {
    match expr {
        Expr::All(list) => list.iter().all(constant),
        Expr::Any(list) => list.iter().any(constant),
        Expr::Not(inner) => !constant(inner),
        _ => false,
    }
}

/// Distinct boxes, by project, run, step (none first), name and version of the variable (none first), start
/// and count: the order is written here without any comparison of the crate's own.
pub fn boxes(world: &World, hits: &[&Attr]) -> Vec<BoxInfo> {
    let mut rows = BTreeMap::new();
    for attr in hits {
        let Some((start, count)) = bounds(world, attr) else { continue };
        let run = world.runs[attr.run].run.clone();
        let variable = attr.variable.as_ref().map(|variable| (variable.name.clone(), variable.version));
        let place =
            (run.project.clone(), run.name.clone(), attr.step, variable, start.clone(), count.clone());
        let row = BoxInfo { run, step: attr.step, variable: attr.variable.clone(), start, count };
        rows.insert(place, row);
    }
    rows.into_values().collect()
}
