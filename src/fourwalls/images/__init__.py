"""Templates: recipes, imports, the EROFS build and the store."""
