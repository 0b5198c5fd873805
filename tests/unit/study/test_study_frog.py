"""The tables of Shi et al. 2018, Frog: `hetero-bfs study --paper frog`."""

from __future__ import annotations

import numpy as np
import pytest
from study_runs import study, table

import hetero_bfs as hb
from hetero_bfs.errors import ValidationError
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.study import frog, paper_named

GRAPHS = "kronecker6", "preferential6", "roads8", "ring"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of generated graphs of scale 6 and of a file, on the CPU."""
    folder = tmp_path_factory.mktemp("frog")
    ring = folder / "ring.txt"
    ring.write_text("".join(f"{v} {(v + 1) % 9}\n" for v in range(9)))
    given = ["--scale", 6, "--graph", ring, "--rounds", 1, "--device", "cpu"]
    assert study(folder / "out", "--paper", "frog", *given) == 0
    return folder / "out"


def test_every_section_has_its_files(made):
    sections = paper_named("frog").sections
    assert {path.stem for path in made.glob("*.csv")} == {section.name for section in sections}
    for section in sections:
        assert list(table(made, section.name).columns) == list(section.columns)
    assert (made / "classes.svg").exists()


def test_classes_and_preprocessing(made):
    rows = table(made, "classes")
    assert tuple(dict.fromkeys(rows["graph"])) == GRAPHS
    np.testing.assert_allclose(rows.groupby("graph")["share"].sum(), 1.0)
    colour = hb.colour(named_graph("kronecker6").make()).colour
    counts = np.bincount(np.minimum(colour, 4)).tolist()
    assert rows.loc[rows["graph"] == "kronecker6", "vertices"].tolist() == counts
    ring = rows[rows["graph"] == "ring"]
    assert (ring["num_colours"].iloc[0], ring["class"].iloc[-1]) == (3, "mixed")
    assert (table(made, "preprocessing")[["colour_seconds", "order_seconds"]] > 0).all(axis=None)


def test_runs(made):
    rows, updates = table(made, "iterations"), table(made, "atomics")
    assert len(rows) == len(updates) == len(GRAPHS) * len(frog.ALGORITHMS)
    assert set(rows["place"]) == {"cpu"}
    ring = rows[rows["graph"] == "ring"].set_index("algorithm")
    assert ring.loc["BFS", "synchronous_iterations"] == 5  # the last one finds nothing
    assert ring.loc["BFS", "asynchronous_iterations"] < 5
    assert (updates["mixed_class"] <= updates["asynchronous"]).all()
    assert updates.loc[updates["graph"] == "ring", "mixed_class"].sum() == 0
    ranks = updates[updates["algorithm"] == "PageRank"].set_index("graph")
    iterations = rows[rows["algorithm"] == "PageRank"].set_index("graph")
    for mode in ("synchronous", "asynchronous"):
        assert ranks.loc["ring", mode] == 9 * iterations.loc["ring", f"{mode}_iterations"]
    assert set(table(made, "partitions")["num_classes"]) >= {"1", "5", "by rule"}


def test_claims_follow_from_the_tables(made):
    claims = table(made, "claims").set_index("claim")
    rows = table(made, "iterations")
    ours = rows[rows["algorithm"] == "SSSP"]
    ratios = ours["synchronous_iterations"] / ours["asynchronous_iterations"]
    row = claims.loc["SSSP: iterations, synchronous over asynchronous"]
    assert row["ours"] == pytest.approx(np.exp(np.log(ratios).mean()))
    assert claims.loc["PageRank: iterations, synchronous over asynchronous", "paper"] == (
        pytest.approx((52 / 20 * 51 / 25 * 15 / 10 * 31 / 16 * 33 / 19) ** 0.2)
    )
    four = claims.loc["vertices of the first four colours"]
    mixed = table(made, "classes").query("`class` == 'mixed'")["share"].mean()
    assert (four["paper"], four["ours"]) == (0.828, pytest.approx(1 - mixed))


def test_streaming(opencl_device):
    """The lists of this graph do not fit into the room that is left for them."""
    built = frog.build_search_graph(frog.weighted(named_graph("uniform14").make()))
    notes: list[str] = []
    rows = frog._streaming({"graph": "uniform14"}, built, opencl_device, 1, notes)
    if rows:
        assert rows[0]["sent_bytes"] > 0
        assert "uniform14" in frog._SECTIONS[5].brief(frog.pd.DataFrame(rows))[1].to_string()
    else:
        assert "was not streamed" in notes[0]


def test_results_that_differ_are_an_error():
    frog.check("scores", np.array([1.0, 2.0]), np.array([1.01, 1.99]))
    with pytest.raises(ValidationError, match="levels differs between synchronous"):
        frog.check("levels", np.array([1, 2]), np.array([1, 3]))
