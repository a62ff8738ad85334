"""What all estimators share: the door for user data, tags, progress."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any, TypeVar, cast

import array_api_compat as aac
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from tubal._threads import calm_blas
from tubal.estimators.summary import with_facts
from tubal.input import Samples, check_no_dates, read, to_numpy
from tubal.solvers import Check, watching

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks of scikit-learn's own before version 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def fits(method: F) -> F:
    """Let a method fit whole or not at all.

    What an estimator was before an error it is again afterwards; callbacks of scikit-learn are
    torn down; and parameters are frozen: what is set after a fit matters to the next fit only.
    Threads are those of this package, not of BLAS.
    """
    managed = with_callbacks(method)

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            self._frozen = SimpleNamespace(**self._settings())
            with calm_blas():
                return managed(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return cast(F, fit)


class ParameterAndMethod:
    """One name for a constructor parameter and for a method.

    The paper's transform and scikit-learn's `transform` share their name. Reading the attribute of
    an estimator gives the method; assigning to it, as `__init__` and `set_params` do, sets the
    parameter, which `get_params` reads from the instance dictionary.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.method if instance is None else MethodType(self.method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__["transform"] = value


def with_transform_parameter(cls: C) -> C:
    """Let a class have `transform` both as a parameter and as a method.

    A decorator, since scikit-learn wraps the method when the class is made (`set_output`).
    """
    cls.transform = ParameterAndMethod(cls.transform)  # type: ignore[attr-defined]
    return cls


class TensorEstimator(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: reads samples of any number of axes, NaN = missing.

    Attributes
    ----------
    _frozen : SimpleNamespace
        The parameters at the time of the fit.
    """

    _frozen: SimpleNamespace

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator, as in scikit-learn."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if "transform" in params:
            params["transform"] = self.__dict__["transform"]
        return params

    def _settings(self) -> dict[str, Any]:
        """Return what a fit depends on besides the data."""
        return self.get_params(deep=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` returns, for tables."""
        self._check_fitted()
        if len(self.sample_shape_) > 1:
            msg = f"samples of shape {self.sample_shape_} have no feature names; tables do"
            raise ValueError(msg)
        return _check_feature_names_in(self, input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, *, reset: bool) -> Samples:
        """Check user data with the rules of scikit-learn, then with ours."""
        check_no_dates(X)
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
        foreign = aac.is_array_api_obj(X) and not isinstance(X, np.ndarray)
        options: dict[str, Any] = {"skip_check_array": True}
        if not foreign:
            options = {
                "dtype": [np.float64, np.float32],
                "ensure_all_finite": "allow-nan",
                "allow_nd": True,
                "ensure_min_samples": 2 if reset else 1,
            }
        with np.errstate(invalid="ignore"):  # scikit-learn sums all entries, which may overflow
            X = validate_data(self, X, reset=reset, **options)
        samples = read(X, min_samples=2 if reset else 1)
        shape = tuple(int(n) for n in samples.restore(samples.values).shape[1:])
        if reset:
            self.sample_shape_ = shape
        elif shape != self.sample_shape_:
            msg = f"X holds samples of shape {shape}, the fit had samples of {self.sample_shape_}"
            raise ValueError(msg)
        return samples

    def report(
        self,
        path: str | Path,
        *,
        names: Sequence[str] | None = None,
        images: Any = None,
        title: str | None = None,
        show: str = "auto",
    ) -> Path:
        """Write what the fit found as one HTML page that needs no network.

        Clusters and outliers with pictures of the samples, scores with a threshold that can be
        moved in the page, the graph, the certificate, recovered entries, and how to reproduce it.
        Needs the extra `report`. See `tubal.report.write`.

        Parameters
        ----------
        path : str or Path
            The file; one that exists is replaced.
        names : sequence of str or None
            A name for each sample of the fit; numbers by default.
        images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), \
        sequence of such arrays, or None
            Pictures to show for the samples; by default the samples themselves are drawn.
        title : str or None
        show : {"auto", "picture", "heat", "lines"}
            How samples are drawn: as grey or colour pictures, as heat maps, or as lines.

        Returns
        -------
        Path
            Of the file.
        """
        self._check_fitted()
        # A later room: loaded by name when it is asked for, as the package loads its public names.
        room = import_module("tubal.report")
        written: Path = room.write(self, path, names=names, images=images, title=title, show=show)
        return written

    def _repr_html_inner(self) -> str:
        return self._with_facts(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_facts(bundle["text/html"])
        return bundle

    def _with_facts(self, html: str) -> str:
        """Say what a fit found above the diagram of scikit-learn; nothing before a fit."""
        return with_facts(html, self) if hasattr(self, "sample_shape_") else html

    def _check_fitted(self) -> None:
        check_is_fitted(self, "sample_shape_")

    @contextmanager
    def _progress(self, stages: int) -> Iterator[Progress]:
        """Report the stages of a fit to the callbacks of scikit-learn, where there are any."""
        context = None
        if hasattr(self, "_init_callback_context"):
            context = self._init_callback_context(max_subtasks=stages)
            context.call_on_fit_task_begin(estimator=self)
        yield Progress(self, context)
        if context is not None:
            context.call_on_fit_task_end(estimator=self)


class Progress:
    """Stages of a fit as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context

    @contextmanager
    def stage(self, name: str, *, steps: bool = False) -> Iterator[Callable[[Check], bool]]:
        """Report one stage; inside, the given function reports a step and says whether to stop."""
        watching().stage(name)
        if self.context is None:
            yield lambda check: False
            return
        task = self.context.subcontext(task_name=name, max_subtasks=None if steps else 0)
        task.call_on_fit_task_begin(estimator=self.estimator)

        def step(check: Check) -> bool:
            leaf = task.subcontext(task_name=f"gap {check.gap:.1e}")
            leaf.call_on_fit_task_begin(estimator=self.estimator)
            return bool(leaf.call_on_fit_task_end(estimator=self.estimator))

        yield step
        task.call_on_fit_task_end(estimator=self.estimator)


def on_cpu(samples: Samples) -> Samples:
    """Return the samples as NumPy arrays."""
    observed = None if samples.observed is None else to_numpy(samples.observed)
    return Samples(to_numpy(samples.values), observed, samples.table)


def joined(own: Any, step: Callable[[Check], bool]) -> Callable[[Check], bool]:
    """Return a callback of the solver that serves the user and scikit-learn's callbacks."""
    if own is not None and not callable(own):
        msg = f"callback must be callable or None, got {own!r}"
        raise ValueError(msg)

    def callback(check: Check) -> bool:
        stop = own is not None and bool(own(check))
        return step(check) or stop

    return callback
