"""One tree of exceptions, in step with the kinds of the native side."""

from __future__ import annotations

import copy
import inspect
import pickle

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


def test_native_errors_come_with_kind_and_hint():
    store = fst.open("memory:")
    with pytest.raises(KeyError) as missing:
        store.get(sim(1))
    assert missing.value.kind == "NotFound" and missing.value.hint and "step=1" in missing.value.message
    with pytest.raises(ValueError, match="varible") as wrong:
        store.archive({"run": "a", "varible": "t"}, b"x")
    assert wrong.value.kind == "Invalid" and "variable" in str(wrong.value), "the right keyword is suggested"
