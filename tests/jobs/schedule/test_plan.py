"""Plans as TOML: what is read, and what is refused, all problems at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.schedule.plan import chosen, read_plan
from hms_cache.jobs.schedule.targets import targets_of

PLAN = """
name = "nightly"
metastore = "thrift://m:9083"
lease_wait = "10 min"
conf = {"spark.driver.memory" = "2g"}

[[job]]
job = "repair"
time_limit = "1 h"
options = {tables = ["sales.*"], database = "mysql://hive:${PASSWORD}@db/hms", threads = 4}

[[job]]
name = "sales statistics"
job = "statistics"
needs = ["repair"]
lease = false
master = "local[2]"
conf = {"spark.ui.enabled" = "false"}
options = {all = true}

[[job]]
job = "history"
options = {database = "mysql://db/hms", output = "/history"}

[[job]]
job = "verify"
options = {database = "mysql://db/hms", recheck_wait_s = 1}
"""


def read(path: Path, text: str) -> object:
    path.write_text(text)
    return read_plan(path, {"PASSWORD": "p/w"})


def test_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    plan = read_plan(path, {"PASSWORD": "p/w"})
    repair, statistics, history, verify = plan.steps
    assert (plan.name, [step.name for step in plan.steps]) == (
        "nightly",
        ["repair", "sales statistics", "history", "verify"],
    )
    assert repair.options == {
        "metastore": "thrift://m:9083",
        "tables": ("sales.*",),
        "database": "mysql://hive:p/w@db/hms",
        "threads": 4,
    }
    assert (repair.time_limit_s, repair.lease_wait_s, repair.lease, repair.needs) == (3_600, 600, True, ())
    assert (statistics.needs, statistics.lease, statistics.master) == (("repair",), False, "local[2]")
    assert statistics.conf == {"spark.driver.memory": "2g", "spark.ui.enabled": "false"}
    assert history.options == {"database": "mysql://db/hms", "output": "/history"}
    assert verify.options["server"] == ("thrift://m:9083",)
    assert [step.name for step in chosen(plan, ["sales statistics"]).steps] == ["sales statistics"]
    assert chosen(plan, ["sales statistics"]).steps[0].needs == ()
    with pytest.raises(ConfigurationError, match="has no nothing"):
        chosen(plan, ["nothing"])


WRONG = {
    'jobs = 1\n[[job]]\njob = "repair"\noptions = {metastore = "m"}': ["no such key: jobs"],
    "": ["has no [[job]]"],
    "[[job]\n": ["cannot be read"],
    '[[job]]\njob = "repiar"': ["'repiar' is not one of"],
    '[[job]]\njob = "repair"': ["repair needs the option metastore"],
    'metastore = "m"\n[[job]]\njob = "repair"\n[[job]]\njob = "repair"': ["the name repair is taken"],
    'metastore = "m"\n[[job]]\njob = "repair"\nneeds = ["verify"]': ["needs verify, which is not an earlier job"],
    'metastore = "m"\n[[job]]\njob = "repair"\ntime_limit = "soon"\ncolour = 1\n'
    'options = {mode = "all", threads = 0, discover = "yes", tables = "a.b", what = 1, state = 1}': [
        "no such key: colour",
        "time_limit: 'soon'",
        "mode = 'all': it must be one of add, drop, sync",
        "threads = 0: it must be at least 1",
        "discover = 'yes': it must be of type bool",
        "tables = 'a.b': it must be a list",
        "repair has no option what",
        "state = 1: it must be of type str",
    ],
    'metastore = "${NOWHERE}"\n[[job]]\njob = "repair"': ["the environment has no NOWHERE"],
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_all_at_once(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path / "plan.toml", text)
    for problem in WRONG[text]:
        assert problem in str(error.value)


def test_the_examples_of_the_documentation_can_be_used(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    on_s3, plan = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "plan.toml"
    path.write_text(on_s3)
    assert [step.job.name for step in read_plan(path, {}).steps] == ["statistics"]
    path.write_text(plan)
    assert [step.job.name for step in read_plan(path, {"HIVE_PASSWORD": "x"}).steps] == [
        "repair",
        "statistics",
        "verify",
    ]
    [resource] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [container] = yaml.safe_load(resource)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][:4] == ["hms-cache", "jobs", "run", "--plan"]


def test_one_output_has_one_lease(tmp_path: Path) -> None:
    """The jobs treat a directory with and without a slash at its end as the same."""
    texts = (f'[[job]]\njob = "history"\noptions = {{database = "d", output = "{one}"}}\n' for one in ("/h", "/h/"))
    targets = []
    for text in texts:
        (tmp_path / "plan.toml").write_text(text)
        targets += targets_of(read_plan(tmp_path / "plan.toml").steps[0])
    assert targets == [("output /h", None)] * 2
