"""Bottom-up levels of a device, whose work-groups share the rests of long lists (bottom_up.cl)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import clique_with_door, complete, edge_list, hubs_beside_core, late_hub
from oracle import check_search, engine_on

from hetero_bfs.algorithms.bfs.device_program import SearchProgram
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.devices.machine import Tuning

LIMIT, GROUP = 32, 64
WHOLE = LIMIT + LIMIT // 2  # edges after the first one of the longest list that is not left
TUNING = Tuning(group_size=GROUP, vertices_per_item=4, groups_per_unit=3).step_by_step()
SCHEDULES = ["fixed:BG", "fixed:BGC", "fixed:TG,BG,BG,TG", "fixed:BG,TC,BG,TG"]


@pytest.fixture
def shared_steps(monkeypatch):
    """Let work-groups leave any rest of a list; return an item for each level that left some."""
    options = {"TEAM": 32, "SHORT_LIST": LIMIT, "MOST_OWN_WORK": 0}
    monkeypatch.setattr(SearchProgram, "_sharing_options", lambda _: options)
    read, seen = SearchProgram._read_state, []

    def read_state(self, launches):
        state = read(self, launches)
        if state[steps.STEP] == steps.PULL_REST:
            seen.append(launches)
        return state

    monkeypatch.setattr(SearchProgram, "_read_state", read_state)
    return seen


def left_some(device, shared_steps) -> bool:
    """Tell whether a level left rests; on a GPU the host reads few of the steps."""
    return bool(shared_steps) or device.type == "GPU"


def search(device, edges, order, sources, schedules=SCHEDULES, **options):
    with engine_on(
        device, edges, selector="fixed:TC", order=order, tuning=TUNING, **options
    ) as engine:
        for schedule in schedules:
            engine.set_selector(schedule)
            for source in sources:
                check_search(engine, edges, source)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("order", ["degree", "given"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize(
    "leaves",
    [
        LIMIT,
        LIMIT + 1,
        LIMIT + 2,
        WHOLE + 1,
        WHOLE + 2,
        GROUP + LIMIT,
        4 * GROUP,
        4 * GROUP + LIMIT + 1,
        4099,
    ],
)
def test_hubs_of_all_sizes(opencl_device, shared_steps, leaves, directed, order):
    """Also with lists that end at a limit, which counts from the second edge, or at a team's."""
    edges = hubs_beside_core(leaves)
    if directed:  # from leaves to hubs, since bottom-up reads incoming edges
        edges = replace(edges, src=edges.dst, dst=edges.src, directed=True)
    core = int(edges.src[-1])
    search(opencl_device, edges, order, [edges.num_vertices - 1, 0, leaves, core])
    assert left_some(opencl_device, shared_steps)


@pytest.mark.parametrize(("leaves", "leaves_rest"), [(WHOLE + 1, False), (WHOLE + 2, True)])
def test_only_long_rests_are_left(opencl_device, shared_steps, leaves, leaves_rest):
    """The first edge does not count."""
    search(opencl_device, late_hub(leaves), "given", [leaves + 1], ["fixed:BG"])
    assert left_some(opencl_device, shared_steps) if leaves_rest else not shared_steps


@pytest.mark.parametrize("order", ["degree", "given"])
def test_all_lists_are_long(opencl_device, shared_steps, order):
    search(opencl_device, complete(300), order, [0, 150, 299])
    assert left_some(opencl_device, shared_steps)


@pytest.mark.parametrize("door", [3, 20, 60])
@pytest.mark.parametrize("order", ["degree", "given"])
def test_most_lists_of_a_tile_read_in_vain(opencl_device, shared_steps, order, door):
    """Later rounds of its survivors read few edges, and miss parents that the rest finds."""
    search(opencl_device, clique_with_door(300, door), order, [300, 0])
    assert left_some(opencl_device, shared_steps)


def test_the_same_where_a_work_group_reads_the_rest_by_itself(opencl_device, monkeypatch):
    options = {"TEAM": 32, "SHORT_LIST": LIMIT, "MOST_OWN_WORK": 1 << 30}
    monkeypatch.setattr(SearchProgram, "_sharing_options", lambda _: options)
    search(opencl_device, clique_with_door(300, 20), "given", [300, 0])


@pytest.mark.parametrize("order", ["degree", "given"])
def test_a_component_that_is_not_reached(opencl_device, shared_steps, order):
    """All its lists are read at each bottom-up level, in vain."""
    two = complete(300)
    pairs = np.concatenate([np.column_stack([two.src, two.dst]) + first for first in (0, 300)])
    search(opencl_device, edge_list(pairs, 600), order, [0, 599])
    assert left_some(opencl_device, shared_steps)


def test_lists_in_parts_and_masked_vertices(opencl_device, shared_steps):
    edges = hubs_beside_core(400)
    core = int(edges.src[-1])
    search(opencl_device, edges, "degree", [core, 0], max_alloc_bytes=4096)
    with engine_on(opencl_device, edges, selector="fixed:BG", tuning=TUNING) as engine:
        open_levels = engine.bfs(core).level
        masked_levels = engine.bfs(core, mask=[400]).level  # joins the first hub to the core
    assert (open_levels[:401] > 0).all()
    assert (masked_levels[:401] == -1).all()
    np.testing.assert_array_equal(masked_levels[401:], open_levels[401:])
    assert left_some(opencl_device, shared_steps)
