"""A value that an encoding cannot hold is refused by name, value and range; all others read back the same."""

from __future__ import annotations

import warnings

import fieldstone as fst
import numpy as np
import pytest
from test_to_store import opened

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

KEY = {"run": "a"}
PACKED = {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}
TIME = {"units": "hours since 2000-01-01", "dtype": "i4"}


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def times(*texts):
    return np.array(texts, "M8[ns]")


REFUSED = {
    "too large": (
        PACKED,
        [400.0],
        r"variable v: 400.0 .*int16 with scale_factor=0.01.*-327.68 to 327.67 fit",
    ),
    "too small": (PACKED, [-400.0], "-400.0 cannot be kept"),
    "rounded beyond": (PACKED, [327.676], "327.676 cannot be kept"),
    "packed as the fill value": (PACKED, [-0.01], "-0.01 .*would read as nan"),
    "infinite": (PACKED, [np.inf], "inf cannot be kept"),
    "no fill value": ({"dtype": "i2", "scale_factor": 0.1}, [np.nan], "nan cannot be kept as int16"),
    "plain whole numbers": ({"dtype": "i2"}, [70_000.0], "70000.0 cannot be kept as int16"),
    "nan as whole number": ({"dtype": "i2"}, [np.nan], "nan cannot be kept as int16"),
    "negative unsigned": ({"dtype": "u1"}, [-1], "-1 cannot be kept as uint8.*0 to 255"),
    "wide unsigned": (
        {"dtype": "i8"},
        np.array([2**63], "u8"),
        "9223372036854775808 cannot be kept as int64",
    ),
    "meant unsigned": (
        {"dtype": "i1", "_Unsigned": "true", "_FillValue": np.int8(-1)},
        [256.0],
        "256.0 cannot be kept as int8.*_Unsigned=true",
    ),
    "float beyond": ({"dtype": "f4"}, [1e300], "would read as inf"),
    "float fill value": ({"_FillValue": -999.0}, [-999.0], "-999.0 .*would read as nan"),
    "time beyond": (
        {"units": "seconds since 1970-01-01", "dtype": "i4"},
        times("2200-01-01"),
        "2200-01-01.*int32 with units=seconds.*2038-01-19",
    ),
    "time between": ({"units": "days since 1850-01-01", "dtype": "f4"}, times("2000-01-01T00:30"), "float32"),
    "no time": (TIME, times("NaT"), "NaT cannot be kept as int32"),
}


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_every_way_of_writing(url, case, lazy):
    encoding, values, words = REFUSED[case]
    values = np.asarray(values)
    good = np.full(values.shape, times("2000-01-01")[0] if values.dtype.kind == "M" else 1, values.dtype)

    def dataset(some):
        ds = xr.Dataset({"v": ("n", some), "w": ("n", np.zeros(len(some)))})
        return ds.chunk({"n": 1}) if lazy else ds

    both = np.concatenate([good, values])
    bad = dataset(both)
    bad.v.encoding = encoding
    whole = dataset(np.concatenate([good, good]))
    whole.v.encoding = encoding
    with fst.open(url) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(bad, store, KEY)
        fst.to_store(whole, store, KEY)
        before = opened(url).v.values.copy()
        for options in (
            {"region": {"n": slice(0, 2)}},
            {"append_dim": "n"},
        ):
            # A type other than the stored one is refused for that reason, and so are other units of time.
            with pytest.raises(
                fst.Invalid, match=f"{words}|variable v has dtype|variable v cannot be stored with"
            ):
                fst.to_store(dataset(both), store, KEY, **options)
            np.testing.assert_array_equal(opened(url).v.values, before)


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
def test_what_fits_is_off_by_half_a_step_at_most(url, lazy):
    rng = np.random.default_rng(3)
    values = rng.uniform(-327.67, 327.67, (40, 9))
    values[0, :3] = [327.674, -327.684, np.nan]
    values[np.round(values * 100) == -1] = 0
    ds = xr.Dataset({"v": (("t", "x"), values), "f": (("t", "x"), values.astype("f4"))})
    given = ds.chunk({"t": 7}) if lazy else ds
    given.v.encoding = PACKED
    given.f.encoding = {"dtype": "i4", "scale_factor": np.float32(1e-3), "add_offset": np.float32(250)}
    given["f"] = given.f.fillna(0)
    fst.to_store(given, url, KEY)
    got = opened(url)
    assert np.nanmax(np.abs(got.v.values - values)) <= 0.005 * (1 + 1e-9)
    assert (np.isnan(got.v.values) == np.isnan(values)).all()
    assert np.abs(got.f.values - np.nan_to_num(values)).max() < 1e-3


def test_times_that_fit_come_back_exactly(url):
    stamps = np.datetime64("2000-01-01", "ns") + np.arange(6) * np.timedelta64(90, "m")
    ds = xr.Dataset({"v": ("t", stamps), "d": ("t", stamps - stamps[0])}, {"t": stamps})
    ds.v.encoding = {"units": "minutes since 2000-01-01", "dtype": "i4"}
    ds.t.encoding = {"units": "days since 1900-01-01", "dtype": "f8"}
    fst.to_store(ds, url, KEY)
    xr.testing.assert_identical(opened(url).load(), ds)


def test_a_block_of_another_type_than_it_was_said_to_be_does_not_wrap(url):
    wide = da.from_array(np.zeros(4, "i2"), chunks=2).map_blocks(
        lambda b: b.astype("i8") + 70_000, dtype="i2"
    )
    with pytest.raises(fst.Invalid, match=r"v \(in a block\): 70000 cannot be kept as int16"):
        fst.to_store(xr.Dataset({"v": ("n", wide)}), url, KEY)


def test_what_runs_declare_as_packed_takes_packed_values_alone():
    attrs = {"scale_factor": 0.01, "_FillValue": -1}
    with fst.open("memory:") as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="i2", shape=(2,), attrs=attrs)
        with pytest.raises(fst.Invalid, match=r"dtype float64.*int16.*\(array - add_offset\) / scale_factor"):
            run.write("t", 0, np.array([400.0, 1]))
        run.write("t", 0, np.array([150, -1], "i2"))
        store.archive({"run": "a", "variable": "u", "step": 0}, np.array([400.0, -1.0]))
        run.create_variable("u", dtype="i2", shape=(2,), attrs=attrs)
        store.flush()
        got = store.to_xarray("run=a")
        np.testing.assert_array_equal(got.t.values.ravel(), [1.5, np.nan])
        np.testing.assert_array_equal(got.u.values.ravel(), [400.0, -1.0])
