"""The differences that are known and right, from differences.toml."""

import fnmatch
import tomllib


class Listed:
    def __init__(self, file):
        with open(file, "rb") as found:
            self.rules = tomllib.load(found)["difference"]
        for rule in self.rules:
            if not rule.get("reason", "").strip():
                raise SystemExit(f"differences.toml: no reason for {rule}")
            rule["cases"] = [rule["cases"]] if isinstance(rule["cases"], str) else rule["cases"]
            rule["places"] = [rule["places"]] if isinstance(rule["places"], str) else rule["places"]
            # Each pattern must still be needed, not only the rule.
            rule["met"] = set()

    def explains(self, case, place):
        """Whether some rule speaks of this difference."""
        is_listed = False
        for rule in self.rules:
            for cases in rule["cases"]:
                for places in rule["places"]:
                    if fnmatch.fnmatchcase(case, cases) and fnmatch.fnmatchcase(place, places):
                        rule["met"] |= {cases, places}
                        is_listed = True
        return is_listed

    def stale(self, names):
        """Patterns that no difference met, of rules that speak of these cases."""
        for rule in self.rules:
            for pattern in rule["cases"] + rule["places"]:
                is_asked = any(fnmatch.fnmatchcase(name, cases) for cases in rule["cases"] for name in names)
                if is_asked and pattern not in rule["met"]:
                    yield pattern, rule["reason"]
