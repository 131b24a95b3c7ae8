"""Asks a server once what it can do, by values: a field that is accepted and ignored proves nothing.

llama.cpp's server takes ``echo`` and ``logprobs`` and answers with the generated token alone; whoever believes the
field names scores every option by chance. Prompt log-probabilities count where the tokens that come back are the
prompt's, one for one, each but the first has a finite number, and words are likelier than letters without sense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.endpoint.client.client import Client
from lm_audit.models.endpoint.client.questions import Question, RefusedRequest, Reply, no_route
from lm_audit.models.endpoint.facts import HIDDEN_TEMPLATE, EndpointFacts, PromptScores
from lm_audit.models.endpoint.scores import TOLD_ENOUGH, check_base, request_of, scored_tokens
from lm_audit.models.endpoint.tokens.server_tokenizer import Dialect, offsets_of, tokenize
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.number_checks import suggestion

FITS = "The capital of France is Paris"
LIKELY = (
    ("The children went to the school", "The children went to the zqxvkj"),
    ("She opened the door and went into the house", "She opened the door and went into the jqzwx"),
    ("One, two, three, four, five", "One, two, three, four, qzjxw"),
)
"""The first of each is likelier a token than the second by any model of language, however small."""
_ODD = "naïve 東京\n x"
LETTER, LONGEST_LETTER = "a", 3
"""One letter is one token in any vocabulary; a beginning and an end may stand around it."""
_TOP = 20


def ask_server(client: Client, tokenizer: Tokenizer | None = None) -> EndpointFacts:
    """What the server can do; ``tokenizer`` is a local one that the user names for it.

    Raises what :class:`Client` raises for a server that is not there or refuses, ``UsageError`` for a model that it
    does not serve, ``ModelError`` for one that neither chats nor continues a text, or where the tokenizer named counts
    otherwise than the server.
    """
    listed = _listed(client)
    plain = _try(client, Question("completions", {"prompt": FITS, "max_tokens": 1, "temperature": 0, "logprobs": _TOP}))
    if isinstance(plain, str):  # Some servers take fewer log-probabilities, or none.
        plain = _try(client, Question("completions", {"prompt": FITS, "max_tokens": 1, "temperature": 0}))
    if isinstance(plain, Reply):
        plain = _templated(client) or plain
    greeting = [{"role": "user", "content": FITS}]
    chat: Reply | str = "--chat off"
    if client.settings.chat:
        body = {"messages": greeting, "max_tokens": 16, "temperature": 0}
        chat = _try(client, Question("chat/completions", body))
    replies = [one for one in (plain, chat) if isinstance(one, Reply)]
    if not replies:
        raise ModelError(
            f"openai:{client.address.model} at {client.url}: answers neither completions ({plain}) nor chat ({chat})"
        )
    counted = _TokenCounts(client, plain if isinstance(plain, Reply) else None, tokenizer)
    completions = isinstance(plain, Reply)
    scores, why = _prompt_scores(client, counted) if completions else (None, "no completions route")
    props = _props(client)
    template = props.get("chat_template") if isinstance(chat, Reply) else None
    if isinstance(chat, Reply) and counted.dialect == "vllm" and _renders(client, greeting):
        template = template or HIDDEN_TEMPLATE
    return EndpointFacts(
        model=client.address.model,
        reported=replies[0].model,
        fingerprint=next((one.fingerprint for one in replies if one.fingerprint), None),
        context=_context(listed, props),
        completions=completions,
        chat=isinstance(chat, Reply),
        completions_why=plain if isinstance(plain, str) else "",
        chat_why=chat if isinstance(chat, str) else "",
        prompt_scores=scores,
        scores_why=why,
        top=_told(plain) if isinstance(plain, Reply) else 0,
        dialect=counted.dialect,
        offsets=counted.offsets,
        template=template or None,
        tokenizer=counted.name,
        takes_ids=completions and counted.ids is not None and _takes_ids(client, counted.ids),
        extra_tokens=_extra(chat, counted),
        thinks=isinstance(chat, Reply) and _thinks(chat),
    )


def _try(client: Client, question: Question) -> Reply | str:
    """The reply, or why the server gives none to a question of this kind."""
    try:
        return client.ask([question], anew=True)[0]
    except ModelError as error:
        if isinstance(error, RefusedRequest) or no_route(error):  # A model that is not known is a 404 too.
            return str(error).rpartition(f"{client.url}: ")[2]
        raise


def _templated(client: Client) -> str | None:
    """Why the completions route is none that continues a text: Ollama's puts what it is given into a chat template."""
    reply = _try(client, Question("completions", {"prompt": LETTER, "max_tokens": 1, "temperature": 0}))
    read = reply.prompt_tokens if isinstance(reply, Reply) else None
    if read is None or read <= LONGEST_LETTER:
        return None
    return (
        f"its completions route puts the prompt into a template ({LETTER!r} is read as {read} tokens), so no text is "
        "continued as it stands; of Ollama name a :text model"
    )


def _listed(client: Client) -> Mapping[str, Any]:
    """The server's own entry of the model; ``UsageError`` where it lists others only. Empty where it lists none."""
    said = client.get("/v1/models")
    entries = said.get("data") if isinstance(said, dict) else None
    if not isinstance(entries, list):
        return {}
    entries = [one for one in entries if isinstance(one, dict) and isinstance(one.get("id"), str)]
    if not entries:
        return {}
    for entry in entries:
        aliases = entry.get("aliases")
        if client.address.model in (entry["id"], *(aliases if isinstance(aliases, list) else ())):
            return dict(entry)
    names = [str(entry["id"]) for entry in entries]
    hint = suggestion(client.address.model, names) or ";"
    raise UsageError(
        f"openai:{client.address.model} at {client.url}: no such model there{hint} it serves "
        f"{', '.join(map(repr, names[:10]))}{' and more' if len(names) > 10 else ''}"
    )


def _props(client: Client) -> Mapping[str, Any]:
    try:
        said = client.get("/props")
    except (ModelError, UsageError):
        return {}
    return said if isinstance(said, dict) else {}


def _context(listed: Mapping[str, object], props: Mapping[str, object]) -> int | None:
    """Tokens of prompt and answer that a request may have, as vLLM, SGLang, llama.cpp and hosted routers tell it."""
    meta, settings = listed.get("meta"), props.get("default_generation_settings")
    told = [
        settings.get("n_ctx") if isinstance(settings, dict) else None,
        meta.get("n_ctx") if isinstance(meta, dict) else None,
        listed.get("max_model_len"),
        listed.get("context_length"),
        listed.get("context_window"),
    ]
    return next((value for value in told if isinstance(value, int) and value > 0), None)


@dataclass
class _TokenCounts:
    """Where tokens are counted, held against the ``usage`` of a first request."""

    client: Client
    plain: Reply | None
    local: Any | None
    dialect: Dialect | None = None
    offsets: bool = False
    name: str | None = None
    ids: list[int] | None = None

    def __post_init__(self) -> None:
        used = self.plain.prompt_tokens if self.plain is not None else None
        if self.local is not None:
            self.ids = list(self.local(FITS)["input_ids"])
            self.name = f"--tokenizer {getattr(self.local, 'name_or_path', '')}".strip()
            if used is not None and used != len(self.ids):
                raise ModelError(
                    f"openai:{self.client.address.model}: the tokenizer that --tokenizer names counts {len(self.ids)} "
                    f"tokens in {FITS!r}, the server {used}; name the tokenizer of the model that is served"
                )
            return
        for dialect in _DIALECTS:
            found = self._by(dialect, used)
            if found is not None:
                self.dialect, self.ids, self.name = dialect, found, f"the server's /tokenize ({dialect})"
                self.offsets = self._has_offsets(dialect)
                return

    def _by(self, dialect: Dialect, used: int | None) -> list[int] | None:
        try:
            ids, _ = tokenize(self.client, dialect, FITS, special=True)
        except (ModelError, UsageError):
            return None
        return ids if ids and (used is None or used == len(ids)) else None

    def _has_offsets(self, dialect: Dialect) -> bool:
        try:
            _, pieces = tokenize(self.client, dialect, _ODD, special=False)
            offsets_of(_ODD, pieces or [], "")
        except ModelError:
            return False
        return True

    def count(self, text: str) -> int | None:
        """Tokens of a text by itself, ``None`` where nobody counts."""
        if self.local is not None:
            return len(self.local(text, add_special_tokens=False)["input_ids"])
        if self.dialect is None:
            return None
        return len(tokenize(self.client, self.dialect, text, special=False)[0])


_DIALECTS: tuple[Literal["llama.cpp", "vllm"], ...] = ("llama.cpp", "vllm")


def _renders(client: Client, messages: Sequence[Mapping[str, str]]) -> bool:
    """Whether the tokenize route takes a conversation, as vLLM's does and SGLang's does not."""
    try:
        said = client.post("/tokenize", {"messages": messages, "model": client.address.model})
    except (ModelError, UsageError):
        return False
    tokens = said.get("tokens") if isinstance(said, dict) else None
    return isinstance(tokens, list) and bool(tokens) and all(isinstance(one, int) for one in tokens)


def _takes_ids(client: Client, ids: Sequence[int]) -> bool:
    """Whether a prompt may be token ids: it is read as so many tokens."""
    reply = _try(client, Question("completions", {"prompt": list(ids), "max_tokens": 1, "temperature": 0}))
    return isinstance(reply, Reply) and reply.prompt_tokens in (None, len(ids))


def _extra(chat: Reply | str, counted: _TokenCounts) -> int | None:
    if isinstance(chat, str) or chat.prompt_tokens is None:
        return None
    own = counted.count(FITS)
    return None if own is None else chat.prompt_tokens - own


def _thinks(chat: Reply) -> bool:
    from lm_audit.models.endpoint.replies import text_and_reasoning
    from lm_audit.models.text.thinking import opening_state

    text, reasoning = text_and_reasoning(chat.choice)
    return bool(reasoning) or (bool(text.strip()) and opening_state(text) is not False and len(text.strip()) > 3)


def _told(plain: Reply) -> int:
    """How many of the likeliest tokens came with a generated one."""
    logprobs = plain.choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return 0
    content, tops = logprobs.get("content"), logprobs.get("top_logprobs")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        found = content[0].get("top_logprobs")
    else:
        found = tops[0] if isinstance(tops, list) and tops else None
    return len(found) if isinstance(found, dict | list) else 0


def _prompt_scores(client: Client, counted: _TokenCounts) -> tuple[PromptScores | None, str]:
    """How the server gives log-probabilities of a prompt, or why it counts as giving none."""
    reasons = []
    for way in _WAYS:
        try:
            _check_base(client, way)
            means = [[_mean_score(client, way, text) for text in pair] for pair in LIKELY]
        except ModelError as error:
            said = str(error).rpartition(f"{client.url}: ")[2].removeprefix(": ")
            reasons.append(f"{way}: {said}")
            continue
        wrong = [pair for pair, (likely, unlikely) in zip(LIKELY, means, strict=True) if not likely > unlikely]
        if wrong:
            (good, bad), *_ = wrong
            reasons.append(f"{way}: {good!r} is no likelier than {bad!r}, so these are not its probabilities")
            continue
        return way, ""
    return None, "; ".join(reasons)


_WAYS: tuple[PromptScores, ...] = ("prompt_logprobs", "echo")


def _mean_score(client: Client, way: PromptScores, text: str) -> float:
    reply = _try(client, Question("completions", {"prompt": text, **request_of(way)}))
    if isinstance(reply, str):
        raise ModelError(reply)
    found = scored_tokens(reply, way, text=text, who="")
    if len(found.logprobs) < 2:
        raise ModelError(f"{len(found.logprobs)} log-probabilities for {text!r}")
    return sum(found.logprobs) / len(found.logprobs)


def _check_base(client: Client, way: PromptScores) -> None:
    """``ServerError`` where the likeliest tokens at each place show another base than e; nothing where few are told."""
    top: list[tuple[tuple[int | str, float], ...]] = []
    for text, _ in LIKELY:
        for told in (_TOP, TOLD_ENOUGH):
            reply = _try(client, Question("completions", {"prompt": text, **request_of(way, told)}))
            if isinstance(reply, Reply):
                top.extend(scored_tokens(reply, way, text=text, who="").top)
                break
    check_base(top, "")
