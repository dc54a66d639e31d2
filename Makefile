# Needs Python 3.11 or newer and make; everything else goes into .venv.
# The stamp files .venv/.uv, .venv/.app, .venv/.dev and .venv/.browser say what is set up already.

PYTHON  ?= python3
PORT    ?= 8501
ADDRESS ?= localhost
ARGS    ?=
# Where there is a screen, make app opens the browser too.
HEADLESS ?= $(if $(or $(DISPLAY),$(WAYLAND_DISPLAY),$(filter Darwin,$(shell uname))),false,true)
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := -m pip --disable-pip-version-check install --quiet
# uv installs in seconds what takes pip a minute. It does not read pip's configuration, so where it
# reaches no package index pip is asked: $(call install,ENVIRONMENT,WHAT).
install  = $(BIN)/python -m uv pip install --quiet --python $(1)/bin/python $(2) \
	|| { echo "uv could not install this, so pip does"; $(1)/bin/python $(PIP) $(2); }

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help peers app other test test-core test-browser flower deployment lint format bench shots wander soak hostile posters thumbnails docs package browser clean distclean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

app: $(VENV)/.app ## Open the dashboard on http://localhost:8501 (PORT=8600 for another port)
	$(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS) --server.headless $(HEADLESS)

test: test-core test-browser ## Run all tests (ARGS="-k faps" for some)

# A pytest that finds no test ends with 5, as one of the two does for most ARGS.
test-core: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --ignore tests/browser --ignore tests/engines $(ARGS) || [ $$? -eq 5 ]

test-browser: $(VENV)/.dev $(VENV)/.browser
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/browser $(ARGS) || [ $$? -eq 5 ]

peers: $(VENV)/.app requirements-peers.txt ## Compare with what people would pick instead (diffprivlib, OpenDP), in .venv-peers
	$(PYTHON) -m venv --clear .venv-peers
	.venv-peers/bin/python $(PIP) -r requirements-peers.txt
	$(BIN)/python -m bench peers --python .venv-peers/bin/python $(ARGS)

# Three at once on two cores: these tests mostly wait for processes of their own.
flower: $(VENV)-flower/.done ## Run the tests of the Flower app, in an environment of its own (.venv-flower)
	OPENBLAS_NUM_THREADS=1 $(VENV)-flower/bin/python -m pytest tests/engines -n 3 --dist loadfile $(ARGS)

deployment: $(VENV)-flower/.done ## Three hospitals as processes, with TLS, keys and a signed app: kills, a liar, a stop (minutes to an hour)
	FEDPCA_DEPLOYMENT=1 OPENBLAS_NUM_THREADS=1 $(VENV)-flower/bin/python -m pytest -v tests/engines/test_deployment.py $(ARGS)

# Rows of the table in SECURITY.md, with things that no earlier run has tried.
SEED ?= $(shell date +%s)
hostile: $(VENV)/.dev $(VENV)-flower/.done ## Hostile files, settings, uploads, nodes and code, drawn anew (SEED=7 for the same again)
	@echo "SEED=$(SEED)"
	FEDPCA_SEED=$(SEED) $(BIN)/python -m pytest -q tests/test_trace_file.py tests/test_command_lines.py tests/dashboard/test_fuzz.py tests/questions/test_own_tables.py
	FEDPCA_SEED=$(SEED) $(VENV)-flower/bin/python -m pytest -q tests/engines/test_lying_clients.py tests/engines/test_columns.py tests/engines/test_break_in.py

lint: $(VENV)/.dev ## Check style, formatting and types
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: $(VENV)/.dev ## Put the code into the house style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(VENV)/.app ## Time the core (ARGS=rounds for bench/bench_rounds.py alone)
	$(BIN)/python -m bench $(ARGS)

shots: $(VENV)/.dev $(VENV)/.browser ## Screenshots of every page, light and dark, wide and narrow, into shots/ (ARGS=story for the front page)
	$(BIN)/python -m scripts.shots $(ARGS)

wander: $(VENV)/.dev $(VENV)/.browser ## Visitors who do anything anywhere, in a browser, and what goes wrong then (ARGS="--visits 100")
	$(BIN)/python -m scripts.wander $(ARGS)

soak: $(VENV)/.dev ## An hour of visitors, hostile links, files and killed workers together (ARGS="--seconds 600", or --report docs/soak.txt)
	$(BIN)/python -m scripts.soak $(ARGS)

posters: $(VENV)/.app ## Every preset and story step as one HTML file that plays offline, and a gallery, into posters/
	$(BIN)/python -m scripts.posters $(ARGS)

thumbnails: $(VENV)/.dev ## Draw the front page's thumbnails from the results anew (ARGS=replay for one)
	$(BIN)/python -m scripts.thumbnails $(ARGS)

docs: $(VENV)/.dev ## The guides and the API reference as a site, into site/, which the dashboard serves under /docs/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

package: $(VENV)/.dev ## Wheel and source archive into dist/, checked
	rm -rf dist build
	$(BIN)/python -m build --quiet --no-isolation
	$(BIN)/python -m twine check --strict dist/*

browser: $(VENV)/.dev ## Look for a Chromium for the browser tests, and install one if there is none
	$(BIN)/python -m scripts.browser

clean: ## Remove caches, builds, screenshots and posters
	rm -rf shots posters site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +

distclean: clean ## Remove the virtual environment as well
	rm -rf $(VENV) $(VENV)-flower .venv-other .venv-peers

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), which is too old. Install Python 3.11 or newer, or name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: its modules venv and ensurepip are missing. On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.uv: $(BIN)/python
	$(BIN)/python $(PIP) $$(grep ^uv= requirements-dev.txt) || echo "There is no uv for this machine"
	@touch $@

$(VENV)/.app: requirements.txt $(VENV)/.uv
	@echo "Installing what the dashboard needs into $(VENV) (a minute or two, once)"
	@$(call install,$(VENV),-r requirements.txt)
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	@echo "Installing what the tests need into $(VENV)"
	@$(call install,$(VENV),-r requirements-dev.txt)
	@touch $@

$(VENV)-flower/.done: requirements-flower.txt $(VENV)/.uv
	@echo "Installing Flower into $(VENV)-flower (a minute or two, once)"
	$(PYTHON) -m venv --clear $(VENV)-flower
	@$(call install,$(VENV)-flower,-r requirements-flower.txt pytest pytest-xdist)
	@touch $@

$(VENV)/.browser: scripts/browser.py $(VENV)/.dev
	$(BIN)/python -m scripts.browser
	@touch $@

# The core's own tests with another Python, installed by plain pip: make other OTHER=python3.13
OTHER ?= python3.13
CORE  := algorithms anomaly attacks consensus metrics privacy problems test_estimator.py test_own_messages.py test_trial.py test_simulate.py
other: ## Run the core's tests with another Python (OTHER=python3.13), in .venv-other
	$(OTHER) -m venv --clear .venv-other
	.venv-other/bin/python $(PIP) -r requirements.txt pytest pytest-xdist hypothesis
	.venv-other/bin/python -m pytest -n auto --dist loadfile -m "not data" $(addprefix tests/,$(CORE)) $(ARGS)
