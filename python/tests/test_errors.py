"""One tree of exceptions, in step with the kinds of the native side."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from pathlib import Path

import fieldstone as fst
import pytest
from fieldstone import _native, errors
from keys_and_stores import sim

ALSO = {"NotFound": KeyError, "Invalid": ValueError, "Denied": PermissionError}


def test_a_class_per_kind_and_no_other():
    classes = {c.__name__: c for _, c in inspect.getmembers(errors, inspect.isclass)}
    assert set(_native.ERROR_KINDS) == set(classes) - {"Error"}
    for kind in _native.ERROR_KINDS:
        assert classes[kind].kind == kind and issubclass(classes[kind], fst.Error)
        assert getattr(fst, kind) is classes[kind]
        assert issubclass(classes[kind], ALSO.get(kind, fst.Error))


@pytest.mark.parametrize("kind", _native.ERROR_KINDS)
def test_errors_print_unquoted_with_their_hint_and_pickle(kind):
    error = getattr(fst, kind)("no field 'x'", "look again")
    assert str(error) == "no field 'x' (hint: look again)"
    assert (error.message, error.hint, error.kind) == ("no field 'x'", "look again", kind)
    assert str(getattr(fst, kind)("bare")) == "bare"
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and str(again) == str(error) and again.hint == error.hint


def test_codes_are_those_of_the_guide():
    page = Path(__file__).parents[2] / "docs" / "guide" / "error-codes.md"
    rows = [[cell.strip() for cell in line.split("|")] for line in page.read_text().splitlines()]
    rows = [row for row in rows if len(row) == 7 and row[1].startswith("`")]
    table = {row[1].strip("`"): (row[2], row[3] == "yes") for row in rows}
    assert errors.codes() == table and len(table) > 50


@pytest.mark.parametrize("code", _native.ERROR_CODES)
def test_an_error_keeps_its_code(code):
    kind, retryable = errors.codes()[code]
    error = getattr(fst, kind)("m", code=code)
    for again in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (again.code, again.retryable) == (code, retryable)


@pytest.mark.parametrize("kind", _native.ERROR_KINDS)
def test_an_error_that_python_raises_has_its_kinds_general_code(kind):
    error = getattr(fst, kind)("m")
    assert errors.codes()[error.code] == (kind, False)


def test_native_errors_come_with_a_code(tmp_path):
    store = fst.open(tmp_path / "s")
    store.create_run("a")
    with pytest.raises(fst.Conflict) as exists:
        store.create_run("a")
    assert (exists.value.code, exists.value.retryable) == ("run-exists", False)
    with pytest.raises(fst.NotFound) as missing:
        fst.open(tmp_path / "none", mode="r")
    assert missing.value.code == "store-not-found"


def test_every_code_that_python_gives_exists():
    package = Path(inspect.getfile(fst)).parent
    kinds = "|".join(_native.ERROR_KINDS)
    given = 0
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", "")
            at = {"RequestError": 3}.get(name, 2 if name in kinds.split("|") else None)
            if at is None:
                continue
            code = next((k.value for k in node.keywords if k.arg == "code"), None)
            code = node.args[at] if code is None and len(node.args) > at else code
            if not isinstance(code, ast.Constant) or code.value is None:
                continue
            kind = node.args[0].value if name == "RequestError" else name
            assert errors.codes()[code.value][0] == kind, f"{path.name}:{node.lineno}"
            given += 1
    assert given > 10


def test_native_errors_come_with_kind_and_hint():
    store = fst.open("memory:")
    with pytest.raises(KeyError) as missing:
        store.get(sim(1))
    assert missing.value.kind == "NotFound" and missing.value.hint and "step=1" in missing.value.message
    with pytest.raises(ValueError, match="varible") as wrong:
        store.archive({"run": "a", "varible": "t"}, b"x")
    assert wrong.value.kind == "Invalid" and "variable" in str(wrong.value), "the right keyword is suggested"
