"""Which expressions of Python source are keys and values of a KV cache, and what decides a cast.

An expression is one by what it is called, or because what is assigned to it came from a cache: from
`get_key_buffer(…)`, `self.kv_buffer[…]`, or a split of such. Tables of cosines, scales, indices,
token ids, encoder outputs and latents of image models are called caches too, and are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.source.parse import captures, text_of
from agent.source.python.sites import Site

FP8 = re.compile(r"float8|fp8|e4m3|e5m2", re.IGNORECASE)
_KV = re.compile(
    r"(?:^|_)(?:kv|k|v|key|value|key_value|mla|latent|c_kv)_?(?:cache|buffer|buf|pool)s?(?:_|$|\d)"
    r"|(?:^|_)(?:cache|buffer)_?(?:k|v|kv|key|value)s?(?:_|$)|^kvc?$|^kv_?c(?:_|$)|kvcache",
    re.IGNORECASE,
)
_PART = re.compile(r"^(?:kv?|v|key|value|k_(?:pe|rope|nope|c|latent)\w*|kv_\w+|latent\w*)$")
_OTHER = re.compile(
    r"cos|sin(?:_|$)|scale|encoder|embed|image|video|audio|pixel|token|(?:^|_)ids?$|ind(?:ptr|ices)"
    r"|index|mask|weight|rank|(?:^|_)lens?(?:_|$)|page_table|block_table|(?:^|_)loc$|zero_?point"
    r"|position|freq|hidden|logits|conv|ssm",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?:^|/)(?:multimodal|diffusion|diffusers|vaes?|denois|dits?|vision|encoders?|image|video"
    r"|audio|speech)[^/]*(?:/|$)",
    re.IGNORECASE,
)
_GETTER = re.compile(r"^_?(?:get|fetch|read|load)_\w*(?:kv|key|value|k|v)\w*_?(?:buffer|cache)")
_VIEWS = frozenset(
    {"view", "reshape", "contiguous", "transpose", "permute", "squeeze", "unsqueeze", "flatten",
     "index_select", "narrow", "split", "chunk", "clone", "detach", "expand", "unflatten", "select"}
)  # fmt: skip
_DOTTED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*")
_POOL = re.compile(r"Pool|KVCache|KvCache")
_OWN_DTYPE = re.compile(r"^self\.(?:store_|cache_|kv_cache_)?dtype$")
_CACHE_DTYPE = re.compile(r"kv_cache_dtype|cache_dtype|kv_dtype")
_COMPARES = re.compile(r"\s(==|!=|is not|is|not in|in)\s")
_MAX_STEPS = 4


def is_pool(site: Site) -> bool:
    """Tell whether a site is in a class that stores keys and values."""
    return _POOL.search(site.qualname.partition(".")[0]) is not None


def is_elsewhere(path: str) -> bool:
    """Tell whether a path is of models or stages that have no KV cache: images, video, encoders."""
    return _ELSEWHERE.search(path) is not None


def is_other_cache(expression: str) -> bool:
    """Tell whether an expression is called after something that is no key or value."""
    name, _ = _root(expression)
    return not name or _OTHER.search(name) is not None


def holds_kv(site: Site, expression: str) -> bool:
    """Tell whether an expression at a site is keys or values of a cache."""
    return _is_kv(_Assignments(site), "".join(expression.split()), 0)


def stores_kv(target: str) -> bool:
    """Tell whether the target of a subscript assignment is a KV cache."""
    name, _ = _root("".join(target.split()))
    return bool(_KV.search(name)) and not _OTHER.search(name)


def decides(guard: str, direction: str) -> bool:
    """Tell whether a signed guard can be why a cast of a direction (`from`, `to` FP8) runs.

    That is a test that the cache is FP8, or that a dtype differs from the cache's; what else stands
    around the cast guards it but does not decide it.
    """
    text = guard[1:]
    found = _COMPARES.search(f" {text} ")
    operator = found.group(1) if found is not None else ""
    differs = operator in ("!=", "is not", "not in")
    holds = guard.startswith("+") != differs
    if FP8.search(text):
        return holds or (direction == "to" and not holds)
    if operator not in ("==", "!=", "is", "is not") or holds or "dtype" not in text:
        return False
    left, right = f" {text} ".split(f" {operator} ", 1)
    return any(_of_cache(side.strip()) for side in (left, right))


def _of_cache(side: str) -> bool:
    side = side.replace(" ", "")
    if _OWN_DTYPE.match(side) or _CACHE_DTYPE.search(side):
        return True
    name, _ = _root(side.removesuffix(".dtype"))
    return side.endswith(".dtype") and bool(_KV.search(name)) and not _OTHER.search(name)


class _Assignments:
    """What is assigned to the local names of the function around a site, before it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._found: list[tuple[frozenset[str], str]] | None = None

    def of(self, name: str) -> Iterator[str]:
        if self._found is None:
            self._found = list(self._read())
        yield from (right for names, right in self._found if name in names)

    @property
    def tested(self) -> bool:
        """Tell whether a guard around the site asks for the dtype of the KV cache."""
        return any(_CACHE_DTYPE.search(guard) for guard in self._site.guards)

    def _read(self) -> Iterator[tuple[frozenset[str], str]]:
        chain = self._site.chain
        function = next((one for one in reversed(chain) if one.type == "function_definition"), None)
        if function is None:
            return
        for node in captures("python", "(assignment) @a", function).get("a", []):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is None or right is None or node.end_byte > self._site.node.start_byte:
                continue
            yield frozenset(_targets(left)), "".join(text_of(right).split())


def _targets(left: Node) -> Iterator[str]:
    if left.type == "identifier":
        yield text_of(left)
    elif left.type in ("pattern_list", "tuple_pattern", "list_pattern"):
        yield from (text_of(one) for one in left.named_children if one.type == "identifier")


def _is_kv(known: _Assignments, expression: str, steps: int) -> bool:
    name, called = _root(expression)
    if called and _GETTER.match(name):
        return True
    if not name or called or _OTHER.search(name):
        return False
    if _KV.search(name):
        return True
    if steps >= _MAX_STEPS or "." in expression[: expression.find(name)]:
        return False
    if _PART.match(name) and known.tested:
        return True
    return any(
        _is_kv(known, part, steps + 1)
        for right in known.of(name)
        for part in _parts(right)
        if _root(part)[0] != name
    )


def _parts(right: str) -> Iterator[str]:
    """Yield an assigned expression, and what a split or a selection of `torch` is given first."""
    yield right
    if found := re.match(r"torch\.(?:split|index_select|chunk|narrow|cat|unbind)\(\(?\[?", right):
        yield right[found.end() :]


def _root(expression: str) -> tuple[str, bool]:
    """Give the name an expression is read from, views dropped, and whether it is called."""
    found = _DOTTED.match(expression)
    if found is None:
        return "", False
    parts = found.group().split(".")
    if not expression.startswith("(", found.end()):
        return parts[-1], False
    if len(parts) > 1 and parts[-1] in _VIEWS and parts[0] != "torch":
        return parts[-2], False
    return parts[-1], True
