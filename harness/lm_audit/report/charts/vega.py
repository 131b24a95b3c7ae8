"""Vega-Lite specifications drawn without a browser: to safe SVG for the page, to PNG for Allure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree

from lm_audit.errors import DataError
from lm_audit.report.charts.drawing import SHARED
from lm_audit.shared.visible import shown

VERSION = "6.4"
"""The Vega-Lite release that draws; newer ones may lay a chart out differently."""

OKABE_ITO = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A5195", "#6B7280"]
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
"""Fonts of one set of widths: labels are as long in the reader's browser as where the chart was laid out."""
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None, "continuousWidth": 380, "continuousHeight": 220},
    "axis": {
        "domainColor": "#9aa1ab",
        "tickColor": "#9aa1ab",
        "gridColor": "#e4e6ea",
        "labelColor": "#3c434d",
        "titleColor": "#3c434d",
        "titleFontWeight": 500,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 220,
    },
    "legend": {"labelColor": "#3c434d", "titleColor": "#3c434d", "titleFontWeight": 500, "labelLimit": 240},
    "header": {"labelColor": "#3c434d", "titleColor": "#3c434d"},
    "title": {"color": "#1b1f24", "fontWeight": 600, "fontSize": 13, "anchor": "start"},
    "range": {"category": OKABE_ITO, "heatmap": {"scheme": "viridis"}, "ramp": {"scheme": "viridis"}},
}
_OPTIONS: dict[str, Any] = {"vl_version": VERSION, "allowed_base_urls": []}
CONTAINER = {"width": 420, "height": 260}
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"url\(['\"]?#([^)'\"]+)['\"]?\)")
_DROPPED = {"script", "foreignObject", "iframe", "style", "animate", "set"}
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _XLINK)


def check_inline(spec: Mapping[str, object]) -> None:
    """Raise ``DataError`` where a specification would fetch its data or an image: a report makes no request."""
    stack: list[Any] = [spec]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            data = node.get("data")
            if isinstance(data, Mapping) and "url" in data:
                raise DataError(f"a figure must hold its data inline, got data.url = {data['url']!r}", field="data.url")
            stack.extend(value for key, value in node.items() if key != "values")
        elif isinstance(node, list):
            stack.extend(node)


def is_interactive(spec: Mapping[str, Any]) -> bool:
    """Whether a reader can change something in the chart (a slider, a selection, zoom): it then needs the runtime."""
    parts = [spec, *spec.get("layer", []), *spec.get("hconcat", []), *spec.get("vconcat", [])]
    return any("bind" in param or "select" in param for part in parts for param in part.get("params", []))


def to_svg(spec: Mapping[str, object], *, prefix: str) -> str:
    """The chart as an SVG element that holds no script, link or foreign content; ids start with ``prefix``.

    Raises ``DataError`` where the specification is invalid or not self-contained.
    """
    check_inline(spec)
    svg = SHARED.ask("svg", spec=_drawable(spec), options={**_OPTIONS, "config": CONFIG})
    try:
        return sanitise(svg, prefix=prefix)
    except ElementTree.ParseError as error:
        raise DataError(f"this chart cannot be drawn: the library wrote no valid SVG ({error})") from error


def to_png(spec: Mapping[str, object], *, scale: float = 2.0) -> bytes:
    """The chart as PNG bytes on white, for reports that cannot show SVG; raises as :func:`to_svg` does."""
    check_inline(spec)
    options = {**_OPTIONS, "config": {**CONFIG, "background": "white"}, "scale": scale}
    return base64.b64decode(SHARED.ask("png", spec=_drawable(spec), options=options))


@cache
def runtime() -> str:
    """The JavaScript of Vega, Vega-Lite and vega-embed in one script, which sets ``window.lmAuditEmbed``.

    Raises ``DataError`` where it cannot be made here.
    """
    code = SHARED.ask("bundle", snippet="window.lmAuditEmbed = vegaEmbed;", options={"vl_version": VERSION})
    # A module's top-level names must not become globals of the page.
    return "(function(){" + code + "})();"


def sanitise(svg: str, *, prefix: str) -> str:
    """``svg`` without scripts, event handlers and links, responsive, with ids made unique by ``prefix``."""
    root = ElementTree.fromstring(svg)
    # The drawing library counts ids over its lifetime; numbered anew, the same chart gives the same text.
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    _clean(root, {name: f"{prefix}{number}" for number, name in enumerate(dict.fromkeys(ids))})
    width, height = root.attrib.pop("width", None), root.attrib.pop("height", None)
    if "viewBox" not in root.attrib and width and height:
        root.set("viewBox", f"0 0 {width} {height}")
    if width:
        root.set("style", f"max-width:{float(width):.0f}px")
    root.set("role", "img")
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, ids: Mapping[str, str]) -> None:
    for child in list(element):
        if child.tag.rpartition("}")[2] in _DROPPED:
            element.remove(child)
        else:
            _clean(child, ids)
    for name in list(element.attrib):
        value = element.attrib[name]
        local = name.rpartition("}")[2].lower()
        if local.startswith("on") or (local in ("href", "src") and not value.startswith(("#", "data:image/png"))):
            del element.attrib[name]
        elif local == "id":
            element.set(name, ids[value])
        elif "url(" in value:
            target = _REFERENCE.fullmatch(value.strip())
            if target and target[1] in ids:
                element.set(name, f"url(#{ids[target[1]]})")
            else:
                del element.attrib[name]


def _drawable(spec: Mapping[str, object]) -> dict[str, Any]:
    # There is no container to take the size of: the page scales the picture to its own width.
    sized = {name: size for name, size in CONTAINER.items() if spec.get(name) == "container"}
    # The library ends its process over control characters; a figure of a run that was read to be shown has none.
    return {**shown(spec), **sized}
