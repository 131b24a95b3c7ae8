"""The needle audit's own command-line options."""

from __future__ import annotations

from lm_audit.audits.needle.samples.template_text import template_text
from lm_audit.audits.option import AuditOption
from lm_audit.shared.number_checks import filled, real_number, whole_number

PRECISION = 0.05

OPTIONS = (
    AuditOption("--needle-lengths", "prompt lengths in tokens, answer included, as 4096,8192,16384", type=filled),
    AuditOption(
        "--needle-depths", "number of depths from 0 to 100 percent, both included", type=whole_number(1, 10_000)
    ),
    AuditOption("--needle-samples", "samples a cell", type=whole_number(1, 10**6)),
    AuditOption("--needle-tokens", "tokens reserved for the answer", type=whole_number(1, 10**6)),
    AuditOption(
        "--needle-preset",
        "one of RULER's tasks, niah_single_1 to niah_multiquery; may be repeated",
        action="append",
        type=filled,
    ),
    AuditOption(
        "--needle-haystack",
        "a text file or folder of your own to hide the needles in, a Parquet file or hub id "
        "OWNER/NAME[@REVISION][:CONFIG[:SPLIT]] whose texts stand in 'text' or the only column of texts",
        type=filled,
        names="data",
    ),
    AuditOption("--needle-language", "language of needle and question", default="en", choices=("en", "zh")),
    AuditOption(
        "--needle-template",
        "what --chat on (chat), off (base) and auto say, for this audit alone; or a text that holds {task_template}",
        type=template_text,
    ),
    AuditOption("--needle-boundary", "where needles may stand (default: by size)", choices=("sentence", "word")),
    AuditOption(
        "--needle-windows",
        "stretches of haystack: another for every prompt (independent), or one for all depths of a sample (shared), "
        "whose keys and values prompts then share",
        default="independent",
        choices=("independent", "shared", "start"),
    ),
    AuditOption(
        "--needle-folder",
        "evaluate the samples that lm-audit needle build wrote into this folder",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--needle-scorer", "score that accuracy and cliff go by", default="all", choices=("all", "any", "boundary")
    ),
    AuditOption(
        "--needle-threshold", "accuracy that the cliff goes by", default=0.85, type=real_number(above=0, below=1)
    ),
    AuditOption(
        "--adaptive", "needle: spend samples where the threshold is undecided, and stop when it is not", "store_true"
    ),
    AuditOption(
        "--needle-precision",
        "adaptive: half width of an interval that is narrow enough",
        default=PRECISION,
        type=real_number(above=0, below=0.5),
    ),
)
