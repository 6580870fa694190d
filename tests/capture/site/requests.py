"""As much of `requests` as SGLang's profiler uses, from the standard library."""

import json as _json
import urllib.error
import urllib.request


class Response:
    def __init__(self, status, body):
        self.status_code, self._body = status, body

    def raise_for_status(self):
        if self.status_code >= 400:
            raise SystemExit(f"HTTP {self.status_code}: {self._body.decode()}")

    def json(self):
        return _json.loads(self._body)


def get(url, **_):
    return _sent(urllib.request.Request(url))


def post(url, json=None, **_):
    body = _json.dumps(json or {}).encode()
    return _sent(urllib.request.Request(url, body, {"Content-Type": "application/json"}))


def _sent(request):
    try:
        with urllib.request.urlopen(request) as answer:
            return Response(answer.status, answer.read())
    except urllib.error.HTTPError as err:
        return Response(err.code, err.read())
