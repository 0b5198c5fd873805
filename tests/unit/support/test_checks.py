"""One check of integers for the whole Python interface: what counts as one, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.devices.machine import Tuning
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.support.checks import as_integer, check_integer, check_real, refuse_masked
from hetero_bfs.support.messages import naming_options, setting


class Index:
    """An object that says which integer it is."""

    def __index__(self):
        return 5


@pytest.mark.parametrize("value", [5, np.int8(5), np.uint64(5), np.array(5), Index()])
def test_integers_come_back_as_pythons_own(value):
    assert type(as_integer(value)) is int
    assert check_integer("n", value, 5, 5) == 5


@pytest.mark.parametrize(
    "value", [True, np.True_, np.array(True), 5.0, np.float64(5), "5", None, [5], np.array([5, 6])]
)
def test_what_is_no_integer(value):
    assert as_integer(value) is None
    with pytest.raises(ArgumentError, match=r"^n is .*; give an integer from 1 to 9, or none$"):
        check_integer("n", value, 1, 9, ", or none")


@pytest.mark.parametrize(("value", "fits"), [(0, "from 1 to 9"), (np.int64(10), "from 1 to 9")])
def test_integers_out_of_range(value, fits):
    with pytest.raises(ArgumentError, match=f"^n is {value}; give an integer {fits}$"):
        check_integer("n", value, 1, 9)


def test_real_numbers():
    assert type(check_real("a", np.float32(0.5))) is float
    for value in ("x", None, True, 1j):
        with pytest.raises(ArgumentError, match=r"^a is .*; give a number"):
            check_real("a", value)


def test_masks():
    refuse_masked("src", np.ma.array([1, 2], mask=[False, False]))
    with pytest.raises(GraphError, match=r"src has 1 of 2 entries masked.*\.compressed\(\)"):
        refuse_masked("src", np.ma.array([1, 2], mask=[False, True]))


def test_settings_are_arguments_in_python_and_options_on_the_command_line():
    assert setting("max_alloc_bytes") == "max_alloc_bytes"
    assert setting("selector", "daga") == "selector='daga'"
    with naming_options({"max_alloc_bytes": "--max-alloc", "selector": "--selector"}):
        assert setting("max_alloc_bytes") == "--max-alloc"
        assert setting("selector", "daga") == "--selector daga"
        assert setting("num_vertices", 3) == "num_vertices=3"  # which no option sets
    assert setting("device") == "device"


# Whatever takes an integer takes all of them, and keeps Python's own.


@pytest.mark.parametrize("five", [np.int64(5), np.uint8(5), np.array(5), Index()])
def test_generators_take_any_integer(five):
    plain = hb.KroneckerEdges(5, 5, 5, 5)
    made = hb.KroneckerEdges(five, five, five, five)
    assert made == plain
    assert all(type(value) is int for value in (made.scale, made.edgefactor, made.seed1))
    np.testing.assert_array_equal(made.materialise().src, plain.materialise().src)
    rmat = hb.RMATEdges(five, edgefactor=five, seed=five).materialise()
    np.testing.assert_array_equal(rmat.dst, hb.RMATEdges(5, edgefactor=5, seed=5).materialise().dst)
    assert hb.kronecker(five).num_vertices == 32


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hb.KroneckerEdges(True), "scale is True"),
        (lambda: hb.KroneckerEdges(5, seed2=2.5), r"seed2 is 2\.5"),
        (lambda: hb.KroneckerEdges(5, directed="no"), "directed is 'no'"),
        (lambda: hb.KroneckerEdges(5).range(0.0, 5), r"start is 0\.0"),
        (lambda: next(hb.KroneckerEdges(5).chunks(0)), "size is 0"),
        (lambda: hb.RMATEdges(5, seed="1"), "seed is '1'"),
        (lambda: hb.RMATEdges(5, "x"), "a is 'x'"),
        (lambda: hb.CSRGraph.from_edges([0], [1], num_vertices=1.5), r"num_vertices is 1\.5"),
        (lambda: hb.CSRGraph.from_edges([0], [1], num_vertices="2"), "num_vertices is '2'"),
        (lambda: hb.EdgeList.from_arrays([0], [1], num_vertices=True), "num_vertices is True"),
        (lambda: hb.EdgeList([0], [1], None), "num_vertices is None"),
        (lambda: next(hb.EdgeList([0], [1], 2).chunks(-1)), "size is -1"),
        (lambda: Tuning(group_size="64"), "group_size is '64'"),
        (lambda: Tuning(one_launch=1), "one_launch is 1"),
    ],
)
def test_arguments_that_are_no_integers(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()
