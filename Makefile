.PHONY: help demo test setup lint bench docs clean
PY := .venv/bin/python
PYTHON ?= python3

help:
	@echo "make demo   set everything up, tune the embedded model's agent, show before and after"
	@echo "make test   set everything up, run linters, type checker and tests"
	@echo "make lint   the same without the tests"
	@echo "make bench  measure speed and memory; fails if a ratio does not reach what it must"
	@echo "make docs   build the documentation into site/"
	@echo "make clean  remove .venv and build outputs"

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet --constraint constraints.txt torch
	$(PY) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	.venv/bin/nograd demo

test: lint
	.venv/bin/nograd fetch
	$(PY) -m pytest

lint: setup
	.venv/bin/ruff check src tests examples
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: setup
	.venv/bin/nograd bench --check

docs: setup
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

clean:
	rm -rf .venv build dist site src/*.egg-info
