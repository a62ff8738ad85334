"""Fitted estimators in files that hold data and nothing else.

A model file is an uncompressed zip archive, as `numpy.savez` writes it: ``model.json`` says how the
estimator is put together, ``0.npy``, ``1.npy``, ... are its arrays. Objects are named by a key of
`CLASSES`; what a file says is never looked up anywhere else, imported, called or unpickled.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tubal._atomic import replacing
from tubal.problem import Lambda

SCHEMA = 1
"""Number of the format. A file of another number is refused."""

CLASSES = {
    "estimators.completer": ("TensorCompleter",),
    "estimators.detector": ("TensorOutlierDetector",),
    "estimators.known": ("Known",),
    "estimators.lowrank": ("LowRankClusterer", "ORTLRR", "_NewSamples"),
    "estimators.sparse": ("EnSC", "LSR", "SSC", "SSCOMP"),
    "graph": ("Absolute", "AllPairs", "Nearest"),
    "input": ("Samples",),
    "noise": ("Exact", "L1", "L21"),
    "outliers.consensus": ("Consensus", "ConsensusScorer", "Scale"),
    "outliers.detection": ("Detection", "Nothing", "Residual", "ResidualScorer"),
    "outliers.views": ("Table",),
    "reduction": ("Reduction",),
    "representation": (
        "Moduli", "Neighbours", "Representation", "RowSpace", "SparseTable", "TubeKernel",
        "TubeModuli", "Whole",
    ),
    "selection": ("Candidate", "Selection"),
    "similarity.shrunken": ("Coded", "Shrunken"),
    "similarity.views": ("GaussianKernel", "View"),
    "solvers.certified": ("Certified",),
    "solvers.extension": ("Extension",),
    "solvers.published": ("Published",),
    "solvers.solution": ("Certificate", "Check", "Factored", "Solution", "State"),
    "sparse.lsr": ("RidgeRepresentation",),
    "sparse.representation": ("SparseRepresentation",),
    "spectral.assignment": (
        "Best", "DiffusionWard", "Discretise", "KMeansRows", "ModularityKMeans",
    ),
    "spectral.chance": ("Count",),
    "spectral.cut": ("Cut",),
    "transforms.composed": ("Composed",),
    "transforms.fast": ("Cosine", "Fourier", "Identity"),
    "transforms.matrices": (
        "DataDriven", "MatrixTransform", "Orthogonal", "RandomOrthogonal", "Reflections",
    ),
}  # fmt: skip
"""Every class that a model may consist of, by its module in this package."""

RULES = ("paper", "relative", "effective_rank", "entries", "samples", "auto")
"""Names of the rules of `Lambda`."""


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file that holds data and no code.

    Parameters
    ----------
    estimator : estimator of this package
    path : path
        A file there is replaced when the new one is whole.

    Raises
    ------
    ValueError
        If a parameter is an object that is not of this package, such as another library's
        transformer. `joblib.dump` saves such an estimator.

    Examples
    --------
    >>> import tempfile, tubal
    >>> X = tubal.datasets.make_tensor_subspaces(random_state=0).X
    >>> clusterer = tubal.ORTLRR(5, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tubal.save_model(clusterer, f"{folder}/model.npz")
    ...     again = tubal.load_model(f"{folder}/model.npz")
    >>> bool((again.predict(X) == clusterer.labels_).all())
    True
    """
    path = Path(path)
    writer = _Writer()
    text = json.dumps({"schema": SCHEMA, "model": writer.node(estimator, type(estimator).__name__)})
    with replacing(path) as whole, zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", text)
        for i, array in enumerate(writer.arrays):
            with archive.open(f"{i}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that `save_model` wrote.

    Nothing in the file is run, imported or unpickled, so it may come from a stranger. What it
    predicts may be wrong all the same.

    Parameters
    ----------
    path : path

    Raises
    ------
    ValueError
        If the file is not a model, is damaged, or was written in another format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = _Reader(archive).model()
    except FileNotFoundError:
        raise
    except (
        zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError, TypeError, IndexError,
        AttributeError, RecursionError, NotImplementedError, MemoryError, OverflowError,
    ) as error:  # fmt: skip
        told = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        msg = f"{os.fspath(path)} is no model that this version can load: {told}"
        raise ValueError(msg) from None
    return found


@cache
def _classes() -> dict[str, type]:
    return {
        f"{module}.{name}": getattr(import_module(f"tubal.{module}"), name)
        for module, names in CLASSES.items()
        for name in names
    }


@dataclass(eq=False)
class _Writer:
    """Turns objects into nodes of JSON. Arrays are kept, and each of them is written once."""

    arrays: list[np.ndarray] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    keys: dict[type, str] = field(
        default_factory=lambda: {kind: key for key, kind in _classes().items()}
    )

    def node(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in (list, tuple):
            parts = [self.node(each, f"{where}[{i}]") for i, each in enumerate(value)]
            return {kind.__name__: parts}
        if kind is dict:
            pairs = [
                [self.node(key, where), self.node(each, f"{where}[{key!r}]")]
                for key, each in value.items()
            ]
            return {"dict": pairs}
        if kind is np.ndarray and value.dtype.kind in "biufcSU":
            return {"array": self._place(value)}
        if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
            return {"scalar": self._place(np.asarray(value))}
        if kind is sp.csr_array:
            parts = [self._place(each) for each in (value.data, value.indices, value.indptr)]
            return {"csr": parts, "shape": [int(size) for size in value.shape]}
        if kind is SimpleNamespace:
            return {"namespace": self._state(vars(value), where)}
        if kind is Lambda and value.name in RULES:
            return {"lam": value.name, "parameter": self.node(value.parameter, where)}
        if kind in self.keys:
            return {"object": self.keys[kind], "state": self._state(value.__getstate__(), where)}
        msg = (
            f"{where} is of {kind.__module__}.{kind.__qualname__}, which a model file cannot hold: "
            "save the estimator with joblib instead"
        )
        raise ValueError(msg)

    def _state(self, state: dict[str, Any] | None, where: str) -> dict[str, Any]:
        return {name: self.node(each, f"{where}.{name}") for name, each in (state or {}).items()}

    def _place(self, array: np.ndarray) -> int:
        place = self.places.setdefault(id(array), len(self.arrays))
        if place == len(self.arrays):
            self.arrays.append(array)  # which keeps its identity from being used again
        return place


@dataclass(eq=False)
class _Reader:
    """Builds objects from the nodes of JSON of an archive."""

    archive: zipfile.ZipFile
    arrays: dict[int, np.ndarray] = field(default_factory=dict)

    def model(self) -> Any:
        if any(member.compress_type != zipfile.ZIP_STORED for member in self.archive.infolist()):
            msg = "it is compressed, which model files are not"
            raise ValueError(msg)
        if "model.json" not in self.archive.namelist():
            msg = "it holds no model.json"
            raise ValueError(msg)
        content = json.loads(self.archive.read("model.json"))
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            given = content.get("schema") if isinstance(content, dict) else None
            msg = f"its schema is {given!r}, this version reads {SCHEMA}"
            raise ValueError(msg)
        return self.value(content["model"])

    def value(self, node: Any) -> Any:
        if not isinstance(node, dict):
            if isinstance(node, list):
                msg = "a list without a kind"
                raise ValueError(msg)
            return node
        kind = next(iter(node), None)
        read = getattr(self, f"_{kind}", None) if kind in NODES else None
        if read is None:
            msg = f"unknown kind of node {kind!r}"
            raise ValueError(msg)
        return read(node)

    def _list(self, node: dict[str, Any]) -> list[Any]:
        return [self.value(each) for each in node["list"]]

    def _tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.value(each) for each in node["tuple"])

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(each) for key, each in node["dict"]}

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        return self._at(node["array"])

    def _scalar(self, node: dict[str, Any]) -> Any:
        return self._at(node["scalar"])[()]

    def _csr(self, node: dict[str, Any]) -> sp.csr_array:
        data, indices, indptr = (self._at(place) for place in node["csr"])
        made = sp.csr_array((data, indices, indptr), shape=tuple(node["shape"]))
        made.check_format(full_check=True)
        return made

    def _namespace(self, node: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**self._state(node["namespace"]))

    def _lam(self, node: dict[str, Any]) -> Lambda:
        if node["lam"] not in RULES:
            msg = f"unknown rule of lam {node['lam']!r}"
            raise ValueError(msg)
        rule: Lambda = getattr(Lambda, node["lam"])(self.value(node["parameter"]))
        return rule

    def _object(self, node: dict[str, Any]) -> Any:
        kind = _classes().get(node["object"])
        if kind is None:
            msg = f"{node['object']!r} is no class that a model consists of"
            raise ValueError(msg)
        made: Any = object.__new__(kind)
        state = self._state(node["state"])
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)
        return made

    def _state(self, nodes: dict[str, Any]) -> dict[str, Any]:
        return {str(name): self.value(each) for name, each in nodes.items()}

    def _at(self, place: Any) -> np.ndarray:
        if type(place) is not int:
            msg = f"an array is named by a number, not by {place!r}"
            raise ValueError(msg)
        if place not in self.arrays:
            content = io.BytesIO(self.archive.read(f"{place}.npy"))
            self.arrays[place] = np.lib.format.read_array(content, allow_pickle=False)
        return self.arrays[place]


NODES = ("list", "tuple", "dict", "array", "scalar", "csr", "namespace", "lam", "object")
