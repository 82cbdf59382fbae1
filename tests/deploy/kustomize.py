"""The part of kustomize that `deploy/kubernetes` uses, for machines without kubectl.

Resources, components, generators (without the hash in names), labels, namespace, images, replicas, and
patches both as JSON Patch and by strategic merge. A key that it does not know is an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
MERGE_KEYS = ("name", "containerPort", "port", "mountPath")
"""By which lists of objects are merged."""


def build(folder: Path) -> list[Object]:
    return _applied(folder, [])


def _applied(folder: Path, objects: list[Object]) -> list[Object]:
    """The objects with everything that the folder's kustomization says; a component gets those before it."""
    given: Object = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    for key in ("apiVersion", "kind", "configurations"):
        given.pop(key, None)
    options = given.pop("generatorOptions", {})
    for row in (*given.get("configMapGenerator", ()), *given.get("secretGenerator", ())):
        row["labels"] = options.get("labels", {})
    for path in given.pop("resources", ()):
        objects = objects + (build(folder / path) if (folder / path).is_dir() else _read(folder / path))
    for path in given.pop("components", ()):
        objects = _applied(folder / path, objects)
    for key, value in given.items():
        STEPS[key](folder, objects, value)
    return objects


def _read(path: Path) -> list[Object]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def _generate(kind: str, encode: Callable[[str], str]) -> Callable[[Path, list[Object], Any], None]:
    def step(folder: Path, objects: list[Object], rows: Any) -> None:
        for row in rows:
            data = dict(text.split("=", 1) for text in row.get("literals", ()))
            data |= {Path(file).name: (folder / file).read_text() for file in row.get("files", ())}
            data = {key: encode(value) for key, value in data.items()}
            if row.get("behavior") == "merge":
                _find(objects, kind, row["name"])["data"] |= data
            else:
                metadata = {"name": row["name"], "labels": dict(row["labels"])}
                objects.append({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data})

    return step


def _find(objects: list[Object], kind: str, name: str) -> Object:
    return next(one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))


def _namespace(folder: Path, objects: list[Object], name: str) -> None:
    for one in objects:
        if one["kind"] != "Namespace":
            one["metadata"]["namespace"] = name


def _labels(folder: Path, objects: list[Object], rows: Any) -> None:
    for row in rows:
        for one in objects:
            one["metadata"].setdefault("labels", {})
            one["metadata"]["labels"] = one["metadata"]["labels"] | row["pairs"]
            template = one.get("spec", {}).get("template", {}).get("metadata")
            if template is not None and row.get("includeTemplates"):
                template["labels"] = template["labels"] | row["pairs"]


def _images(folder: Path, objects: list[Object], rows: Any) -> None:
    wanted = {row["name"]: row for row in rows}
    for one in objects:
        spec = one.get("spec", {}).get("template", {}).get("spec", {})
        for container in spec.get("template", {}).get("spec", spec).get("containers", ()):  # a Fleet has two
            name = container["image"].partition(":")[0]
            if name in wanted:
                row = wanted[name]
                container["image"] = f"{row.get('newName', name)}:{row['newTag']}"


def _replicas(folder: Path, objects: list[Object], rows: Any) -> None:
    for row in rows:
        for one in objects:
            if one["kind"] in ("Deployment", "StatefulSet") and one["metadata"]["name"] == row["name"]:
                one["spec"]["replicas"] = row["count"]


def _patches(folder: Path, objects: list[Object], rows: Any) -> None:
    for row in rows:
        text = row.get("patch") or (folder / row["path"]).read_text(encoding="utf-8")
        for change in yaml.safe_load_all(text):
            if isinstance(change, dict) and change.get("$patch") == "delete":
                for one in _targets(objects, row["target"]):
                    objects.remove(one)
            elif isinstance(change, list):
                for one in _targets(objects, row["target"]):
                    _json_patch(one, change)
            else:
                one = _find(objects, change["kind"], change["metadata"]["name"])
                one.update(_merged(one, change))


def _targets(objects: list[Object], target: Object) -> list[Object]:
    return [
        one
        for one in objects
        if re.fullmatch(target["kind"], one["kind"])
        and re.fullmatch(target.get("name", ".*"), one["metadata"]["name"])
    ]


def _json_patch(one: Object, changes: list[Object]) -> None:
    for change in changes:
        *parents, last = (part.replace("~1", "/") for part in change["path"].strip("/").split("/"))
        place: Any = one
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if change["op"] == "test":
            assert place[last] == change["value"], f"{change['path']} is {place[last]}"
        elif change["op"] == "remove":
            del place[last]
        elif last == "-":
            place.append(change["value"])
        else:
            assert change["op"] == "add" or last in place, f"{change['path']} is not there"
            place[last] = change["value"]


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old.get(key), value) for key, value in new.items()}
    if isinstance(old, list) and isinstance(new, list) and new and isinstance(new[0], dict):
        return _merged_list(old, new)
    return new


def _merged_list(old: list[Object], new: list[Object]) -> list[Object]:
    if {"$patch": "replace"} in new:
        return [one for one in new if one != {"$patch": "replace"}]
    key = next((key for key in MERGE_KEYS if key in new[0]), "")
    if not key:
        return new
    changes = {one[key]: one for one in new}
    kept = [_merged(one, changes.pop(one[key])) if one[key] in changes else one for one in old]
    return [*kept, *changes.values()]


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


STEPS: dict[str, Callable[[Path, list[Object], Any], None]] = {
    "configMapGenerator": _generate("ConfigMap", str),
    "secretGenerator": _generate("Secret", _encoded),
    "labels": _labels,
    "images": _images,
    "replicas": _replicas,
    "patches": _patches,
    "namespace": _namespace,
}
