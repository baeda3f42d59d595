"""Random puts and deletions, flushed and read anywhere, against a model of a few dicts."""

from __future__ import annotations

import random

import fieldstone as fst
import pytest

PEOPLE = [("a", "1"), ("a", "2"), ("b", "1"), ("job", "j"), ("file", "f")]
KINDS = {"read": "wasReadBy", "write": "wasWrittenBy", "likes": "~likes", "derives": "wasDerivedFrom"}


class Model:
    """Versions of one user, by subject and by stamp: the last put of a stamp counts."""

    def __init__(self):
        self.vertices = {}  # pair -> stamp -> (deleted, static or None, props)
        self.edges = {}  # (type, source, target) -> stamp -> (deleted, until, props)

    def put_vertex(self, pair, stamp, static, props):
        self.vertices.setdefault(pair, {})[stamp] = (False, static, props)

    def put_edge(self, edge, stamp, until, props):
        self.edges.setdefault(edge, {})[stamp] = (False, until, props)

    def delete(self, what, stamp):
        of = self.edges if len(what) == 3 else self.vertices
        of.setdefault(what, {})[stamp] = (True, None, {})

    @staticmethod
    def standing(versions, at):
        """Stamps, newest first, of versions put until `at` and since the last deletion."""
        stamps = sorted((stamp for stamp in versions if stamp <= at), reverse=True)
        deleted = [stamp for stamp in stamps if versions[stamp][0]]
        return [stamp for stamp in stamps if not deleted or stamp > deleted[0]]

    def edge(self, edge, at):
        """The stamp of the current version: one without a later deletion of an end."""
        gone = [
            stamp
            for end in edge[1:]
            for stamp, version in self.vertices.get(end, {}).items()
            if version[0] and stamp <= at
        ]
        standing = self.standing(self.edges.get(edge, {}), at)
        return next((stamp for stamp in standing if not any(stamp <= end for end in gone)), None)

    def edges_of(self, pair, at):
        """{(name from here, far end): (stamp, until, props)} of current relations."""
        found = {}
        for edge, versions in self.edges.items():
            stamp = self.edge(edge, at)
            for near, far, name in ((edge[1], edge[2], edge[0]), (edge[2], edge[1], KINDS[edge[0]])):
                if near == pair and stamp is not None:
                    found[name, far] = (stamp, *versions[stamp][1:])
        return found

    def versions_of_edges(self, pair, since, until):
        return {
            (name, far, stamp, *version)
            for edge, versions in self.edges.items()
            for near, far, name in ((edge[1], edge[2], edge[0]), (edge[2], edge[1], KINDS[edge[0]]))
            if near == pair
            for stamp, (deleted, until_, props) in versions.items()
            if since <= stamp <= until
            for version in [(deleted, until_, props.get("n"))]
        }

    def vertex(self, pair, at):
        """(stamp, static, props) of the current version, or None."""
        versions = self.vertices.get(pair, {})
        standing = self.standing(versions, at)
        if standing:
            static = next((versions[s][1] for s in standing if versions[s][1] is not None), {})
            return standing[0], static, versions[standing[0]][2]
        edges = self.edges_of(pair, at)
        return (min(stamp for stamp, *_ in edges.values()), {}, {}) if edges else None


END = 2**63 - 1


def check(graph, model, dice, moments):
    for pair in PEOPLE:
        for at in [None, *dice.sample(moments, min(3, len(moments)))]:
            stamp = END if at is None else at * 10**9
            expected = model.vertex(pair, stamp)
            if expected is None:
                with pytest.raises(fst.NotFound):
                    graph.vertex(pair, at=at)
            else:
                vertex = graph.vertex(pair, at=at)
                assert (vertex.stamp, vertex.static, vertex.props) == expected
            edges = graph.edges(pair, at=at)
            found = {(e.type, e.dst): (e.stamp, e.until, e.props) for e in edges}
            assert found == model.edges_of(pair, stamp) and len(found) == len(edges)
            name = dice.choice([*KINDS, *KINDS.values()])
            assert {e.dst for e in graph.edges(pair, name, at=at)} == {
                far for kind, far in found if kind == name
            }
        versions = [(v.stamp, v.deleted, v.props) for v in graph.versions(pair)]
        known = model.vertices.get(pair, {})
        assert versions == [
            (stamp, known[stamp][0], known[stamp][2]) for stamp in sorted(known, reverse=True)
        ]
        since, until = sorted(dice.choices(range(1, 61), k=2))
        edges = graph.edges(pair, versions=(since, until))
        found = {(e.type, e.dst, e.stamp, e.deleted, e.until, e.props.get("n")) for e in edges}
        assert found == model.versions_of_edges(pair, since * 10**9, until * 10**9)
        assert len(found) == len(edges)
        assert len(graph.edges(pair, versions=True)) == len(model.versions_of_edges(pair, 0, END))


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_are_as_a_model_has_them(tmp_path, seed):
    dice, model, moments = random.Random(seed), Model(), []
    stores = [fst.open(tmp_path / "store") for _ in range(2)]
    stores[0].graph.define_edge("derives", reverse="wasDerivedFrom")
    stores[0].flush()
    writer = stores[0]
    for n in range(120):
        graph, time = writer.graph, dice.randint(1, 60)
        moments.append(time)
        a, b = dice.choice(PEOPLE), dice.choice(PEOPLE)
        kind = dice.choice(list(KINDS))
        match dice.randint(0, 9):
            case 0 | 1 | 2:
                static = dice.choice([None, None, {"s": n}, {}])
                graph.put_vertex(*a, static=static, props={"n": n}, time=time)
                model.put_vertex(a, time * 10**9, static, {"n": n})
            case 3 | 4 | 5 | 6:
                until = dice.choice([None, time + dice.randint(0, 5)])
                ends = (kind, a, b) if dice.random() < 0.5 else (KINDS[kind], b, a)
                graph.put_edge(*ends, props={"n": n}, time=time, until=until)
                model.put_edge((kind, a, b), time * 10**9, until and until * 10**9, {"n": n})
            case 7:
                if model.vertex(a, END):
                    graph.delete_vertex(a, time=time)
                    model.delete(a, time * 10**9)
            case 8:
                if model.edge((kind, a, b), END) is not None:
                    graph.delete_edge(kind, a, b, time=time)
                    model.delete((kind, a, b), time * 10**9)
            case 9:
                writer.flush()
                writer = dice.choice(stores)
        if dice.random() < 0.06:
            check(writer.graph, model, dice, moments)
    writer.flush()
    for store in stores:
        check(store.graph, model, dice, moments)
        store.close()
    with fst.open(tmp_path / "store", mode="r") as reader:
        check(reader.graph, model, dice, moments)
