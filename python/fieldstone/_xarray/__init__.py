"""Turns the fields of a store into the variables of a Dataset, with one module for each kind of store."""
