"""Real coding agents, each against models of several vendors: what they do through the gateway, and what is logged of it.

    gateway-dev stack -- tests/agents/run                     (all, and the table of docs/agents.md must say the same)
    gateway-dev stack -- tests/agents/run claude/anthropic    (some)
    gateway-dev stack -- tests/agents/run --write             (writes the table)
"""

import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import AGENTS
from gateway import BASE_URL, administer, logs, new_key, script, store, until, unused
from home import Home

PAGE = Path(__file__).resolve().parents[2] / "docs/agents.md"
BEGIN, END = "<!-- written by make test-agents -->\n", "<!-- end -->\n"

# What stands behind the gateway: its kind, the model that is asked for, and how people call it.
KINDS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5", "Anthropic"),
    "openai": ("openai", "gpt-5.4-mini", "OpenAI"),
    "google": ("google", "gemini-2.5-flash", "Gemini"),
    "mistral": ("mistral-ai", "mistral-large-latest", "Mistral"),
}
PAIRS = [
    *(("claude", kind) for kind in KINDS),
    *(("codex", kind) for kind in KINDS),
    *(("gemini", kind) for kind in ("google", "openai", "anthropic")),
    *(("qwen", kind) for kind in ("openai", "anthropic")),
    *(("opencode", kind) for kind in ("openai", "anthropic")),
    *(("aider", kind) for kind in ("openai", "anthropic")),
]


class Turn:
    """A prompt with a word of its own, by which the mock knows the requests that it leads to."""

    def __init__(self, agent, task):
        self.word = f"task{uuid.uuid4().hex[:12]}"
        self.done = f"done{uuid.uuid4().hex[:12]}"
        self.prompt = f"{task} The word of this task is {self.word}."
        self.offered = [f'"{agent.shell}"'] if agent.shell else []

    def main(self, *texts, **fault):
        """For a request of the turn itself: side questions, as for a title, offer no tools."""
        return {"contains": [self.word, *self.offered, *texts]} | fault

    def says_done(self, *texts):
        return self.main(*texts, reply=self.done, times=20)


def answers(agent, _):
    turn = Turn(agent, "Say hello.")
    return turn, [turn.says_done()], None


def runs_a_command(agent, _):
    if not agent.shell:
        return None
    turn = Turn(agent, "Compute something by a command.")
    # What it prints does not stand in the command, so that whoever knows it has run it.
    number = uuid.uuid4().hex
    call = {"name": agent.shell, "arguments": agent.shell_arguments(f"printf %s%s printed {number}")}
    return turn, [turn.says_done(f"printed{number}"), turn.main(call=call)], None


def edits_a_file(agent, home):
    turn = Turn(agent, "Write a file.")
    path, text = home.folder / "note.txt", f"text{uuid.uuid4().hex}"
    def holds():
        return path.is_file() and path.read_text().strip() == text

    if agent.edit:
        return turn, [turn.main(reply=f"{agent.edit(path, text)}\n{turn.done}")], holds
    # Nothing but a request that comes after the call holds the call's own arguments.
    entries = [turn.says_done(text)]
    for name, arguments in agent.writers.items():
        call = {"name": name, "arguments": arguments(str(path), text)}
        entries.append(turn.main(f'"{name}"', call=call, times=20))
    return turn, entries, holds


def survives_429(agent, _):
    turn = Turn(agent, "Say hello in spite of a 429.")
    return turn, [turn.main(status=429, retry_after="0"), turn.says_done()], None


def survives_a_cut(agent, _):
    turn = Turn(agent, "Say hello in spite of a connection that is cut.")
    return turn, [turn.main(cut_at=300), turn.says_done()], None


FEATURES = {
    "answers": answers,
    "runs a command": runs_a_command,
    "writes a file": edits_a_file,
    "429, then an answer": survives_429,
    "cut stream, then an answer": survives_a_cut,
}


# Of an agent that has no such feature.
NOT_OFFERED = "not offered"


def tried(agent, model, key, make):
    """None if it worked, else what was seen."""
    with Home() as home:
        if not (scene := make(agent, home)):
            return NOT_OFFERED
        turn, entries, holds = scene
        script(entries)
        code, told = home.run(agent.run(BASE_URL, key, model, turn.prompt))
        if turn.done not in told:
            return f"ended with {code} and never said that it is done:\n{told[-3000:]}"
        if left := unused(turn.word):
            return f"never asked for {left}:\n{told[-3000:]}"
        return None if holds is None or holds() else f"said that it is done, and it is not:\n{told[-3000:]}"


def answered(model, key, calls):
    rows = until(f"{calls} logs of {model}", lambda: len(found := logs(key)) >= calls and found)
    return [row for row in rows if row["response_status_code"] == 200]


def priced(rows):
    """Every call that was answered has its tokens and what it cost."""
    wrong = [row for row in rows if not (row["total_units"] and row["cost"])]
    return f"logged without tokens or cost: {wrong[:2]}" if wrong else None


def known(agent, rows):
    """Every call says which agent it was, and of which session where the agent tells."""
    if not agent.metadata_name:
        return NOT_OFFERED
    found = [dict(zip(row["metadata.key"], row["metadata.value"], strict=True)) for row in rows]
    wrong = [names for names in found if names.get("_agent") != agent.metadata_name or agent.has_sessions and not names.get("_session")]
    return f"logged with {wrong[:2]}" if wrong else None


def pair(workspace, name, kind):
    agent, (_, model, _) = AGENTS[name], KINDS[kind]
    key = new_key(workspace, f"{name} {kind}")
    found = {feature: tried(agent, model, key["key"], make) for feature, make in FEATURES.items()}
    rows = answered(model, key["id"], sum(fault is None for fault in found.values()))
    found |= {"logged with tokens and cost": priced(rows), "logged with agent and session": known(agent, rows)}
    for feature, fault in found.items():
        if fault == NOT_OFFERED:
            continue
        print(f"{'ok  ' if fault is None else 'FAIL'} {agent.name} {agent.version} × {model}: {feature}", flush=True)
        if fault:
            print("     " + fault.replace("\n", "\n     "), flush=True)
    return (name, kind), found


def table(found):
    features = [*FEATURES, "logged with tokens and cost", "logged with agent and session"]
    lines = [["Agent", "Models of", *features], ["---"] * (2 + len(features))]
    for (name, kind), outcomes in found.items():
        agent = AGENTS[name]
        marks = [{None: "yes", NOT_OFFERED: "–"}.get(outcomes[feature], "no") for feature in features]
        lines.append([f"{agent.name} {agent.version}", KINDS[kind][2], *marks])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main(arguments):
    writes, wanted = "--write" in arguments, [one for one in arguments if not one.startswith("-")]
    pairs = [one for one in PAIRS if not wanted or "/".join(one) in wanted or one[0] in wanted]
    workspace = administer("POST", "/workspaces", {"name": f"Agents {uuid.uuid4().hex[:6]}"})["id"]
    for slug in dict.fromkeys(kind for _, kind in pairs):
        store(workspace, f"agents-{slug}", KINDS[slug][0])
    with ThreadPoolExecutor(2) as workers:
        found = dict(workers.map(lambda one: pair(workspace, *one), pairs))
    faults = sum(fault not in (None, NOT_OFFERED) for outcomes in found.values() for fault in outcomes.values())
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if writes and not wanted:
        PAGE.write_text(before + BEGIN + table(found) + END + after)
    elif not wanted and shown != table(found):
        print(f"{PAGE} says something else:\n{table(found)}")
        faults += 1
    print(f"{len(pairs)} pairs, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
