"""
From all noise to no noise: a path of lambda
============================================

One number decides what counts as noise. For small `lam` everything is noise and nothing is
explained, for large `lam` everything is explained, outliers included. `path` solves for a
sequence of values, each started at the solution before it, and shows where the truth lies.
"""

# %%
# Ten values between the ends
# ---------------------------
# `Lambda.relative` puts `lam` at a position between two ends: at 0 nothing is explained, at 1
# everything is.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from tubal import Lambda, datasets, metrics, path, solve

data = datasets.make_tensor_subspaces(30, 12, 4, 2, 40, outliers=0.2, noise=0.05, random_state=0)
positions = np.linspace(0.1, 0.8, 10)
start = perf_counter()
solutions = path(data.X, lams=[Lambda.relative(t) for t in positions])
print(f"10 solutions in {perf_counter() - start:.1f} s\n")

print("position  iterations  nuclear norm  noise in samples  noise in outliers  AUC")
table = []
for t, solution in zip(positions, solutions, strict=True):
    noise = np.linalg.norm(solution.E, axis=(1, 2)) / np.linalg.norm(data.X, axis=(1, 2))
    nuclear = (
        solution.certificate.primal
        - solution.lam * np.linalg.norm(data.X - solution.L, axis=(1, 2)).sum()
    )
    table.append((nuclear, noise[~data.outliers].mean(), noise[data.outliers].mean()))
    auc = metrics.outlier_auc(data.outliers, noise)
    print(
        f"{t:8.2f}  {solution.n_iter:10}  {nuclear:12.2f}"
        f"  {table[-1][1]:16.3f}  {table[-1][2]:17.3f}  {auc:.3f}"
    )

# %%
# "Noise" is the share of a sample that is left unexplained, ``||E_j|| / ||X_j||``. Over a wide
# range of positions outliers have much more of it than other samples. Where the rules of `Lambda`
# lie on the same scale:

lams = np.array([solution.lam for solution in solutions])
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
_, usual, odd = np.array(table).T
ax.semilogx(lams, usual, "o-", label="samples")
ax.semilogx(lams, odd, "s-", label="outliers")
rules = (Lambda.auto(), Lambda.paper(1), Lambda.paper(4), Lambda.effective_rank(4))
for rule, style in zip(rules, ("-", "--", "-.", ":"), strict=True):
    lam = solve(data.X, lam=rule, tol=1e-2).lam
    ax.axvline(lam, color="k", lw=1, ls=style, label=repr(rule))
ax.set(xlabel="lam", ylabel="share of a sample that is noise")
ax.legend(fontsize=8)

# %%
# The certificate belongs to each of them: how far from the optimum, at most.

print("largest duality gap of the path:", f"{max(s.certificate.gap for s in solutions):.1e}")
plt.show()
