"""A source of annotation layers that behaves like an API server: objects, outages, a log."""

import asyncio

from config.remote import SourceError


class AnnotationSource:
    """`nodes` has the annotation of each node, `objects` the keys of (namespace, name).

    `down` is what it says instead of answering. `requests` has the times and kinds of all that a
    server would see; `closes` ends every watch at once; `answers` are errors for the next ones.
    With a `token_file` a request is served only if the file holds `token`.
    """

    def __init__(self):
        self.nodes = {}
        self.objects = {}
        self.down = ""
        self.asked = []
        self.requests = []
        self.closes = False
        self.answers = []
        self.token_file, self.token = None, ""
        self._news = asyncio.Event()

    def tell(self):
        """Whoever watches is told that something changed."""
        self._news.set()

    async def read(self):
        self._serve("list")

    async def changed(self):
        self._serve("watch")
        if self.closes:
            return False
        await self._news.wait()
        self._news.clear()
        if self.down:
            raise SourceError(self.down)
        return True

    def annotation(self, node):
        self._reach("node", node)
        return self.nodes.get(node)

    def document(self, namespace, name):
        self._reach("configmap", f"{namespace}/{name}")
        return self.objects.get((namespace, name))

    def _serve(self, kind):
        self.requests.append((asyncio.get_running_loop().time(), kind))
        if self.answers:
            raise self.answers.pop(0)
        if self.token_file is not None and self.token_file.read_text() != self.token:
            raise SourceError("the token is not accepted (401)")
        if self.down:
            raise SourceError(self.down)

    def _reach(self, kind, name):
        self.asked.append((kind, name))
        if self.down:
            raise SourceError(self.down)
