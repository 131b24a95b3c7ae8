"""Options of the privacy audit on pytest's command line."""

from __future__ import annotations

from lm_audit.audits.option import AuditOption
from lm_audit.shared.number_checks import filled

OPTIONS: tuple[AuditOption, ...] = (
    AuditOption(
        "--stages",
        "checkpoints to audit instead of training the toy model: base=SPEC,sft=SPEC,dpo_no_canary=SPEC,"
        "dpo_with_canary=SPEC (hub ids, folders, LoRA adapters); needs --manifest",
        type=filled,
        names="models",
    ),
    AuditOption(
        "--extraction-manifest",
        "a canary manifest (JSONL) for --model: does it write the secrets, and are they likelier than their twins?",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--manifest", "the canary manifest (JSONL) that those checkpoints were trained with", type=filled, names="data"
    ),
    AuditOption(
        "--member-texts",
        "texts that --model was trained on: .jsonl, .json, .parquet or .csv with 'text' (or 'prompt' and "
        "'completion'), .txt, a folder, or hub id OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]; needs --held-out-texts",
        type=filled,
        names="data",
    ),
    AuditOption("--held-out-texts", "texts of the same kind that it was not trained on", type=filled, names="data"),
)
