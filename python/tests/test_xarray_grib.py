"""GRIB in xarray: reads when opening a tree, its nodes, and one datetime axis."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

xr = pytest.importorskip("xarray")
pytest.importorskip("eccodes")
import fieldstone.xarray_engine  # noqa: E402
from fieldstone._helper import grib  # noqa: E402
from fieldstone._xarray import declared, valid  # noqa: E402
from test_helper_grib import message  # noqa: E402

POLAR, REDUCED = "polar_stereographic_pl_grib2", "reduced_gg_pl_32_grib2"
OD = {"class": "od", "expver": "0001", "stream": "oper", "type": "fc", "levtype": "sfc", "param": "167"}
FOREIGN = {"centre": "kwbc", "type": "fc", "typeoflevel": "surface", "levtype": "sfc", "param": "130"}


def tree(url, **options):
    return xr.open_datatree(str(url), engine="fieldstone", **options)


def paths(found):
    return [node.path for node in found.subtree if node.has_data]


def ingested(tmp_path, *messages):
    path = tmp_path / "in.grib"
    path.write_bytes(b"".join(messages))
    report = fst.ingest(tmp_path / "s", path, progress=False)
    assert report.taken[0].fields == len(messages)
    return str(tmp_path / "s")


def archived(url, keys, **more):
    """Messages of one value each: their position in the list."""
    with fst.open(url, schema="mars") as store:
        for i, key in enumerate(keys):
            given = {"values": np.full(496, float(i)), **more}
            store.archive({**OD, "date": "20260101", "time": "0000", **key}, message(**given))
    return str(url)


def test_a_tree_decodes_no_points_and_looks_up_no_names(tmp_path, monkeypatch):
    url = ingested(tmp_path, message(), message(POLAR), message(REDUCED), message("regular_gg_pl_grib2"))
    asked = []
    real_text, real_array = grib.Handle.text, grib.Handle.array
    monkeypatch.setattr(grib.Handle, "text", lambda h, name: (asked.append(name), real_text(h, name))[1])
    monkeypatch.setattr(grib.Handle, "array", lambda h, name: (asked.append(name), real_array(h, name))[1])
    found = tree(url)
    repr(found)
    assert not {"latitudes", "longitudes", "values", "shortName", "name", "units", "paramId"} & set(asked)
    assert len(paths(found)) == 4
    for path in paths(found):
        node = found[path]
        assert node.t.attrs["short_name"] == "t" and node.t.attrs["units"] == "K"
        assert node.latitude.shape and node.t.ndim == len(node.t.dims)
    polar = next(found[p] for p in paths(found) if "polar" in p)
    asked.clear()
    with grib.Handle(message(POLAR)) as handle:
        _, coords = grib.grid_of(handle)
    np.testing.assert_array_equal(polar.longitude, coords["longitude"][1])
    np.testing.assert_array_equal(polar.latitude[3:5, ::2], coords["latitude"][1][3:5, ::2])
    reduced = next(found[p] for p in paths(found) if "values" in found[p].dims)
    with grib.Handle(message(REDUCED)) as handle:
        _, coords = grib.grid_of(handle)
    np.testing.assert_array_equal(reduced.latitude, coords["latitude"][1])


def test_what_the_catalog_knows_is_what_eccodes_says(tmp_path, monkeypatch):
    kinds = ("regular_ll_pl_grib1", "regular_gg_pl_grib2", REDUCED, POLAR, "rotated_ll_pl_grib2")
    url = ingested(tmp_path, *map(message, kinds), message("regular_ll_sfc_grib2"))
    known = tree(url)
    monkeypatch.setattr(declared.DeclaredMessages, "names", lambda *_: None)
    monkeypatch.setattr(declared.DeclaredMessages, "points", lambda *_: None)
    xr.testing.assert_identical(known.load(), tree(url).load())


def test_a_catalog_that_is_out_of_reach_is_not_needed(tmp_path, monkeypatch):
    url = ingested(tmp_path, message(), message(POLAR))
    known = tree(url).load()

    def refuse(*_, **__):
        raise fst.Unavailable("no catalog")

    monkeypatch.setattr(fst.Store, "variables", refuse)
    xr.testing.assert_identical(tree(url).load(), known)


def test_a_message_without_a_declaration_is_asked_itself(tmp_path):
    """Its run, parameter, and type and shape of grid are those of a declared one; its grid differs."""
    url = ingested(tmp_path, message(date=20260101, level=500))
    other = {"latitudeOfFirstGridPointInDegrees": 30.0, "latitudeOfLastGridPointInDegrees": -30.0}
    with fst.open(url) as store:
        (key,) = [dict(e.key) for e in store.list({})]
        store.archive(
            key | {"levelist": "850"}, message(date=20260101, level=850, values=np.arange(496.0), **other)
        )
    found = tree(url)
    firsts = sorted(float(found[path].latitude[0]) for path in paths(found))
    assert firsts == [30.0, 60.0]


def test_a_branch_has_no_level_that_its_messages_lack(tmp_path):
    with fst.open(tmp_path / "s", schema="mars") as store:
        for key in (OD, OD | {"stream": "enfo"}, FOREIGN, FOREIGN | {"type": "pf", "number": "1"}):
            store.archive({**key, "date": "20260101", "time": "0000", "step": "0"}, message())
    assert paths(tree(tmp_path / "s")) == [
        "/centre=kwbc/type=fc/typeoflevel=surface",
        "/centre=kwbc/type=pf/typeoflevel=surface",
        "/class=od/expver=0001/stream=enfo/domain=g/type=fc/levtype=sfc",
        "/class=od/expver=0001/stream=oper/domain=g/type=fc/levtype=sfc",
    ]


def test_messages_that_lack_a_keyword_have_a_node_of_their_own(tmp_path):
    keys = [{"step": s, **({"number": n} if n else {})} for n in (None, 1, 2) for s in (0, 6)]
    url = archived(tmp_path / "s", keys)
    found = tree(url)
    assert paths(found) == ["/levtype=sfc", "/number=/levtype=sfc"]
    (members,), (mean,) = (list(found[path].data_vars) for path in paths(found))
    assert found["number="]["levtype=sfc"][mean].dims == ("step", "latitude", "longitude")
    assert found["levtype=sfc"][members].dims == ("number", "step", "latitude", "longitude")
    assert found["number="]["levtype=sfc"][mean][:, 0, 0].values.tolist() == [0, 1]
    assert found["levtype=sfc"][members][:, :, 0, 0].values.tolist() == [[2, 3], [4, 5]]
    with pytest.raises(fst.Invalid, match=r"lack number .*open_datatree"):
        xr.open_dataset(url, engine="fieldstone")


def test_all_real_messages_are_one_tree(tmp_path):
    files = sorted(sample("grib").glob("*"))
    fst.ingest(tmp_path / "s", files, progress=False)
    found = tree(tmp_path / "s")
    assert len(paths(found)) > 80
    # No level is empty, and there is nothing above the shown contents.
    assert not [node.path for node in found.subtree if node.path.endswith("=") and "number" not in node.path]
    for path in paths(found):
        first = next(iter(found[path].data_vars.values()))
        assert first.isel(dict.fromkeys(first.dims, 0)).load().shape == ()


@pytest.mark.parametrize("chunks", [None, {}])
def test_hours_of_days_are_one_datetime_axis(tmp_path, chunks):
    keys = [
        {"date": f"202601{d:02}", "time": f"{h:02}00", "step": "0", "type": "an"}
        for d in (1, 2)
        for h in (0, 6, 12, 18)
    ]
    url = archived(tmp_path / "s", keys)
    for ds in (
        xr.open_dataset(url, engine="fieldstone", time_dim="valid_time", chunks=chunks),
        fst.open(url, "r").to_xarray(time_dim="valid_time"),
    ):
        (t,) = ds.data_vars.values()
        assert t.dims == ("valid_time", "latitude", "longitude") and "date" not in ds.variables
        assert ds.valid_time.dtype == "M8[ns]" and ds.valid_time.attrs["standard_name"] == "time"
        assert t[:, 0, 0].values.tolist() == list(range(8))
        assert t.sel(valid_time="2026-01-02T06")[0, 0] == 5 and int(ds.step) == 0
        assert t.resample(valid_time="1D").mean()[:, 0, 0].values.tolist() == [1.5, 5.5]
    whole = xr.open_dataset(url, engine="fieldstone")
    assert whole.sizes["date"] == 2 and whole.sizes["time"] == 4
    (node,) = [n for n in tree(url, time_dim="valid_time").subtree if n.has_data]
    assert node.sizes["valid_time"] == 8


def test_variables_that_are_valid_at_other_times_share_the_axis(tmp_path):
    analyses = [{"date": d, "type": "an", "step": "0"} for d in ("20260101", "20260102")]
    rain = [{"param": "228", "step": s} for s in (6, 12, 18, 24)]
    url = archived(tmp_path / "s", [*analyses, *rain])
    ds = xr.open_dataset(url, engine="fieldstone", time_dim="valid_time")
    assert [str(t)[:13] for t in ds.valid_time.values] == [
        "2026-01-01T00",
        "2026-01-01T06",
        "2026-01-01T12",
        "2026-01-01T18",
        "2026-01-02T00",
    ]
    values = {v.attrs["GRIB_param"]: v[:, 0, 0].values for v in ds.data_vars.values()}
    np.testing.assert_array_equal(values["167"], [0, np.nan, np.nan, np.nan, 1])
    np.testing.assert_array_equal(values["228"], [np.nan, 2, 3, 4, 5])


def test_members_and_levels_stay_beside_the_datetime_axis(tmp_path):
    keys = [
        {"number": n, "date": d, "time": "1200", "step": s, "levtype": "pl", "levelist": level}
        for n in (1, 2)
        for d in ("20260101", "20260102")
        for s in (6, 12)
        for level in (500, 850)
        if (n, level) != (2, 850)
    ]
    ds = xr.open_dataset(
        archived(tmp_path / "s", keys), engine="fieldstone", time_dim="valid_time", chunks={}
    )
    (t,) = ds.data_vars.values()
    assert t.dims[:3] == ("number", "valid_time", "levelist")
    one = t.sel(number=1, valid_time="2026-01-02T18", levelist=850)
    assert float(one[0, 0]) == keys.index(
        {"number": 1, "date": "20260102", "time": "1200", "step": 6, "levtype": "pl", "levelist": 850}
    )
    assert bool(t.sel(number=2, levelist=850).isnull().all()) and not bool(t.sel(levelist=500).isnull().any())


def test_a_member_that_lacks_a_time_is_missing_there(tmp_path):
    keys = [{"number": n, "step": s} for n in (1, 2) for s in (0, 6, 12) if (n, s) != (1, 6)]
    ds = xr.open_dataset(archived(tmp_path / "s", keys), engine="fieldstone", time_dim="valid_time")
    (t,) = ds.data_vars.values()
    np.testing.assert_array_equal(t[:, :, 0, 0], [[0, np.nan, 1], [2, 3, 4]])


def test_two_forecasts_for_one_time_are_refused_by_name(tmp_path):
    keys = [{"date": d, "step": s} for d in ("20260101", "20260102") for s in (0, 24)]
    url = archived(tmp_path / "s", keys)
    words = "two fields that are valid at 2026-01-02T00:00:00: date=20260101,step=24 and date=20260102,step=0"
    with pytest.raises(fst.Invalid, match=words):
        xr.open_dataset(url, engine="fieldstone", time_dim="valid_time")
    ds = xr.open_dataset(url, engine="fieldstone", request="step=24", time_dim="valid_time")
    assert [str(t)[:10] for t in ds.valid_time.values] == ["2026-01-02", "2026-01-03"]


@pytest.mark.parametrize(
    ("key", "when"),
    [
        ({"date": "20260131", "time": "0630", "step": "18"}, "2026-02-01T00:30:00"),
        ({"date": "20260101", "step": "0-6"}, "2026-01-01T06:00:00"),
        ({"date": "20260101", "step": "90m"}, "2026-01-01T01:30:00"),
        ({"date": "20260101", "step": "30m-60m"}, "2026-01-01T01:00:00"),
        ({"date": "20260101", "step": "-3"}, "2025-12-31T21:00:00"),
        ({"date": "20260101"}, "2026-01-01T00:00:00"),
        ({"date": "20260101", "hdate": "20060101", "step": "24"}, "2006-01-02T00:00:00"),
        ({"date": "20260101", "fcmonth": "3"}, "2026-04-01T00:00:00"),
        ({"date": "20260101", "step": "1h30m"}, "2026-01-01T01:30:00"),
        ({"date": "20260101", "step": "-12--6"}, "2025-12-31T18:00:00"),
        ({"date": "20260101", "step": "24", "validity": "202601010600"}, "2026-01-01T06:00:00"),
    ],
)
def test_when_a_message_is_valid(key, when):
    assert str(valid.moment(key)) == when


@pytest.mark.parametrize(
    "key", [{}, {"date": "jan-01"}, {"date": "20261301"}, {"date": "20260101", "step": "3x"}]
)
def test_a_message_that_says_no_time_is_refused(key):
    with pytest.raises(fst.Invalid, match="has no time of validity"):
        valid.moment(key)


def test_words_of_time_dim(tmp_path):
    url = archived(tmp_path / "s", [{"step": "6"}])
    one = xr.open_dataset(url, engine="fieldstone", time_dim="valid_time")
    assert one.valid_time.dims == () and one.valid_time.values == np.datetime64("2026-01-01T06")
    with pytest.raises(fst.Invalid, match="time_dim is 'time'"):
        xr.open_dataset(url, engine="fieldstone", time_dim="time")
    with fst.open("memory:") as store:
        store.archive({"run": "a", "variable": "t"}, np.zeros(3))
        store.flush()
        with pytest.raises(fst.Invalid, match="time_dim= is for GRIB"):
            store.to_xarray(time_dim="valid_time")
