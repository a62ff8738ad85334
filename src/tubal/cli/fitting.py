"""`tubal cluster`, `outliers`, `complete` and `predict`: what --help says, and who does it.

The work is in `tubal.cli.session`, which is loaded when a command runs.
"""

from __future__ import annotations

import argparse


def cluster(args: argparse.Namespace) -> None:
    """Cluster samples, flag outliers, and write a folder with labels, model and report.

    DIR will hold
      labels.csv    name, label (-1: outlier), outlier_score, outlier (1 or 0), and margin: how far
                    the sample is from the next cluster. Of all that ties it to other samples, the
                    share that goes to its own cluster minus that of the best other one: 1 is clear,
                    0 is on the border
      model.npz     for `tubal predict`, or tubal.load_model in Python
      report.html   the result to look at
      run.json      parameters, versions, certificate, seconds, memory
      clean.npz     with --clean
    A fit that is interrupted with Ctrl-C goes on with --resume.

    example:
      tubal cluster faces/ -k 40 --size 64x48 --grey
      tubal cluster panel.npz --key readings --sample-axis 2 --out result
      tubal cluster digits.csv --shape 28x28 -k 10 --method TLRR-DCT
    """
    from tubal.cli.session import Cluster

    Cluster(args).run()


def outliers(args: argparse.Namespace) -> None:
    """Find the samples that do not fit the others, without clustering them.

    DIR will hold outliers.csv (name, outlier_score, outlier), model.npz, report.html, run.json,
    and clean.npz with --clean.

    example:
      tubal outliers panel.nc --contamination 0.1
    """
    from tubal.cli.session import Outliers

    Outliers(args).run()


def complete(args: argparse.Namespace) -> None:
    """Fill missing entries by the tensor of smallest nuclear norm.

    DIR will hold filled.npz (X: the samples, observed: what was given, names), report.html and
    run.json. Missing entries are NaN, empty fields of a table, or what --mask says.

    example:
      tubal complete cube.npy --mask seen.npy
    """
    from tubal.cli.session import Complete

    Complete(args).run()


def predict(args: argparse.Namespace) -> None:
    """Label further samples by a model that `tubal cluster` or `tubal outliers` wrote.

    Prints a table as labels.csv or outliers.csv. Pictures are resized as the model needs them.

    A .joblib model can run any code when it is loaded, so it needs --trust.

    example:
      tubal predict tubal-faces more-faces/ > more.csv
    """
    from tubal.cli.session import predict

    predict(args)
