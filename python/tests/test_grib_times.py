"""Times of validity of GRIB messages: hindcasts, units of steps, intervals, invalid dates."""

from __future__ import annotations

import subprocess
import warnings
from datetime import UTC, datetime, timedelta

import fieldstone as fst
import numpy as np
import pytest

xr = pytest.importorskip("xarray")
eccodes = pytest.importorskip("eccodes")
from own_files_job import PROGRAM  # noqa: E402
from test_helper_grib import message  # noqa: E402

NCEP = {"centre": "kwbc", "date": 20260101, "time": 0}
OD = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "fc", "expver": "0001"}
START = datetime(2026, 1, 1, tzinfo=UTC)


def made(sample="regular_ll_sfc_grib2", **keys):
    return message(sample, **keys)


def changed(raw, **keys):
    handle = eccodes.codes_new_from_message(raw)
    for name, value in keys.items():
        eccodes.codes_set(handle, name, value)
    return eccodes.codes_get_message(handle)


def stored(tmp_path, *messages):
    path = tmp_path / "f.grib"
    path.write_bytes(b"".join(messages))
    report = fst.ingest(tmp_path / "s", path, progress=False)
    assert (report.taken[0].fields, report.skipped) == (len(messages), ())
    return str(tmp_path / "s")


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


def hindcast(hdate, step, **keys):
    head = {
        "setLocalDefinition": 1,
        "localDefinitionNumber": 30,
        "class": "od",
        "stream": "enfh",
        "type": "pf",
    }
    head |= {"expver": "0001", "dataDate": hdate, "dataTime": 0, "referenceDate": 20230615, "number": 2}
    return made("regular_ll_sfc_grib1", **head, step=step, shortName="2t", **keys)


def test_a_hindcast_is_valid_by_its_own_date(tmp_path):
    url = stored(tmp_path, hindcast(20210615, 6), hindcast(20210615, 30))
    ds = opened(url)
    assert [str(t)[:13] for t in ds.valid_time.values] == ["2021-06-15T06", "2021-06-16T06"]
    with fst.open(url, "r") as store:
        start = datetime(2021, 6, 15, tzinfo=UTC).timestamp()
        assert [s.time for s in store.steps()] == [start + 3600 * 6, start + 3600 * 30]
        assert [s.step for s in store.steps(time=fst.below(datetime(2021, 6, 16)))] == [6]


def test_hindcasts_of_several_years_are_valid_in_each(tmp_path):
    url = stored(tmp_path, *(hindcast(year * 10000 + 615, step) for year in (2020, 2021) for step in (0, 6)))
    ds = opened(url)
    assert ds.valid_time.dims == ("hdate", "step")
    assert str(ds.valid_time.sel(step=6).values[0])[:13] == "2020-06-15T06"
    # A step that is valid at two times has no time of its own.
    assert [s.time for s in fst.open(url, "r").steps()] == [None, None]


@pytest.mark.parametrize(
    ("unit", "code", "length"),
    [("m", 0, 60), ("s", 13, 1), ("h", 1, 3600), ("3h", 10, 10800), ("D", 2, 86400)],
)
def test_steps_of_every_unit_have_a_time(tmp_path, unit, code, length):
    head = {**NCEP, "indicatorOfUnitForForecastTime": code, "shortName": "2t"}
    url = stored(tmp_path, *(made(**head, forecastTime=n) for n in (0, 15, 45, 60, 75)))
    with fst.open(url, "r") as store:
        times = sorted(step.time - START.timestamp() for step in store.steps())
        assert times == [length * n for n in (0, 15, 45, 60, 75)]
        late = START + timedelta(seconds=length * 50)
        assert len(store.steps(time=fst.above(late))) == 2
        assert len(store.variables(time=fst.below(late))) == 1
        for step in store.steps():
            assert len(store.retrieve(f"step={step.step}")) == 1
    ds = opened(url)
    found = (ds.valid_time.values - np.datetime64("2026-01-01")) / np.timedelta64(1, "s")
    assert found.tolist() == times
    hours = opened(url, time_dim="valid_time")
    assert hours.sizes["valid_time"] == 5


def test_a_step_between_hours_is_named_as_its_keys_name_it(tmp_path):
    head = {**NCEP, "indicatorOfUnitForForecastTime": 0, "shortName": "2t"}
    url = stored(tmp_path, *(made(**head, forecastTime=n) for n in (15, 60, 90)))
    with fst.open(url, "r") as store:
        assert [s.step for s in store.steps()] == ["15m", "1h30m", 1]
        table = store.steps().to_arrow()
        assert table.columns[-1] == "lead" and table.values("lead") == ["15m", "1h30m", "1"]
        assert table.values("step") == [None, None, 1]
        assert [s.step for s in store.steps(step=slice(0, 5))] == [1]
        assert store.sql("select step from steps order by step").values("step").count(None) == 2
    shown = subprocess.run([PROGRAM, "steps", url], capture_output=True, text=True, check=True).stdout
    assert "15m" in shown and "1h30m" in shown


@pytest.mark.parametrize(("code", "step"), [(0, "3m"), (13, "45m"), (14, "1h30m"), (254, "3s")])
def test_units_below_an_hour_in_grib_1(tmp_path, code, step):
    raw = made("regular_ll_sfc_grib1", centre=7, unitOfTimeRange=code, timeRangeIndicator=0, P1=3)
    with fst.open(stored(tmp_path, raw), "r") as store:
        assert store.axes()["step"] == [step]


def interval(end_hour, date=20260101, step="0-24"):
    head = {**NCEP, "date": date, "productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 1}
    raw = made(**head, stepRange=step, shortName="tp")
    return (
        raw
        if end_hour is None
        else changed(raw, dayOfEndOfOverallTimeInterval=1, hourOfEndOfOverallTimeInterval=end_hour)
    )


def test_an_interval_ends_when_its_header_says(tmp_path):
    # The first one ends when its step does; facts learned from it do not apply to the second.
    url = stored(tmp_path, interval(None, step="0-12"), interval(6), interval(7, step="0-18"))
    ds = opened(url)
    assert [str(t)[:13] for t in ds.valid_time.values] == ["2026-01-01T12", "2026-01-01T07", "2026-01-01T06"]
    assert ds.tp.dims == ("step", "latitude", "longitude") and ds.step.values.tolist() == [12, 18, 24]
    assert not ds.tp.isnull().any()
    begin, end = ds.tp_bounds.values[-1]
    assert (str(begin)[:13], str(end)[:13]) == ("2026-01-01T00", "2026-01-01T06")
    with fst.open(url, "r") as store:
        assert [s.time - START.timestamp() for s in store.steps()] == [43200, 25200, 21600]
        assert store.axes()["validity"] == ["202601010600", "202601010700"]
    hours = opened(url, time_dim="valid_time")
    assert [str(t)[11:13] for t in hours.valid_time.values] == ["06", "07", "12"]
    assert float(hours.tp.sel(valid_time="2026-01-01T07")[0, 0]) == float(ds.tp.sel(step=18)[0, 0])


def test_fields_that_are_valid_at_other_times_have_a_coordinate_of_their_own(tmp_path):
    head = {**NCEP, "shortName": "2t"}
    url = stored(
        tmp_path, made(**head, step=24), made(**head, step=48), interval(6), interval(7, step="0-48")
    )
    ds = opened(url)
    names = {name: str(ds[name].values[0])[:13] for name in ds.coords if name.startswith("valid_time")}
    assert names == {"valid_time": "2026-01-02T00", "valid_time_tp": "2026-01-01T06"}


@pytest.mark.parametrize("centre", [OD | {"date": 20260101, "time": 0}, NCEP])
@pytest.mark.parametrize("kind", ["accum", "avg", "max"])
def test_intervals_of_several_lengths_are_told_apart(tmp_path, centre, kind):
    ranges = ("0-6", "6-12", "12-24")
    url = stored(tmp_path, *(made(**centre, stepType=kind, stepRange=r, shortName="tp") for r in ranges))
    ds = opened(url)
    # For some centres ecCodes has a keyword `timespan`, so there is a variable for each length.
    bounds = [ds[f"{name}_bounds"].values.reshape(-1, 2) for name in ds.data_vars]
    lengths = np.diff(np.concatenate(bounds), axis=-1).ravel() / np.timedelta64(1, "h")
    assert sorted(lengths) == [6, 6, 12]
    ds.load()
    for name in (hours := opened(url, time_dim="valid_time")).data_vars:
        begin, end = hours[f"{name}_bounds"].transpose("bounds", ...).values
        there = ~np.isnat(end)
        assert (end[there] == hours.valid_time.values[there]).all() and (begin < end)[there].all()


def odd(**keys):
    head = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "an", "expver": "0001"}
    return made("regular_ll_pl_grib1", **head, **keys)


ODD = [
    {"yearOfCentury": 255, "month": 8, "day": 1},
    {"month": 13},
    {"month": 2, "day": 30},
    {"yearOfCentury": 255, "month": 255, "day": 255},
    {"day": 0},
    {"hour": 24},
]


@pytest.mark.parametrize("keys", ODD)
def test_what_is_no_time_is_left_out_and_said(tmp_path, keys):
    url = stored(tmp_path, odd(**keys))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ds = opened(url).load()
        tree = xr.open_datatree(url, engine="fieldstone").load()
        with fst.open(url, "r") as store:
            store.export({}, tmp_path / "out.nc")
    assert "valid_time" not in ds.variables and tree is not None
    if "date" in ds.variables and "time" in ds.variables:
        assert any("valid_time" in str(warning.message) for warning in told)


def test_an_odd_date_does_not_close_the_rest(tmp_path):
    good = odd(date=20260101, level=500)
    url = stored(tmp_path, good, odd(yearOfCentury=255, month=8, day=1, level=500), odd(month=13, level=850))
    ds = xr.open_datatree(url, engine="fieldstone").load()
    times = [
        t for node in ds.subtree if "valid_time" in node.variables for t in node.valid_time.values.ravel()
    ]
    assert np.datetime64("2026-01-01T12") in times
    with pytest.warns(UserWarning, match="left out: a field of"):
        timed = xr.open_datatree(url, engine="fieldstone", time_dim="valid_time", request="levelist=500/850")
    assert any("valid_time" in node.variables for node in timed.subtree)


def test_a_field_without_a_date_is_told_once(tmp_path):
    key = {"class": "od", "expver": "0001", "stream": "oper", "type": "an", "levtype": "sfc", "param": "167"}
    with fst.open(tmp_path / "s", schema="mars") as store:
        with pytest.warns(UserWarning, match="without date"):
            store.archive(key, b"one")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.archive(key, b"two")
            store.archive({**key, "date": "20260101"}, b"three")
    with fst.open(tmp_path / "t", schema="mars") as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        store.archive({**key, "date": "20260101"}, b"one")
        store.archive({**key, "date": "jan-15"}, b"one")
    with fst.open(tmp_path / "u") as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        store.archive({"run": "a", "variable": "t"}, np.zeros(3))


def test_the_program_says_that_a_field_has_no_date(tmp_path):
    pairs = ["class=od", "expver=1", "stream=oper", "type=an", "levtype=sfc", "param=167"]
    command = [PROGRAM, "archive", "--schema", "mars", str(tmp_path / "s"), *pairs]
    done = subprocess.run(command, input=b"x", capture_output=True, check=True)
    assert b"without date" in done.stderr
    done = subprocess.run([*command, "date=20260101"], input=b"x", capture_output=True, check=True)
    assert b"without date" not in done.stderr
