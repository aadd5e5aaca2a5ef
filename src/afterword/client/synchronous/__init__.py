"""The Python interface without `await`, for notebooks, scripts and Flask: the same methods, run in a thread.

`connect` and applications import it; it may import all of `afterword.client`.
"""
