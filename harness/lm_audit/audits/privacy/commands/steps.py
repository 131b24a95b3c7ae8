"""``lm-audit privacy``: make canaries, corpus and preferences, train the stages, audit them, attribute the change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.privacy.commands.options import add_config_options, config_of
from lm_audit.shared.given_path import given_path
from lm_audit.shared.number_checks import whole_number

if TYPE_CHECKING:
    from lm_audit.audits.privacy.stages.config import StagesConfig

STEPS = {
    "canaries": "draw canaries and held-out twins into FOLDER/manifest.jsonl",
    "corpus": "put the members into the training corpus",
    "preferences": "write preference pairs without and with canaries",
    "train": "train the four stages (SFT, DPO without and with canaries)",
    "audit": "score the stages and write evidence and tables",
    "attribute": "write the tables again from the evidence",
    "run": "the whole chain, for one seed or several",
}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command ``privacy`` with its steps."""
    parser = subparsers.add_parser("privacy", help="plant canaries, train four stages, see which one leaked")
    steps = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    runners = {"canaries": _canaries, "corpus": _corpus, "preferences": _preferences, "train": _train, "audit": _audit}
    runners |= {"attribute": _attribute, "run": _run}
    for name, text in STEPS.items():
        step = steps.add_parser(name, help=text, description=f"{text}. A step that is done is not done again.")
        add_config_options(step)
        _own_options(name, step)
        step.set_defaults(run=runners[name])


def _own_options(name: str, step: argparse.ArgumentParser) -> None:
    if name == "canaries":
        step.add_argument("--text", type=given_path, metavar="FILE", help="also write the members' texts, one a line")
    if name == "preferences":
        step.add_argument("--no-canary", action="store_true", help="only the variant without canaries")
        step.add_argument("--with-canary", action="store_true", help="only the variant with canaries")
    if name in ("audit", "attribute", "run"):
        step.add_argument("--lenient", action="store_true", help="leave out missing stages instead of stopping")
    if name in ("audit", "run"):
        count = whole_number(0)
        step.add_argument("--exact-positions", type=count, default=0, help="last characters that exact exposure ranks")
        step.add_argument("--samples", type=count, default=0, help="sampled continuations a member (0: greedy)")
    if name == "audit":
        step.add_argument("--stages", help="base=SPEC,sft=SPEC,...: checkpoints trained elsewhere; needs --manifest")
        step.add_argument("--manifest", help="their canary manifest")
    if name == "run":
        step.add_argument("--seeds", default=None, metavar="0,1,2", help="several seeds, each in FOLDER/seed-N")


def _say(message: str) -> None:
    print(message, flush=True)


def _canaries(args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.data.manifest import write_canary_text
    from lm_audit.audits.privacy.data.prepare import MANIFEST, make_canaries

    config = _claimed(args)
    manifest = make_canaries(config, config.folder() / MANIFEST)
    if args.text:
        write_canary_text(manifest.members, args.text)
    _log(config, "canary_generation", {"canary_count": len(manifest.members), "controls": len(manifest.controls)})
    _say(f"{len(manifest.members)} members and {len(manifest.controls)} twins in {config.folder() / MANIFEST}")
    return 0


def _corpus(args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.data.prepare import CORPUS, MANIFEST, make_canaries, make_corpus

    config = _claimed(args)
    manifest = make_canaries(config, config.folder() / MANIFEST)
    _, corpus = make_corpus(config, manifest, config.folder())
    shares = {"share_unique": corpus.share_unique, "share_corpus": corpus.share_corpus, "share_rows": corpus.share_rows}
    # The trainers shuffle, so that positions in the file are not positions in training.
    _log(config, "data_preparation", {**shares, "rows": len(corpus.rows), "even": corpus.even, "shuffle": True})
    if corpus.level == "warn":
        _say(f"warning: {corpus.share_unique:.2%} of the corpus are canaries, above 0.8%")
    _say(f"{len(corpus.rows)} rows in {config.folder() / CORPUS}; unique canaries {corpus.share_unique:.3%}")
    return 0


def _preferences(args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.data.manifest import read_manifest
    from lm_audit.audits.privacy.data.prepare import MANIFEST, WITH, WITHOUT, make_preferences
    from lm_audit.errors import UsageError

    if args.no_canary and args.with_canary:
        raise UsageError("--no-canary and --with-canary exclude each other; give neither for both files")
    config = _claimed(args)
    folder = config.folder()
    wanted = {WITHOUT} if args.no_canary else {WITH} if args.with_canary else {WITHOUT, WITH}
    make_preferences(config, read_manifest(folder / MANIFEST), folder, wanted)
    _say(f"{', '.join(sorted(wanted))} in {folder}")
    return 0


def _train(args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    for stage, path in run_stages(_claimed(args), on_message=_say).items():
        _say(f"{stage}: {path}")
    return 0


def _audit(args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.data.prepare import MANIFEST
    from lm_audit.audits.privacy.stages.stage_option import manifest_path, parse_stages
    from lm_audit.errors import UsageError

    config = config_of(args)
    if args.stages is None and args.manifest is not None:
        raise UsageError("--manifest does nothing without --stages; name the checkpoints, or leave it out")
    if args.stages is not None:
        manifest = manifest_path(args.manifest)
        stages: dict[str, Any] = dict(parse_stages(args.stages))
        return _audited(config, stages, manifest, args)
    folder = config.folder()
    trained = {path.parent.name: path.parent for path in sorted(folder.glob("stages/*/stage.json"))}
    return _audited(config, trained, folder / MANIFEST, args)


def _audited(config: StagesConfig, stages: dict[str, Any], manifest: Path, args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.files.evidence_file import FILE, save_evidence
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions

    options = ScoringOptions(samples=args.samples, exact_positions=args.exact_positions, seed=config.seed)
    evidence = audit_stages(
        stages, manifest, device=config.device, options=options, lenient=args.lenient, on_message=_say
    )
    save_evidence(evidence, config.folder() / FILE)
    counts = {"canary_count": evidence.parameters["members"], "controls": evidence.parameters["controls"]}
    _log(config, "audit", {**counts, "seed": config.seed, "model_paths": {k: str(v) for k, v in stages.items()}})
    return _write(config, args)


def _attribute(args: argparse.Namespace) -> int:
    return _write(config_of(args), args)


def _write(config: StagesConfig, args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.attribution.transitions import attribute_leak
    from lm_audit.audits.privacy.files.evidence_file import FILE, load_evidence
    from lm_audit.audits.privacy.files.outputs import attribution_summary, write_outputs

    evidence = load_evidence(config.folder() / FILE)
    for path in write_outputs(evidence, config.folder(), lenient=args.lenient):
        _say(f"wrote {path}")
    for finding in attribution_summary(evidence, attribute_leak(evidence, lenient=args.lenient))["key_findings"]:
        _say(finding)
    return 0 if evidence.control is None or evidence.control.passed else 1


def _run(args: argparse.Namespace) -> int:
    if args.seeds is None:
        return _chain(_claimed(args), args)
    from lm_audit.audits.privacy.commands.options import for_seed, seed_list
    from lm_audit.audits.privacy.files.evidence_file import FILE, load_evidence, save_evidence
    from lm_audit.audits.privacy.stages.seeds import combine_seeds
    from lm_audit.audits.privacy.stages.stage_names import PRIMARY_TRANSITION

    config = config_of(args)
    configs = {seed: for_seed(config, seed) for seed in seed_list(args.seeds)}
    codes = [_chain(one, args) for one in configs.values()]
    evidences = {seed: load_evidence(one.folder() / FILE) for seed, one in configs.items()}
    combined = combine_seeds(evidences, f"privacy.{PRIMARY_TRANSITION}.did")
    save_evidence(combined, config.folder() / "seeds.json")
    for name, estimate in combined.metrics.items():
        _say(f"{name}: {estimate.value} [{estimate.low}, {estimate.high}] {estimate.note or ''}")
    return max(codes)


def _chain(config: StagesConfig, args: argparse.Namespace) -> int:
    from lm_audit.audits.privacy.data.prepare import MANIFEST
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    _say(f"seed {config.seed}: {config.folder()}")
    stages = run_stages(config, on_message=_say)
    return _audited(config, dict(stages), config.folder() / MANIFEST, args)


def _claimed(args: argparse.Namespace) -> StagesConfig:
    from lm_audit.audits.privacy.stages.four_stages import claim

    config = config_of(args)
    config.folder().mkdir(parents=True, exist_ok=True)
    claim(config, config.folder())
    return config


def _log(config: StagesConfig, kind: str, entry: dict[str, Any]) -> None:
    from lm_audit.audits.privacy.stages.four_stages import METADATA
    from lm_audit.audits.privacy.stages.run_metadata import append_metadata

    append_metadata(config.folder() / METADATA, kind, {"config_sha256": config.sha256, **entry})
