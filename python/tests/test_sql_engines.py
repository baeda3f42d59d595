"""The same statements give the same answers in SQLite, in PostgreSQL and in DuckDB over the Arrow tables.

The tests compare rows, their order, NaN and NULL, names and types of columns.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Iterator
from typing import Any

import fieldstone as fst
import numpy as np
import pytest

VIEWS = ("runs", "steps", "variables", "tags", "attributes", "series_of_attributes")
_KEYS = "run, tag, step, variable, number"


def _orders() -> Iterator[str]:
    keys = ("number", "text", "step", "datetime", "variable", "unit", "-number", "coalesce(number, 3.5)")
    for key, way, nulls in itertools.product(keys, ("", "asc", "desc"), ("", "nulls first")):
        yield f"select run, tag, step, number from attributes order by {key} {way} {nulls}, {_KEYS}"
    for key, limit in itertools.product(("number desc", "step desc", "text"), (1, 3, 7)):
        yield f"select run, number from attributes order by {key}, {_KEYS} limit {limit} offset {limit - 1}"


def _groups() -> Iterator[str]:
    made = (
        "count(*)",
        "count(number)",
        "min(number)",
        "max(number)",
        "sum(number)",
        "avg(number)",
        "sum(step)",
        "max(text)",
    )
    for by, what, way in itertools.product(("tag", "run", "variable", "step"), made, ("", "desc")):
        # Without moments: next to numbers of their size, a sum depends on its order.
        numbers = "attributes where tag <> 'when'"
        yield f"select {by}, {what} as made from {numbers} group by {by} order by made {way}, {by}"
    yield "select count(*) as n, count(distinct tag) as tags from attributes"
    yield "select tag from attributes group by tag having max(number) > 1 order by tag"
    yield "select string_agg(run, ',' order by run desc) as runs from runs"


def _filters() -> Iterator[str]:
    tests = (
        "number > 1", "number >= 1 and number < 3", "number between 0.5 and 2.5", "number is null",
        "number is not null",
        "text = 'x'", "text is null", "text like 'x%'", "step in (0, 2)", "step not in (0, 2)",
        "variable is null",
        "unit = ''", "unit = 'K'", "tag = 'a' or tag = 'b'", "not (tag = 'a')", "datetime > '2000'",
        "datetime < '1970'",
        "bool is not null", "value_type = 4", "length(run) > 1", "step % 2 = 0", "number = 0.5",
        "run || tag = 'onea'",
        "exists (select 1 from tags t where t.tag = attributes.tag and t.type = 'float')",
        "number = (select max(number) from attributes)", "run in (select run from runs where declared = 1)",
        "1 = 0",
    )  # fmt: skip
    for test in tests:
        shown = "run, tag, step, variable, number, text, bool"
        yield f"select {shown} from attributes where {test} order by {_KEYS}, text"


def _joins() -> Iterator[str]:
    yield "select a.run, b.run from runs a join runs b on a.run < b.run order by a.run, b.run"
    yield "select a.run, a.run, b.run, b.project from runs a join runs b on a.run = b.run order by a.run"
    pairs = "steps a join steps b on a.run = b.run and a.step < b.step"
    yield f"select * from {pairs} order by a.run, a.step, b.step"
    for way in ("join", "left join"):
        for key in ("number", "number desc", "r.run desc"):
            yield (
                f"select r.run, t.run, t.number from runs r {way} attributes t on t.run = r.run "
                f"and t.tag = 'a' order by {key}, r.run, t.step"
            )


def _windows() -> Iterator[str]:
    for way, nulls in itertools.product(("", "desc"), ("", "nulls first")):
        within = f"partition by tag order by number {way} {nulls}, {_KEYS}"
        for what in ("rank()", "row_number()", "lag(number)", "first_value(run)"):
            yield f"select run, tag, step, {what} over ({within}) as made from attributes order by {_KEYS}"


def _others() -> Iterator[str]:
    yield "-- a comment; order by nothing\nselect run from runs order by run"
    yield "/* a comment */ select run from runs order by run desc"
    yield "select 1 as one, 'a ''text'' order by' as two, 2.5 as three, null as four"
    yield "values (1, 'a'), (2, 'b')"
    yield "select run from runs union select tag from tags order by 1 desc"
    yield "select run from runs union all select run from steps order by run, 1"
    best = "with best as (select run, max(number) as most from attributes group by run)"
    yield f"{best} select * from best order by most desc, run"
    for view in VIEWS:
        yield f"select count(*) as n from {view}"
    for what in (
        "step + 1",
        "step * 2",
        "number * 2",
        "abs(number)",
        "upper(tag)",
        "substr(run, 1, 2)",
        "coalesce(text, 'none')",
    ):
        yield f"select {what} as made from attributes order by {_KEYS}"
    for what in (
        "case when number > 1 then 'high' when number is null then 'none' else 'low' end",
        "nullif(step, 0)",
    ):
        yield f"select {what} as made, tag from attributes order by made, {_KEYS}"
    yield "select datetime from attributes where datetime is not null order by datetime desc"
    yield "select tag, type, unit from tags order by type desc, tag, unit"
    yield "select run, time from steps order by time desc, run, step"


STATEMENTS = [*_orders(), *_groups(), *_filters(), *_joins(), *_windows(), *_others()]


def _filled(store: fst.Store) -> None:
    for name, params in (
        ("one", {"lr": 0.5}),
        ("two", {"lr": math.nan, "day": np.datetime64("2020-01-01")}),
        ("third", {}),
    ):
        run = store.create_run(name, params=params, project="p" if name == "two" else None)
        run.create_steps([0, 1, 2, 3], [0.5, 1.5, 2.5, 3.5])
        run.create_variable("t", "f8", (4, 4))
    one, two = store.run("one"), store.run("two")
    one.annotate_many("a", [0.5, 2.5, math.nan], step=[0, 1, 2])
    two.annotate_many("a", [1.5, -3.25, math.inf, 0.0], step=[0, 1, 2, 3], variable="t")
    one.annotate_many("b", [1, 7], step=[1, 3], variable="t", start=(0, 0), count=(2, 2))
    two.annotate("note", "x ünï", step=2)
    one.annotate("note", "xy")
    one.annotate("flag", True, step=1)
    two.annotate("flag", False, step=1)
    one.annotate("when", np.datetime64("2000-01-01T00:00:00.123456789"))
    two.annotate("when", np.datetime64("1969-12-31T23:59:59.999"))
    store.create_tag("warm", "float", "K")
    one.annotate("warm", 273.25, step=3)


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory, postgresql: Any
) -> Iterator[tuple[fst.Store, fst.Store]]:
    url = tmp_path_factory.mktemp("sql") / "store"
    with fst.open(url) as store:
        _filled(store)
    with fst.open(url, "r") as lite, fst.open(url, "r", catalog=postgresql.url) as big:
        yield lite, big


def _rows(store: fst.Store, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    table = store.sql(statement)
    return table.columns, list(zip(*(table.values(name) for name in table.columns), strict=True))


def _plain(cell: Any) -> Any:
    if isinstance(cell, bool):
        return int(cell)
    return float(cell) if isinstance(cell, decimal.Decimal) else cell


def test_sqlite_postgresql_and_duckdb_answer_alike(engines: tuple[fst.Store, fst.Store]) -> None:
    import duckdb

    lite, big = engines
    connection = duckdb.connect()
    for view in VIEWS:
        connection.register(view, lite.sql(f"select * from {view}"))
    assert len(STATEMENTS) >= 200
    for statement in STATEMENTS:
        names, rows = _rows(lite, statement)
        assert (names, rows) == _rows(big, statement), statement
        kinds = [[type(cell) for cell in row] for row in rows]
        assert kinds == [[type(cell) for cell in row] for row in _rows(big, statement)[1]], statement
        done = connection.execute(statement)
        if statement != "values (1, 'a'), (2, 'b')" and len(set(n for n, *_ in done.description)) == len(
            names
        ):
            assert names == [name for name, *_ in done.description], statement
        assert rows == [tuple(map(_plain, row)) for row in done.fetchall()], statement


def test_types_of_columns_do_not_hang_on_rows(engines: tuple[fst.Store, fst.Store]) -> None:
    for store in engines:
        for view in VIEWS:
            some, none = store.sql(f"select * from {view}"), store.sql(f"select * from {view} where 1 = 0")
            given = dict(some.types)
            empty = [name for name in some.columns if all(cell is None for cell in some.values(name))]
            assert {**dict(none.types), **{n: given[n] for n in empty}} == given, view


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("timestamp '2000-01-01 06:00'", "2000-01-01 06:00:00"),
        ("timestamptz '2000-01-01 06:00+00'", "2000-01-01 06:00:00+00"),
        ("date '2000-02-29'", "2000-02-29"),
        ("time '06:00'", "06:00:00"),
        ("interval '1 day 2 hours'", "1 day 02:00:00"),
        ("array[1, 2, null]", "{1,2,NULL}"),
        ("array['a', 'b c']", '{a,"b c"}'),
        ("'{\"a\": [1, null]}'::jsonb", '{"a": [1, null]}'),
        ("'{\"a\":1}'::json", '{"a":1}'),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        ("true", 1),
        ("7::int2", 7),
        ("1.5::numeric", 1.5),
        ("12345678901234567890123::numeric", "12345678901234567890123"),
        ("0.1::float4", 0.1),
        ("'\\x00ff'::bytea", b"\x00\xff"),
        ("'x'::char(3)", "x  "),
        ("'127.0.0.1'::inet", "127.0.0.1"),
        ("int8range(1, 5)", "[1,5)"),
        ("point(1, 2)", "(1,2)"),
        ("null::timestamptz", None),
    ],
)
def test_every_type_of_postgresql_is_read(
    engines: tuple[fst.Store, fst.Store], given: str, expected: Any
) -> None:
    assert engines[1].sql(f"select {given} as made").values("made") == [expected]


def test_a_name_in_double_quotes_is_a_column(engines: tuple[fst.Store, fst.Store]) -> None:
    for store in engines:
        assert store.sql('select "run" from runs order by "run" limit 1').values("run") == ["one"]
        with pytest.raises(fst.errors.Invalid, match="runn"):
            store.sql("""select run from runs where "runn" = 'r'""")
        with pytest.raises(fst.errors.Invalid, match="drop"):
            store.sql("/* read */ drop table runs")


def test_parameters_are_json_whatever_they_hold(engines: tuple[fst.Store, fst.Store]) -> None:
    lite, big = engines
    missing = "json_extract(params, '$.lr') is null"
    asked = f"select run, json_extract(params, '$.day') as day from runs where {missing} order by run"
    assert _rows(lite, asked)[1] == [("third", None), ("two", "2020-01-01T00:00:00Z")]
    assert lite.sql("select run from runs where json_extract(params, '$.lr') > 0.1").values("run") == ["one"]
    assert big.sql("select params::jsonb ->> 'day' as day from runs where run = 'two'").values("day") == [
        "2020-01-01T00:00:00Z"
    ]
