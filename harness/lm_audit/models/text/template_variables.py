"""Which arguments a chat template reads, by its syntax: a word in a string, a comment or after a dot is no argument."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser


class _Generation(Extension):
    """The block by which transformers marks what the assistant says: ``{% generation %} ... {% endgeneration %}``."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@cache
def reads(source: str, name: str) -> bool:
    """Whether the template looks ``name`` up among what it is given.

    A variable that it always sets before it reads it is none. Of a template that jinja2 cannot parse every word counts.
    """
    known = _variables(source)
    return bool(re.search(rf"\b{re.escape(name)}\b", source)) if known is None else name in known


@cache
def _variables(source: str) -> frozenset[str] | None:
    environment = Environment(extensions=[_Generation, loopcontrols], autoescape=False)
    try:
        return frozenset(find_undeclared_variables(environment.parse(source)))
    except (TemplateError, RecursionError):
        return None
