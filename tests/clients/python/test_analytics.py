"""Analytics by the client of the product whose interface this is: every graph, group and summary that it can ask for."""

import asyncio
import datetime
import inspect
import json
import time
import uuid

import pytest
from portkey_ai import AsyncPortkey, Portkey

from conftest import ADMIN_KEY, BASE_URL, WORKSPACE_KEY, ask, control_plane

# Points of these are values, not times.
WITHOUT_TIMES = {"errors_status_codes", "feedbacks_scores", "feedbacks_ai_models"}
GROUPS = ["ai_service", "model", "status_code", "api_key", "config", "workspace", "provider", "prompt"]
COLUMNS = (
    "cost,total_tokens,avg_tokens,avg_input_tokens,avg_output_tokens,avg_latency,p95_latency,p99_latency,success_rate,"
    "error_count,cache_hit_rate,last_seen,first_seen"
)


def calls(resource):
    """The names of all calls that a part of the client has."""
    return [name for name, one in inspect.getmembers(resource, callable) if not name.startswith("_")]


def period():
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    return {"time_of_generation_min": (now - day).isoformat(), "time_of_generation_max": (now + day).isoformat()}


@pytest.fixture(scope="module")
def analytics():
    return Portkey(base_url=BASE_URL, api_key=WORKSPACE_KEY).analytics


@pytest.fixture
def person(client, analytics):
    """Somebody whose two calls, one of which failed, are counted; and what was thought of them."""
    name = f"person-{uuid.uuid4().hex[:8]}"
    trace = f"trace-{name}"
    said = {"x-gateway-metadata": json.dumps({"_user": name, "team": "search"}), "x-gateway-trace-id": trace}
    client.chat.completions.create(**ask(), extra_headers=said)
    with pytest.raises(Exception):
        client.chat.completions.create(**ask(status=500), extra_headers=said)
    status, answer = control_plane("POST", "/feedback", WORKSPACE_KEY, {"trace_id": trace, "value": 5})
    assert status == 200, answer
    end = time.monotonic() + 30
    while analytics.graphs.requests(**period(), metadata=json.dumps({"_user": name})).summary["total"] < 2:
        assert time.monotonic() < end, "waited in vain for the logs"
        time.sleep(0.1)
    return name


def is_graph(graph, name):
    assert graph.object == "analytics-graph", graph
    assert isinstance(graph.summary, dict) and isinstance(graph.data_points, list), graph
    has_times = all("timestamp" in point for point in graph.data_points)
    assert has_times or name in WITHOUT_TIMES, graph


def test_every_graph_is_drawn(analytics, person):
    assert len(calls(analytics.graphs)) == 17, calls(analytics.graphs)
    for name in calls(analytics.graphs):
        is_graph(getattr(analytics.graphs, name)(**period()), name)
    only = period() | {"metadata": json.dumps({"_user": person})}
    assert analytics.graphs.requests(**only).summary == {"total": 2}
    assert analytics.graphs.errors(**only).summary == {"total": 1}
    assert analytics.graphs.errors_status_codes(**only).data_points == [{"status_code": 500, "count": 1}]
    assert analytics.graphs.users(**only).summary == {"total": 1}
    assert analytics.graphs.feedbacks(**only).summary == {"total": 1}
    assert analytics.graphs.latency(**only).summary["p99"] > 0


def test_every_filter_of_the_client_is_taken(analytics, person):
    _, me = control_plane("GET", "/api-keys/self", WORKSPACE_KEY)
    filters = {
        "total_units_min": 0, "total_units_max": 10**9, "cost_min": 0.0, "cost_max": 10.5, "status_code": "200,500",
        "virtual_keys": "openai-main", "configs": "pc-main", "workspace_slug": me["workspace_id"], "api_key_ids": me["id"],
        "ai_org_model": "openai__gpt-4o-mini", "prompt_slug": "pp-main", "metadata": json.dumps({"_user": person}),
        "cache_status": "HIT,DISABLED",
    }
    for name, value in filters.items():
        is_graph(analytics.graphs.cost(**period(), **{name: value}), "cost")
    is_graph(analytics.graphs.cost(**period(), **filters), "cost")


def test_every_group_is_listed(analytics, person):
    for name in ["users", "ai_models", "workspaces"]:
        groups = getattr(analytics.groups, name)(**period(), current_page=0, page_size=5, order_by_type="desc")
        assert groups.object == "list" and groups.total >= 1, groups
        assert all(group["object"] == "analytics-group" for group in groups.data), groups
    mine = analytics.groups.users(**period(), metadata=json.dumps({"_user": person})).data
    assert [(one["user"], one["requests"]) for one in mine] == [(person, "2")]
    teams = analytics.groups.metadata(**period(), metadata_key="team", metadata=json.dumps({"_user": person})).data
    assert [(one["metadata_value"], one["requests"], one["requests_with_feedback"]) for one in teams] == [("search", 2, 2)]
    for group_by in GROUPS:
        groups = analytics.groups.group_by(
            group_by=group_by, **period(), columns=COLUMNS, include_total=True, order_by="cost", page_size=3,
        )
        assert groups.total >= 1 and set(COLUMNS.split(",")) <= set(groups.data[0]), groups
        assert groups.totals["requests"] >= 2, groups
        alone = analytics.groups.group_by(group_by=group_by, **period())
        assert alone.data[0]["requests"] >= 1 and not hasattr(alone, "totals"), alone


def test_the_cache_is_summed_up(analytics, person):
    summary = analytics.summary.cache(**period())
    assert summary.object == "analytics-summary"
    assert summary.summary["total_requests"] >= 2 and {"hits", "avg_latency", "cache_speedup"} <= set(summary.summary)


def test_the_asynchronous_client_asks_the_same(person):
    async def asked():
        analytics = AsyncPortkey(base_url=BASE_URL, api_key=WORKSPACE_KEY).analytics
        for name in calls(analytics.graphs):
            is_graph(await getattr(analytics.graphs, name)(**period()), name)
        groups = await analytics.groups.group_by(group_by="model", **period(), columns="cost", include_total=True)
        assert groups.totals["cost"] >= 0
        assert (await analytics.groups.users(**period())).total >= 1
        assert (await analytics.summary.cache(**period())).object == "analytics-summary"

    asyncio.run(asked())


def test_an_admin_key_asks_for_workspaces_by_name(person):
    analytics = Portkey(base_url=BASE_URL, api_key=ADMIN_KEY).analytics
    everywhere = analytics.graphs.requests(**period(), workspace_slug="*")
    assert everywhere.summary["total"] >= 2
    assert analytics.groups.workspaces(**period(), workspace_slug="*").data[0]["workspace_name"]
