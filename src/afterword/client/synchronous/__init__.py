"""The Python interface without `await`, for notebooks, scripts and Flask. The methods run in an event loop in a thread.

`afterword.connect` returns an object of this package. The package may import all of `afterword.client`.
"""
