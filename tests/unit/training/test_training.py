"""Training without a device: collecting, going on after an interruption, fitting, the model."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.families import families, named_graph
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE, read_model
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.training import collect, train
from hetero_bfs.training.budget import Budget
from hetero_bfs.training.collect import QUICK_PLAN, Plan, finished_graphs
from hetero_bfs.training.fit import fit, fit_linear, is_small
from hetero_bfs.training.measured_runs import graphs_for

TINY = Plan((6, 7), 2, 1)
HOST = EngineOptions(device="cpu")


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(train, "QUICK_PLAN", TINY)


def run(folder) -> None:
    assert train.run_training(quick=True, engine=HOST, out=folder) == 0


def files(folder):
    (model,) = folder.glob("*.json")
    (samples,) = folder.glob("*.quick.samples.csv")
    return model, samples


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder where a training ended well: not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "QUICK_PLAN", TINY)
        run(folder)
    return folder


@pytest.fixture
def done(finished, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "done"))


def test_a_model_comes_out(finished):
    model_path, samples_path = files(finished)
    assert finished_graphs(samples_path) == set(range(len(TINY.graphs()))) == set(range(16))
    samples = pd.read_csv(samples_path)
    assert set(samples["measured"]) == {"TC", "BC", "start_cpu", "convert_cpu"}
    model = read_model(model_path.read_text(), str(model_path))
    assert model.name == model_path.stem
    assert set(model.learned) == {"TC", "BC"}
    assert 0 < model.zhang.alpha <= 1
    assert set(model.zhang.edges_per_second) == {"TC", "BC"}
    assert model.zhang.graphs == 4
    assert model.about["samples"] == len(samples)


@pytest.fixture
def interrupted(done):
    """A folder where a training of these samples did not come to its end."""
    model_path, samples_path = files(done)
    model_path.unlink()
    return Path(samples_path.rename(samples_path.with_suffix(".partial.csv")))


@pytest.mark.usefixtures("tiny")
def test_interrupted_it_goes_on_where_it_stopped(tmp_path, monkeypatch):
    collected = train.collect

    def two_graphs(number, *arguments):
        if number == 2:
            raise KeyboardInterrupt
        collected(number, *arguments)

    monkeypatch.setattr(train, "collect", two_graphs)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    (samples_path,) = tmp_path.glob("*.csv")
    before = samples_path.read_text()
    assert finished_graphs(samples_path) == {0, 1}
    assert not list(tmp_path.glob("*.json"))
    monkeypatch.setattr(train, "collect", collected)
    run(tmp_path)
    _, samples_path = files(tmp_path)
    assert samples_path.read_text().startswith(before)
    assert finished_graphs(samples_path) == set(range(len(TINY.graphs()))) == set(range(16))


@pytest.mark.usefixtures("tiny")
def test_interrupted_after_the_graphs_it_measures_none_again(interrupted, monkeypatch):
    before = interrupted.read_text()
    monkeypatch.setattr(collect, "measure_graph", None)
    run(interrupted.parent)
    assert not interrupted.exists()
    assert files(interrupted.parent)[1].read_text() == before


@pytest.mark.usefixtures("tiny")
def test_again_it_starts_anew_and_keeps_the_old(done):
    model_path, samples_path = files(done)
    old_model, old_samples = model_path.read_text(), samples_path.read_text()
    run(done)
    assert (done / f"{model_path.name}.previous").read_text() == old_model
    (previous,) = done.glob("*.previous.csv")
    assert previous.read_text() == old_samples
    assert json.loads(model_path.read_text())["name"] == model_path.stem


@pytest.mark.usefixtures("tiny")
def test_damaged_samples_are_refused(interrupted):
    interrupted.write_text(interrupted.read_text()[:-30])
    with pytest.raises(HeteroBFSError, match="move it away"):
        run(interrupted.parent)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (2, "graph", "x"),
        (2, "seconds", "abc"),
        (3, "seconds", "nan"),
        (3, "seconds", "-1"),
        (1, "name", "n" * 200_000),
        (1, "name", "\udcff"),
    ],
)
def test_damage_in_any_row_is_seen(tmp_path, row, column, value):
    path = tmp_path / "some.samples.csv"
    rows = [dict.fromkeys(collect.COLUMNS, "1") for _ in range(4)]
    rows[row][column] = value
    lines = [",".join(collect.COLUMNS), *(",".join(r[c] for c in collect.COLUMNS) for r in rows)]
    path.write_text("\n".join(lines), errors="surrogateescape")
    with pytest.raises(HeteroBFSError, match="move it away"):
        finished_graphs(path)
    rows[row][column] = "1"
    path.write_text("\n".join([lines[0], *(",".join(r[c] for c in collect.COLUMNS) for r in rows)]))
    assert finished_graphs(path) == {1}


def test_the_fit_recovers_coefficients():
    columns = STRATEGIES["TG"].columns
    rows = pd.DataFrame(
        {
            "frontier_vertices": [1, 10, 500, 3000, 20],
            "frontier_edges": [5, 100, 90000, 40000, 7],
            "expected_found": [2, 50, 1000, 9000, 3],
            "unsteadiness": [0.9, 0.0, 0.5, 0.1, 0.3],
            "family": ["grid", "grid", "uniform", "uniform", "uniform"],
        }
    )
    rows["seconds"] = 1e-5 + 2e-9 * rows["frontier_edges"] + 3e-9 * rows["expected_found"]
    rows["seconds"] += 4e-6 * rows["unsteadiness"]
    fitted = fit_linear(rows, columns)
    weights = dict(zip(fitted.columns, fitted.coefficients, strict=True))
    assert weights["constant"] == pytest.approx(1e-5, rel=1e-3)
    assert weights["frontier_edges"] == pytest.approx(2e-9, rel=1e-3)
    assert weights["expected_found"] == pytest.approx(3e-9, rel=1e-3)
    assert weights["unsteadiness"] == pytest.approx(4e-6, rel=1e-3)
    assert weights["frontier_vertices"] == pytest.approx(0, abs=1e-12)


@pytest.mark.usefixtures("tiny")
def test_in_a_folder_that_no_command_looks_in_no_regret_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    run(tmp_path / "elsewhere")
    assert "note: regret is not measured" in capsys.readouterr().err
    model_path, _ = files(tmp_path / "elsewhere")
    model = read_model(model_path.read_text(), str(model_path))
    assert "regret" not in model.about


def test_too_few_graphs_leave_the_costs_of_the_former_model():
    new = fit(levels_of_both_sizes(), "m", {"command": "train"})
    former = replace(new, name="former", about={"algorithms": "of a lease"}, programs={"cpu": {}})
    kept = train._with_costs_of(replace(former, algorithms={"device": {}}), new)
    assert (kept.programs, kept.algorithms) == ({"cpu": {}}, {"device": {}})
    assert kept.about["programs"]["name"] == "former"
    assert kept.about["algorithms"] == "of a lease"
    assert (kept.name, kept.about["command"], kept.learned) == ("m", "train", new.learned)
    assert train._with_costs_of(None, new) is new
    assert train._with_costs_of(replace(former, programs=None), new) is new


def test_the_first_graphs_of_programs_have_all_scales_and_many_families():
    graphs = graphs_for(None, (9, 11, 13))
    assert len({(graph.family, graph.name) for graph in graphs}) == len(graphs)
    assert sorted(g.name for g in graphs) == sorted(
        g.name for scale in (9, 11, 13) for g in families(scale)
    )
    first = graphs[: train._LEAST_GRAPHS]
    assert {graph.scale for graph in first} >= {9, 11, 13}
    assert len({graph.family for graph in first}) >= 6


@pytest.mark.parametrize("count", [train._LEAST_GRAPHS - 1, train._LEAST_GRAPHS])
def test_costs_of_programs_need_several_graphs(monkeypatch, count):
    graphs = [replace(named_graph("kronecker8"), family=str(n)) for n in range(count)]
    measured = []
    monkeypatch.setattr(train, "graphs_for", lambda *_: graphs)
    monkeypatch.setattr(train, "_measure_whole_runs", lambda graph, *_: measured.append(graph))
    monkeypatch.setattr(train, "_fit_whole_runs", lambda tables: len(tables))
    enough = count == train._LEAST_GRAPHS
    fitted = train._train_whole_runs(TINY, None, Budget(None, **train._SHARES))
    assert fitted == (count if enough else (None, None))
    assert measured[-count:] == graphs
    assert len(measured) == count + 1  # one loads code
    assert train._train_whole_runs(TINY, None, Budget(0.0, **train._SHARES)) == (None, None)
    assert len(measured) == count + 1


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("named", [False, True], ids=["by default", "by name"])
def test_it_ends_with_the_regret(tmp_path, monkeypatch, capsys, named):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    apart = [named_graph("kronecker8"), named_graph("grid12")]
    monkeypatch.setattr(train, "study_graphs", lambda *_: apart)
    out = tmp_path if named else None
    assert train.run_training(quick=True, engine=HOST, out=out) == 0
    output = capsys.readouterr()
    model_path, _ = files(tmp_path)
    model = read_model(model_path.read_text(), str(model_path))
    regret = model.about["regret"]
    assert {"learned", "auto", "oracle", "none", "fixed:TC"} <= set(regret)
    assert set(regret["learned"]) == {"kronecker", "grid", "all", "worst", "selection"}
    assert all(regret[way]["worst"] >= regret[way]["all"] >= 0 for way in regret)
    for way in regret:
        assert way in output.out


def test_the_same_plan_gives_the_same_graphs_of_every_family():
    first, second = TINY.graphs(), TINY.graphs()
    assert [(g.family, g.name) for g in first] == [(g.family, g.name) for g in second]
    assert {g.family for g in first} == {
        "kronecker", "uniform", "preferential", "small-world", "grid", "roads", "tails"
    }  # fmt: skip
    for one, other in zip(first, second, strict=True):
        edges, again = one.make(), other.make()
        assert edges.num_vertices == 2**one.scale or one.family == "tails"
        assert edges.src.tolist() == again.src.tolist()


def test_the_quick_plan_has_tails_of_each_kind():
    names = [graph.name for graph in QUICK_PLAN.graphs() if graph.family == "tails"]
    for kind in ("comb", "Kronecker", "second core"):
        assert any(kind in name for name in names), names


@pytest.mark.parametrize("scale", range(6, 12))
def test_drawn_tails_have_at_most_as_many_vertices_as_the_core(scale):
    plan = Plan((scale,), 0, 8)
    drawn = [graph for graph in plan.graphs() if graph.family == "tails"]
    assert len({graph.name for graph in drawn}) > 4
    for graph in drawn:
        vertices = graph.make().num_vertices
        assert abs(graph.scale - math.log2(vertices)) <= 1.0
        if graph.name.startswith("comb"):
            assert vertices <= 1 << scale
            continue
        _, chains, length, *second = (int(number) for number in re.findall(r"\d+", graph.name))
        assert 10 <= length <= 10_000
        assert chains * length <= 1 << scale
        assert vertices == (1 << scale) + chains * length + sum(1 << small for small in second)


def levels_of_both_sizes() -> pd.DataFrame:
    """A small level takes 3 s, a large one 1 s."""
    rows = pd.DataFrame(dict.fromkeys(schema.COLUMNS, 1.0), index=range(40))
    sizes = [schema.LEAST_SHARED_EDGES, schema.LEAST_SHARED_EDGES - 1]
    rows["family"], rows["measured"] = "grid", ["BC"] * 20 + ["TC"] * 20
    rows["frontier_edges"] = sizes * 20
    rows["seconds"] = [1.0, 3.0] * 20
    rows["examined"] = 1.0
    return rows


def predict(linear, rows) -> np.ndarray:
    columns = [1.0 if c == "constant" else rows[c].to_numpy() for c in linear.columns]
    return sum(map(np.multiply, linear.coefficients, columns), np.zeros(len(rows)))


def predicted(model, rows, name) -> np.ndarray:
    small, large = (predict(model.predictor(name, s), rows) for s in (schema.SMALL, schema.LARGE))
    return np.where(is_small(rows), small, large)


def test_small_levels_are_fitted_apart():
    rows = levels_of_both_sizes()
    model = fit(rows, "m", {})
    for name in ("BC", "TC"):
        assert predicted(model, rows, name) == pytest.approx(rows["seconds"].to_numpy(), rel=1e-3)


@pytest.mark.parametrize("name", ["TC", "BC"])
@pytest.mark.parametrize("small", [False, True])
def test_a_strategy_measured_at_levels_of_one_size_is_fitted_to_them_for_both(name, small):
    rows = levels_of_both_sizes()
    is_small = rows["frontier_edges"] < schema.LEAST_SHARED_EDGES
    rows = rows[(rows["measured"] != name) | (is_small == small)]
    model = fit(rows, "m", {})
    of_it = rows[rows["measured"] == name]
    for size in (schema.SMALL, schema.LARGE):
        formula = model.predictor(name, size)
        assert predict(formula, of_it) == pytest.approx(of_it["seconds"].to_numpy())


def test_families_count_alike_in_the_fit():
    """A thousand rows of one family do not outvote the other."""
    rows = pd.DataFrame(
        {"frontier_vertices": [1.0] * 1001, "family": ["grid"] * 1000 + ["uniform"]}
    )
    rows["seconds"] = [1.0] * 1000 + [3.0]
    (fitted,) = fit_linear(rows, ("frontier_vertices",)).coefficients
    # x - 1 over 1 and 3 - x over 3, each weighing half, add up to nothing: the harmonic mean.
    assert fitted == pytest.approx(1.5, rel=1e-3)
