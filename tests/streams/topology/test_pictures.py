"""A topology as JSON, as Mermaid and as SVG."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from streams import StreamsBuilder, Topology
from streams.topology.chart import Box, Chart
from streams.topology.layers import layers_of
from tests.streams.topology.test_describe import PROGRAMS, node_by_node

SVG = "{http://www.w3.org/2000/svg}"


def topology_of(program: Callable[[StreamsBuilder], object]) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    program(builder)
    return builder.build()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_all_its_nodes_in_each_form(name: str) -> None:
    topology = topology_of(PROGRAMS[name])
    outline = json.loads(json.dumps(topology.outline()))
    nodes = [node for part in outline["sub_topologies"] for node in part["nodes"]]
    assert {node["name"] for node in nodes} == set(topology.nodes)
    assert [store["name"] for store in outline["stores"]] == sorted(topology.stores)
    picture = ElementTree.fromstring(topology.svg())
    texts = {element.text for element in picture.iter(f"{SVG}text")}
    drawn = {*topology.nodes, *topology.external_topics, *(f"store {store}" for store in topology.stores)}
    assert drawn <= texts
    for name in drawn:
        assert f'"{name.removeprefix("store ")}"' in topology.mermaid()


def test_the_outline_tells_of_each_node() -> None:
    outline = node_by_node().outline()
    first, second = outline["sub_topologies"][0]["nodes"][:2]
    assert first == {
        "name": "source",
        "type": "source",
        "topics": ["in"],
        "successors": ["first"],
        "predecessors": [],
    }
    assert outline["sub_topologies"][1]["nodes"][1]["topic_chosen_by"] == "by_value"
    assert outline["stores"] == [
        {
            "name": "kept",
            "kind": "key_value",
            "persistent": True,
            "logged": True,
            "changelog": "kept-changelog",
        }
    ]
    assert second["name"] == "other"


def test_mermaid_names_every_end_of_an_arrow() -> None:
    text = node_by_node().mermaid()
    lines = text.splitlines()
    assert lines[0] == "flowchart TD"
    declared = {node[1] for line in lines if (node := re.match(r"\s+(n\d+_\d+|s\d+_\d+)[\[(]", line))}
    used = {
        end
        for line in lines
        if " --> " in line or " -.- " in line
        for end in re.findall(r"[ns]\d+_\d+", line)
    }
    assert used and used <= declared
    assert lines.count("    end") == text.count("subgraph") == 2


def test_boxes_do_not_overlap_and_lie_within_their_frame() -> None:
    for program in PROGRAMS.values():
        for part in ElementTree.fromstring(topology_of(program).svg()).iter(f"{SVG}g"):
            frame, *boxes = [
                tuple(float(each.get(key, 0)) for key in ("x", "y", "width", "height"))
                for each in part.iter(f"{SVG}rect")
            ]
            for x, y, width, height in boxes:
                assert x >= 0 and y >= 0 and x + width <= frame[2] + 0.2 and y + height <= frame[3] + 0.2
            for (x, y, width, height), (x1, y1, width1, height1) in itertools.combinations(boxes, 2):
                beside = x + width <= x1 or x1 + width1 <= x
                assert beside or y + height <= y1 or y1 + height1 <= y


def test_an_arrow_over_several_layers_passes_each_and_names_are_escaped() -> None:
    boxes = tuple(Box(name, name, "processor") for name in "abc")
    layers, routes = layers_of(Chart("t", boxes, (("a", "b"), ("b", "c"), ("a", "c"))))
    assert [len(layer) for layer in layers] == [1, 2, 1]
    assert routes[2] == ("a", "a>c@1", "c")
    topology = Topology(key_serde=str, value_serde=str).add_source('<"a"&>', "in")
    topology.add_sink("sink", "out", '<"a"&>')
    assert '<"a"&>' in {each.text for each in ElementTree.fromstring(topology.svg()).iter(f"{SVG}text")}
    assert "#lt;#quot;a#quot;#amp;#gt;" in topology.mermaid()
