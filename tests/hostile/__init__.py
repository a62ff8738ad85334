"""Input of strangers: random problems, damaged files, odd names, killed processes.

`problems`, `formats` and `names` are the generators, as strategies of hypothesis; the tests draw a
few hundred of each, `benchmarks/hostile.py` as many as it is asked for.
"""
