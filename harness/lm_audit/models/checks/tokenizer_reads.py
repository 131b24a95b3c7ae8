"""Whether a tokenizer reads text whole and gives it back: one that lost a part of its file does neither."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters, digits, punctuation
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.checks.proofs import Proofs
from lm_audit.models.checks.sentencepiece_reads import of_another, of_another_tekken, read_otherwise, sentencepiece_file
from lm_audit.models.files.json_file import listed
from lm_audit.models.loading.identity.digests import file_digest
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file

PROBE = "One text, 1 number."


def evaluate(tokenizer: Tokenizer, name: str) -> None:
    """Let a tokenizer read a text one way each time: one saved in training may leave merges out at random."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    model = getattr(backend, "model", None)
    if share := getattr(model, "dropout", None):
        backend.model.dropout = None
        warnings.warn(
            f"{name}: its tokenizer leaves out merges at random, as for training (dropout {share:g} in tokenizer.json);"
            " that is switched off",
            stacklevel=2,
        )


def tell_losses(tokenizer: Tokenizer, name: str) -> None:
    """Warn of ordinary characters of which model ``name`` would read nothing, and of text that it spells otherwise.

    ``ModelError`` where it reads nothing of a whole text.
    """
    read = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    if not read:
        raise ModelError(f"model {name}: its tokenizer has no token for {PROBE!r}; its vocabulary is empty, it seems")
    characters = list(ascii_letters + digits + punctuation)
    lost = [
        one
        for one, ids in zip(characters, tokenizer(characters, add_special_tokens=False)["input_ids"], strict=True)
        if not ids
    ]
    if lost:
        warnings.warn(
            f"model {name}: its tokenizer has no token for {listed([repr(one) for one in lost])}, so that texts lose"
            " them",
            stacklevel=2,
        )
    spelt = tokenizer.decode(read)
    if not lost and _plain(spelt) != _plain(PROBE):
        warnings.warn(
            f"model {name}: its tokenizer spells what it read of {PROBE!r} as {spelt!r:.80}: what the model writes is"
            " not what is read here",
            stacklevel=2,
        )


def tell_class(tokenizer: Tokenizer, folder: Path, name: str, proofs: Proofs | None = None) -> None:
    """Warn where the class of a tokenizer reads text otherwise than the file that it was made of.

    That is ``tokenizer.json`` or, where there is none, a SentencePiece model.

    transformers takes a class by the model's architecture, and some split text by an expression of their own. What was
    found is kept in ``proofs``: a file of 150,000 tokens takes half a second to be read once more.
    """
    from transformers import PreTrainedTokenizerFast

    path, pieces = folder / "tokenizer.json", sentencepiece_file(folder)
    looks: dict[Path, Callable[[], str]] = {}
    if is_file(path) and type(tokenizer).__name__ != PreTrainedTokenizerFast.__name__:
        looks[path] = lambda: _read_otherwise(tokenizer, path)
    if pieces is not None and is_file(path):
        looks[pieces] = lambda: of_another(tokenizer, pieces)
    elif pieces is not None:
        looks[pieces] = lambda: read_otherwise(tokenizer, pieces, _SPLIT)
    if is_file(tekken := folder / "tekken.json") and is_file(path):
        looks[tekken] = lambda: of_another_tekken(tokenizer, tekken)
    for file, look in looks.items():
        if found := _remembered(proofs, file, look):
            warnings.warn(f"model {name}: {file} {found}", stacklevel=2)


def _remembered(proofs: Proofs | None, file: Path, look: Callable[[], str]) -> str:
    """What ``look`` finds in ``file``, once for a model and a content."""
    if proofs is None:
        return look()
    digest, key = file_digest(file), f"tokenizer class {file.name}"
    known = proofs.get(key)
    if isinstance(known, list) and len(known) == 2 and known[0] == digest:
        return str(known[1])
    found = look()
    proofs.put(key, [digest, found])
    return found


def _read_otherwise(tokenizer: Tokenizer, path: Path) -> str:
    """The first of some texts that file and class read differently, and how; "" where there is none."""
    from tokenizers import Tokenizer as Backend

    stated: Any = Backend.from_file(str(path))
    stated.no_padding()
    stated.no_truncation()
    if getattr(stated.model, "dropout", None):
        stated.model.dropout = None
    for text in _SPLIT:
        wanted = stated.encode(text, add_special_tokens=False)
        found = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        if wanted.ids != found:
            return (
                f"reads {text!r} as {wanted.tokens!r:.120}; {type(tokenizer).__name__}, which transformers"
                f" takes, reads it as {tokenizer.convert_ids_to_tokens(found)!r:.120}"
            )
    return ""


_SPLIT = (PROBE, "ﬁn Ａ cafe\u0301", "box.\n\n It's", "  12345", "naïve 東京", "DON'T (x)", "a\tb  c ")


def _plain(text: str) -> str:
    """Without white space and case, which many tokenizers do not keep."""
    return "".join(text.split()).casefold()


def tell_dates(tokenizer: Tokenizer, name: str) -> None:
    """Warn where the chat template writes the day into prompts: on another day others are asked."""
    from lm_audit.models.text.chat import template_source
    from lm_audit.models.text.template_variables import reads

    source = template_source(tokenizer)
    if source and "strftime_now" in source and reads(source, "strftime_now"):
        fixed = next((f": --chat-args {key}=... fixes it" for key in _DATES if reads(source, key)), "")
        warnings.warn(
            f"model {name}: its chat template writes today's date into every prompt, so that a run of another day asks"
            f" other prompts{fixed}",
            stacklevel=2,
        )


_DATES = ("date_string", "current_date", "date", "today")


def tell_templates(tokenizer: Tokenizer, folder: Path) -> None:
    """Warn where files of ``folder`` state other chat templates than the one that is taken.

    ``chat_template.jinja`` goes before ``tokenizer_config.json``; ``chat_template.json``, of models that see pictures,
    is read by nothing here.
    """
    from lm_audit.models.text.chat import template_source

    taken, template = template_source(tokenizer), folder / "chat_template.jinja"
    stated = _template(folder / "tokenizer_config.json") if is_file(template) else None
    if stated is not None and stated.strip() != template.read_text(encoding="utf-8").strip():
        warnings.warn(
            f"{folder}: chat_template.jinja and the chat_template of tokenizer_config.json are not the same; the former"
            " is taken",
            stacklevel=2,
        )
    left = _template(folder / "chat_template.json")
    if left is not None and left.strip() != (taken or "").strip():
        other = "another is taken" if taken else "there is no other"
        warnings.warn(
            f"{folder}: the chat template of chat_template.json is not read; {other}: write it to"
            " chat_template.jinja if it is the model's",
            stacklevel=2,
        )


def _template(path: Path) -> str | None:
    """The chat template that a file of settings states: the one, or of several that which is called default."""
    content: Any = json.loads(path.read_text(encoding="utf-8")) if is_file(path) else None
    stated = content.get("chat_template") if isinstance(content, dict) else None
    if isinstance(stated, list):
        named = {one.get("name"): one.get("template") for one in stated if isinstance(one, dict)}
        stated = named.get("default")
    return stated if isinstance(stated, str) else None
