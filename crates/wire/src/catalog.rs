//! Declarations, queries and hits of the catalog as bytes.

use fieldstone_catalog::engine::{DeclarationRow, Declared, Selection, Writer};
use fieldstone_catalog::live::{CatalogCheck, CatalogSettings, DeleteReport, Deletion, RebuildReport};
use fieldstone_catalog::query::{
    Aggregate, BoxInfo, By, Coded, Dim, Expr, Hit, HitTable, Key, MissingName, NameTest, PairTable, Pick,
    Query, Range, Relation, RunInfo, Scope, StepInfo, TagInfo, Term, VariableInfo, Where, WriterPart,
};
use fieldstone_core::Result;
use fieldstone_format::catalog::{
    Annotate, ArrayGroup, ArrayLayout, ArraySet, AttributeBatch, AttributeId, BasicPattern, Boxes, CellSets,
    Column, Coordinate, FileSums, HistoryContent, HistoryDecl, ImportDecl, ImportFormat, ImportedVariable,
    KeywordColumn, MeshDecl, MeshLocation, RankSizes, Record, Removal, RunDecl, RunName, RunPhase, RunState,
    StepDecl, StorageOrder, TagDecl, Values, VariableDecl, VariableName,
};

use crate::fields::one_of;
use crate::{In, Out, Wire, wire_enum, wire_struct};

/// Kinds of names that may be missing, the values of [`MissingName::what`].
const NAMED: [&str; 6] = ["run", "variable", "level", "tag", "parameter", "value"];

impl<T: Wire> Wire for Column<T> {
    fn put(&self, out: &mut Out<'_>) {
        match self {
            Column::One(value) => {
                out.bytes().push(0);
                value.put(out);
            }
            Column::Each(values) => {
                out.bytes().push(1);
                values.put(out);
            }
        }
    }

    fn read(input: &mut In<'_>) -> Result<Column<T>> {
        match input.cursor.u8()? {
            0 => T::read(input).map(Column::One),
            1 => Vec::read(input).map(Column::Each),
            other => Err(input.unknown("Column", other)),
        }
    }
}

impl Wire for MissingName {
    fn put(&self, out: &mut Out<'_>) {
        self.what.to_owned().put(out);
        self.name.put(out);
        self.did_you_mean.put(out);
    }

    fn read(input: &mut In<'_>) -> Result<MissingName> {
        let what = one_of(input, &NAMED)?;
        Ok(MissingName { what, name: Wire::read(input)?, did_you_mean: Wire::read(input)? })
    }
}

wire_enum! {
    RunPhase { 1 Running, 2 Finished, 3 Failed }
    Annotate { 0 All, 1 Owner }
    Coordinate { 0 Uniform { first, spacing }, 1 Rectilinear(values), 2 Other(name) }
    Values { 0 Bool(all), 1 Int(all), 2 UInt(all), 3 Float(all), 4 Text(all), 5 Any(all) }
    Removal { 0 Run(run), 1 Step(run, step), 2 Variable(run, variable), 3 Tag(tag), 4 Attributes(ids) }
    Record {
        0 Runs(runs), 1 Steps(run, steps), 2 Variables(run, variables), 3 Tags(tags), 4 Attributes(batch),
        5 Remove(removals), 6 Groups(run, groups), 7 Imports(run, imports), 8 Meshes(meshes),
        9 Histories(histories), 10 Moved(moved), 11 States(states),
    }
    ArrayLayout { 0 Files, 1 Fields }
    StorageOrder { 0 C, 1 Fortran }
    MeshLocation { 0 Node, 1 Edge, 2 Face, 3 Volume }
    BasicPattern { 0 Regular, 1 Irregular }
    ImportFormat { 0 Raw, 1 NetCdf }
    HistoryContent { 0 Edges, 1 Parts { vector, ranks } }
    Declared { 0 Run, 1 Step(number), 2 Variable(name), 3 Group(name), 4 Import(name) }
    Deletion { 0 Runs(query), 1 Steps(query), 2 Variables(query), 3 Tags(query), 4 Attributes(query) }
    NameTest { 0 Is(name), 1 Glob(pattern), 2 Typed(text), 3 Any(tests) }
    Scope { 0 Run, 1 Step, 2 Variable }
    Dim { 0 Name(name), 1 Index(index) }
    Range { 0 Index(from, to), 1 Physical(from, to) }
    WriterPart { 0 Name, 1 Host, 2 Process, 3 Rank, 4 Job, 5 Attempt }
    Relation { 0 Overlaps, 1 Within, 2 Contains }
    Term {
        0 Run(test), 1 Project(test), 2 Job(test), 3 Param(name, test), 4 Attr(name, test), 5 Created(test),
        6 Step(ranges), 7 Time(test), 8 Variable(test), 9 VariableVersion(versions), 10 Level(ranges),
        11 Tag(test), 12 TagVersion(versions), 13 Unit(test), 14 Value(test), 15 Scope(scope),
        16 Region(ranges, relation), 17 Extent(dim, test), 18 Volume(test), 19 Keyword(name, test),
        20 User(test), 21 Writer(part, test),
    }
    Where { 0 SameRun, 1 SameStep, 2 SameVariable, 3 Overlapping }
    Expr { 0 All(all), 1 Any(all), 2 Not(one), 3 Term(term), 4 Related(place, one) }
    Key { 0 Run, 1 Created, 2 Step, 3 Time, 4 Variable, 5 Tag, 6 Value, 7 Volume }
    Pick { 0 First, 1 Last }
    By { 0 Run, 1 Step, 2 Variable, 3 Tag }
}

wire_struct! {
    RunName { project, name }
    RunDecl { run, job, params, created, grid, notes, outside, annotate, if_exists, state }
    RunState { phase, note, writer }
    StepDecl { number, time }
    VariableName { name, version }
    VariableDecl { variable, dtype, shape, dims, attrs, coords, decomposition, finders }
    TagDecl { name, version, kind, unit }
    Boxes { rank, start, count, cells }
    CellSets { dim, sets }
    KeywordColumn { keyword, values }
    AttributeBatch {
        run, tag, rows, step, variables, variable, boxes, keywords, values, one_value, continues, singles,
    }
    AttributeId { writer, sequence, record, row }
    ArraySet { variable, dtype, shape, dims, fill, attrs, pattern, view }
    ArrayGroup { name, level, layout, method, order, mesh, location, chunks, compression, attrs, sets }
    ImportedVariable { name, dtype, offset, shape }
    ImportDecl { name, source, format, size, mtime, checksum, variables }
    FileSums { size, block, sums }
    MeshDecl { name, checksum, path, counts, attrs, sums }
    RankSizes { nodes, ghosts, edges }
    HistoryDecl { path, mesh, nodes, edges, content }
    DeclarationRow { of, id, user }
    Selection { names, kinds, rows }
    Writer { host, process, rank, job, attempt }
    CatalogSettings { engine }
    DeleteReport { runs, steps, variables, tags, attributes, fields, others, done }
    RebuildReport { logs, commits, attributes, fields, engine }
    CatalogCheck { lines, different, damaged }
    Query { expr, session, pick, order, limit }
    Hit {
        project, run, step, time, variable, variable_version, tag, tag_version, unit, value, region, cells, keywords,
        user, id,
    }
    Coded { codes, words }
    HitTable {
        project, run, step, time, variable, variable_version, tag, tag_version, unit, value, offsets, start, count,
        cells, keywords, user, id, visited,
    }
    PairTable { hits, related }
    RunInfo { decl, declared, first }
    StepInfo { run, step, time }
    VariableInfo { run, decl, declared }
    TagInfo { decl, version }
    BoxInfo { run, step, variable, start, count }
    Aggregate { run, step, time, variable, tag, count, min, max, mean }
}
