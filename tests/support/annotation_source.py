"""A source of annotation layers that behaves like an API server: objects, outages, a log."""

from config.remote import SourceError


class AnnotationSource:
    """`nodes` has the annotation of each node, `objects` the keys of (namespace, name)."""

    def __init__(self):
        self.nodes = {}
        self.objects = {}
        self.down = ""
        self.asked = []

    def annotation(self, node):
        self._reach("node", node)
        return self.nodes.get(node)

    def document(self, namespace, name):
        self._reach("configmap", f"{namespace}/{name}")
        return self.objects.get((namespace, name))

    def _reach(self, kind, name):
        self.asked.append((kind, name))
        if self.down:
            raise SourceError(self.down)
