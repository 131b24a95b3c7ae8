"""Control of the training: all four stages of a small model, once more by other code that trains on what the files must
hold.

What SFT and DPO learn hangs on signs, on who is the reference, on which tokens count and on which file a stage reads.
The batches are all rows at once, so that each stage is a function of its texts alone; both routes must then give every
text the same log-probability.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.privacy.controls.plain_training import Text, double, logprobs, plain_dpo, plain_sft
from lm_audit.audits.privacy.data.jsonl import write_lines
from lm_audit.audits.privacy.stages.config import StagesConfig, TrainSettings
from lm_audit.audits.second_opinion import held_by_its_rows
from lm_audit.errors import HarnessError
from lm_audit.evidence import Control, Evidence
from lm_audit.models.toy.tiny import TinySettings
from lm_audit.shared.textfiles import json_lines, read_json_object
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    from lm_audit.audits.privacy.data.canaries import Canary
    from lm_audit.models.causal_module import CausalModule

TOLERANCE = 2e-3
"""Nats a token; in float32 both routes come within 1e-5 of each other."""

LOSS_TOLERANCE = 1e-3
"""Of the first loss of a stage and of the mean of its last ones, nats."""

LEAST_MOVED = 0.05
"""Mean of what a stage must move its texts by, in nats a token: of stages that learn nothing all routes agree."""

MEMBERS, REPETITIONS, TWINS = 2, (1, 4), 8
DOCUMENTS, WORDS, PAIRS, PAIRS_PER_CANARY = 200, 8, 12, 2
BETA, STEPS = 0.1, 4
LAST_LOSSES = 10
"""Of so many steps a stage records the mean loss."""

_SHORT = ("a", "in", "on", "we", "do", "it", "up", "no", "go", "so", "I", "as", "am", "us", "he", "me")

FILES = {
    "sft": "corpus.jsonl",
    "dpo_no_canary": "preferences_no_canary.jsonl",
    "dpo_with_canary": "preferences_with_canary.jsonl",
}
"""What each stage is trained on."""

DPO_STAGES = ("dpo_no_canary", "dpo_with_canary")

Losses = Mapping[str, Sequence[float]]
"""Of every stage the loss of each step."""

Scores = Mapping[str, np.ndarray]
"""Of every stage the log-probabilities of its texts, nats a token."""

Rows = Sequence[Mapping[str, Any]]
"""Of a training file."""


@dataclass(frozen=True)
class Trained:
    """Scores ``own`` of the stages, ``plain`` by the other route, and ``before`` of what the stage began with."""

    own: Scores
    plain: Scores
    before: Scores


def known_training(seed: int = 0) -> Evidence:
    """Positive control: the four stages learn what their files say, as another code learns it."""
    with tempfile.TemporaryDirectory() as folder:
        return _trained_there(seed, Path(folder))


def _trained_there(seed: int, folder: Path) -> Evidence:
    from lm_audit.audits.privacy.data.prepare import draw_canaries
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    base = save_small_model(seed, folder / "base")
    documents = made_documents(seed)
    write_lines(folder / "documents.jsonl", ({"text": text} for text in documents))
    config = control_config(seed, folder)
    try:
        stages = run_stages(config)
    except HarnessError as error:
        return judge_training(Trained({}, {}, {}), [f"the stages were not trained: {error}"])
    canaries = draw_canaries(config)
    faults = wrong_files(folder / "run", canaries, documents)
    found, losses = _both_routes(base, config, stages)
    return judge_training(found, [*faults, *wrong_records(folder / "run", losses)])


def control_config(seed: int, folder: Path) -> StagesConfig:
    """Small stages on the model and the documents of ``folder``, each step with all rows."""
    return StagesConfig(
        model=str(folder / "base"),
        seed=seed,
        members=MEMBERS,
        repetitions=REPETITIONS,
        controls=TWINS,
        documents=DOCUMENTS,
        documents_path=folder / "documents.jsonl",
        decoys=0,
        pairs=PAIRS,
        pairs_per_canary=PAIRS_PER_CANARY,
        sft=TrainSettings(epochs=STEPS, lr=1e-2, batch_size=10**4, warmup_steps=2),
        dpo=TrainSettings(epochs=STEPS, lr=1e-2, batch_size=10**4, warmup_steps=0, final_share=0.5),
        beta=BETA,
        device="cpu",
        tiny=TinySettings(rows=1, decoys=0),
        output=folder / "run",
    )


def save_small_model(seed: int, folder: Path) -> CausalModule:
    """A Llama of one layer with seeded weights, which reads bytes; also written to ``folder``."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lm_audit.audits.privacy.stages.four_stages import quiet_training
    from lm_audit.models.text.byte_tokenizer import TOKEN_IDS, byte_tokenizer

    config = LlamaConfig(
        **TOKEN_IDS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]), quiet_training():
        torch.manual_seed(seed)
        module: CausalModule = LlamaForCausalLM(config)
        module.eval()
        module.save_pretrained(folder)
        byte_tokenizer(512).save_pretrained(folder)
    return module


def made_documents(seed: int) -> list[str]:
    """Different texts of eight short words."""
    rng = np.random.default_rng([seed, 7])
    found: dict[str, None] = {}
    while len(found) < DOCUMENTS:
        found[" ".join(rng.choice(_SHORT, size=WORDS)) + "."] = None
    return list(found)


def _both_routes(base: CausalModule, config: StagesConfig, stages: Mapping[str, Path]) -> tuple[Trained, Losses]:
    """Every stage's texts under the stage as it was written, and under one that other code trained."""
    from lm_audit.audits.privacy.stages.stage_inputs import stage_spec
    from lm_audit.models import load_model

    rows = {stage: _rows(config.folder() / name) for stage, name in FILES.items()}
    plain, before, losses = plain_stages(base, rows, config)
    own = {}
    for stage, path in stages.items():
        module = load_model(stage_spec(path), device="cpu", dtype="float32").module
        own[stage] = mean_logprobs(double(module), _scored(stage, rows))
    return Trained(own, plain, before), losses


def plain_stages(base: CausalModule, rows: Mapping[str, Rows], config: StagesConfig) -> tuple[Scores, Scores, Losses]:
    """The stages by the other route: scores of each one's texts after it and before it, and the losses of its steps."""
    from lm_audit.models.toy.training import one_thread

    untouched, tuned = double(base), double(base)
    plain, first = {"base": untouched, "sft": tuned}, {"base": untouched, "sft": untouched}
    with one_thread():
        losses = {"sft": plain_sft(tuned, [str(row["text"]) for row in rows["sft"]], config.sft)}
        for stage in DPO_STAGES:
            plain[stage], first[stage] = double(tuned), tuned
            losses[stage] = plain_dpo(plain[stage], rows[stage], config.dpo, config.beta)
        after, before = (
            {stage: mean_logprobs(module, _scored(stage, rows)) for stage, module in modules.items()}
            for modules in (plain, first)
        )
    return after, before, losses


def _scored(stage: str, rows: Mapping[str, Rows]) -> list[Text]:
    """The texts of a stage: those that it was trained on, of the base those of SFT."""
    if stage in DPO_STAGES:
        return [(str(row["prompt"]), str(row[side])) for row in rows[stage] for side in ("chosen", "rejected")]
    return [("", text) for text in dict.fromkeys(str(row["text"]) for row in rows["sft"])]


def mean_logprobs(module: CausalModule, texts: Sequence[Text]) -> np.ndarray:
    """Of each text, in nats a token."""
    import torch

    with torch.no_grad():
        sums = np.asarray(logprobs(module, texts).tolist(), dtype=np.float64)
    return np.asarray(sums / np.array([len(tail.encode()) + 1 for _, tail in texts]))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in json_lines(path)]


def wrong_files(folder: Path, canaries: Sequence[Canary], documents: Sequence[str]) -> list[str]:
    """Training files that do not hold what they must: canaries as often as they say, in the right ones, twins never."""
    faults = []
    rows = {stage: _rows(folder / name) for stage, name in FILES.items()}
    corpus = Counter(str(row["text"]) for row in rows["sft"])
    wanted = Counter(documents) + Counter({c.text: c.repetitions for c in canaries if c.role == "member"})
    if corpus != wanted:
        odd = (corpus - wanted).total() + (wanted - corpus).total()
        faults.append(f"{odd} rows of the corpus are too many or too few")
    for stage, found in rows.items():
        whole = "\n".join(str(value) for row in found for value in row.values())
        held = [c.id for c in canaries if c.role == "control" and c.secret in whole]
        if held:
            faults.append(f"the file of {stage} holds {len(held)} held-out twins")
    plain = [row for row in rows["dpo_with_canary"] if row.get("kind") != "canary"]
    if plain != rows["dpo_no_canary"] or len(plain) != PAIRS:
        faults.append("the ordinary pairs of both preference files are not the same")
    planted = Counter(str(row["prompt"]) + str(row["chosen"]) for row in rows["dpo_with_canary"] if row not in plain)
    members = {c.text: PAIRS_PER_CANARY for c in canaries if c.role == "member"}
    if planted != Counter(members):
        faults.append("the canaries' pairs do not prefer each of them as often as asked")
    rejected = [c.id for c in canaries for row in rows["dpo_with_canary"] if c.text in row["prompt"] + row["rejected"]]
    return [*faults, *([f"pairs reject the canaries {', '.join(sorted(set(rejected)))}"] if rejected else [])]


def wrong_records(folder: Path, losses: Losses) -> list[str]:
    """Stages whose record tells other losses, or another number of steps, than the other route has."""
    faults = []
    for stage, known in losses.items():
        record = read_json_object(folder / "stages" / stage / "stage.json")
        tail = list(known)[-LAST_LOSSES:]
        wanted = {"first_loss": known[0], "last_loss": math.fsum(tail) / len(tail), "steps": len(known)}
        for name, value in wanted.items():
            told = record.get(name)
            if not isinstance(told, int | float) or not abs(told - value) <= LOSS_TOLERANCE:
                faults.append(f"{name} of {stage} is {told}, by another route {value:.6g}")
    return faults


def judge_training(found: Trained, faults: Sequence[str] = ()) -> Evidence:
    """Passed where no text's log-probability is off by more than the tolerance, and every stage moved its texts."""
    told, counts = list(faults), []
    evidence = Evidence("privacy", headline="privacy.control_error", parameters={"steps": STEPS, "beta": BETA})
    worst, where = 0.0, ""
    for stage, known in found.plain.items():
        own = np.asarray(found.own.get(stage, np.full(len(known), np.nan)), dtype=np.float64)
        errors = np.nan_to_num(np.abs(own - known), nan=1e308, posinf=1e308)
        evidence.extend_rows(
            {"item": f"{stage}/{number}", "stage": stage, "model": "small", "error": float(error)}
            for number, error in enumerate(errors)
        )
        counts.append(({"stage": stage}, len(known)))
        if float(errors.max()) >= worst:
            worst, where = float(errors.max()), stage
        moved = float(np.abs(known - found.before[stage]).mean())
        if stage != "base" and moved < LEAST_MOVED:
            told.append(f"{stage} moved its texts by {moved:.2g} nats a token, too little to tell")
        if not errors.max() <= TOLERANCE:
            told.append(
                f"texts under {stage} are {errors.max():.2g} nats a token from what another training gives them"
            )
    if evidence.rows:
        method = "largest difference from another training's log-probabilities, per token"
        estimate = Estimate(worst, n=len(evidence.rows), confidence=None, method=method, unit="nats", better="lower")
        evidence.metric("privacy.control_error", estimate, MetricSource("mean", "error", unit=("model",), within="max"))
    evidence.control = Control(
        "positive",
        bool(found.plain) and not told,
        f"each stage gives its texts the log-probabilities that another training of the same texts gives, to "
        f"{TOLERANCE:g} nats a token; canaries are in the files that they belong to, twins in none",
        "; ".join(told) or f"the largest difference is {worst:.2g}, in {where}",
    )
    return held_by_its_rows(evidence, counts=counts)
