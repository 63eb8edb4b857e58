"""The tables of GPU builds: what each is and takes, and which one a card and its driver get."""

from rosetta import markdown
from rosetta.catalog import Catalog, Row
from rosetta.errors import Unavailable
from rosetta.records import Gpu
from rosetta.run import environments, machine
from rosetta.run.environments import Environment


def builds() -> str:
    """One line a build."""
    body = []
    for name in environments.names():
        for key, build in environments.load(name).recipe.builds.items():
            codes: dict[str, list[str]] = {}
            for module, held in build.code.items():
                codes.setdefault(", ".join(held), []).append(f"`{module}`")
            code = "; ".join(f"{', '.join(modules)}: {held}" for held, modules in codes.items())
            needs = f"driver {build.driver}" + (f", glibc {build.glibc}" if build.glibc else "")
            sizes = [f"{size:g} GB" for size in (build.disk_gb, build.download_gb)]
            body.append([f"`{name}={key}`", build.cuda, needs, code, *sizes, build.note or ""])
    headings = ["build", "CUDA", "needs at least", "code for compute capability", "disk", "download", "note"]
    return markdown.table(headings, body, [False, True, False, False, True, True, False])


def choices(catalog: Catalog) -> str:
    """Which build of each environment a card and its driver get: one line each."""
    used = {row.environment: environments.load(row.environment) for row in catalog.rows()}
    body = []
    for card in machine.card_facts().values():
        for gpu in card.gpus():
            found = [_choice(environment, catalog, gpu) for environment in used.values()]
            body.append([f"{card.name} ({card.capability})", gpu.driver.partition(".")[0], *found])
    headings = ["card", "driver", *(f"`{name}`" for name in used)]
    return markdown.table(headings, body, [False] * len(headings))


def _choice(environment: Environment, catalog: Catalog, gpu: Gpu) -> str:
    """The builds that the frameworks of an environment get; how many of them, where not all get one."""
    rows: dict[str, Row] = {row.framework: row for row in catalog.rows() if row.environment == environment.name}
    counts: dict[str, int] = {}
    for row in rows.values():
        try:
            build = environment.for_gpus(row.imports, [gpu]).build
        except Unavailable:
            continue
        counts[build] = counts.get(build, 0) + 1
    whole = sum(counts.values()) == len(rows)
    return "; ".join(name if whole else f"{name} ({count} of {len(rows)})" for name, count in counts.items()) or "-"
