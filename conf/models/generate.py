#!/usr/bin/env python3
"""Writes conf/models/pricing and conf/models/general from a list of rates and a list of facts.

    conf/models/generate.py --prices prices.tsv --facts facts.tsv --as-of 2026-11

Both lists are tables of tab-separated text with a head line; further columns are ignored.

- prices: `provider`, `model`, `mode`, `rate`, `tier`, `above_prompt_tokens`, `per`, `usd`. One line for each rate: `rate` is
  the name that public lists use (`input_cost_per_token`), `tier` the tier of service (empty, `batches`, `flex`,
  `priority`, `ultrafast`), `above_prompt_tokens` the bound of a context tier, `per` is `million` (tokens) or `unit`.
- facts: `provider`, `model`, `mode`, `context_tokens`, `max_output_tokens`, `input_modalities`, `output_modalities`,
  `deprecation_date`; lists are separated by commas.

What the lists lack stands in `by-hand.json`, each row with the page it was read on and the day. Models that neither names
keep the row they have, with its date, if it is about text. A row that breaks a rule of sanity is refused; refusals are
printed. The tests of `shared/src/cost/prices/sanity.rs` hold the same rules over what is written.
"""

import argparse
import csv
import fnmatch
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent

# Our name of a provider: the names that the lists have for it.
PROVIDERS = {
    "ai21": ["ai21"],
    "anthropic": ["anthropic"],
    "anyscale": ["anyscale"],
    "azure-ai": ["azure_ai"],
    "azure-openai": ["azure_text", "azure"],
    "bedrock": ["bedrock", "bedrock_converse"],
    "bedrock-mantle": ["bedrock_mantle"],
    "cerebras": ["cerebras"],
    "claude-platform-aws": ["anthropic"],
    "cohere": ["cohere", "cohere_chat"],
    "cortex": ["snowflake"],
    "dashscope": ["dashscope"],
    "databricks": ["databricks"],
    "deepgram": ["deepgram"],
    "deepinfra": ["deepinfra"],
    "deepseek": ["deepseek"],
    "fal-ai": ["fal_ai"],
    "fireworks-ai": ["fireworks_ai", "fireworks_ai-embedding-models"],
    "google": ["gemini"],
    "groq": ["groq"],
    "hyperbolic": ["hyperbolic"],
    "jina": ["jina_ai"],
    "lambda": ["lambda_ai"],
    "minimax": ["minimax"],
    "mistral-ai": ["text-completion-codestral", "codestral", "mistral"],
    "moonshot": ["moonshot"],
    "nebius": ["nebius"],
    "novita-ai": ["novita"],
    "nscale": ["nscale"],
    "openai": ["text-completion-openai", "openai"],
    "oracle": ["oci"],
    "ovhcloud": ["ovhcloud"],
    "perplexity-ai": ["perplexity"],
    "recraft-ai": ["recraft"],
    "replicate": ["replicate"],
    "sambanova": ["sambanova"],
    "stability-ai": ["stability"],
    "together-ai": ["together_ai"],
    "vertex-ai": [
        "vertex_ai-ai21_models",
        "vertex_ai-anthropic_models",
        "vertex_ai-deepseek_models",
        "vertex_ai-embedding-models",
        "vertex_ai-language-models",
        "vertex_ai-llama_models",
        "vertex_ai-minimax_models",
        "vertex_ai-mistral_models",
        "vertex_ai-moonshot_models",
        "vertex_ai-openai_models",
        "vertex_ai-qwen_models",
        "vertex_ai-text-models",
        "vertex_ai-video-models",
        "vertex_ai-zai_models",
        "vertex_ai",
    ],
    "voyage": ["voyage"],
    "workers-ai": ["cloudflare"],
    "x-ai": ["xai"],
    "z-ai": ["zai"],
    "zhipu": ["bigmodel"],
}

# Rates by token: the key of our price list.
TOKENS = {
    "input_cost_per_token": "request_token",
    "output_cost_per_token": "response_token",
    "cache_read_input_token_cost": "cache_read_input_token",
    "input_cost_per_token_cache_hit": "cache_read_input_token",
    "cache_creation_input_token_cost": "cache_write_input_token",
    "input_cost_per_audio_token": "request_audio_token",
    "output_cost_per_audio_token": "response_audio_token",
    "cache_read_input_audio_token_cost": "cache_read_audio_input_token",
    "input_cost_per_image_token": "request_image_token",
    "output_cost_per_image_token": "response_image_token",
    "cache_read_input_image_token_cost": "cache_read_image_input_token",
    "input_cost_per_video_token": "request_video_token",
    "output_cost_per_video_token": "response_video_token",
    "output_cost_per_reasoning_token": "reasoning_token",
}

# Rates by another unit: its name among `additional_units`. Seconds are named by `unit_of_seconds`.
UNITS = {
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "cache_creation_input_token_cost_above_12hr": "cache_write_12h",
    "citation_cost_per_token": "citation_token",
    "input_cost_per_character": "characters",
    "output_cost_per_character": "output_characters",
    "input_cost_per_query": "search",
    "google_maps_grounding_cost_per_query": "maps",
    "code_interpreter_cost_per_session": "code_execution",
    "ocr_cost_per_page": "pages",
    "annotation_cost_per_page": "annotated_pages",
    "input_cost_per_image": "input_image",
    "input_cost_per_audio_per_second": "audio_seconds",
    "input_cost_per_video_per_second": "input_video_seconds",
    "output_cost_per_video_per_second": "video_seconds",
}

MODES = {"": "standard", "batches": "batch", "flex": "flex", "priority": "priority", "ultrafast": "fast"}

# What costs nothing, as its vendor says; all else with no rate above 0 is refused.
FREE = {
    "openai": ["omni-moderation-*", "text-moderation-*"],
    "google": ["gemma-*"],
    "z-ai": ["glm-*-flash"],
    "zhipu": ["glm-*-flash"],
}

# Not models, or priced for a term of months.
JUNK = re.compile(r"fallback_generalizations|commitment|^container$|^fireworks-ai-default$|^search$|(gt|lte)-\d+k$")
# A region, or the scope of a deployment, before a name.
REGION = re.compile(r"^(us|eu|global|global-standard|standard-us|[a-z]{2}(-gov)?-[a-z]+-\d)/")
SIZE = re.compile(r"^(\d+)-x-(\d+)$")
QUALITIES = {"low", "medium", "high", "xhigh", "hd", "standard", "auto"}

PRIMARY = {
    "completion": "text",
    "embedding": "embedding",
    "image_generation": "image",
    "image_edit": "image",
    "audio_speech": "audio",
    "audio_transcription": "audio",
    "realtime": "audio",
    "moderation": "moderation",
    "rerank": "rerank",
    "video_generation": "video",
    "ocr": "document",
    "search": "search",
}
# Rows of an earlier list are kept if they are about text: it had other units as tokens.
OF_TEXT = {None, "chat", "text", "embedding"}
OTHER = re.compile(r"rerank|whisper|tts|transcribe|speech|audio|realtime|dall-e|image|imagen|veo|video|ocr|omni-mod", re.I)

# Rows of an earlier list that all others contradict.
WRONG = {
    "azure-ai": ["accounts/fireworks/models/*"],
    "deepinfra": ["meta-llama/Meta-Llama-3.1-405B-Instruct", "meta-llama/Meta-Llama-3.3-70B-Instruct"],
    "minimax": ["MiniMax-M2.7", "MiniMax-M2.7-highspeed"],
}

# Whose batches cost half of everything, also of cache writes that lists have no batch rate for.
HALF_BATCHES = {"anthropic", "claude-platform-aws"}


class Refused(Exception):
    pass


class Price:
    """Rates of one model: by mode, then by bound (0 without one), each as tokens, units and images."""

    def __init__(self):
        self.rates = defaultdict(lambda: defaultdict(lambda: {"tokens": {}, "units": {}, "image": {}}))
        self.fixed = None
        self.mode = ""

    def at(self, tier, bound):
        return self.rates[MODES[tier]][int(bound or 0)]


def cents(row):
    usd = Decimal(row["usd"])
    price = usd * 100 / (1_000_000 if row["per"] == "million" else 1)
    return price.normalize()


def text(price):
    return format(price.normalize(), "f") if price else "0"


def unit_of_seconds(row):
    """Whose seconds a rate is for, by the kind of model; `_720p` and the like stay behind it."""
    rate = row["rate"]
    found = re.match(r"^(input|output)_cost_per_second(_\w+)?$", rate)
    if rate == "cost_per_second" or not found:
        raise Refused("a rate by the second of a machine" if rate == "cost_per_second" else f"rate {rate}")
    side, suffix = found.groups()
    if row["mode"] == "video_generation":
        return "video_seconds" + (suffix or "")
    if row["mode"] == "audio_speech":
        return "speech_seconds"
    # Transcriptions have one rate, under one of two names or both.
    return "audio_seconds"


def take(price, row):
    """One line of the list into the price of its model."""
    rate, amount = row["rate"], cents(row)
    rates = price.at(row["tier"], row["above_prompt_tokens"])
    if rate in TOKENS:
        if row["per"] != "million":
            raise Refused(f"{rate} is not by token")
        rates["tokens"][TOKENS[rate]] = amount
    elif rate in UNITS:
        rates["units"][UNITS[rate]] = amount
    elif rate == "input_cost_per_request":
        price.fixed = amount
    elif rate.startswith("output_cost_per_image"):
        size = rate.removeprefix("output_cost_per_image").lstrip("_") or "default"
        rates["image"].setdefault("default", {})[size] = amount
    elif rate in ("input_cost_per_pixel", "output_cost_per_pixel"):
        if amount:
            rates["units"]["megapixels"] = amount * 1_000_000
    elif "per_second" in rate:
        unit = unit_of_seconds(row)
        if unit not in rates["units"] or amount > rates["units"][unit]:
            rates["units"][unit] = amount
    else:
        raise Refused(f"rate {rate}")


def split_name(ours, name):
    """The model that a name means, and the quality and size of images before it."""
    name = re.sub(r"^(vertex_ai|fireworks_ai|azure|azure_ai)/", "", name)
    if JUNK.search(name):
        raise Refused("no model")
    if REGION.match(name):
        raise Refused("a region's own price")
    quality = size = None
    if ours in ("openai", "azure-openai", "fal-ai", "azure-ai", "bedrock"):
        parts = name.split("/")
        while len(parts) > 1:
            if parts[0] in QUALITIES and quality is None:
                quality = parts.pop(0)
            elif SIZE.match(parts[0]) and size is None:
                size = "x".join(SIZE.match(parts.pop(0)).groups())
            else:
                break
        if any(re.search(r"-steps$|^max-x-max$", part) for part in parts):
            raise Refused("images by steps")
        name = "/".join(parts)
    if ours == "vertex-ai":
        name = name.rsplit("/", 1)[-1]
    if "*" in name:
        raise Refused("no model")
    return name, quality, size


def add_image(price, quality, size, lines):
    """A name such as `hd/1024-x-1024/dall-e-3`: the price of one image of this quality and size."""
    amount = None
    for row in lines:
        if row["rate"] in ("input_cost_per_pixel", "output_cost_per_pixel") and size and Decimal(row["usd"]):
            width, height = map(int, size.split("x"))
            # Lists have it by pixel, rounded; prices of images are whole hundredths of a cent.
            amount = (cents(row) * width * height).quantize(Decimal("0.01"))
        elif row["rate"] in ("input_cost_per_image", "output_cost_per_image") and Decimal(row["usd"]):
            amount = cents(row)
    if amount is None:
        raise Refused("an image without a price")
    images = price.at("", "")["image"]
    images.setdefault(quality or "default", {})[size or "default"] = amount


def checked(ours, model, price, report):
    """What breaks a rule of sanity is left out. False when nothing is left."""
    standard = price.rates["standard"][0]
    for mode in list(price.rates):
        for bound, rates in price.rates[mode].items():
            tokens = rates["tokens"]
            for cached, fresh in [
                ("cache_read_input_token", "request_token"),
                ("cache_read_audio_input_token", "request_audio_token"),
                ("cache_read_image_input_token", "request_image_token"),
            ]:
                whole = tokens.get(fresh, standard["tokens"].get(fresh))
                if cached in tokens and whole is not None and tokens[cached] > whole:
                    report(model, f"{cached} is dearer than {fresh}")
                    del tokens[cached]
                if cached in tokens and not tokens[cached] and whole:
                    report(model, f"{cached} is 0")
                    del tokens[cached]
            if any(amount > Decimal("0.1") for amount in tokens.values()):
                report(model, "more than a dollar for a thousand tokens")
                return False
            for name, full in list(standard["tokens"].items()):
                if mode in ("batch", "flex") and bound == 0 and tokens.get(name, 0) > full:
                    report(model, f"{mode} {name} is dearer than the usual one")
                    del tokens[name]
    units = {name for name, amount in standard["units"].items() if amount}
    if (units or standard["image"]) and not any(standard["tokens"].values()):
        # Zeros beside what is paid by another unit.
        standard["tokens"].clear()
    amounts = [amount for bounds in price.rates.values() for rates in bounds.values() for amount in
               [*rates["tokens"].values(), *rates["units"].values(), *[a for s in rates["image"].values() for a in s.values()]]]
    if not any(amounts) and not price.fixed:
        if not any(fnmatch.fnmatch(model, free) for free in FREE.get(ours, [])):
            report(model, "no rate above 0, and not listed as free")
            return False
    if not (standard["tokens"] or standard["units"] or standard["image"] or price.fixed):
        report(model, "no usual rate")
        return False
    return True


def written_rates(rates):
    found = {name: {"price": text(amount)} for name, amount in rates["tokens"].items()}
    if rates["image"]:
        found["image"] = {
            quality: {size: {"price": text(amount)} for size, amount in sizes.items()}
            for quality, sizes in rates["image"].items()
        }
    if rates["units"]:
        found["additional_units"] = {name: {"price": text(amount)} for name, amount in sorted(rates["units"].items())}
    return found


def written(price, as_of):
    config = {}
    standard = price.rates["standard"]
    if written_rates(standard[0]):
        config["pay_as_you_go"] = written_rates(standard[0])
    batch = price.rates.get("batch", {})
    if batch and written_rates(batch[0]):
        config["batch_config"] = written_rates(batch[0])
    if price.fixed is not None:
        config["fixed_cost"] = {"request": {"price": text(price.fixed)}, "response": {"price": "0"}}
    modes, bounds = {}, set()
    for mode, by_bound in sorted(price.rates.items()):
        tiers = {f"gt-{bound // 1000}k": {"pricing_config": {"pay_as_you_go": written_rates(rates)}}
                 for bound, rates in sorted(by_bound.items()) if bound and written_rates(rates)}
        bounds |= {bound for bound, rates in by_bound.items() if bound and written_rates(rates)}
        own = written_rates(by_bound[0]) if mode not in ("standard",) else {}
        entry = {}
        # A batch has a list of its own, unless it has tiers.
        if own and (mode != "batch" or tiers):
            entry["pricing_config"] = {"pay_as_you_go": own}
        if tiers:
            entry["context_tiers"] = tiers
        if entry:
            modes[mode] = entry
    entry = {"as_of": as_of, "pricing_config": config}
    if modes:
        entry["custom_pricing"] = {"regions": {"default": {"execution_modes": modes}}}
        if bounds:
            entry["custom_pricing"]["context_tier_map"] = {str(bound): f"gt-{bound // 1000}k" for bound in sorted(bounds)}
    return entry


def merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def by_hand(ours, entries, rows):
    """Rows with patterns (`claude-*`) add to models that are listed; the others also make models."""
    for row in rows:
        if ours not in row["providers"]:
            continue
        for pattern in row["models"]:
            names = fnmatch.filter(entries, pattern)
            excluded = [name for other in row.get("except", []) for name in fnmatch.filter(entries, other)]
            names = [name for name in names if name not in excluded]
            if not names and not set("*?[") & set(pattern):
                entries[pattern] = {"as_of": row["as_of"], "pricing_config": {}}
                names = [pattern]
            for name in names:
                merge(entries[name], json.loads(json.dumps(row["entry"])))
                entries[name].setdefault("sources", [])
                entries[name]["sources"].append(f'{row["source"]} ({row["as_of"]})')


def facts_of(row):
    facts = {}
    for ours, theirs in [("context_tokens", "context_tokens"), ("max_output_tokens", "max_output_tokens")]:
        if row[theirs].strip().isdigit():
            facts[ours] = int(row[theirs])
    for ours, theirs in [("input", "input_modalities"), ("output", "output_modalities")]:
        if row[theirs].strip():
            facts[ours] = [word.strip() for word in row[theirs].split(",") if word.strip()]
    if re.match(r"^\d{4}-\d{2}-\d{2}$", row["deprecation_date"].strip()):
        facts["deprecation_date"] = row["deprecation_date"].strip()
    return facts


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def save(path, entries):
    lines = [f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in entries.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--prices", required=True)
    arguments.add_argument("--facts", required=True)
    arguments.add_argument("--as-of", required=True, help="month or day of the lists")
    arguments.add_argument("--earlier", default="2026-08", help="date of rows that have none")
    options = arguments.parse_args()
    lines, facts = defaultdict(lambda: defaultdict(list)), defaultdict(dict)
    for row in table(options.prices):
        lines[row["provider"]][row["model"]].append(row)
    for row in table(options.facts):
        facts[row["provider"]][row["model"]] = row
    hand = json.loads((HERE / "by-hand.json").read_text())
    existing = {path.stem for path in (HERE / "pricing").glob("*.json")}
    refused = Counter()
    for ours in sorted(existing | set(PROVIDERS)):
        prices, kinds, known = {}, {}, {}

        def report(model, reason):
            refused[(ours, str(reason))] += 1
            print(f"refused\t{ours}\t{model}\t{reason}")

        for theirs in PROVIDERS.get(ours, []):
            for name, rows in lines[theirs].items():
                try:
                    model, quality, size = split_name(ours, name)
                except Refused as reason:
                    report(name, reason)
                    continue
                price = prices.setdefault(model, Price())
                if quality or size:
                    try:
                        add_image(price, quality, size, rows)
                    except Refused as reason:
                        report(name, reason)
                    kinds.setdefault(model, "image_generation")
                    continue
                for row in rows:
                    try:
                        take(price, row)
                    except Refused as reason:
                        report(name, f"{reason}")
                kinds[model] = rows[0]["mode"]
            for name, row in facts[theirs].items():
                try:
                    model, quality, size = split_name(ours, name)
                except Refused:
                    continue
                if not (quality or size) and facts_of(row):
                    known[model] = facts_of(row)
        entries = {}
        for model, price in prices.items():
            usual, batch = price.rates["standard"][0], price.rates.get("batch", {}).get(0)
            if batch and ours in HALF_BATCHES:
                for name in ("cache_write_1h", "cache_write_12h"):
                    if name in usual["units"]:
                        batch["units"].setdefault(name, usual["units"][name] / 2)
            if checked(ours, model, price, lambda model, reason: report(model, reason)):
                entries[model] = written(price, options.as_of)
        general_path, pricing_path = HERE / "general" / f"{ours}.json", HERE / "pricing" / f"{ours}.json"
        general = json.loads(general_path.read_text()) if general_path.exists() else {}
        before = json.loads(pricing_path.read_text()) if pricing_path.exists() else {}
        for model, entry in before.items():
            kind = general.get(model, {}).get("type", {}).get("primary")
            spelt = next((name for name in prices if name in entries and name.lower() == model.lower()), None)
            if spelt and model not in entries:
                entries[model] = json.loads(json.dumps(entries[spelt]))
                if spelt in known:
                    known.setdefault(model, known[spelt])
                continue
            if model in entries or entry.get("as_of", options.earlier) >= options.as_of or (
                "sources" in entry and entry.get("as_of") != options.earlier
            ):
                continue
            if kind not in OF_TEXT or OTHER.search(model) or JUNK.search(model) or is_odd(entry) or is_wrong(ours, model):
                report(model, f"of {options.earlier}, and not of text or odd")
                continue
            rest = {key: value for key, value in entry.items() if key not in ("as_of", "sources")}
            for rates in [rest["pricing_config"].get(name, {}) for name in ("pay_as_you_go", "batch_config")]:
                # It had 0 where nothing was known.
                for name in [name for name in rates if name.startswith("cache_") and not Decimal(rates[name]["price"])]:
                    del rates[name]
            entries[model] = {"as_of": options.earlier, **rest}
        for name in sorted(entries):
            # What a name without its date means is the newest of them; else it would have no price.
            base = re.sub(r"-20\d\d-\d\d-\d\d$", "", name)
            if base != name and OTHER.search(base) and base not in prices:
                entries[base], kinds[base] = json.loads(json.dumps(entries[name])), kinds.get(name, "")
                # It goes on when the one with a date has gone.
                known.setdefault(base, {key: fact for key, fact in known.get(name, {}).items() if key != "deprecation_date"})
        by_hand(ours, entries, hand)
        save(pricing_path, dict(sorted(entries.items())))
        head = {
            "name": ours,
            "description": general.get("description", f"Models of {ours}"),
            "default": general.get("default", {"params": [], "messages": {"options": ["system", "user", "assistant"]},
                                               "type": {"primary": "chat", "supported": []}}),
        }
        models = {}
        for model in sorted(entries):
            told = {key: value for key, value in general.get(model, {}).items() if key != "facts"}
            primary = PRIMARY.get(kinds.get(model, ""))
            if primary and "type" not in told:
                told["type"] = {"primary": primary, "supported": []}
            if known.get(model):
                told["facts"] = known[model]
            models[model] = told
        # Capabilities and facts are told of names that have no price of their own, too.
        rest = {name: {key: value for key, value in told.items() if key != "facts"} for name, told in general.items()
                if name not in head and name not in models and "capabilities" in told}
        for model, fact in known.items():
            if model not in models and fact:
                rest.setdefault(model, {})["facts"] = fact
        save(general_path, {**head, **dict(sorted({**models, **rest}.items()))})
    for (ours, reason), count in sorted(refused.items()):
        print(f"{count}\t{ours}\t{reason}")


def is_wrong(ours, model):
    return any(fnmatch.fnmatch(model, pattern) for pattern in WRONG.get(ours, []))


def is_odd(entry):
    """Of an earlier list: what breaks a rule of sanity."""
    config = entry.get("pricing_config", {})
    price = lambda rates, name: Decimal(rates.get(name, {}).get("price", "0"))
    for rates in [config.get("pay_as_you_go", {}), config.get("batch_config", {})]:
        if any(price(rates, name) > Decimal("0.1") for name in rates if name.endswith("token")):
            return True
        if "cache_read_input_token" in rates and price(rates, "cache_read_input_token") > price(rates, "request_token"):
            return True
    rates = config.get("pay_as_you_go", {})
    return not any(price(rates, name) for name in rates if name.endswith("token"))


if __name__ == "__main__":
    main()
