"""How the fields of a store become the variables of a Dataset, one module per kind of store."""
