"""What agents found, in the Python interface: the methods of a scope, and findings as JSON."""
