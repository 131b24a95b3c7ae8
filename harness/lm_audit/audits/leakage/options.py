"""The leakage audit's own command-line options."""

from __future__ import annotations

from lm_audit.audits.option import AuditOption
from lm_audit.shared.number_checks import filled, whole_number

OPTIONS = (
    AuditOption(
        "--benchmark",
        "a multiple-choice set to audit: CSV, TSV, JSON, JSONL or Parquet file, folder of such files (one a "
        "subject), or hub id OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]; NAME=... names it; may be repeated (default: "
        "the questions in fixtures/leakage)",
        action="append",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--leakage-columns",
        "columns of the sets where they are not called question, A, B, C, ... (or options) and answer: "
        "question=Q,context=Passage,options=A1|A2|A3,answer=Key,id=No,subject=Topic; answer-base=0 or 1 says where "
        "numbers as answers count from, answer-as=letters, texts or labels what answers are; header=no reads a table "
        "by position "
        "(columns 1, 2, ...)",
        type=filled,
    ),
    AuditOption("--leakage-limit", "at most so many items of each set, drawn by the seed", type=whole_number(1, 10**9)),
    AuditOption(
        "--leakage-clean",
        "a set of the same kind that the model cannot have seen; gives the membership scores their AUC",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--leakage-cut",
        "where options are cut in two: at a token, at a word, or in the middle of the characters as published (source)",
        default="token",
        choices=("token", "word", "source"),
    ),
    AuditOption(
        "--leakage-mode",
        "what --chat off (raw) and --chat on (template: probes open the assistant's turn) say, for this audit alone",
        choices=("raw", "template"),
    ),
    AuditOption(
        "--leakage-orders", "shuffled orders a question in the memorisation test", default=3, type=whole_number(1, 99)
    ),
)
