"""Two curves with the optimum between them; and an answer that is not there yet."""

import matplotlib.pyplot as plt

from tubal import Lambda, datasets, solve

checks = []
data = datasets.make_tensor_subspaces(30, 12, 3, 2, 40, outliers=0.2, noise=0.1, random_state=0)
solve(data.X, lam=Lambda.relative(0.5), tol=1e-9, callback=checks.append)
demo, lam = datasets.load_demo(), Lambda.paper(1)
certified = solve(demo.X, lam=lam)
published = solve(demo.X, lam=lam, solver="published")

fig, axes = plt.subplots(1, 2, figsize=(9, 2.8))
n = [check.n_iter for check in checks]
primal, dual = ([getattr(check, side) for check in checks] for side in ("primal", "dual"))
axes[0].plot(n, primal, "o-", ms=3, label="objective (primal)")
axes[0].plot(n, dual, "s-", ms=3, label="lower bound (dual)")
axes[0].fill_between(n, dual, primal, alpha=0.15)
axes[0].set(xlabel="iteration", title="the optimum lies between them")
axes[0].legend(loc="center right")
bars = {
    f"published schedule,\n{published.n_iter} iterations": published.certificate.primal,
    f"certified,\n{certified.n_iter} iterations": certified.certificate.primal,
    "proved lower bound": certified.certificate.dual,
}
places = axes[1].barh(list(bars), list(bars.values()), color=["C7", "C0", "C1"])
axes[1].bar_label(places, fmt="%.3f", padding=-36, color="w")
axes[1].invert_yaxis()
axes[1].set(title="objective at the end, demo data")
for ax in axes:
    ax.title.set_size(9)
