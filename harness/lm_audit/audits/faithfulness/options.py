"""Options of the faithfulness audit on pytest's command line."""

from __future__ import annotations

from lm_audit.audits.option import AuditOption
from lm_audit.shared.number_checks import filled, whole_number

MOST_HOPS = 100
"""Each hop reads the passage again."""

OPTIONS: tuple[AuditOption, ...] = (
    AuditOption(
        "--faithfulness-samples",
        "your own samples, a JSONL (JSON, Parquet, CSV) file or hub id OWNER/NAME[@REVISION][:CONFIG[:SPLIT]] with "
        "'prompt' and optionally 'generation', 'thinking_span', 'output_span', 'evidence_spans'; may be given several "
        "times",
        action="append",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--attribution-method", "attribution methods to audit instead of the size's own; may be given several times",
        action="append", type=filled,
    ),
    AuditOption(
        "--deletion-steps", "deletion steps of a token curve; 0 deletes one token at a time",
        type=whole_number(0, 10**6),
    ),
    AuditOption(
        "--deletion-baseline", "what overwrites a token: eos, pad, mean or random", default="eos",
        choices=("eos", "pad", "mean", "random"),
    ),
    AuditOption(
        "--attribution-hops", "recursive hops of the multi-hop methods", default=1, type=whole_number(0, MOST_HOPS)
    ),
    AuditOption(
        "--faithfulness-chat", "what --chat on says, for this audit alone", action="store_true", default=False
    ),
)  # fmt: skip
