"""A comparison of what is printed with what was stored when the format was frozen: all that was there has to be there."""

from hashlib import sha256
from typing import Any

SHORT_LETTERS = 72
BEGIN_LETTERS = 24


def shortened(value: Any) -> Any:
    """Replace long strings anywhere in a value with their beginning, their length and a digest, as stored outputs have them."""
    if isinstance(value, dict):
        return {name: shortened(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value) > SHORT_LETTERS:
        digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{value[:BEGIN_LETTERS]}…{len(value)}…{digest[:12]}"
    return value


def of_rules(value: Any, rules: set[str]) -> Any:
    """Leave out the findings of all other rules than these: those that came later."""
    if not isinstance(value, dict) or "findings" not in value or not isinstance(value["findings"], list):
        return value
    return {**value, "findings": [finding for finding in value["findings"] if finding["rule"] in rules]}


def differences(stored: Any, printed: Any, place: str = "$") -> list[str]:
    """Return where `printed` lacks something that is `stored`, or has another value there. It may have more members."""
    if type(stored) is not type(printed):
        return [f"{place}: {printed!r} instead of {stored!r}"]
    if isinstance(stored, dict):
        lacking = [f"{place}.{name} is missing" for name in stored if name not in printed]
        shared = (name for name in stored if name in printed)
        return lacking + [text for name in shared for text in differences(stored[name], printed[name], f"{place}.{name}")]
    if isinstance(stored, list):
        if len(stored) != len(printed):
            return [f"{place} has {len(printed)} items instead of {len(stored)}"]
        pairs = enumerate(zip(stored, printed, strict=True))
        return [text for index, (old, new) in pairs for text in differences(old, new, f"{place}[{index}]")]
    return [] if stored == printed else [f"{place}: {printed!r} instead of {stored!r}"]
