"""Secrets are compared with all earlier texts at once: the answers are those of a comparison one by one."""

from __future__ import annotations

import random

import pytest

from lm_audit.audits.privacy.data import corpus
from lm_audit.audits.privacy.data.canaries import generate_canaries
from lm_audit.audits.privacy.data.corpus import refuse_secrets
from lm_audit.audits.privacy.data.taken_secrets import Taken, held_secret
from lm_audit.errors import DataError


def test_a_clash_is_what_a_comparison_one_by_one_finds() -> None:
    draw, taken, earlier, clashes = random.Random(0), Taken(), list[tuple[str, str]](), 0
    for _ in range(300):
        secret = "".join(draw.choices("abc", k=draw.choice((3, 5))))
        text = f"{draw.choice(('xa', 'x'))}{secret}{draw.choice(('', 'b'))}"
        expected = any(secret in other or known in text for other, known in earlier)
        assert taken.clashes(text, secret) is expected
        clashes += expected
        if not expected:
            taken.add(text, secret)
            earlier.append((text, secret))
    assert 100 < clashes < 290


def test_a_document_that_holds_one_of_many_secrets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    canaries = generate_canaries(5)
    documents = ["nothing", f"a {canaries[3].secret}!"]
    assert held_secret(documents, [one.secret for one in canaries]) == (2, canaries[3].secret)
    assert held_secret(documents[:1], [one.secret for one in canaries]) is None
    for many in (3, 1000):
        monkeypatch.setattr(corpus, "_MANY", many)
        with pytest.raises(DataError, match=r"row 2.*code-00003"):
            refuse_secrets(documents, canaries)
