"""The same settings as a Kubernetes custom resource: a layer for the nodes of a selector."""

from __future__ import annotations

from typing import Any

from config.json_schema import PART, json_schema

GROUP = "wayout.dev"
KIND = "EgressNodeConfig"
_REF = "#/$defs/"
_KEPT = frozenset(
    {
        "type", "description", "properties", "items", "required", "enum", "pattern", "minimum",
        "maximum", "maxLength", "additionalProperties",
    }
)  # fmt: skip
"""What a structural schema of Kubernetes may have of what ours has."""

_SELECTOR = {
    "type": "object",
    "description": "Nodes that this is for; empty means all.",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition; its `spec.config` is what a group may set.

    Where several match a node, they are laid over each other by (priority, name), later wins.
    """
    schema = json_schema()
    config = _structural(schema["$defs"][PART], schema["$defs"])
    spec = {
        "type": "object",
        "required": ["config"],
        "properties": {
            "nodeSelector": _SELECTOR,
            "priority": {"type": "integer", "minimum": 0, "maximum": 1_000_000},
            "config": config,
        },
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"kind": KIND, "plural": "egressnodeconfigs", "singular": "egressnodeconfig"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def _structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Without references, and with `nullable` where we have a second type.

    Fields that are not known stay errors there, too: the API server prunes or refuses them.
    """
    if "$ref" in schema:
        return _structural(definitions[schema["$ref"].removeprefix(_REF)], definitions)
    nullable = False
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each != {"type": "null"}]
        nullable = len(kinds) < len(schema["anyOf"])
        schema = {**schema, **kinds[0]}
    kind = schema.get("type")
    if isinstance(kind, list):
        real = [each for each in kind if each != "null"]
        nullable = "null" in kind
        mixed: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
        schema = {**schema, "type": real[0]} if len(real) == 1 else mixed
    found: dict[str, Any] = {
        key: value for key, value in schema.items() if key in _KEPT or key.startswith("x-k")
    }
    if "properties" in found:
        found.pop("additionalProperties", None)
        found["properties"] = {
            name: _structural(each, definitions) for name, each in found["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _structural(found[key], definitions)
    return {**found, "nullable": True} if nullable else found
