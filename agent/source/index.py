"""The index over one or several checkouts: implements `agent.core.source.SourceIndex`.

Nothing is read before it is asked for, and nothing is parsed before a literal search hit it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent.core.proposals import Evidence, Finding, RunContext
from agent.core.source import CallSite, Candidate, Definition, Examination, RepoInfo, SourceHit
from agent.errors import CheckoutNotFound, CommitMismatch, SourceError, UsageError
from agent.source.checkout import Checkout, open_checkout
from agent.source.definitions import Definitions
from agent.source.evidence.case import Question, Workbench
from agent.source.evidence.castchecks import call_site
from agent.source.evidence.examine import examine
from agent.source.fingerprint import fingerprint
from agent.source.named import definitions_like
from agent.source.native.manifests import BuildManifests
from agent.source.native.sites import launches_of
from agent.source.parse import TreeCache
from agent.source.paths import is_python, is_runtime
from agent.source.python.sites import sites_named
from agent.source.shortlist import shortlist
from agent.source.snapshot import GROUPS, Snapshot, SourceFile, Store, whole_word
from agent.source.verify import EvidenceStatus, verify_evidence

_MAX_TEXT = 400
_MIN_SEARCH = 2
MAX_LOOKED = 400
"""Files one question about calls may parse: 1 s."""


class GitSourceIndex:
    """Answers the questions of `SourceIndex` from the checkouts it was opened on."""

    def __init__(self, checkouts: Sequence[Checkout]) -> None:
        self._stores = {checkout.info.name: Store(checkout) for checkout in checkouts}
        self._trees = TreeCache()
        self._bundles: dict[tuple[str, str], Definitions] = {}
        self._manifests: dict[tuple[str, str], BuildManifests] = {}
        self._work = Workbench(self._bundle, self._default, self._manifest, {}, self._trees)
        self._fingerprints: dict[tuple[object, ...], tuple[int, int]] = {}

    def repos(self) -> tuple[RepoInfo, ...]:
        """List the checkouts in the order they were given."""
        return tuple(store.checkout.info for store in self._stores.values())

    def search(self, text: str, *, repo: str = "", limit: int = 20) -> tuple[SourceHit, ...]:
        """Find lines that hold `text` literally, runtime code first."""
        if len(text) < _MIN_SEARCH or "\n" in text:
            return ()
        found: list[SourceHit] = []
        literal = text.encode("utf-8", "replace")
        for group in GROUPS:
            for bundle in self._chosen(repo):
                for file in bundle.snapshot.holding(literal, group):
                    found.extend(_hits(file, literal))
                    if len(found) >= limit:
                        return tuple(found[:limit])
        return tuple(found)

    def find_definition(
        self, name: str, *, repo: str = "", limit: int = 20
    ) -> tuple[Definition, ...]:
        """Find what defines the kernel `name`; several mean ambiguous."""
        found = [one for bundle in self._chosen(repo) for one in bundle.find(name)]
        return tuple(sorted(found, key=lambda one: not one.runtime)[:limit])

    def find_call_sites(
        self, symbol: str, *, repo: str = "", limit: int = 20
    ) -> tuple[CallSite, ...]:
        """Find calls, launches and instantiations of `symbol`, runtime code first.

        Raises:
            SourceError: more than `MAX_LOOKED` files hold the word, and few of them call it.
        """
        found: list[CallSite] = []
        looked, word = 0, whole_word(symbol)
        for group in GROUPS:
            for bundle in self._chosen(repo):
                for file in bundle.snapshot.holding(symbol.encode("utf-8", "replace"), group):
                    if is_python(file.path) and word.search(file.text) is None:
                        continue
                    looked += 1
                    if looked > MAX_LOOKED:
                        raise _too_common(symbol)
                    found.extend(self._sites(file, symbol))
                    if len(found) >= limit:
                        return tuple(found[:limit])
        return tuple(found)

    def read(self, repo: str, path: str, first: int, last: int) -> tuple[str, ...]:
        """Give lines `first`..`last`, cut at the file's end."""
        bundle = next(iter(self._chosen(repo)), None)
        if bundle is None or not repo:
            raise CheckoutNotFound("SC001", f"no checkout is named {repo!r}")
        found = bundle.snapshot.file(path)
        if isinstance(found, Finding):
            raise SourceError("SC005", found.message, location=path[:200])
        return found.lines(first, last)

    def shortlist(
        self,
        name: str,
        *,
        op: str = "",
        input_dtypes: tuple[str, ...] = (),
        context: RunContext | None = None,
        limit: int = 8,
    ) -> tuple[Candidate, ...]:
        """List candidate evidence for one kernel, best first."""
        return shortlist(self.workbench(), name, op, input_dtypes, context or RunContext())[:limit]

    def examine(
        self,
        evidence: tuple[Evidence, ...],
        *,
        names: tuple[str, ...],
        category: str,
        context: RunContext,
        pattern: str = "",
        listed: tuple[str, ...] = (),
    ) -> Examination:
        """Check a proposal's evidence against the pinned commits and take the pins."""
        question = Question(evidence, names, category, context, pattern, listed)
        return examine(self.workbench(), question)

    def named_like(self, literal: str, *, limit: int = 60) -> tuple[Definition, ...]:
        """List runtime definitions and table rows whose name holds a literal."""
        found = (one for bundle in self._chosen("") for one in definitions_like(bundle, literal))
        return tuple(sorted(set(found))[:limit])

    def fingerprint(
        self, repo: str, commit: str, frames: frozenset[tuple[str, int, str]]
    ) -> tuple[int, int]:
        """Count the frames of a checkout that a commit has: (n, of m)."""
        bundle = self._bundle(repo, commit)
        if isinstance(bundle, Finding):
            return 0, 0
        key = (repo, commit, frames)
        if key not in self._fingerprints:
            self._fingerprints[key] = fingerprint(bundle.snapshot, self._trees, frames)
        return self._fingerprints[key]

    def verify(self, evidence: Evidence) -> EvidenceStatus:
        """Find pinned evidence again in its checkout at the commit that is read."""
        store = self._stores.get(evidence.repo)
        if store is None:
            message = f"no checkout is named {evidence.repo[:60]!r}"
            return EvidenceStatus("NOT_CHECKED", evidence, message=message)
        return verify_evidence(evidence, self._open(evidence.repo, store.checkout.info.commit))

    def workbench(self) -> Workbench:
        """Give what an examination works with."""
        return self._work

    def close(self) -> None:
        """End the reading processes."""
        for store in self._stores.values():
            store.checkout.close()

    def _chosen(self, repo: str) -> tuple[Definitions, ...]:
        return tuple(one for one in self._default() if repo in ("", one.snapshot.repo))

    def _default(self) -> tuple[Definitions, ...]:
        return tuple(
            self._open(name, store.checkout.info.commit) for name, store in self._stores.items()
        )

    def _bundle(self, repo: str, commit: str) -> Definitions | Finding:
        if repo not in self._stores:
            known = ", ".join(self._stores) or "none"
            message = f"no checkout is named {repo[:60]!r} (there is: {known})"
            return Finding("E_REPO_UNKNOWN", message, hint=f"--repo {repo[:40]}=DIR")
        try:
            return self._open(repo, commit)
        except CommitMismatch as err:
            return Finding("E_COMMIT_UNKNOWN", err.message, hint=err.hint)

    def _open(self, repo: str, commit: str) -> Definitions:
        key = (repo, commit)
        if key not in self._bundles:
            self._bundles[key] = Definitions(Snapshot(self._stores[repo], commit), self._trees)
        return self._bundles[key]

    def _manifest(self, bundle: Definitions) -> BuildManifests:
        key = (bundle.snapshot.repo, bundle.snapshot.info.commit)
        if key not in self._manifests:
            self._manifests[key] = BuildManifests(bundle.snapshot)
        return self._manifests[key]

    def _sites(self, file: SourceFile, symbol: str) -> Iterator[CallSite]:
        if is_python(file.path):
            for site in sites_named(file, self._trees, symbol):
                found = call_site(file, site)
                yield found if is_runtime(file.path) else _not_runtime(found)
            return
        for native in launches_of(file, symbol):
            text = file.lines(native.line, native.line)[0].strip()[:_MAX_TEXT]
            line = (native.line, native.line)
            runtime = is_runtime(file.path)
            yield CallSite(
                file.repo, file.path, line, text, native.function, (), native.node, runtime
            )


def open_sources(
    repos: Sequence[tuple[str, Path]], *, commits: Mapping[str, str] | None = None
) -> GitSourceIndex:
    """Open checkouts by name, each at its HEAD or at the commit named for it.

    Raises:
        UsageError: two checkouts have one name.
        CheckoutNotFound, CommitMismatch, SourceError: see `agent.source.checkout`.
    """
    names = [name for name, _ in repos]
    for name in names:
        if names.count(name) > 1:
            raise UsageError("SC006", f"two checkouts are named {name!r}", hint="--repo NAME=DIR")
    wanted = commits or {}
    return GitSourceIndex([open_checkout(name, path, wanted.get(name, "")) for name, path in repos])


def _too_common(symbol: str) -> SourceError:
    message = f"{symbol[:60]!r} stands in more than {MAX_LOOKED} files that hardly call it"
    return SourceError("SC007", message, hint="ask for a longer or rarer name")


def _hits(file: SourceFile, literal: bytes) -> Iterator[SourceHit]:
    start = file.text.find(literal)
    while start >= 0:
        begin = file.text.rfind(b"\n", 0, start) + 1
        end = file.text.find(b"\n", start)
        end = len(file.text) if end < 0 else end
        line = file.text[begin:end].rstrip(b"\r").decode("utf-8", "replace")
        yield SourceHit(file.repo, file.path, file.line_of(start), line[:_MAX_TEXT])
        start = file.text.find(literal, end)


def _not_runtime(site: CallSite) -> CallSite:
    return CallSite(
        site.repo, site.path, site.lines, site.text, site.qualname, site.guards, site.node,
        runtime=False,
    )  # fmt: skip
