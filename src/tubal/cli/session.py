"""One fit from the shell: read, fit, write, tell.

    options -> estimator -> samples -> fit (watched, resumable) -> folder of results

What can be refused is refused before the samples are read, the rest before the fit.
"""

from __future__ import annotations

import argparse
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tubal import estimators, files
from tubal._atomic import write_text
from tubal._printable import printable
from tubal.bench.runner import peak_memory
from tubal.cli import outputs
from tubal.cli.engines import check_engine, on_engine
from tubal.cli.options import TRANSFORMS
from tubal.cli.progress import Display, display
from tubal.cli.resume import Keeper, Partial, answering_ctrl_c, fingerprint
from tubal.cli.show import counted, say, short_duration, some
from tubal.estimators.catalogue import SELF_EXPRESSIVE
from tubal.files import Loaded
from tubal.files.loaded import by
from tubal.solvers import watch

INPUT_OPTIONS = ("key", "sample_axis", "shape", "size", "grey", "mask")


class Session(ABC):
    """A command that fits an estimator to an input and writes a folder."""

    command: str
    suffix = ""
    """Of the default folder, so that the commands do not get in each other's way."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.target: Path = args.out or Path(f"tubal-{_stem(args.input)}{self.suffix}")
        self.partial = Partial(outputs.beside(self.target, ".partial"), {})
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []

    @abstractmethod
    def estimator(self) -> Any:
        """Return what is fitted."""

    @abstractmethod
    def fit(self, estimator: Any, X: Any) -> Any:
        """Fit it; return what `write` needs besides."""

    @abstractmethod
    def write(self, folder: Path, fitted: Any, loaded: Loaded, found: Any) -> None:
        """Write the results."""

    @abstractmethod
    def results(self, fitted: Any) -> dict[str, Any]:
        """Return the results in a few numbers, for run.json."""

    @abstractmethod
    def tell(self, fitted: Any) -> None:
        """Print the results in a few words."""

    def check(self, loaded: Loaded) -> None:  # noqa: B027, most have a use for all
        """Refuse samples that the command has no use for."""

    def run(self) -> None:
        """Do all of it."""
        with outputs.reserved(self.target):
            self._check()
            estimator = self.estimator()
            written = self._run(estimator)
        for warning in self.warnings:
            say(f"warning: {warning}")
        self.tell(estimator)
        print(f"written to {printable(str(self.target))}: {', '.join(written)}")

    def _run(self, estimator: Any) -> list[str]:
        """Read, fit and write; return the names of the files."""
        started = datetime.now(UTC)
        with display() as shown:
            keeper = Keeper(self.partial, shown, self.args.resume)
            with answering_ctrl_c(keeper):
                loaded = self._read(shown)
                self._prepare(estimator, loaded.X, keeper)
                with outputs.new_folder(self.target) as folder:
                    with (
                        on_engine(self.args, loaded.X) as X,
                        self._timed("fit"),
                        self._noting_warnings(),
                        watch(keeper),
                    ):
                        found = self.fit(estimator, X)
                    shown.stage("write")
                    with self._timed("write"):
                        self.write(folder, estimator, loaded, found)
                        self._report(folder, estimator, loaded)
                    record = self._record(estimator, loaded, started, keeper)
                    outputs.write_json(folder / outputs.MARK, record)
                    written = sorted(path.name for path in folder.iterdir())
                self.partial.clear()
        return written

    def _check(self) -> None:
        """Refuse what needs no look at the samples."""
        outputs.check_target(self.target, self.args.force)
        check_engine(self.args)
        if self.partial.folder.exists() and not (self.args.resume or self.args.force):
            msg = (
                f"{self.partial.folder} holds an interrupted fit: --resume goes on with it, "
                "--force starts anew"
            )
            raise ValueError(msg)

    def _read(self, shown: Display) -> Loaded:
        shown.stage("read")
        with self._timed("read"):
            options = {name: getattr(self.args, name) for name in INPUT_OPTIONS}
            options["max_memory"] = self.args.max_memory
            loaded = files.load(self.args.input, **options, progress=shown.share)
        tell_input(loaded)
        self.check(loaded)
        return loaded

    def _prepare(self, estimator: Any, X: np.ndarray, keeper: Keeper) -> None:
        """Find out whether an interrupted fit can go on."""
        self.partial.about = fingerprint(estimator, X)
        if not self.args.resume:
            self.partial.clear()
            return
        why_not = self.partial.why_not()
        if why_not is None:
            return
        if self.partial.folder.exists() and not self.args.force:
            msg = f"--resume cannot go on, since {why_not}; --resume --force starts anew"
            raise ValueError(msg)
        say(f"starting anew, since {why_not}")
        keeper.resume = False
        self.partial.clear()

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self.seconds[what] = perf_counter() - start

    @contextmanager
    def _noting_warnings(self) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self.warnings = sorted({_for_the_shell(str(item.message)) for item in caught})

    def _report(self, folder: Path, fitted: Any, loaded: Loaded) -> None:
        if self.args.no_report:
            return
        images = loaded.X if loaded.pictures else None  # else the samples are shown as they are
        try:
            fitted.report(folder / "report.html", names=loaded.names, images=images)
        except ImportError as error:
            say(f"report.html is left out: {error}")

    def _record(
        self, fitted: Any, loaded: Loaded, started: datetime, keeper: Keeper
    ) -> dict[str, Any]:
        """Return all that is worth knowing about the run."""
        options = {
            name: value for name, value in vars(self.args).items() if name not in ("run", "debug")
        }
        return {
            "command": self.command,
            "started": started.isoformat(timespec="seconds"),
            "options": options,
            "estimator": type(fitted).__name__,
            "parameters": fitted.get_params(deep=False),
            "input": {
                "samples": len(loaded.X),
                "shape": loaded.X.shape[1:],
                "missing": float(np.isnan(loaded.X).mean()),
                "notes": loaded.notes,
                "skipped": [{"file": name, "reason": why} for name, why in loaded.skipped],
            },
            "results": self.results(fitted),
            **solver_record(fitted),
            "resumed_at_iteration": keeper.resumed,
            "warnings": self.warnings,
            "seconds": self.seconds,
            "peak_memory_bytes": peak_memory(),
            "versions": outputs.versions(),
        }

    def _overrides(self, *names: str) -> dict[str, Any]:
        """Return the parameters that the user gave."""
        given = {name: getattr(self.args, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


class Cluster(Session):
    """`tubal cluster`."""

    command = "cluster"

    def estimator(self) -> Any:
        """Return the estimator of the method, with what the user gave."""
        args = self.args
        name = "OR-TLRR" if args.method == "auto" else args.method
        overrides = self._overrides("lam", "tol", "max_iter")
        transform = TRANSFORMS[args.transform]
        if transform is not None:
            overrides["transform"] = transform
        method = _method(name)
        known = method.estimator().get_params()
        if method.settings.get("vectorize"):  # a matrix method
            known.pop("transform")
        for option in overrides:
            if option not in known:
                msg = f"--{option.replace('_', '-')} means nothing to --method {name}"
                raise ValueError(msg)
        overrides |= {
            "contamination": args.contamination,
            "random_state": args.seed,
            "n_jobs": args.jobs,
        }
        if args.method == "auto":
            return estimators.ORTLRR(args.clusters, **overrides)
        return method.make(args.clusters, **overrides)

    def check(self, loaded: Loaded) -> None:
        """Refuse holes where the method cannot have them, and too many clusters."""
        method, n_clusters = self.args.method, self.args.clusters
        if method in SELF_EXPRESSIVE and np.isnan(loaded.X).any():
            msg = f"--method {method} cannot have missing entries: TNN+{method} fills them first"
            raise ValueError(msg)
        if n_clusters is not None and n_clusters > len(loaded.X):
            msg = f"-k {n_clusters} is more than there are samples ({len(loaded.X)})"
            raise ValueError(msg)

    def fit(self, estimator: Any, X: Any) -> Any:
        """Fit."""
        estimator.fit(X)

    def write(self, folder: Path, fitted: Any, loaded: Loaded, found: Any) -> None:
        """Write labels, the model, and clean data on request."""
        columns = {
            "name": loaded.names,
            "label": fitted.labels_,
            "outlier_score": fitted.outlier_scores_,
            "outlier": fitted.outliers_,
            "margin": fitted.margins(),
        }
        text = outputs.table_text(columns)
        (folder / "labels.csv").write_text(text, encoding="utf-8")
        write_fit(folder, self.args, fitted, loaded)

    def results(self, fitted: Any) -> dict[str, Any]:
        """Return clusters and outliers."""
        kept = fitted.labels_[fitted.labels_ >= 0]
        return {
            "clusters": fitted.n_clusters_,
            "clusters_confidence": fitted.n_clusters_confidence_,
            "cluster_sizes": np.bincount(kept, minlength=fitted.n_clusters_),
            "outliers": int(fitted.outliers_.sum()),
            "threshold": fitted.threshold_,
        }

    def tell(self, fitted: Any) -> None:
        """Print clusters, outliers and the certificate."""
        results = self.results(fitted)
        sizes = results["cluster_sizes"]
        guess = ""
        if self.args.clusters is None:
            guess = f", {sureness(results['clusters_confidence'])}"
        print(
            f"{counted(results['clusters'], 'cluster')} of {_range(sizes)} samples{guess}; "
            f"{counted(results['outliers'], 'outlier')}"
        )
        tell_certificate(fitted, self.seconds["fit"])


def sureness(confidence: float) -> str:
    """Tell how far to trust an estimated number of clusters.

    >>> sureness(0.13)
    'a guess (confidence 0.13): give the number with -k if you know it'
    """
    from tubal.spectral.count import CONFIDENT

    if confidence >= CONFIDENT:
        return f"estimated with confidence {confidence:.2f}"
    return f"a guess (confidence {confidence:.2f}): give the number with -k if you know it"


class Outliers(Session):
    """`tubal outliers`."""

    command = "outliers"
    suffix = "-outliers"

    def estimator(self) -> Any:
        """Return the detector."""
        overrides = self._overrides("lam", "tol", "max_iter")
        transform = TRANSFORMS[self.args.transform]
        if transform is not None:
            overrides["transform"] = transform
        return estimators.TensorOutlierDetector(
            contamination=self.args.contamination, n_jobs=self.args.jobs, **overrides
        )

    def fit(self, estimator: Any, X: Any) -> Any:
        """Fit."""
        estimator.fit(X)

    def write(self, folder: Path, fitted: Any, loaded: Loaded, found: Any) -> None:
        """Write scores, the model, and clean data on request."""
        columns = {
            "name": loaded.names,
            "outlier_score": fitted.outlier_scores_,
            "outlier": fitted.outliers_,
        }
        text = outputs.table_text(columns)
        (folder / "outliers.csv").write_text(text, encoding="utf-8")
        write_fit(folder, self.args, fitted, loaded)

    def results(self, fitted: Any) -> dict[str, Any]:
        """Return how many outliers there are."""
        return {"outliers": int(fitted.outliers_.sum()), "threshold": fitted.threshold_}

    def tell(self, fitted: Any) -> None:
        """Print outliers and the certificate."""
        n_outliers = int(fitted.outliers_.sum())
        print(f"{counted(n_outliers, 'outlier')} among {len(fitted.outliers_)} samples")
        tell_certificate(fitted, self.seconds["fit"])


class Complete(Session):
    """`tubal complete`."""

    command = "complete"
    suffix = "-filled"

    def estimator(self) -> Any:
        """Return the completer."""
        overrides = self._overrides("tol", "max_iter")
        transform = TRANSFORMS[self.args.transform]
        if transform is not None:
            overrides["transform"] = transform
        return estimators.TensorCompleter(n_jobs=self.args.jobs, **overrides)

    def check(self, loaded: Loaded) -> None:
        """Refuse samples without holes."""
        self.missing = int(np.isnan(loaded.X).sum())
        if not self.missing:
            msg = f"nothing is missing in {self.args.input}: NaN or --mask marks what is to fill"
            raise ValueError(msg)

    def fit(self, estimator: Any, X: Any) -> Any:
        """Fit, and return the samples without holes."""
        return estimator.fit_transform(X)

    def write(self, folder: Path, fitted: Any, loaded: Loaded, found: Any) -> None:
        """Write the samples without holes."""
        np.savez_compressed(
            folder / "filled.npz",
            X=found,
            observed=~np.isnan(loaded.X),
            names=np.array(loaded.names),
        )

    def results(self, fitted: Any) -> dict[str, Any]:
        """Return how many entries were filled."""
        return {"filled": self.missing}

    def tell(self, fitted: Any) -> None:
        """Print how many entries were filled, and the certificate."""
        print(f"{counted(self.missing, 'entry', 'entries')} filled")
        tell_certificate(fitted, self.seconds["fit"])


def predict(args: argparse.Namespace) -> None:
    """Label further samples, and print or write the table."""
    if args.out is not None:
        outputs.check_file(args.out, args.force)
    model = outputs.read_model(args.model, args.trust)
    clusters = isinstance(model, estimators.SubspaceClusterer)
    if not clusters and not isinstance(model, estimators.TensorOutlierDetector):
        msg = f"MODEL {args.model} holds a {type(model).__name__}, not a model of tubal"
        raise ValueError(msg)
    for warning in outputs.check_versions(model):
        say(f"warning: {warning}")
    with display() as shown:
        shown.stage("read")
        loaded = _load_for(model, args, shown.share)
        tell_input(loaded, to=say)
        shown.stage("predict")
        scores = -model.score_samples(loaded.X)
        columns: dict[str, Any] = {"name": loaded.names}
        if clusters:
            labels, margins = model.predict(loaded.X), model.margins(loaded.X)
            columns |= {"label": labels, "outlier_score": scores}
            columns |= {"outlier": labels == -1, "margin": margins}
        else:
            columns |= {"outlier_score": scores, "outlier": scores > model.threshold_}
    text = outputs.table_text(columns)
    if args.out is None:
        print(text, end="")
    else:
        write_text(args.out, text)
        say(f"written to {args.out}")


def _load_for(model: Any, args: argparse.Namespace, progress: Callable[[int, int], None]) -> Loaded:
    """Read samples in the shape that a model needs."""
    shape = model.sample_shape_
    names = ("key", "sample_axis", "mask", "max_memory")
    options: dict[str, Any] = {name: getattr(args, name) for name in names}
    if files.is_pictures(args.input):
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3):
            msg = f"the model has samples of {by(shape)}, which are no pictures; {args.input} is"
            raise ValueError(msg)
        options |= {"size": shape[:2], "grey": len(shape) == 2}
    loaded = files.load(args.input, **options, min_samples=1, progress=progress)
    if loaded.X.ndim == 2 and len(shape) > 1 and loaded.X.shape[1] == np.prod(shape):
        # A row for each sample, to which --shape gave a shape in the fit.
        loaded = files.load(args.input, **options, shape=shape, min_samples=1)
    if loaded.X.shape[1:] != tuple(shape):
        found = by(loaded.X.shape[1:])
        msg = f"{args.input} has samples of {found}, the model needs {by(shape)}"
        raise ValueError(msg)
    return loaded


def write_fit(folder: Path, args: argparse.Namespace, fitted: Any, loaded: Loaded) -> None:
    """Write the model, and clean data on request."""
    outputs.write_model(folder, fitted, args.model_format)
    if args.clean:
        names = np.array(loaded.names)
        np.savez_compressed(folder / "clean.npz", X=fitted.X_clean_, names=names)


def tell_input(loaded: Loaded, to: Callable[[str], None] = print) -> None:
    """Say what was read, what was guessed and what was left out."""
    X = loaded.X
    word = "picture" if loaded.pictures else "sample"
    missing = float(np.isnan(X).mean())
    holes = f", {100 * missing:.3g} % of the entries missing" if missing else ""
    to(f"{counted(len(X), word)} of {by(X.shape[1:])}{holes}")
    for note in loaded.notes:
        to(f"  {note}")
    if loaded.skipped:
        files_ = [f"{name} ({why})" for name, why in loaded.skipped]
        to(f"  {counted(len(files_), 'file')} not readable, left out: {some(files_)}")


def tell_certificate(fitted: Any, seconds: float) -> None:
    """Say how good the solution is."""
    certificate = getattr(fitted, "certificate_", None)
    if certificate is None:
        print(f"solved in {short_duration(seconds)}")
        return
    share = max(100 * certificate.gap, 1e-4)
    print(
        f"the solution is within {share:.2g} % of the optimum ("
        f"{counted(fitted.n_iter_, 'iteration')}, {short_duration(seconds)})"
    )


def solver_record(fitted: Any) -> dict[str, Any]:
    """Return certificate, iterations and lam, where there are any."""
    certificate = getattr(fitted, "certificate_", None)
    solution = getattr(fitted, "solution_", None)
    reason = getattr(solution, "stop_reason", None)
    return {
        "certificate": None
        if certificate is None
        else {"primal": certificate.primal, "dual": certificate.dual, "gap": certificate.gap},
        "iterations": getattr(fitted, "n_iter_", None),
        "stop_reason": None if reason is None else reason.value,
        "lam": getattr(fitted, "lam_", None),
    }


def _for_the_shell(warning: str) -> str:
    """Return a warning with the words of the command line."""
    what, found, _ = warning.partition(" Increase max_iter")
    return f"{what} Raise --max-iter, or accept it with a larger --tol" if found else warning


def _method(name: str) -> Any:
    try:
        return estimators.find(name)
    except ValueError:
        msg = f"--method must be auto or one of {', '.join(estimators.methods())}; got {name!r}"
        raise ValueError(msg) from None


def _stem(path: Path) -> str:
    """Return what an input is called."""
    name = path.absolute().name
    return name if path.is_dir() and path.suffix != ".zarr" else name.split(".")[0] or name


def _range(sizes: np.ndarray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low} to {high}"
