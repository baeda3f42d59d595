"""pyfdb's calls on a store answer like pyfdb on an FDB, with the same arguments."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import shutil
import subprocess
import sys

import fieldstone as fst
import fieldstone.pyfdb
import pytest
from fieldstone.pyfdb import URI, ControlAction, ControlIdentifier, WipeElementType

eccodes = pytest.importorskip("eccodes")
yaml = pytest.importorskip("yaml")
real = pytest.importorskip("pyfdb")

SCHEMA = """
param: Param; step: Step; date: Date; levelist: Double; expver: Expver; time: Time;
[ class, expver, stream, date, time, domain?
    [ type, levtype
        [ step, levelist?, param ]]]
"""
DATES, TIMES, PARAMS = (20200101, 20200102, 20200103), (0, 1200), (167, 165, 166)
ONE = {
    "class": "ea", "expver": "0001", "stream": "oper", "date": "20200101", "time": "1200", "domain": "g",
    "type": "an", "levtype": "sfc", "step": "0", "param": "167",
}  # fmt: skip
DATASET = {k: ONE[k] for k in ("class", "expver", "stream", "date", "time", "domain")}
BINARY = {**ONE, "class": "rd", "levtype": "pl", "levelist": "500"}


@pytest.fixture(scope="module")
def messages():
    """GRIB messages of three days, two times and three parameters."""
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    header = {"setLocalDefinition": 1, "class": "ea", "expver": "0001", "stream": "oper", "type": "an"}
    for name, value in header.items():
        eccodes.codes_set(handle, name, value)
    made = []
    for n, (date, time, param) in enumerate(itertools.product(DATES, TIMES, PARAMS)):
        for name, value in {"date": date, "time": time, "paramId": param}.items():
            eccodes.codes_set(handle, name, value)
        count = eccodes.codes_get(handle, "numberOfPoints")
        eccodes.codes_set_values(handle, [float(n + i % 7) for i in range(count)])
        made.append(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return b"".join(made)


def configuration(folder, **more):
    folder.mkdir(exist_ok=True)
    (folder / "schema").write_text(SCHEMA)
    (folder / "root").mkdir(exist_ok=True)
    spaces = [{"handler": "Default", "roots": [{"path": str(folder / "root")}]}]
    return {"type": "local", "engine": "toc", "schema": str(folder / "schema"), "spaces": spaces, **more}


@pytest.fixture
def both(tmp_path, messages):
    """A store with pyfdb's names, and an FDB, with the same fields."""
    made = [
        fieldstone.pyfdb.FDB(configuration(tmp_path / "ours")),
        real.FDB(configuration(tmp_path / "theirs")),
    ]
    for fdb in made:
        fdb.archive(messages)
        fdb.archive(b"no grib", identifier=BINARY)
        fdb.flush()
    return made


@pytest.fixture
def ours(both):
    return both[0]


def told(keys):
    """Keys as text, in any order of their keywords."""
    return str([sorted(key.items()) for key in keys])


def equal(both, ask):
    mine, theirs = (ask(fdb) for fdb in both)
    assert mine == theirs
    return mine


SELECTIONS = [
    {},
    {"class": "ea"},
    {"type": "an"},
    {"class": "rd"},
    {**ONE},
    {**ONE, "param": "165/166/167"},
    {**ONE, "param": ["165", "167"]},
    {**ONE, "param": [165, 167], "step": 0},
    {**ONE, "param": ("168", "167")},
    {**ONE, "date": "20200101/to/20200103"},
    {**ONE, "date": ["20200101", "to", "20200103", "by", "2"]},
    {**ONE, "time": "0600"},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items()))
def test_lists_are_those_of_an_fdb(both, selection):
    for level in (1, 2, 3):

        def listed(fdb, level=level):
            found = fdb.list(selection, level=level)
            return sorted(
                (told(e.keys()), told([e.combined_key()]), e.has_location(), e.length()) for e in found
            )

        rows = equal(both, listed)
    expected = {0: 19, 1: 18, 2: 19, 3: 1, 4: 1, 5: 3, 6: 2, 7: 2, 8: 1, 9: 3, 10: 2, 11: 0}
    assert len(rows) == expected[SELECTIONS.index(selection)]


@pytest.mark.parametrize(
    "selection",
    [ONE, BINARY, {**ONE, "time": "0600"}, {**ONE, "step": 0}, {**ONE, "param": "165/168"}],
    ids=str,
)
def test_retrieved_bytes_are_those_of_an_fdb(both, selection):
    equal(both, lambda fdb: fdb.retrieve(selection).readall())
    equal(both, lambda fdb: fdb.retrieve(selection).size())
    equal(both, lambda fdb: [e.data_handle.readall() for e in fdb.inspect(selection)])


def test_many_values_are_all_retrieved(ours, messages):
    selection = {**ONE, "param": "165/166/167", "date": "20200101/to/20200103", "time": ["0", 1200]}
    handle = ours.retrieve(selection)
    assert handle.size() == len(messages) and sorted(handle.readall()) == sorted(messages)
    assert len(list(ours.inspect(selection))) == 18
    # As many as there are.
    assert ours.retrieve({**ONE, "param": ["168", "167"]}).readall() == ours.retrieve(ONE).readall()


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("selection", [{}, {"class": "ea"}, {**ONE, "param": "165/166/167"}, BINARY], ids=str)
def test_axes_are_those_of_an_fdb(both, level, selection):
    equal(both, lambda fdb: sorted((k, sorted(v)) for k, v in fdb.axes(selection, level=level).items()))


def test_status_names_the_datasets(both):
    equal(both, lambda fdb: sorted(told([e.key()]) for e in fdb.status({"class": "ea"})))
    found = list(both[0].status(DATASET))
    assert [e.controlIdentifiers() for e in found] == [[]]
    assert str(found[0].location()).endswith("#ea:0001:oper:20200101:1200:g")
    assert found[0] == next(both[0].status(DATASET)) and found[0] != next(both[0].status({"class": "rd"}))


def test_arbitrary_bytes_under_an_identifier(both, tmp_path):
    assert equal(both, lambda fdb: fdb.retrieve(BINARY).readall()) == b"no grib"
    for fdb in both:
        fdb.archive(b"again", identifier=list(BINARY.items()))
        assert fdb.dirty() is True
        fdb.flush()
        assert fdb.dirty() is False
    # An FDB that has read an index does not read it again.
    both = [both[0], real.FDB(configuration(tmp_path / "theirs"))]
    assert equal(both, lambda fdb: fdb.retrieve(BINARY).readall()) == b"again"
    assert equal(both, lambda fdb: len(list(fdb.list(BINARY, include_masked=True)))) == 2
    for wrong in (
        {**BINARY, "step": "0/6"},
        {**BINARY, "class": "rd/od"},
        {**BINARY, "step": ["0"]},
        "class=rd",
    ):
        for fdb in both:
            with pytest.raises(ValueError):
                fdb.archive(b"", identifier=wrong)
    for fdb in both:
        with pytest.raises(KeyError):
            fdb.archive(b"", identifier=[*BINARY.items(), ("step", "6")])


def test_handles_read_like_files(both):
    selection = {**ONE, "param": "165/166/167"}
    for fdb in both:
        handle = fdb.retrieve(selection)
        assert "Closed" in repr(handle)
        for read in (lambda h: h.read(4), lambda h: h.readinto(memoryview(bytearray(4)))):
            with pytest.raises(RuntimeError, match="Must be opened first"):
                read(handle)
        whole = handle.readall()
        assert len(whole) == handle.size()
        with handle:
            assert "Opened" in repr(handle)
            assert handle.read(4) == b"GRIB" and handle.read(4) == whole[4:8]
            buffer = bytearray(5)
            assert handle.readinto(memoryview(buffer)) == 5 and buffer == whole[8:13]
            assert handle.read(-1)[: len(whole) - 13] == whole[13:]
        target = io.BytesIO()
        with handle:
            shutil.copyfileobj(handle, target)
        assert target.getvalue() == whole
        with fdb.retrieve({**ONE, "time": "0600"}) as empty:
            assert empty.read(4) == b""
        with pytest.raises(TypeError):
            fdb.retrieve({})


def test_a_handle_reads_what_was_there(ours):
    (element,) = ours.list(BINARY)
    handle = ours.retrieve(BINARY)
    ours.archive(b"newer", identifier=BINARY)
    ours.flush()
    assert element.data_handle.readall() == handle.readall() == b"no grib"


def test_places_of_fields(ours):
    (element,) = ours.list(BINARY)
    assert element.length() == 7
    path = element.uri.path()
    with open(path, "rb") as file:
        file.seek(element.offset())
        assert file.read(7) == b"no grib"
    assert repr(element).startswith(
        "{class=rd,expver=0001,stream=oper,date=20200101,time=1200,domain=g}{type=an"
    )
    assert f"offset={element.offset()},length=7" in repr(element)
    (dataset,) = ours.list(BINARY, level=1)
    assert (dataset.offset(), dataset.length(), dataset.uri, dataset.data_handle) == (None,) * 4
    assert dataset.keys()[1:] == [{}, {}]


def test_masked_versions_are_listed_and_not_read(ours):
    ours.archive(b"newer", identifier=BINARY)
    ours.flush()
    elements = list(ours.list(BINARY, include_masked=True))
    lengths = sorted(e.length() for e in elements)
    assert lengths == [5, 7]
    for element in elements:
        if element.length() == 7:
            with pytest.raises(fst.Invalid, match="masked by a newer version"):
                element.data_handle  # noqa: B018
        else:
            assert element.data_handle.readall() == b"newer"


@pytest.mark.parametrize("selection", [{"class": "rd"}, {"class": "ea", "date": "20200102"}, {}], ids=str)
def test_wipe_removes_what_it_names(both, selection):
    before = equal(both, lambda fdb: len(list(fdb.list({}))))
    for fdb in both:
        assert len(list(fdb.wipe(selection))) > 0
        fdb.wipe(selection, doit=True)  # nothing happens before the elements are read
        assert len(list(fdb.list({}))) == before
        assert len(list(fdb.wipe(selection, doit=True))) > 0
    left = equal(both, lambda fdb: sorted(told([e.combined_key()]) for e in fdb.list({})))
    assert len(left) < before


def test_a_wiped_store_still_has_its_older_version(ours):
    store = ours._store
    before = store.version
    kinds = [element.type() for element in ours.wipe({"class": "rd"}, doit=True)]
    assert kinds == [WipeElementType.CATALOGUE, WipeElementType.CATALOGUE_INDEX, WipeElementType.STORE]
    assert fst.open(store.url, mode="r", at=before).get(BINARY) == b"no grib"


def test_wipe_refuses_single_fields(ours):
    with pytest.raises(fst.Invalid, match="param is a keyword of their fields"):
        list(ours.wipe({**DATASET, "param": "167"}, doit=True))
    assert len(list(ours.list({}))) == 19


def test_purge_lists_what_is_masked(ours):
    assert [str(e) for e in ours.purge({}, doit=True)] == ["0 masked versions"]
    ours.archive(b"newer", identifier=BINARY)
    ours.flush()
    rows = [str(e) for e in ours.purge({"class": "rd"})]
    assert len(rows) == 2 and "length=7" in rows[0] and rows[1] == "1 masked versions"
    # It was masked just now.
    assert len(list(ours.purge({"class": "rd"}, doit=True))) == 2
    assert len(list(ours.purge({"class": "rd"}))) == 2


def test_stats_count_whole_indexes(both):
    def counts(fdb):
        (element,) = fdb.stats({**ONE, "param": "167/168"})
        text = str(element)
        assert element.db_statistics() in text or "DB Statistics" in text
        return [line for line in text.splitlines() if line.startswith(("Fields", "Reacheable", "Databases"))]

    assert len(equal(both, counts)) == 3
    assert equal(both, lambda fdb: len(list(fdb.stats({})))) == 7


def test_control(ours):
    found = list(ours.control(DATASET, ControlAction.ENABLE, [ControlIdentifier.WIPE]))
    assert found == list(ours.status(DATASET)) and len(found) == 1
    with pytest.raises(fst.Invalid, match="UNIQUEROOT"):
        ours.control(DATASET, ControlAction.DISABLE, [ControlIdentifier.UNIQUEROOT])
    disabled = [ControlIdentifier.WIPE, ControlIdentifier.RETRIEVE]
    (element,) = ours.control(DATASET, ControlAction.DISABLE, disabled)
    assert element.controlIdentifiers() == [ControlIdentifier.RETRIEVE, ControlIdentifier.WIPE]
    assert [e.controlIdentifiers() for e in ours.status(DATASET)] == [element.controlIdentifiers()]
    assert ours.retrieve(ONE).readall() == b"", "a retrieve that is not strict passes it"
    assert len(list(ours.list(DATASET))) > 0
    (element,) = ours.control(DATASET, ControlAction.ENABLE, disabled)
    assert element.controlIdentifiers() == []
    assert ours.retrieve(ONE).readall()


@pytest.mark.parametrize("more", [{}, {"writable": False}, {"visitable": False}], ids=str)
def test_what_the_configuration_allows(tmp_path, messages, more):
    fieldstone.pyfdb.FDB(configuration(tmp_path / "ours")).archive(messages)
    made = [
        kind.FDB(configuration(tmp_path / name, **more))
        for kind, name in ((fieldstone.pyfdb, "ours"), (real, "theirs"))
    ]
    for one in ControlIdentifier:
        assert made[0].enabled(one) == made[1].enabled(real.ControlIdentifier[one.name]), one
    assert made[0].enabled(ControlIdentifier.NONE) is True


def test_what_the_configuration_forbids_is_refused(tmp_path, messages):
    with fieldstone.pyfdb.FDB(configuration(tmp_path / "ours")) as fdb:
        fdb.archive(messages)
    reading = fieldstone.pyfdb.FDB(configuration(tmp_path / "ours", writable=False))
    assert len(list(reading.list({}))) == 18
    with pytest.raises(fst.Denied):
        reading.archive(messages)
    with pytest.raises(fst.Invalid, match="writable: false"):
        list(reading.wipe({}, doit=True))
    hidden = fieldstone.pyfdb.FDB(configuration(tmp_path / "ours", visitable=False))
    for call in (lambda: list(hidden.list({})), lambda: hidden.retrieve(ONE)):
        with pytest.raises(fst.Invalid, match="visitable: false"):
            call()


def test_configurations(tmp_path, messages, monkeypatch):
    given = configuration(tmp_path / "ours")
    text = yaml.dump(given)
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with fieldstone.pyfdb.FDB(given, user_config="useSubToc: true") as fdb:
        fdb.archive(messages)
        assert fdb.config() == (given, {"useSubToc": True})
    for config in (text, path, given, str(tmp_path / "ours" / "root"), tmp_path / "ours" / "root"):
        assert len(list(fieldstone.pyfdb.FDB(config).list({}))) == 18
    for name, value in (("FDB5_CONFIG_FILE", str(path)), ("FDB5_CONFIG", text)):
        monkeypatch.setenv(name, value)
        assert len(list(fieldstone.pyfdb.FDB().list({}))) == 18
        monkeypatch.delenv(name)
    home = tmp_path / "home" / "etc" / "fdb"
    home.mkdir(parents=True)
    shutil.copy(path, home / "config.yaml")
    monkeypatch.setenv("FDB_HOME", str(tmp_path / "home"))
    assert len(list(fieldstone.pyfdb.FDB().list({}))) == 18
    monkeypatch.delenv("FDB_HOME")
    nothing = fieldstone.pyfdb.FDB()
    with pytest.raises(fst.Invalid, match="no configuration is given"):
        nothing.list({}).__next__()


@pytest.mark.parametrize(
    ("config", "error", "text"),
    [
        (0, ValueError, "Unknown config type"),
        ({"type": "remote", "host": "h"}, fst.Invalid, "type 'remote'"),
        ({"type": "local"}, fst.Invalid, "0 roots"),
        ({"spaces": [{"roots": [{"path": "a"}, {"path": "b"}]}]}, fst.Invalid, "2 roots"),
        ("- a\n- b", fst.Invalid, "not a mapping"),
        ("a: [", fst.Invalid, "not YAML"),
    ],
)
def test_configurations_that_name_no_store(config, error, text):
    with pytest.raises(error, match=text):
        fieldstone.pyfdb.FDB(config)


def test_the_folder_of_an_fdb_is_refused(both, tmp_path):
    with pytest.raises(fst.Invalid, match="holds an FDB's own files"):
        fieldstone.pyfdb.FDB(configuration(tmp_path / "theirs"))


def test_errors_are_ours_and_are_caught_as_pyfdbs(ours):
    cases = [
        ({**ONE, "param": ["131/132"]}, "Bad value '131/132' for param"),
        ({**ONE, "number": "1"}, "number"),
        ({**ONE, "date": "20201301"}, "20201301"),
    ]
    for selection, text in cases:
        with pytest.raises(RuntimeError, match=f"UserError: .*{text}") as caught:
            list(ours.list(selection))
        assert isinstance(caught.value, fst.Invalid)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.code) == (str(caught.value), caught.value.code)
    with pytest.raises(fst.Invalid) as plain:
        list(ours._store.list({"number": "1"}))
    with pytest.raises(RuntimeError) as caught:
        list(ours.list({"number": "1"}))
    assert caught.value.code == plain.value.code != "invalid"
    with pytest.raises(RuntimeError):
        ours.archive(b"GRIB and nothing more")
    with pytest.raises(ValueError):
        list(ours.list({"param": {"a": 1}}))


def test_elements_are_made_by_calls_alone():
    for name in fieldstone.pyfdb.__all__:
        kind = getattr(fieldstone.pyfdb, name)
        if name.endswith("Element") or name in ("DataHandle", "IndexAxis"):
            with pytest.raises(TypeError):
                kind(None)


def test_words_and_uris():
    assert (
        str(ControlIdentifier.LIST | ControlIdentifier.WIPE) == "LIST|WIPE"
        and str(ControlIdentifier.NONE) == "NONE"
    )
    for word in ("ControlIdentifier", "ControlAction"):
        mine, theirs = getattr(fieldstone.pyfdb, word), getattr(real, word)
        assert {one.name: one.value for one in mine} == {one.name: one.value for one in theirs}
    text = "scheme://user:secret@example.com:8443/path/to?query=search#part"
    for kind in (URI, real.URI):
        uri = kind(text)
        assert (uri.scheme(), uri.username(), uri.password(), uri.hostname(), uri.port()) == (
            "scheme", "user", "secret", "example.com", 8443,
        )  # fmt: skip
        assert (uri.path(), uri.query(), uri.fragment(), str(uri)) == (
            "/path/to",
            "query=search",
            "part",
            text,
        )
        assert uri == kind(text) and uri != kind("other:")


def test_axes_are_a_read_only_mapping():
    axes = fieldstone.pyfdb.IndexAxis({"param": ["130", "131"], "step": "0"})
    assert axes == {"param": ["130", "131"], "step": ["0"]} and axes != {"param": ["130"]}
    assert axes["step"] == ["0"] and "step" in axes and axes.has_key("param") and len(axes) == 2
    with pytest.raises(KeyError, match="Couldn't find key"):
        axes["time"]
    for change in (lambda: axes.clear(), lambda: axes.__delitem__("step")):
        with pytest.raises((TypeError, AttributeError)):
            change()


def test_a_program_changes_one_line(tmp_path, messages):
    (tmp_path / "in.grib").write_bytes(messages)
    (tmp_path / "config.yaml").write_text(yaml.dump(configuration(tmp_path / "ours")))
    program = (
        "import pathlib, sys\n"
        "import fieldstone.pyfdb as pyfdb\n"
        "config = pathlib.Path(sys.argv[1])\n"
        "with pyfdb.FDB(config) as fdb:\n"
        "    fdb.archive(pathlib.Path(sys.argv[2]).read_bytes())\n"
        "fdb = pyfdb.FDB(config)\n"
        "for element in fdb.list({'class': 'ea', 'date': '20200102'}):\n"
        "    with element.data_handle as handle:\n"
        "        assert handle.read(4) == b'GRIB'\n"
        "    print(element.combined_key()['param'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "config.yaml", tmp_path / "in.grib"],
        capture_output=True, text=True, check=True, env={**os.environ},
    )  # fmt: skip
    assert sorted(done.stdout.split()) == sorted(["165", "166", "167"] * 2)


def test_without_a_store_there_is_nothing(tmp_path):
    for given in (str(tmp_path / "none"), {"url": str(tmp_path / "none"), "writable": False}):
        try:
            fdb = fieldstone.pyfdb.FDB(given)
        except ValueError:
            continue  # a configuration has its own words
        selection = {"class": "od"}
        assert list(fdb.list(selection)) == list(fdb.status(selection)) == list(fdb.stats(selection)) == []
        assert list(fdb.inspect(selection)) == list(fdb.wipe(selection, doit=True)) == []
        assert len(list(fdb.purge(selection))) <= 1 and dict(fdb.axes(selection)) == {}
        with fdb.retrieve(selection) as handle:
            assert handle.size() == 0 and handle.read() == b"" and handle.readall() == b""
    assert not (tmp_path / "none").exists()


def test_numbers_and_days_of_numpy_are_values(tmp_path):
    import datetime

    import numpy as np

    with fst.open(tmp_path / "s", schema="[class, expver, date? [type [step, param]]]") as store:
        for step in (0, 6):
            store.archive(f"class=rd,expver=x,date=20200101,type=fc,step={step},param=130", b"x")
    fdb = fieldstone.pyfdb.FDB(str(tmp_path / "s"))
    for step in (np.int64(6), np.array(6), [np.int32(6)], np.array([6]), "6"):
        assert len(list(fdb.list({"class": "rd", "step": step}))) == 1
    for date in (
        datetime.date(2020, 1, 1),
        np.datetime64("2020-01-01"),
        datetime.datetime(2020, 1, 1),
        20200101,
    ):
        assert len(list(fdb.list({"class": "rd", "date": date}))) == 2
    fdb.archive(
        b"y",
        {
            "class": "rd",
            "expver": "x",
            "date": np.datetime64("2020-01-02"),
            "type": "fc",
            "step": np.int64(0),
            "param": "1",
        },
    )
    fdb.flush()
    assert len(list(fdb.list({"date": "20200102"}))) == 1
    for wrong in (object(), b"x", {"a": 1}, [object()], datetime.datetime(2020, 1, 1, 6)):
        with pytest.raises(RuntimeError):
            list(fdb.list({"step": wrong}))
        with pytest.raises(RuntimeError):
            fdb.archive(b"x", {"class": "rd", "step": wrong})
