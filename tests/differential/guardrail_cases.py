"""The same texts for the deterministic checks of both gateways. A case is a name, a side, a check with its parameters, a text, and
what else the request says."""

FENCED = "Here:\n```json\n{\"name\": \"a\", \"age\": 3}\n```\nDone."
SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
CODE = "```python\nprint(1)\n```"
HUGE = "word " * 20000

# Looks of a text: ordinary, empty, beyond ASCII, and long.
TEXTS = {"plain": "Hello big world. It is fine!", "empty": "", "spaces": "  \n ", "accents": "Ça va? Où ça. 🙂", "huge": HUGE}

# Checks that are run on all of them, plainly and turned round.
ON_TEXTS = [
    ("regexMatch", {"rule": "[Ww]or(ld|d)"}),
    ("sentenceCount", {"minSentences": 1, "maxSentences": 3}),
    ("wordCount", {"minWords": 1, "maxWords": 10}),
    ("characterCount", {"minCharacters": 1, "maxCharacters": 40}),
    ("alluppercase", {}),
    ("alllowercase", {}),
    ("endsWith", {"suffix": "fine!"}),
]

# (name, side, check, parameters, text, more)
SINGLE = [
    ("contains/any", "output", "contains", {"words": ["big", "small"], "operator": "any"}, "Hello big world", {}),
    ("contains/all", "output", "contains", {"words": ["big", "small"], "operator": "all"}, "Hello big world", {}),
    ("contains/none", "output", "contains", {"words": ["big", "small"], "operator": "none"}, "Hello big world", {}),
    ("contains/none-found", "output", "contains", {"words": ["tiny"], "operator": "none"}, "Hello big world", {}),
    ("contains/case", "output", "contains", {"words": ["BIG"], "operator": "any"}, "Hello big world", {}),
    ("contains/inside", "output", "contains", {"words": ["ig wo"], "operator": "any"}, "Hello big world", {}),
    ("contains/accents", "output", "contains", {"words": ["ça"], "operator": "any"}, "Où ça", {}),
    ("regexMatch/groups", "input", "regexMatch", {"rule": "(?<year>\\d{4})-(\\d\\d)"}, "on 2024-05", {}),
    ("regexMatch/anchors", "input", "regexMatch", {"rule": "^a.*z$"}, "a to z", {}),
    ("regexMatch/lines", "input", "regexMatch", {"rule": "^b"}, "a\nb", {}),
    ("regexMatch/unicode", "input", "regexMatch", {"rule": "é{2}"}, "créée", {}),
    ("regexMatch/look-ahead", "input", "regexMatch", {"rule": "a(?=b)"}, "ab", {}),
    ("regexMatch/back-reference", "input", "regexMatch", {"rule": "(a)\\1"}, "aa", {}),
    ("regexMatch/broken", "input", "regexMatch", {"rule": "("}, "(", {}),
    ("regexReplace/first", "input", "regexReplace", {"rule": "o", "redactText": "0"}, "foo boo", {}),
    ("regexReplace/all", "input", "regexReplace", {"rule": "/o/g", "redactText": "0"}, "foo boo", {}),
    ("regexReplace/flags", "input", "regexReplace", {"rule": "/O/gi", "redactText": "0"}, "foo BOO", {}),
    ("regexReplace/usual", "input", "regexReplace", {"rule": "foo"}, "foo", {}),
    ("regexReplace/nothing", "input", "regexReplace", {"rule": "x"}, "foo", {}),
    ("regexReplace/detection", "input", "regexReplace", {"rule": "foo", "failOnDetection": True}, "foo", {}),
    ("regexReplace/groups", "input", "regexReplace", {"rule": "(f)(o+)", "redactText": "$2$1"}, "foo", {}),
    ("regexReplace/accents", "input", "regexReplace", {"rule": "/é/g", "redactText": "e"}, "été", {}),
    ("jsonSchema/fenced", "output", "jsonSchema", {"schema": SCHEMA}, FENCED, {}),
    ("jsonSchema/plain", "output", "jsonSchema", {"schema": SCHEMA}, '{"name": "a"}', {}),
    ("jsonSchema/inside", "output", "jsonSchema", {"schema": SCHEMA}, 'it is {"name": "a"} then', {}),
    ("jsonSchema/wrong", "output", "jsonSchema", {"schema": SCHEMA}, '{"name": 1}', {}),
    ("jsonSchema/wrong-not", "output", "jsonSchema", {"schema": SCHEMA, "not": True}, '{"name": 1}', {}),
    ("jsonSchema/none", "output", "jsonSchema", {"schema": SCHEMA}, "no JSON", {}),
    ("jsonSchema/none-not", "output", "jsonSchema", {"schema": SCHEMA, "not": True}, "no JSON", {}),
    ("jsonSchema/nested", "output", "jsonSchema", {"schema": SCHEMA}, '{"a": {"name": "b"}}', {}),
    ("jsonSchema/list", "output", "jsonSchema", {"schema": {"type": "array"}}, "[1, 2]", {}),
    ("jsonKeys/any", "output", "jsonKeys", {"keys": ["name", "x"], "operator": "any"}, FENCED, {}),
    ("jsonKeys/all", "output", "jsonKeys", {"keys": ["name", "age"], "operator": "all"}, FENCED, {}),
    ("jsonKeys/all-missing", "output", "jsonKeys", {"keys": ["name", "x"], "operator": "all"}, FENCED, {}),
    ("jsonKeys/none", "output", "jsonKeys", {"keys": ["x"], "operator": "none"}, FENCED, {}),
    ("jsonKeys/none-there", "output", "jsonKeys", {"keys": ["name"], "operator": "none"}, FENCED, {}),
    ("jsonKeys/no-json", "output", "jsonKeys", {"keys": ["name"], "operator": "any"}, "no JSON", {}),
    ("jsonKeys/none-no-json", "output", "jsonKeys", {"keys": ["name"], "operator": "none"}, "no JSON", {}),
    ("jsonKeys/inside", "output", "jsonKeys", {"keys": ["name"], "operator": "any"}, 'so {"name": 1}.', {}),
    ("containsCode/there", "output", "containsCode", {"format": "Python"}, CODE, {}),
    ("containsCode/other", "output", "containsCode", {"format": "SQL"}, CODE, {}),
    ("containsCode/other-not", "output", "containsCode", {"format": "SQL", "not": True}, CODE, {}),
    ("containsCode/none", "output", "containsCode", {"format": "SQL"}, "no code", {}),
    ("containsCode/none-not", "output", "containsCode", {"format": "SQL", "not": True}, "no code", {}),
    ("containsCode/untagged", "output", "containsCode", {"format": "SQL"}, "```\nselect 1\n```", {}),
    ("containsCode/short", "output", "containsCode", {"format": "TypeScript"}, "```ts\nlet a\n```", {}),
    ("endsWith/dot", "input", "endsWith", {"suffix": "end"}, "the end.", {}),
    ("endsWith/longer", "input", "endsWith", {"suffix": "a longer suffix"}, "fix", {}),
    ("endsWith/accents", "input", "endsWith", {"suffix": "é"}, "créé", {}),
    ("notNull/text", "output", "notNull", {}, "a", {}),
    ("notNull/text-not", "output", "notNull", {"not": True}, "a", {}),
    ("notNull/empty", "output", "notNull", {}, "", {}),
    ("notNull/empty-not", "output", "notNull", {"not": True}, "", {}),
    ("notNull/spaces", "output", "notNull", {}, "  \n", {}),
    ("modelWhitelist/in", "input", "modelWhitelist", {"models": ["gpt-4o", "m"]}, "a", {}),
    ("modelWhitelist/out", "input", "modelWhitelist", {"models": ["other"]}, "a", {}),
    ("modelWhitelist/out-not", "input", "modelWhitelist", {"models": ["other"], "not": True}, "a", {}),
    ("modelWhitelist/case", "input", "modelWhitelist", {"models": ["GPT-4O"]}, "a", {}),
    ("modelRules/default", "input", "modelRules", {"rules": {"defaults": ["gpt-4o"], "metadata": {}}}, "a", {}),
    ("modelRules/default-out", "input", "modelRules", {"rules": {"defaults": ["x"], "metadata": {}}}, "a", {}),
    ("modelRules/rule", "input", "modelRules", {"rules": {"defaults": ["x"], "metadata": {"team": {"a": ["gpt-4o"]}}}}, "a",
     {"metadata": {"team": "a"}}),
    ("modelRules/other-team", "input", "modelRules", {"rules": {"defaults": ["x"], "metadata": {"team": {"a": ["gpt-4o"]}}}}, "a",
     {"metadata": {"team": "b"}}),
    ("allowedRequestTypes/allowed", "input", "allowedRequestTypes", {"allowedTypes": ["chatComplete"]}, "a", {}),
    ("allowedRequestTypes/not-allowed", "input", "allowedRequestTypes", {"allowedTypes": ["embed"]}, "a", {}),
    ("allowedRequestTypes/blocked", "input", "allowedRequestTypes", {"blockedTypes": ["chatComplete"]}, "a", {}),
    ("allowedRequestTypes/not-blocked", "input", "allowedRequestTypes", {"blockedTypes": ["embed"]}, "a", {}),
    ("allowedRequestTypes/none", "input", "allowedRequestTypes", {}, "a", {}),
    ("allowedRequestTypes/text", "input", "allowedRequestTypes", {"allowedTypes": "chatComplete, embed"}, "a", {}),
    ("requiredMetadataKeys/all", "input", "requiredMetadataKeys", {"metadataKeys": ["team", "env"], "operator": "all"}, "a",
     {"metadata": {"team": "a"}}),
    ("requiredMetadataKeys/any", "input", "requiredMetadataKeys", {"metadataKeys": ["team", "env"], "operator": "any"}, "a",
     {"metadata": {"team": "a"}}),
    ("requiredMetadataKeys/none", "input", "requiredMetadataKeys", {"metadataKeys": ["team", "env"], "operator": "none"}, "a",
     {"metadata": {"team": "a"}}),
    ("requiredMetadataKeys/without", "input", "requiredMetadataKeys", {"metadataKeys": ["team"], "operator": "all"}, "a", {}),
    ("requiredMetadataKeyValuePairs/all", "input", "requiredMetadataKeyValuePairs",
     {"metadataPairs": {"team": "a", "env": "x"}, "operator": "all"}, "a", {"metadata": {"team": "a", "env": "y"}}),
    ("requiredMetadataKeyValuePairs/any", "input", "requiredMetadataKeyValuePairs",
     {"metadataPairs": {"team": "a", "env": "x"}, "operator": "any"}, "a", {"metadata": {"team": "a", "env": "y"}}),
    ("requiredMetadataKeyValuePairs/none", "input", "requiredMetadataKeyValuePairs",
     {"metadataPairs": {"team": "b"}, "operator": "none"}, "a", {"metadata": {"team": "a"}}),
    ("addPrefix/user", "input", "addPrefix", {"prefix": "P "}, "a", {}),
    ("addPrefix/system", "input", "addPrefix", {"prefix": "P ", "applyToRole": "system"}, "a", {}),
    ("addPrefix/new", "input", "addPrefix", {"prefix": "P ", "addToExisting": False}, "a", {}),
    ("addPrefix/only-if-empty", "input", "addPrefix", {"prefix": "P ", "onlyIfEmpty": True}, "a", {}),
]


def all_cases():
    for check, parameters in ON_TEXTS:
        for look, text in TEXTS.items():
            for turned in (False, True):
                more = {**parameters, "not": True} if turned else parameters
                name = f"{check}/{look}{'-not' if turned else ''}"
                yield {"name": name, "side": "input", "check": check, "parameters": more, "text": text, "more": {}}
    for name, side, check, parameters, text, more in SINGLE:
        yield {"name": name, "side": side, "check": check, "parameters": parameters, "text": text, "more": more}


ALL = list(all_cases())
