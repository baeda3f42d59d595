"""earthkit-data's own calls on a store, compared with the same calls on the ingested file."""

from __future__ import annotations

import pickle

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

earthkit = pytest.importorskip("earthkit.data")
xr = pytest.importorskip("xarray")

MEMBERS = "era5-levels-members"


@pytest.fixture
def members(tmp_path):
    """The URL of a store that holds a file, and that file."""
    path = sample(f"grib/{MEMBERS}.grib")
    fst.ingest(tmp_path / "s", path, progress=False)
    return str(tmp_path / "s"), str(path)


def of(*args, **options):
    return earthkit.from_source("fieldstone", *args, **options)


def test_the_package_registers_the_source():
    from importlib.metadata import entry_points

    (found,) = entry_points(group="earthkit.data.sources", name="fieldstone")
    assert found.value == "fieldstone.earthkit_source:FieldstoneSource"


@pytest.mark.parametrize(
    "name",
    [MEMBERS, "hpa_and_pa", "lambert_grid", "regular_gg_pl", "reduced_gg", "t_on_different_level_types"],
)
def test_messages_are_those_of_the_file(tmp_path, name):
    path = sample(f"grib/{name}.grib")
    fst.ingest(tmp_path / "s", path, progress=False)
    found = of(str(tmp_path / "s")).to_fieldlist()
    expected = earthkit.from_source("file", str(path)).to_fieldlist()
    assert sorted(f.message() for f in found) == sorted(f.message() for f in expected)


def test_a_field_list_selects_orders_and_tells_as_that_of_the_file(members):
    url, path = members
    found = of(url).to_fieldlist()
    expected = earthkit.from_source("file", path).to_fieldlist()
    assert len(found) == 160
    where = {"parameter.variable": "z", "vertical.level": 500}
    order = ["ensemble.member", "time.base_datetime"]
    mine, theirs = (of.sel(where).order_by(order) for of in (found, expected))
    assert len(mine) == len(theirs) == 40
    assert mine.ls().equals(theirs.ls())
    np.testing.assert_array_equal(mine.to_numpy(), theirs.to_numpy())
    assert found.unique("vertical.level") == expected.unique("vertical.level")
    assert found[-1].to_numpy().shape == (61, 120) and len(found[3:7]) == 4


def test_a_dataset_is_what_earthkit_makes_of_the_file(members):
    url, path = members
    expected = earthkit.from_source("file", path).to_xarray().load()
    xr.testing.assert_identical(of(url).to_xarray().load(), expected)


def test_requests(members):
    url, _ = members
    assert len(of(url, {"param": "t"}).to_fieldlist()) == 80
    assert len(of(url, param="t", number=[0, 1]).to_fieldlist()) == 16
    assert len(of(url, {"param": "t"}, levelist=500).to_fieldlist()) == 40
    assert len(of(url, request={"param": "t", "levelist": [500, 850]}).to_fieldlist()) == 80
    assert len(of(url, "param=t/z,number=0/to/3").to_fieldlist()) == 64
    assert len(of(url, {"param": "t", "number": 1}, {"param": "z", "number": 2}).to_fieldlist()) == 16
    assert len(of(url, [{"param": "t", "number": 1}, {"param": "z"}], levelist=850).to_fieldlist()) == 44
    with pytest.raises(fst.NotFound):
        of(url, param="msl")
    with pytest.raises(fst.Invalid, match="keywords need a request that is a dict"):
        of(url, "param=t", levelist=500)


def test_an_open_store_and_its_versions(members):
    url, path = members
    with fst.open(url) as store:
        before = store.version
        assert len(of(store, param="t").to_fieldlist()) == 80
        held = of(store)
        first = earthkit.from_source("file", path).to_fieldlist()[0]
        store.archive_grib(first.message())
        store.remove("param=z")
        store.flush()
        assert len(of(store).to_fieldlist()) == 80
        assert len(held.to_fieldlist()) == 160
        assert len(of(url, at=before).to_fieldlist()) == 160
        with pytest.raises(fst.Invalid, match="open the store at that version"):
            of(store, at=before)


def test_it_is_pickled_and_written_by_earthkit(members, tmp_path):
    url, _ = members
    found = of(url, param="t", number=0)
    again = pickle.loads(pickle.dumps(found.to_fieldlist()))
    assert [f.message() for f in again] == [f.message() for f in found.to_fieldlist()]
    target = tmp_path / "out.grib"
    found.to_target("file", str(target))
    assert len(earthkit.from_source("file", str(target)).to_fieldlist()) == 8
    assert found.to_numpy().shape == (8, 61, 120)
    assert len(found.to_pandas()) == 8 * 61 * 120


def test_a_list_keeps_few_decoded_messages(members, monkeypatch):
    from fieldstone import earthkit_source

    made = []
    decoded = earthkit_source.StoreHandle._decoded
    monkeypatch.setattr(
        earthkit_source.StoreHandle, "_decoded", lambda self: made.append(self.offset) or decoded(self)
    )
    found = of(members[0], param="t", number=0).to_fieldlist()
    assert made == []
    for field in found:
        field.to_numpy(), field.message()
    assert made == list(range(8))
    found[0].to_numpy()
    assert made[-1] == 0


def test_bytes_that_are_no_message_are_named(members):
    with fst.open(members[0]) as store:
        (key,) = (e.key for e in store.list("param=t,number=0,levelist=500,date=20170101,time=0"))
        store.archive(key, b"something else")
        store.flush()
        with pytest.raises(fst.Invalid, match=r"param=130.* is not a GRIB message"):
            of(store, dict(key)).to_fieldlist()[0].to_numpy()


def test_arrays_come_as_xarray(tmp_path):
    path = sample("netcdf-classic/test4.nc")
    fst.ingest(tmp_path / "s", path, progress=False)
    found = of(str(tmp_path / "s"))
    expected = fst.open(tmp_path / "s", mode="r").to_xarray()
    xr.testing.assert_identical(found.to_xarray().load(), expected.load())
    with fst.open(tmp_path / "runs") as store:
        for step in (0, 6):
            store.archive({"run": "a", "variable": "t", "step": step}, np.full((2, 3), step, "f4"))
    ds = of(str(tmp_path / "runs"), run="a", step=6).to_xarray()
    assert float(ds.t.mean()) == 6
