"""The stub file matches the native module: the same names, parameters and defaults."""

from __future__ import annotations

import ast
import inspect
import pickle
import weakref
from pathlib import Path

import fieldstone as fst
import pytest
from fieldstone import _native

STUB = Path(inspect.getfile(fst)).with_name("_native.pyi")
TREE = ast.parse(STUB.read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}
# Methods of object are listed if they have a meaning of ours.
PLAIN = {"__repr__", "__str__", "__reduce__", "__module__", "__doc__", "__new__", "__weakref__"}


def parameters(node: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """Name, kind and whether there is a default, as in `inspect`."""
    a = node.args
    positional = [(p.arg, "POSITIONAL_ONLY") for p in a.posonlyargs if p.arg not in ("self", "cls")]
    positional += [(p.arg, "POSITIONAL_OR_KEYWORD") for p in a.args if p.arg not in ("self", "cls")]
    bare = len(positional) - len(a.defaults)
    rows = [(name, kind, i >= bare) for i, (name, kind) in enumerate(positional)]
    keywords = zip(a.kwonlyargs, a.kw_defaults, strict=True)
    rows += [(p.arg, "KEYWORD_ONLY", default is not None) for p, default in keywords]
    return rows + ([(a.kwarg.arg, "VAR_KEYWORD", False)] if a.kwarg else [])


def signature(function: object) -> list[tuple[str, str, bool]]:
    rows = inspect.signature(function).parameters.values()
    return [(p.name, p.kind.name, p.default is not p.empty) for p in rows if p.name != "self"]


def test_module_names():
    variables = {n.target.id for n in TREE.body if isinstance(n, ast.AnnAssign) and n.simple}
    stub = {
        *CLASSES,
        *FUNCTIONS,
        *(v for v in variables if v not in ("_One", "_Request", "_Numbers", "_Buffer", "_Where", "_Pair")),
    }
    native = {n for n in dir(_native) if not n.startswith("__") or n == "__version__"} - {"_native"}
    assert native == stub
    assert set(fst.__all__) <= set(dir(fst))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name):
    assert signature(getattr(_native, name)) == parameters(FUNCTIONS[name])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes(name):
    native = getattr(_native, name)
    methods = {node.name: node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}
    comparisons = {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__radd__"}
    own = set(vars(native)) - PLAIN
    assert own - comparisons == set(methods) - PLAIN - comparisons
    for method, node in methods.items():
        found = inspect.getattr_static(native, method)
        if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            assert inspect.isdatadescriptor(found), f"{name}.{method}"
            assert method.startswith("_") or found.__doc__, f"{name}.{method} has no docs"
        elif not method.startswith("__"):
            bound = getattr(native, method)
            assert signature(bound) == parameters(node), f"{name}.{method}"
            public = not method.startswith("_") and not name.startswith("_")
            assert bound.__doc__ or not public, f"{name}.{method} has no docs"


def test_every_public_class_and_function_has_docs():
    for name in fst.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(fst, name)), name


def test_a_method_of_a_store_is_said_once():
    native = {node.name for node in CLASSES["_Store"].body if isinstance(node, ast.FunctionDef)}
    own = {name for name, value in vars(fst.Store).items() if inspect.isfunction(value)}
    assert len(own) > 15
    assert own & native <= {"__new__"}


def test_every_method_of_a_store_has_docs_and_a_signature():
    for name in (name for name in dir(fst.Store) if not name.startswith("_")):
        member = inspect.getattr_static(fst.Store, name)
        assert inspect.getdoc(member), name
        if inspect.isfunction(member):
            said = inspect.signature(member)
            assert said.return_annotation is not said.empty, name
            parameters = [p for p in said.parameters.values() if p.name != "self"]
            assert all(p.annotation is not p.empty for p in parameters), name


def test_every_way_to_a_store_gives_the_class_of_python(tmp_path):
    made = fst.open(tmp_path / "store")
    with made as entered:
        assert type(made) is fst.Store and entered is made
        made.archive({"run": "a", "variable": "t", "step": 0}, b"x")
        made.flush()
        fields = made.retrieve("run=a")
        assert isinstance(fields[0], fst.Field)
        assert type(pickle.loads(pickle.dumps(made))) is fst.Store
        assert type(made._pinned()) is fst.Store
        assert type(made.create_run("b").store) is fst.Store
        assert weakref.ref(made)() is made
    with pytest.raises(TypeError):
        fst.Store()
