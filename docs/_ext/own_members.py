"""Leave members that come from other packages out of the pages of our classes."""

KEPT = {"fit_predict"}


def skip(app, what, name, obj, skipped, options):
    module = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", None
    )
    foreign = module is not None and not module.startswith("tubal")
    return True if foreign and name not in KEPT else None


def setup(app):
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
