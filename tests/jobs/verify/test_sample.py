"""A part of the catalog in each run: the parts are disjoint, and complete together."""

from __future__ import annotations

import pytest

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.options import SliceSize
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.verify.comparison import Recheck
from hms_cache.jobs.verify.objects import Unit
from hms_cache.jobs.verify.source import HmsDifferencesReader, Sample
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog


def test_the_parts_of_all_turns_are_everything(start_server: ServerStarter) -> None:
    server = start_server("sqlite")
    catalog = Catalog(server.uri)
    catalog.database("d")
    for number in range(20):
        catalog.table("d", f"t{number}")
    catalog.table("d", "large", keys=["p"])
    catalog.partitions("d", "large", [[str(number)] for number in range(40)])
    catalog.table("d", "small", keys=["p"])
    catalog.partitions("d", "small", [["1"]])
    catalog.close()

    def planned(rate: float, turn: int) -> list[tuple[str, ...]]:
        """Each table, and each part of a table's partitions, that is compared."""
        reader = HmsDifferencesReader(
            [server.uri],
            server.database_url,
            TableScope(("d.*",)),
            Recheck(1, 0),
            Sample.of_rate(rate, turn),
            slice_size=SliceSize(100, 4),
        )
        units = [unit for unit in reader.partitions() if isinstance(unit, Unit)]
        tables = [(name,) for unit in units for name in unit.tables]
        return tables + [(one.table.table, str(one.ids)) for unit in units for one in unit.ranges]

    everything = planned(1.0, 7)
    assert len(everything) == 22 + 10 + 1
    turns = [planned(0.25, turn) for turn in range(100, 104)]
    assert sorted(one for part in turns for one in part) == sorted(everything)
    assert max(map(len, turns)) < len(everything) * 0.6
    assert planned(0.25, 104) == turns[0]
    for part in turns:
        assert (("small",) in part) == (("small", "None") in part)


@pytest.mark.parametrize(("rate", "parts"), [(1.0, 1), (0.5, 2), (0.1, 10), (0.3, 4), (0.001, 1_000)])
def test_a_rate_is_a_number_of_parts(rate: float, parts: int) -> None:
    assert Sample.of_rate(rate, 0).parts == parts


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.1])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(ConfigurationError, match="sample"):
        Sample.of_rate(rate, 0)
