# The commands of this project. Everything is installed into .venv/ of this checkout; `make` alone lists them.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
# Four processes on two cores, as tests often wait for servers; each has database servers of its own. A file's tests
# stay together, so that what they share is made once.
PYTEST_ARGS ?= -n 4 --dist loadfile --no-loadscope-reorder
# What `make soak` runs: "long" is all of them, minutes to an hour; "short" those of a minute that need no Java, few with
# Spark. Of these each has its name in what is printed: a run that is ended from outside shows which one did not end.
SOAK        ?= long
SOAKS_long  := soak
SOAKS_short := soak and not long and not java and (short or not spark)
SOAK_ARGS_short := --timeout=600 -vv -n 3 --dist loadfile --no-loadscope-reorder
SOAK_ARGS   ?=
BENCH       ?= compare
COVERED     ?=
# "test-packages" where packages of the system are installed meanwhile: what needs them waits.
SYSTEM      ?=
# "collected" where all tests run: their modules are compiled first.
COLLECTED   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test pytest oldest coverage lint style generated soak bench docs generate clean test-packages collected

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(VENV)/bin/python:
	tools/install_packages.sh venv
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp for each set of packages: made again when the dependencies change.
$(VENV)/.installed-demo: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

$(VENV)/.installed-kerberos: $(VENV)/.installed-test | $(SYSTEM)
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[kerberos]' \
	  || echo "gssapi was not installed (it is compiled with libkrb5-dev): tests of Kerberos are skipped"
	@touch $@

# In a fresh checkout each process of the tests would compile all modules, at the same time as the others. One does it
# while packages are installed.
collected: $(VENV)/.installed-test
	@[ -d tests/__pycache__ ] || $(BIN)/pytest -m "not soak" --collect-only >/dev/null 2>&1 || true  # an error is shown by the run

test-packages:
	tools/install_packages.sh test

demo: $(VENV)/.installed-demo  ## start a metastore, let a PySpark session work through it, show what it did
	$(BIN)/hms-cache demo

lint: style generated  ## format, lint, types, generated code

style: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

generated: $(VENV)/.installed-test | $(SYSTEM)
	$(BIN)/python tools/generate_thrift.py --check

# The system's packages are installed beside Python's, and types are checked beside both and the tests: each of them alone
# would leave a core idle.
test: $(VENV)/bin/python  ## everything but the soaks; installs what the tests need (databases: from Debian, when root)
	$(MAKE) --no-print-directory -j 3 SYSTEM=test-packages COLLECTED=collected style pytest generated

pytest: $(VENV)/.installed-kerberos | $(COLLECTED)
	$(BIN)/pytest -m "not soak" $(PYTEST_ARGS)

# A whole `make test` runs on the newest releases; these tests, of what a server does itself, on the oldest.
OLDEST ?= tests/expressions tests/metrics tests/config tests/admin tests/notifications tests/store/contract tests/server/test_bearer_tokens.py
oldest: test-packages  ## tests with the oldest dependencies that pyproject.toml allows, in .venv-oldest; OLDEST=PATHS for others
	[ -x .venv-oldest/bin/python ] || $(PYTHON) -m venv .venv-oldest
	$(PYTHON) tools/oldest_dependencies.py > .venv-oldest/constraints.txt
	PYTHONWARNINGS=ignore .venv-oldest/bin/python -m pip install --quiet --constraint .venv-oldest/constraints.txt \
	  --editable '.[postgresql,tls,ldap,jwt]' pytest pytest-timeout pytest-xdist pytest-randomly hypothesis trustme hmsclient PyYAML
	.venv-oldest/bin/python -m pytest -m "not soak and not java and not spark" $(PYTEST_ARGS) $(OLDEST)

coverage: test-packages $(VENV)/.installed-kerberos  ## make test, and which lines and branches it reaches; COVERED=PATHS for some
	$(BIN)/pytest -m "not soak" $(PYTEST_ARGS) --cov --cov-report=term $(COVERED)

soak: test-packages $(VENV)/.installed-kerberos  ## the long tests: SOAK=long (default) or SOAK=short
	$(if $(filter long,$(SOAK)),tools/install_packages.sh browser)
	$(BIN)/pytest -m "$(SOAKS_$(SOAK))" --timeout=7200 $(SOAK_ARGS_$(SOAK)) $(SOAK_ARGS)

bench: test-packages $(VENV)/.installed-kerberos  ## measure ours beside Hive's own metastore; BENCH="measure --help" for more
	$(BIN)/python -m benchmarks $(BENCH)

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

docs: $(VENV)/.installed-docs  ## build the documents as a site in site/, and check their links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

generate: $(VENV)/.installed-test  ## write what is generated: thrift_gen/, docs/configuration.md, docs/metrics.md, conf/hms-cache.toml
	$(BIN)/python tools/generate_thrift.py
	$(BIN)/python -m hms_cache.config.reference
	$(BIN)/python -m hms_cache.metrics.reference

clean:  ## remove .venv and what tools leave behind
	rm -rf $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
