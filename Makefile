# Everything a person or CI runs. `make` alone lists it.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

# The first interpreter on the path that is new enough; set PYTHON to use another one.
PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$candidate; break; }; \
	done)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup run test check tools docs site bench soak mutants fuzz coverage clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the topics command and the tools, unless it is up to date
	@:

run: setup ## Serve http://127.0.0.1:4000 from ./data
	@$(BIN)/topics serve

# Three at a time on two cores: whoever waits for Spark, a browser or a process that starts leaves its core to others.
test: check tools ## Lint, types, import contracts and all tests
	@echo "tests"
	@$(BIN)/python -m pytest -q -n 3 --dist loadgroup

check: setup ## Lint, types, import contracts and dependencies only
	@echo "lint"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { $(BIN)/ruff format --check .; exit 1; }
	@echo "types"
	@$(BIN)/mypy --no-error-summary
	@echo "import contracts"
	@$(BIN)/lint-imports > $(VENV)/contracts.log 2>&1 || { cat $(VENV)/contracts.log; exit 1; }
	@echo "dependencies"
	@$(BIN)/python -m proof.audit

# The documents' tours run with curl, web pages in chromium, Spark on Java, changes of tables on PostgreSQL. A machine without them gets them if we may install
# them, and leaves those tests out if not.
INSTALL := test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install --yes
tools:
	@command -v curl > /dev/null \
		|| { $(INSTALL) curl > /dev/null; } \
		|| echo "no curl, so the documents are not tried out (Debian: apt install curl)"
	@command -v chromium > /dev/null \
		|| { $(INSTALL) chromium > /dev/null; } \
		|| echo "no chromium, so web pages are not tried in a browser (Debian: apt install chromium)"
	@command -v java > /dev/null \
		|| { $(INSTALL) openjdk-17-jre-headless > /dev/null; } \
		|| echo "no java, so nothing is tried with Spark (Debian: apt install openjdk-17-jre-headless)"
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 \
		|| { $(INSTALL) postgresql > /dev/null; } \
		|| echo "no PostgreSQL, so capturing its changes is not tried (Debian: apt install postgresql)"

# A disk that loses power is a file system in user space; a preloaded library in C sets the clock of a server.
.PHONY: soak-tools
soak-tools: tools
	@command -v fusermount3 > /dev/null && command -v gcc > /dev/null \
		|| { $(INSTALL) fuse3 gcc libc6-dev > /dev/null; } \
		|| echo "fuse3 or gcc is missing; power losses are not tried (Debian: apt install fuse3 gcc libc6-dev)"

docs: setup ## Write the generated documents again
	@$(BIN)/topics settings --markdown > docs/SETTINGS.md
	@$(BIN)/topics help --markdown > docs/CLI.md
	@$(BIN)/python -m reference http > docs/HTTP.md
	@$(BIN)/python -m reference sdk > docs/SDK.md
	@$(BIN)/python -m reference proto > .venv/descriptors.py && mv .venv/descriptors.py topics/proto/descriptors.py

# The variable silences a notice about the future of the theme.
site: setup ## Build the documents as a site: site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup ## Measure speed
	@$(BIN)/python -m bench

# ONLY names a part, MINUTES how long those go on that have no end of their own.
soak: setup soak-tools ## Hours of load, crashes and random search; goes on where it was
	@$(BIN)/python -m proof soak $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

mutants: setup ## Break the code in many ways and see that a test fails each time
	@$(BIN)/python -m proof mutants $(if $(ONLY),--only $(ONLY))

# ONLY names a decoder, MINUTES when to stop; the next run goes on from there.
fuzz: setup ## Give every decoder ten million inputs that nobody would send
	@$(BIN)/python -m proof fuzz $(ONLY) $(if $(MINUTES),--minutes $(MINUTES))

# TESTS names some of them, to be measured alone.
coverage: setup ## Run the tests and see which lines and branches they reach
	@$(BIN)/python -m proof coverage $(TESTS)

clean: ## Remove .venv, the site and every cache
	@rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis topics.egg-info

# An environment whose interpreter has gone is made again from the start.
ifneq ($(shell test -x $(BIN)/python && echo usable),usable)
.PHONY: $(STAMP)
endif

# setuptools comes first, from the constraints, so that building the package downloads nothing unpinned.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(PIP) install --constraint constraints.txt setuptools
	@PYTHONWARNINGS=ignore $(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

# Debian without python3-venv has no ensurepip; the system's own pip can then put one into a bare environment.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "topics needs Python 3.11 or newer on the path; or say: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV) > /dev/null 2>&1 \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) \
			&& $(PYTHON) -m pip --quiet --disable-pip-version-check --python $(BIN)/python install pip; } \
		|| { rm -rf $(VENV); echo "cannot make $(VENV): install pip or venv for $(PYTHON) (Debian: apt install python3-venv)" >&2; exit 1; }
