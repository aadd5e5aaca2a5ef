"""Export and import of a store or a part of it, for another store or for people."""
