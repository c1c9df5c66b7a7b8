.PHONY: demo test setup lint bench clean
PY := .venv/bin/python
PYTHON ?= python3

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip
	.venv/bin/python -m pip install --quiet --constraint constraints.txt torch
	.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	.venv/bin/nograd demo

test: setup
	.venv/bin/ruff check src tests
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -m pytest

bench: setup
	.venv/bin/nograd bench

clean:
	rm -rf .venv build dist src/*.egg-info
