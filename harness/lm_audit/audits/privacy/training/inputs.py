"""What the stages would be refused for, told before the first of them is trained: tokenizer, texts and pairs."""

from __future__ import annotations

import warnings
from pathlib import Path

from lm_audit.audits.privacy.data.corpus import read_texts
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.audits.privacy.stages.stage_inputs import base_spec, stage_data
from lm_audit.audits.privacy.training.lengths import require_whole_canaries
from lm_audit.errors import ModelError, UsageError
from lm_audit.models.text.token_spans import tells_offsets


def check_inputs(config: StagesConfig, manifest: Manifest, folder: Path) -> None:
    """``ModelError`` or ``UsageError`` for a tokenizer that cannot train the stages, ``DataError`` for a row that
    cannot be trained on, or that is a canary and would be cut.
    """
    from lm_audit.audits.privacy.training.batches import encode_rows, require_window
    from lm_audit.audits.privacy.training.dpo import encode_pairs
    from lm_audit.models import load_tokenizer
    from lm_audit.models.files.quantised.methods import PLAIN, quantised_by
    from lm_audit.models.files.source import find_source
    from lm_audit.models.files.stated_context import stated_context

    spec = base_spec(config)
    source = find_source(spec)
    method = quantised_by(source.checkpoint.config)
    if method is not None and not method.startswith(("bitsandbytes", *PLAIN)):
        raise ModelError(
            f"model {spec}: its weights are quantised by {method}, which nothing here can train; name the model that"
            " they were made from"
        )
    if config.lora is not None and source.adapter is not None:
        raise UsageError(
            f"--lora: the base {spec} is an adapter itself, which is trained on as it is; leave --lora out, or merge it"
            " into its own base and name the merged folder"
        )
    tokenizer, window = load_tokenizer(spec), stated_context(spec)
    if not tells_offsets(tokenizer):
        raise ModelError(
            f"model {spec}: its tokenizer does not tell where its tokens stand in a text, which DPO needs to know where"
            " an answer begins; use a fast one (tokenizer.json)"
        )
    if config.trainer == "trl" and tokenizer.pad_token_id is None and tokenizer.eos_token_id is None:
        raise UsageError(
            f"model {spec}: its tokenizer has neither a padding token nor EOS, one of which trainer='trl' needs; use"
            " trainer='own'"
        )
    require_whole_canaries(config, manifest, folder, tokenizer)
    with warnings.catch_warnings(action="ignore"):  # rows that are cut are told as they are trained on
        path = stage_data("sft", folder)
        texts = encode_rows(tokenizer, read_texts(path), config.sft.max_length, path)
        require_window(window, spec, [len(row) for row in texts], "this training text", "--sft", path)
        for stage in ("dpo_no_canary", "dpo_with_canary"):
            path = stage_data(stage, folder)
            pairs = encode_pairs(tokenizer, read_preferences(path), config.dpo.max_length, path)
            longest = [max(len(side.ids) for side in pair) for pair in pairs]
            require_window(window, spec, longest, "this preference pair", "--dpo", path)
