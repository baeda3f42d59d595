"""Unusual contents of GRIB headers: words, depths, grids, points without a value."""

from __future__ import annotations

import warnings

import fieldstone as fst
import numpy as np
import pytest

xr = pytest.importorskip("xarray")
eccodes = pytest.importorskip("eccodes")
import grib_matrix as matrix  # noqa: E402
from fieldstone._helper import grib  # noqa: E402
from test_grib_times import NCEP, OD, made, opened, stored  # noqa: E402

DATED = OD | {"date": 20260101, "time": 0}


def test_points_without_a_value_and_without_a_bitmap_are_nan(tmp_path):
    cell = {"edition": 2, "centre": "kwbc", "statistic": "instant", "unit": "h", "level": "surface"}
    raw = matrix.message(cell | {"packing": "grid_complex", "missing": "own", "values": "ramp"})
    url = stored(tmp_path, raw)
    values, _ = matrix.by_eccodes(raw)
    assert np.isnan(values).sum() == values.size // 2
    with fst.open(url, "r") as store:
        np.testing.assert_array_equal(store.retrieve("")[0].array().ravel(), values)
        store.export({}, tmp_path / "out.nc")
    (variable,) = opened(url).data_vars.values()
    np.testing.assert_array_equal(variable.values.ravel(), values)
    (variable,) = (v for v in xr.open_dataset(tmp_path / "out.nc").data_vars.values() if v.ndim == 2)
    np.testing.assert_array_equal(variable.values.ravel(), values)


@pytest.mark.parametrize("absent", [0, 1])
def test_a_value_that_stands_for_missing_elsewhere_stays(tmp_path, absent):
    values = np.arange(496.0)
    values[:3] = 9999, 9999e20, -7
    more = {"bitmapPresent": 1, "missingValue": -7} if absent else {}
    raw = made("regular_ll_pl_grib2", packingType="grid_ieee", precision=2, **more, values=values)
    found = fst.open(stored(tmp_path, raw), "r").retrieve("")[0].array().ravel()
    assert found[:2].tolist() == [9999, 9999e20] and np.isnan(found).sum() == absent


def test_words_of_levels_that_eccodes_has(tmp_path):
    url = stored(
        tmp_path, *(made(**NCEP, typeOfFirstFixedSurface=surface, level=3) for surface in (118, 119))
    )
    with fst.open(url, "r") as store:
        assert len(store.axes()["levtype"]) == 2
        for entry in store.list():
            assert len(store.retrieve({k: [v] for k, v in entry.key.items()})) == 1


def test_a_message_that_cannot_be_read_is_left_out_and_named(tmp_path, monkeypatch):
    url = stored(tmp_path, made(**NCEP, shortName="2t"), made(**NCEP, shortName="sp"))
    real = grib.attributes_of

    def attributes_of(handle, known=None):
        if handle.text("shortName") == "2t":
            raise eccodes.DecodingError("Decoding invalid")
        return real(handle, known)

    monkeypatch.setattr(grib, "attributes_of", attributes_of)
    with pytest.warns(UserWarning, match="left out: messages such as .*Decoding invalid"):
        assert list(opened(url).data_vars) == ["sp"]
    with pytest.warns(UserWarning, match="left out"):
        assert [list(n.data_vars) for n in xr.open_datatree(url, engine="fieldstone").subtree if n.has_data]
    with pytest.raises(fst.Invalid, match="eccodes cannot read"), pytest.warns(UserWarning, match="left out"):
        opened(url, request="typeoflevel=heightAboveGround")


LAYERS = ((0, 10), (10, 40), (40, 100))


def layer(head, top, bottom):
    surfaces = {"scaleFactorOfFirstFixedSurface": 2, "scaledValueOfFirstFixedSurface": top}
    surfaces |= {"scaleFactorOfSecondFixedSurface": 2, "scaledValueOfSecondFixedSurface": bottom}
    soil = {"discipline": 2, "parameterCategory": 0, "parameterNumber": 2}
    return made(**head, **soil, typeOfLevel="depthBelowLandLayer", **surfaces, values=np.full(496, 1.0 + top))


@pytest.mark.parametrize(("head", "dim"), [(NCEP, "levelist"), (DATED, "level")])
def test_soil_layers_are_levels_of_one_variable(tmp_path, head, dim):
    url = stored(tmp_path, *(layer(head, *ends) for ends in LAYERS))
    ds = opened(url)
    (variable,) = ds.data_vars.values()
    assert ds[dim].values.tolist() == [0, 0.1, 0.4]
    assert variable.dims[0] == dim and variable[:, 0, 0].values.tolist() == [1, 11, 41]
    (node,) = [n for n in xr.open_datatree(url, engine="fieldstone").subtree if n.has_data]
    assert node[dim].values.tolist() == [0, 0.1, 0.4]


@pytest.mark.parametrize("head", [NCEP, DATED])
def test_layers_that_begin_together_are_told_apart_by_their_ends(tmp_path, head):
    ends = (10, 40, 100)
    ds = opened(stored(tmp_path, *(layer(head, 0, end) for end in ends)))
    (variable,) = ds.data_vars.values()
    assert variable.sizes["bottomlevel"] == 3
    assert sorted(ds.bottomlevel.values.tolist()) == [0.1, 0.4, 1]


def test_heights_between_metres_keep_their_digits(tmp_path):
    head = {**NCEP, "typeOfLevel": "heightAboveGround", "scaleFactorOfFirstFixedSurface": 1}
    ds = opened(stored(tmp_path, *(made(**head, scaledValueOfFirstFixedSurface=n) for n in (15, 20, 25))))
    assert ds.levelist.values.tolist() == [1.5, 2, 2.5]


def without_a_layout():
    """A message of a HEALPix grid whose Nside does not fit its points."""
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    eccodes.codes_set(handle, "centre", "kwbc")
    eccodes.codes_set(handle, "gridType", "healpix")
    for name, value in {"Nside": 1024, "numberOfDataPoints": 12, "ordering": 0}.items():
        eccodes.codes_set(handle, name, value)
    eccodes.codes_set_values(handle, np.arange(12.0))
    return eccodes.codes_get_message(handle)


def test_a_grid_that_cannot_be_laid_out_keeps_its_values(tmp_path):
    url = stored(tmp_path, without_a_layout())
    with pytest.warns(UserWarning, match=r"cannot lay out the grid \(healpix\)"):
        ds = opened(url)
    ds.load()
    (variable,) = ds.data_vars.values()
    assert variable.dims == ("values",) and variable.values.tolist() == list(range(12))
    assert not {"latitude", "longitude"} & set(ds.variables)
    with warnings.catch_warnings(), fst.open(url, "r") as store:
        warnings.simplefilter("ignore")
        store.export({}, tmp_path / "out.nc")
        tree = xr.open_datatree(url, engine="fieldstone").load()
    assert [n for n in tree.subtree if n.has_data]
    out = xr.open_dataset(tmp_path / "out.nc")
    assert out[str(variable.name)].values.tolist() == list(range(12))
