"""The report as a page: its sections in order, and the template that lays them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import nograd
from nograd.report.canvas import Figure
from nograd.report.gather import Study
from nograd.report.paper_figures import paper_figures
from nograd.report.paper_tables import paper_tables
from nograd.report.record_tables import environment_table, ledger_table, sweeps_table
from nograd.report.starvation import regressions
from nograd.report.study_figures import credit_and_allocation, learning_curves, movement, starvation
from nograd.report.study_tables import (
    contrast_table,
    further_table,
    missing_table,
    movement_table,
    pooled_table,
    regression_table,
)
from nograd.report.table import Table


@dataclass(frozen=True, eq=False)
class Section:
    """anchor: its name in links. lead: sentences below the heading."""

    anchor: str
    title: str
    lead: str
    blocks: tuple[Table | Figure, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Table))

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Figure))


def sections(studies: Sequence[Study]) -> tuple[Section, ...]:
    """One section per plan, then the paper's forms, the ledger, and the record of the sweeps."""
    record = (sweeps_table(studies), environment_table(studies))
    return (
        *(_study_section(study) for study in studies),
        *_paper_section(studies),
        Section("ledger", "Ledger", "", (ledger_table(studies),)),
        Section("missing", "What is missing", _missing_lead(studies), (missing_table(studies),)),
        Section("record", "Sweeps and environment", "", record),
    )


def render(studies: Sequence[Study], content: Sequence[Section], drawn: Mapping[str, str]) -> str:
    """The whole page. drawn: panel → its <svg> element."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("nograd.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        title=", ".join(study.file.name for study in studies),
        sections=content,
        drawn={name: Markup(svg) for name, svg in drawn.items()},
        version=nograd.__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _study_section(study: Study) -> Section:
    fits = regressions(study)
    blocks = (
        contrast_table(study, "auc" if study.plan.replay is None else "final_success"),
        pooled_table(study),
        learning_curves(study),
        further_table(study),
        starvation(study, fits),
        regression_table(study, fits),
        credit_and_allocation(study),
        movement(study),
        movement_table(study),
    )
    return Section(
        f"plan-{study.slug}",
        f"{study.file.name}: {study.plan.title}",
        _study_lead(study),
        tuple(block for block in blocks if block is not None),
    )


def _study_lead(study: Study) -> str:
    done = sum(len(seeds) for seeds in study.results.measured.values())
    planned = done + len(study.results.unfinished)
    paper = f"Paper: {study.plan.paper}. " if study.plan.paper else ""
    state = (
        "" if done == planned else " Numbers are about the complete runs only; the others are listed below."
    )
    return f"{paper}{_notes(study)}{done} of {planned} runs complete.{state}".strip()


def _notes(study: Study) -> str:
    """The plan's notes on one line; they quote names as Markdown does."""
    notes = " ".join(study.plan.notes.replace("`", "").split())
    return f"{notes} " if notes else ""


def _paper_section(studies: Sequence[Study]) -> tuple[Section, ...]:
    tables, figures = paper_tables(studies), paper_figures(studies)
    if not tables and not figures:
        return ()
    lead = (
        "The paper's own figures and tables, as far as these sweeps hold their arms, with its published "
        "numbers beside. They compare only where the sweep ran the plan as it is: the record below says how "
        "it was scaled."
    )
    return (Section("paper", "In the paper's form", lead, (*figures, *tables)),)


def _missing_lead(studies: Sequence[Study]) -> str:
    count = sum(len(study.results.unfinished) for study in studies)
    return f"{count} planned runs have no complete result; resume their sweep to get them." if count else ""
