"""Figures as the page shows them: safe SVG, coloured text, tables."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from lm_audit.errors import DataError
from lm_audit.evidence import Figure
from lm_audit.report.charts import vega
from lm_audit.report.charts.coloured_tokens import token_view
from lm_audit.report.charts.shown_figures import TABLE_ROWS, FigureDrawer
from tests.report.made_runs import chart, heatmap

EVIL = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10" height="20"
onload="x()"><script>x()</script><foreignObject/><a xlink:href="javascript:x()"><text>hi</text></a>
<image href="https://example.com/a.png"/><defs><clipPath id="clip7"/></defs>
<g clip-path="url(#clip7)" fill="url(https://example.com/f.svg#x)"/><use href="#clip7"/></svg>"""


def test_svg_loses_scripts_links_and_foreign_references_and_keeps_its_own() -> None:
    clean = vega.sanitise(EVIL, prefix="f1-")
    for word in ("script", "foreignObject", "onload", "javascript", "example.com"):
        assert word not in clean
    root = ET.fromstring(clean)
    assert root.get("viewBox") == "0 0 10 20" and "width" not in root.attrib
    assert 'id="f1-0"' in clean and 'clip-path="url(#f1-0)"' in clean and ">hi<" in clean


def test_the_same_chart_gives_the_same_svg_and_two_charts_share_no_id() -> None:
    first, again, other = (vega.to_svg(heatmap(1).data, prefix=p) for p in ("a-", "a-", "b-"))
    ids = [{e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")} for svg in (first, other)]
    assert first == again and ids[0] and ids[0].isdisjoint(ids[1])


def test_marks_carry_their_values_for_hover_and_readers() -> None:
    svg = vega.to_svg(chart(0).data, prefix="f-")
    labels = [e.get("aria-label") or "" for e in ET.fromstring(svg).iter()]
    assert any("subject: the baker" in label and "share preferred:" in label for label in labels)


@pytest.mark.parametrize(
    "spec",
    [
        {"data": {"url": "https://example.com/x.json"}, "mark": "bar"},
        {"layer": [{"data": {"url": "file.csv"}, "mark": "bar"}]},
        {"data": {"values": []}, "transform": [{"lookup": "a", "from": {"data": {"url": "x.csv"}, "key": "a"}}]},
    ],
)
def test_a_chart_that_fetches_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(DataError, match="inline"):
        vega.to_svg(spec, prefix="f-")


def test_a_broken_chart_is_a_message_and_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    view = FigureDrawer().view(Figure("x", "X", "vega-lite", {"mark": "no such mark", "data": {"values": []}}))
    assert view.svg is None and view.problem and "cannot be drawn" in view.problem


def test_a_chart_as_wide_as_its_container_gets_a_width() -> None:
    narrow = {**chart(0).data, "width": 420}
    assert vega.to_svg({**narrow, "width": "container"}, prefix="f-") == vega.to_svg(narrow, prefix="f-")


def test_png_is_an_image() -> None:
    assert vega.to_png(chart(0).data, scale=1).startswith(b"\x89PNG")


def test_interactive_charts_keep_a_static_picture_and_gain_the_runtime() -> None:
    spec = {**chart(0).data, "params": [{"name": "layer", "value": 0, "bind": {"input": "range", "min": 0, "max": 3}}]}
    drawer = FigureDrawer()
    view = drawer.view(Figure("x", "X", "vega-lite", spec))
    assert view.svg is not None and view.chart == 0 and drawer.charts == [spec]
    assert FigureDrawer().view(chart(0)).chart is None


def test_tokens_share_one_scale_over_frames() -> None:
    frames = [
        {
            "label": "a",
            "tokens": [{"text": "x", "value": 2.0}, {"text": "y", "value": -1.0}, {"text": "\n", "value": None}],
        },
        {"label": "b", "tokens": [{"text": "", "value": 0.0}, {"text": "z", "value": 0.1, "group": "source"}]},
    ]
    view = token_view({"frames": frames, "scale": "diverging"})
    shades = [[token.css for token in frame.tokens] for frame in view.frames]
    assert shades == [["t-p5", "t-n2", "t-none"], ["t-0", "t-p1"]] and view.limit == "2"
    assert view.frames[0].tokens[2].breaks and view.frames[1].tokens[1].title == "'z' \u00b7 0.100 \u00b7 source"


def test_a_whole_number_that_no_float_reaches_is_shown_and_not_drawn() -> None:
    huge = 10**400
    view = token_view({"frames": [{"label": "a", "tokens": [{"text": "x", "value": huge}]}]})
    table = FigureDrawer().view(Figure("t", "T", "table", {"columns": [{"name": "k"}], "rows": [{"k": huge}]})).table
    assert view.frames[0].tokens[0].css == "t-none"
    assert table is not None and table.rows == (((str(huge), False),),)


def test_a_long_table_says_how_much_is_left_out() -> None:
    data = {
        "columns": [{"name": "k"}, {"name": "v", "title": "Value"}],
        "rows": [{"k": f"r{i}", "v": i} for i in range(500)],
    }
    table = FigureDrawer().view(Figure("t", "T", "table", data)).table
    assert table is not None and len(table.rows) == TABLE_ROWS and table.left_out == 100
    assert table.columns == (("k", False), ("Value", True)) and table.rows[3] == (("r3", False), ("3", True))
